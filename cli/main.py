"""What both scripts do with their flags: run, and end in order."""

import argparse
import sys
from collections.abc import Sequence

from cli.flags import fail
from cli.ranks import Ranks
from cli.signals import Stopped, StopSignals


def main(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None, engine=None) -> int:
    """Run a script; returns its exit status: 2 after one line on stderr for wrong input, 128 + number for a signal.

    engine: what stands in for cli.engine.Engine in tests."""
    args, ranks, signals = parser.parse_args(argv), Ranks.from_environment(), StopSignals()
    try:
        with signals.on():
            from cli.run import USER_ERRORS, run  # torch, which takes seconds: not before the flags are right

            try:
                return run(args, ranks, signals, engine)
            except USER_ERRORS as error:
                return fail(error)
    except Stopped as stop:
        if ranks.is_main:
            again = "the same command without --overwrite" if args.overwrite else "the same command again"
            line = f"stopped by {stop}; every finished line is kept: run {again} to continue"
            print(f"\n{line}" if sys.stderr.isatty() else line, file=sys.stderr)
        return 128 + stop.number
