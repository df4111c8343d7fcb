"""Writes a synthetic checkpoint: the shapes that docs/performance.md measures, with drawn weights.

    python3 reference/make_synthetic.py 15m 15m.bin
    python3 reference/make_synthetic.py 110m 110m.bin
"""

from __future__ import annotations

import argparse
from pathlib import Path

from checkpoint import NAMED_SHAPES, write_synthetic


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=sorted(NAMED_SHAPES))
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=108)
    arguments = parser.parse_args()
    write_synthetic(arguments.output, NAMED_SHAPES[arguments.shape], arguments.seed)


if __name__ == "__main__":
    main()
