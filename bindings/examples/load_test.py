#!/usr/bin/env python3
"""Load test of an example server, on the loopback interface: load_test.py --program PROOFINFER -- SERVER_COMMAND...

The command gets --listen, --model, --tokenizer, --sessions and --waiting. 200 requests, 8 at a time, a third of them dropped in the middle of
decoding: every completed stream must be byte-identical to the program's output, the session count must return to 0, memory must stay below a
fixed limit after warm-up, 8 clients must get more tokens a second than one at a time, and SIGTERM must let a running request finish and then end the process with status 0. Prints a line for each check;
the exit status is 0 if all hold."""
import argparse
import array
import http.client
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

REQUESTS, AT_A_TIME, WARM_UP = 200, 8, 24
GROWTH_LIMIT_MIB = 64
GAIN_WANTED = 1.5  # on a machine that does other things too
SESSIONS = 4
# About 2 ms a token: a client that leaves after a few pieces leaves in the middle of decoding.
SHAPE = dict(dim=384, hidden_dim=1024, n_layers=4, n_heads=6, n_kv_heads=6, vocab_size=1024, seq_len=512)
PROMPTS = ["Once upon a time", "", "The dog", "Lily said: \u201cLook, a \U0001f999!\u201d", "One day a cat\nran"]


def write_model(path):
    """A checkpoint of random weights that the demo tokenizer fits."""
    s = SHAPE
    kv = s["dim"] // s["n_heads"] * s["n_kv_heads"]
    layer = 2 * s["dim"] + 2 * s["dim"] ** 2 + 2 * s["dim"] * kv + 3 * s["dim"] * s["hidden_dim"]
    count = s["vocab_size"] * s["dim"] + s["n_layers"] * layer + s["dim"] + s["seq_len"] * s["dim"] // s["n_heads"]
    generator = random.Random(1)
    # A prime number of weights, repeated: no two rows are alike.
    block = array.array("f", (generator.uniform(-0.3, 0.3) for _ in range(100003)))
    weights = block * (count // len(block) + 1)
    with open(path, "wb") as file:
        array.array("i", s.values()).tofile(file)
        weights[:count].tofile(file)


def write_tokenizer(path, original):
    """The tokenizer with visible pieces in place of control bytes: the program leaves those out where they stand alone."""
    with open(original, "rb") as file:
        data = file.read()
    pieces = [data[:4]]
    at = 4
    while at < len(data):
        score, length = data[at:at + 4], struct.unpack_from("<i", data, at + 4)[0]
        piece = data[at + 8:at + 8 + length]
        at += 8 + length
        byte = re.fullmatch(rb"<0x([0-9A-F]{2})>", piece)
        if byte and (int(byte[1], 16) < 9 or 13 < int(byte[1], 16) < 32 or int(byte[1], 16) == 127):
            piece = b"[" + byte[1] + b"]"
        pieces.append(score + struct.pack("<i", len(piece)) + piece)
    with open(path, "wb") as file:
        file.write(b"".join(pieces))


class Completions:
    """What may be asked for, and what the program answers."""

    def __init__(self, program, model, tokenizer):
        self.program, self.model, self.tokenizer = program, model, tokenizer
        generator = random.Random(2)
        self.all = []
        for number in range(20):
            asked = dict(prompt=PROMPTS[number % len(PROMPTS)], max_tokens=generator.randrange(16, 48),
                         temperature=[0, 0.7, 1][number % 3], seed=generator.randrange(1, 2**53))
            self.all.append((asked, self.expected(asked)))

    def run(self, *arguments, text=""):
        return subprocess.run([self.program, *arguments], check=True, stdout=subprocess.PIPE, input=text.encode()).stdout.decode()

    def expected(self, asked):
        length = len(self.run("tokenize", "-z", self.tokenizer, "--vocab", str(SHAPE["vocab_size"]), "--bos", "-q", "-",
                              text=asked["prompt"]).split())
        output = self.run("generate", self.model, "-z", self.tokenizer, "-q", "-i", asked["prompt"], "-t", str(asked["temperature"]),
                          "-s", str(asked["seed"]), "-n", str(length - 1 + asked["max_tokens"]))
        assert output.startswith(asked["prompt"]) and output.endswith("\n"), output
        return output[len(asked["prompt"]):-1]


class Server:
    def __init__(self, command, model, tokenizer, sessions, waiting):
        self.process = subprocess.Popen([*command, "--listen", "127.0.0.1:0", "--model", model, "--tokenizer", tokenizer,
                                         "--sessions", str(sessions), "--waiting", str(waiting)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        self.port = int(line.rsplit(":", 1)[1])
        self.peak_kib = 0

    def status(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/status")
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))

    def request(self, asked, number):
        """Sends a completion: GET and POST in turn."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if number % 2 == 0:
            connection.request("GET", "/completion?" + urllib.parse.urlencode(asked))
        else:
            connection.request("POST", "/completion", json.dumps(asked), {"Content-Type": "application/json"})
        return connection, connection.getresponse()

    def complete(self, asked, number, leave_after=None):
        """The text of a completion, (status, text, last event); None in place of the event where the client left after some pieces."""
        connection, response = self.request(asked, number)
        try:
            if response.status != 200:
                return response.status, response.read().decode(), None
            text, pieces = "", 0
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                event = json.loads(line[6:])
                if event.get("done"):
                    return 200, text, event
                text += event["text"]
                pieces += 1
                if pieces == leave_after:
                    return 200, text, None
            raise AssertionError("the stream ended without a last event")
        finally:
            response.close()
            connection.close()

    def idle(self, seconds=10):
        """Waits until there is no session; the last status."""
        end = time.monotonic() + seconds
        while True:
            status = self.status()
            if (status["sessions"], status["waiting"]) == (0, 0) or time.monotonic() > end:
                return status
            time.sleep(0.05)


failures = []


def check(holds, what):
    print(("ok      " if holds else "FAILED  ") + what, flush=True)
    if not holds:
        failures.append(what)


def load(server, completions):
    """The 200 requests, after a warm-up."""
    def one(number):
        asked, expected = completions.all[number % len(completions.all)]
        leave_after = 1 + number % 4 if number % 3 == 0 else None
        status, text, last = server.complete(asked, number, leave_after)
        if status != 200:
            return "refused"
        if last is None:
            return "dropped" if expected.startswith(text) else f"dropped with other text: {text!r} {expected!r}"
        return "completed" if text == expected else f"other text: {text!r} instead of {expected!r}"

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(one, range(WARM_UP)))
        before, warm = server.idle(), server.memory_kib()
        stop = threading.Event()
        peak = [warm]

        def watch():
            while not stop.wait(0.02):
                peak[0] = max(peak[0], server.memory_kib())

        watcher = threading.Thread(target=watch)
        watcher.start()
        outcomes = list(pool.map(one, range(REQUESTS)))
        after = server.idle()
        stop.set()
        watcher.join()
    completed, dropped = outcomes.count("completed"), outcomes.count("dropped")
    seen = after["dropped"] - before["dropped"]
    check(completed + dropped == REQUESTS, f"{REQUESTS} requests, {AT_A_TIME} at a time: {completed} byte-identical to the program's output, "
          f"{dropped} dropped by the client")
    for outcome in sorted(set(outcomes) - {"completed", "dropped"})[:3]:
        print("        " + outcome)
    check(seen >= REQUESTS // 4, f"{seen} of the drops came in the middle of decoding (at least {REQUESTS // 4} wanted)")
    check((after["sessions"], after["waiting"]) == (0, 0), f"the session count returns to 0: {json.dumps(after)}")
    grown = (peak[0] - warm) / 1024
    check(grown < GROWTH_LIMIT_MIB, f"memory {warm / 1024:.0f} MiB after warm-up, {peak[0] / 1024:.0f} MiB at most (limit: {GROWTH_LIMIT_MIB} MiB more)")


def bad_requests(server):
    statuses = []
    for asked in [dict(max_tokens=0), dict(max_tokens="many"), dict(temperature=-1), dict(seed=-1), dict(prompt="x" * 12000)]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", "/completion?" + urllib.parse.urlencode(asked))
        statuses.append(connection.getresponse().status)
        connection.close()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", "/completion", "{")
    statuses.append(connection.getresponse().status)
    check(statuses == [400] * 6, f"bad requests get status 400: {statuses}")


def shutdown(server, completions):
    """SIGTERM while a request runs."""
    asked, expected = completions.all[0]
    connection, response = server.request(asked, 0)
    begin = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    text = "".join(json.loads(line[6:]).get("text", "") for line in response if line.startswith(b"data: "))
    connection.close()
    try:
        status = server.process.wait(30)
    except subprocess.TimeoutExpired:
        server.process.kill()
        status = "none"
    rest = server.process.stdout.read()
    check(text == expected and status == 0 and rest == "stopped\n",
          f"SIGTERM: the running request finishes, then status {status} after {time.monotonic() - begin:.1f} s")


def bound(command, model, tokenizer, completions):
    """More requests than there is room for."""
    server = Server(command, model, tokenizer, sessions=1, waiting=2)
    asked = dict(completions.all[1][0], max_tokens=200, temperature=0.7)
    try:
        with ThreadPoolExecutor(10) as pool:
            statuses = sorted(pool.map(lambda number: server.complete(asked, number)[0], range(10)))
        refused = statuses.count(503)
        check(statuses.count(200) + refused == 10 and statuses.count(200) >= 3 and refused > 0,
              f"10 requests at once with 1 session and 2 places in line: {10 - refused} served, {refused} refused with 503")
        check(server.idle()["refused"] == refused, "the refused ones are counted")
        shutdown(server, completions)
    finally:
        server.process.kill()


def throughput(command, model, tokenizer):
    """Tokens a second of 8 clients against those of one at a time."""
    server = Server(command, model, tokenizer, sessions=AT_A_TIME, waiting=AT_A_TIME)
    asked = [dict(prompt=PROMPTS[0], max_tokens=96, temperature=0.7, seed=seed) for seed in range(1, AT_A_TIME + 1)]

    def rate(clients):
        begin = time.monotonic()
        with ThreadPoolExecutor(clients) as pool:
            answers = list(pool.map(server.complete, asked, range(len(asked))))
        return [text for _, text, _ in answers], sum(last["tokens"] for _, _, last in answers) / (time.monotonic() - begin)

    try:
        rate(AT_A_TIME)
        texts, alone = rate(1)
        same, together = rate(AT_A_TIME)
        check(same == texts and together > GAIN_WANTED * alone, f"{together:.0f} tokens/s with {AT_A_TIME} clients, {alone:.0f} with one at a time: "
              f"{together / alone:.1f} times as many (at least {GAIN_WANTED}), the same texts")
    finally:
        server.process.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.bin")
        tokenizer = os.path.join(folder, "tokenizer.bin")
        write_model(model)
        write_tokenizer(tokenizer, arguments.tokenizer)
        completions = Completions(arguments.program, model, tokenizer)
        server = Server(arguments.command, model, tokenizer, SESSIONS, 32)
        try:
            load(server, completions)
            bad_requests(server)
            shutdown(server, completions)
        finally:
            server.process.kill()
        bound(arguments.command, model, tokenizer, completions)
        throughput(arguments.command, model, tokenizer)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
