"""proofinfer against other programs on the same weights, in one run.

Rounds alternate between the contenders, so that a change of the machine's mood hits all; the table gives medians over the rounds and ratios to the first
contender. Any llama2.c-compatible binary is given by path; llama.cpp runs through the npm package node-llama-cpp (llama_cpp_bench.mjs) on a GGUF file
that export_gguf.py wrote from the same checkpoint.

    python3 reference/bench.py --program build/release/bin/proofinfer --checkpoint 15m.bin --tokenizer tokenizer.bin \\
        --reference O3=run-O3 --reference Ofast=run-Ofast --gguf 15m.gguf --node-folder FOLDER_WITH_node-llama-cpp \\
        --rounds 7 --plot docs/performance-15m.png

With --check the greedy output of every reference binary is compared with ours, byte for byte.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
Figures = dict[str, float]
# A larger share of the machine's own speed cannot be.
MEASURING_ERROR = 1.02


def run(command: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(command, capture_output=True, cwd=cwd, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")
    return done


def measure_proofinfer(arguments: argparse.Namespace) -> Figures:
    """Medians of one `proofinfer bench`."""
    command = [arguments.program, "bench", str(arguments.checkpoint), "--json", "--threads", str(arguments.threads)]
    command += ["--prompt-tokens", str(arguments.prompt_tokens), "--decode-tokens", str(arguments.decode_tokens)]
    command += ["--repeats", str(arguments.repeats), "--quiet"]
    if arguments.sessions:
        command += ["--sessions", str(arguments.sessions)]
    if arguments.isa:
        command += ["--isa", arguments.isa]
    if arguments.no_bounds:
        command.append("--no-bounds")
    figures = json.loads(run(command).stdout)["figures"]
    return {key: figure["median"] for key, figure in figures.items()}


def measure_reference(path: str, arguments: argparse.Namespace) -> Figures:
    """Decode speed as the binary reports it, the median of `repeats` runs; it has no prefill of its own."""
    speeds = []
    for _ in range(arguments.repeats):
        done = run(reference_command(path, arguments, arguments.decode_tokens))
        match = re.search(rb"tok/s: ([0-9.]+)", done.stderr)
        if match is None:
            sys.exit(f"{path} reported no speed")
        speeds.append(float(match[1]))
    return {"decode_tokens_per_second": statistics.median(speeds)}


def measure_llama_cpp(arguments: argparse.Namespace) -> Figures:
    numbers = [arguments.threads, arguments.prompt_tokens, arguments.decode_tokens, arguments.repeats]
    command = ["node", str(HERE / "llama_cpp_bench.mjs"), str(arguments.gguf.resolve()), *map(str, numbers)]
    result = json.loads(run(command, cwd=arguments.node_folder).stdout)
    return {key: statistics.median(values) for key, values in result.items()}


def reference_command(path: str, arguments: argparse.Namespace, steps: int) -> list[str]:
    return [path, str(arguments.checkpoint), "-z", str(arguments.tokenizer), "-t", "0", "-n", str(steps)]


def check_output(arguments: argparse.Namespace) -> None:
    """Greedy text of each reference binary against ours."""
    ours = run([*reference_command(arguments.program, arguments, 256), "--raw-pieces"]).stdout
    for name, path in arguments.reference:
        theirs = run(reference_command(path, arguments, 256)).stdout
        print(f"greedy output of {name}: {'byte-identical' if theirs == ours else 'DIFFERENT'} ({len(ours)} bytes)")
        if theirs != ours:
            sys.exit(1)


def table(rounds: dict[str, list[Figures]]) -> str:
    first = next(iter(rounds))
    lines = ["| program | decode tok/s | of ours | prefill tok/s | of ours |", "|---|---|---|---|---|"]
    medians = {
        name: {key: statistics.median(f[key] for f in figures) for key in figures[0]} for name, figures in rounds.items()
    }
    for name, figures in medians.items():
        cells = [name]
        for key in ("decode_tokens_per_second", "prefill_tokens_per_second"):
            cells.append(f"{figures[key]:.0f}" if key in figures else "")
            cells.append(f"{figures[key] / medians[first][key]:.2f}" if key in figures else "")
        lines.append("| " + " | ".join(cells) + " |")
    shown = ("together_tokens_per_second", "together_gain", "read_gigabytes_per_second", "decode_share_of_read_bound",
             "multiply_add_gigaflops", "prefill_share_of_multiply_add", "load_gigabytes_per_second", "peak_memory_bytes")
    for key in shown:
        if key in medians[first]:
            lines.append(f"\n{key}: {medians[first][key]:.4g}")
    if medians[first].get("decode_share_of_read_bound", 0) > MEASURING_ERROR:
        lines.append("\nDecoding seems to read faster than the machine can: a measuring error.")
    return "\n".join(lines)


def plot(rounds: dict[str, list[Figures]], title: str, output: Path) -> None:
    """Bars of the medians with the rounds as points; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6))
    for axis, key, label in zip(axes, ("decode_tokens_per_second", "prefill_tokens_per_second"), ("decode", "prefill")):
        names = [name for name, figures in rounds.items() if key in figures[0]]
        values = [[f[key] for f in rounds[name]] for name in names]
        axis.bar(names, [statistics.median(v) for v in values], color="#5b8db8")
        for place, points in enumerate(values):
            axis.plot([place] * len(points), points, "k.", markersize=3)
        axis.set_ylabel("tokens/s")
        axis.set_title(f"{label}, {title}")
        axis.tick_params(axis="x", labelrotation=20)
    figure.tight_layout()
    figure.savefig(output, dpi=110)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the proofinfer program")
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.bin; needed with --reference")
    parser.add_argument("--reference", action="append", default=[], metavar="NAME=PATH", help="a llama2.c-compatible binary")
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--node-folder", type=Path, help="a folder in which node-llama-cpp is installed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa")
    parser.add_argument("--no-bounds", action="store_true", help="do not measure what the machine could do")
    parser.add_argument("--sessions", type=int, default=0, help="also decode so many sessions together")
    parser.add_argument("--prompt-tokens", type=int, default=200)
    parser.add_argument("--decode-tokens", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=1, help="runs a contender makes in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between runs")
    parser.add_argument("--check", action="store_true", help="compare greedy output with the references' first")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path, help="write every figure of every round there")
    arguments = parser.parse_args()
    arguments.reference = [tuple(text.split("=", 1)) for text in arguments.reference]
    if arguments.reference and arguments.tokenizer is None:
        parser.error("--reference needs --tokenizer")
    if arguments.gguf and arguments.node_folder is None:
        parser.error("--gguf needs --node-folder")
    return arguments


def main() -> None:
    arguments = parse()
    if arguments.check:
        check_output(arguments)
    contenders = {"proofinfer": lambda: measure_proofinfer(arguments)}
    for name, path in arguments.reference:
        contenders[name] = lambda path=path: measure_reference(path, arguments)
    if arguments.gguf:
        contenders["llama.cpp"] = lambda: measure_llama_cpp(arguments)
    rounds: dict[str, list[Figures]] = defaultdict(list)
    for number in range(arguments.rounds):
        for name, measure in contenders.items():
            rounds[name].append(measure())
            time.sleep(arguments.pause)
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    print(table(rounds))
    if arguments.json:
        arguments.json.write_text(json.dumps(rounds, indent=1))
    if arguments.plot:
        plot(rounds, f"{arguments.checkpoint.stem}, {arguments.threads} thread(s)", arguments.plot)


if __name__ == "__main__":
    main()
