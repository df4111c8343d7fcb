"""python -m proofinfer MODEL: tells a story."""

from __future__ import annotations

import argparse
import os
import sys
from typing import List, Optional

from . import Model, ProofinferError, Tokenizer, build, version

# What a terminal would obey and a story does not need: C0 without tab to carriage return, DEL, C1.
_CONTROLS = dict.fromkeys([*range(9), *range(14, 32), *range(127, 160)])


def _arguments(given: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proofinfer", description="Continues a prompt, as the proofinfer program does.")
    parser.add_argument("model", help="a llama2.c checkpoint")
    parser.add_argument("-i", "--prompt", default="", help="the text to continue; default: the model begins by itself")
    parser.add_argument("-n", "--steps", type=int, default=256, help="positions, prompt included; 0: the whole context")
    parser.add_argument("-t", "--temperature", type=float, default=0.0, help="0 takes the likeliest token (default)")
    parser.add_argument("-p", "--top-p", type=float, default=0.9, help="0 and 1 turn it off; default 0.9")
    parser.add_argument("-s", "--seed", type=int, default=1, help="where the random numbers start; default 1")
    parser.add_argument(
        "-z",
        "--tokenizer",
        help="default, for dir/name.bin: dir/name_tokenizer.bin, dir/tokenizer.bin or tokenizer.bin here",
    )
    parser.add_argument("--threads", type=int, default=1, help="threads that compute; default 1")
    parser.add_argument("--version", action="version", version=f"proofinfer {version()} ({build()})")
    return parser.parse_args(given)


def _open_tokenizer(given: Optional[str], model_path: str, model: Model) -> Tokenizer:
    if given is not None:
        return Tokenizer(given, model)
    directory, name = os.path.split(model_path)
    tried = []
    for path in (
        os.path.join(directory, os.path.splitext(name)[0] + "_tokenizer.bin"),
        os.path.join(directory, "tokenizer.bin"),
        "tokenizer.bin",
    ):
        if os.path.exists(path) and _count_pieces(path) == model.vocab_size:
            return Tokenizer(path, model)
        tried.append(path)
    raise FileNotFoundError(f"no tokenizer with {model.vocab_size} pieces: looked at {', '.join(tried)}; name one with -z")


def _count_pieces(path: str) -> int:
    with open(path, "rb") as file:
        data = file.read()
    at, count = 4, 0
    while at + 8 <= len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        at, count = at + 8 + length, count + 1
    return count if at == len(data) else -1


def _say(text: str) -> None:
    sys.stdout.buffer.write(text.translate(_CONTROLS).encode())
    sys.stdout.buffer.flush()


def _tell(arguments: argparse.Namespace) -> None:
    with (
        Model(arguments.model, threads=arguments.threads) as model,
        _open_tokenizer(arguments.tokenizer, arguments.model, model) as tokenizer,
    ):
        steps = arguments.steps if 0 < arguments.steps < model.seq_len else model.seq_len
        prompt = tokenizer.encode(os.fsencode(arguments.prompt))
        if len(prompt) > steps:
            _say(tokenizer.decode(prompt[: steps + 1]))
            return
        sampling = {"temperature": arguments.temperature, "top_p": arguments.top_p, "seed": arguments.seed}
        with model.session(context_length=steps) as session, session.generate(prompt, tokenizer, **sampling) as generation:
            _say(tokenizer.decode(prompt))
            for piece in generation:
                _say(piece.text)


def main(given: Optional[List[str]] = None) -> int:
    """Returns the exit code: 0, 1 after an error, 130 after Ctrl-C."""
    arguments = _arguments(given)
    try:
        _tell(arguments)
        _say("\n")
    except KeyboardInterrupt:
        _say("\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ProofinferError, OSError) as error:
        print(f"proofinfer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
