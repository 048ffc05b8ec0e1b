"""Runs side by side: `python -m eval.compare OUT... [--baseline OUT] [--shared] [--format markdown|csv|latex]`.

A table in the form of the paper's Table 2 (rows: models and methods, columns: datasets), what each run costs, and every
ensemble against the best single one of its own models, on the same questions.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from eval.comparison import compare
from eval.records import OutputError
from eval.tables import FORMATS


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison; 2 and one line on stderr if the runs cannot be compared."""
    parser = argparse.ArgumentParser(prog="python -m eval.compare", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="OUT", help="output folders")
    parser.add_argument("--baseline", action="append", default=[], type=Path, metavar="OUT",
                        help="also test every run of its dataset against this one (repeatable)")  # fmt: skip
    parser.add_argument("--shared", action="store_true", help="pair the questions that both runs answered")
    parser.add_argument("--format", choices=tuple(FORMATS), default="markdown")
    args = parser.parse_args(argv)
    try:
        comparison = compare(args.folders, args.baseline, shared=args.shared)
    except OutputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(FORMATS[args.format](comparison), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
