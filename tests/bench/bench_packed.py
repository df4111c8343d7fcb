#!/usr/bin/env python3
"""Opens one packed file in several worker processes and tells how long opening took and how much memory they hold together.

    bench_packed.py --program build/release/bin/proofinfer --library build/release/src/libproofinfer.so MODEL [--workers 4]

Packs MODEL (any checkpoint) into a temporary folder, has each worker open the file and compute a token, and adds up the proportional set sizes
(Pss of /proc/self/smaps_rollup, where a page that n processes share counts an nth in each). With --check it fails where the sum is more than 1.2
times the file, or the quickest opening takes 50 ms or more. Linux; standard library only.
"""
import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

MOST_COPIES, MOST_SECONDS = 1.2, 0.050
ROOM = 16 << 20  # of small files' workers: an interpreter each


def rollup(name):
    for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"no {name} in /proc/self/smaps_rollup")


def load(library):
    c = ctypes.CDLL(library)
    c.proofinfer_error_message.restype = ctypes.c_char_p
    return c


def need(c, status, error):
    if status:
        raise SystemExit(c.proofinfer_error_message(error).decode())


def work(library, path):
    """Opens, computes a token so that every weight was read, says so, and tells its Pss when all others are as far."""
    c, error = load(library), ctypes.c_void_p()
    before = rollup("Pss")
    model, session, options = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    name = os.fsencode(path)
    begin = time.perf_counter()
    need(c, c.proofinfer_model_open(name, ctypes.c_size_t(len(name)), None, None, ctypes.byref(model), ctypes.byref(error)), error)
    seconds = time.perf_counter() - begin
    need(c, c.proofinfer_options_create(ctypes.byref(options), ctypes.byref(error)), error)
    need(c, c.proofinfer_options_set_i64(options, b"context_length", ctypes.c_size_t(14), ctypes.c_int64(64), ctypes.byref(error)), error)
    need(c, c.proofinfer_session_create(model, options, ctypes.byref(session), ctypes.byref(error)), error)
    token = ctypes.c_int32(1)
    need(c, c.proofinfer_session_append(session, ctypes.byref(token), ctypes.c_size_t(1), 1, None, ctypes.byref(error)), error)
    print(seconds, flush=True)
    sys.stdin.readline()
    print(rollup("Pss"), before, flush=True)
    sys.stdin.readline()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("model", type=pathlib.Path)
    options = parser.parse_args()
    if options.work:
        return work(str(options.library.resolve()), options.model)
    with tempfile.TemporaryDirectory(dir=options.model.resolve().parent if os.access(options.model.resolve().parent, os.W_OK) else None) as folder:
        packed = pathlib.Path(folder, "packed.bin")
        subprocess.run([options.program.resolve(), "convert", "-q", "--packed", options.model, packed], check=True)
        file_bytes = packed.stat().st_size
        packed.read_bytes()  # into the page cache
        command = [sys.executable, __file__, "--work", "--library", options.library, packed]
        workers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(options.workers)]
        seconds = sorted(float(worker.stdout.readline()) for worker in workers)
        together = alone = 0
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
        for worker in workers:
            pss, before = map(int, worker.stdout.readline().split())
            together += pss
            alone += before
        for worker in workers:
            worker.communicate("\n")
    copies = together / file_bytes
    print(f"{options.workers} workers, file {file_bytes / 1e6:.1f} MB: Pss together {together / 1e6:.1f} MB = {copies:.3f} of the file "
          f"({alone / 1e6:.1f} MB of it before opening); opening {seconds[0] * 1e3:.2f} to {seconds[-1] * 1e3:.2f} ms")
    if options.check and (together > MOST_COPIES * file_bytes + (ROOM * options.workers if file_bytes < 400e6 else 0) or seconds[0] >= MOST_SECONDS):
        raise SystemExit("FAILED: more than 1.2 copies, or 50 ms and more")
    return None


if __name__ == "__main__":
    sys.exit(main())
