"""Runs the example: `make demo`, or `make demo ARGS="--listen 127.0.0.1:9000"`."""

import argparse
import sys
from collections.abc import Callable

from demo.stopping import Stop, StoppedError


def amount(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a number of an option within bounds."""

    def number(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")

    return number


def main() -> int:
    """Run it until a signal stops it; return the exit code."""
    stop = Stop()
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    many, few, minutes = amount(1, 20_000), amount(1, 1_000), amount(0, 240)
    parser.add_argument("--listen", default="127.0.0.1:8778", help="HOST:PORT of the server")
    parser.add_argument("--hosts", type=many, default=2_000, help="machines of the fleet")
    parser.add_argument("--jobs", type=few, default=300, help="jobs at once, at most")
    parser.add_argument("--past", type=minutes, default=60, help="minutes of jobs before the start")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another example")
    words = parser.parse_args()
    # What follows takes a second to import: Ctrl-C must work before.
    from demo.example import run, say
    from demo.serving import NotServedError

    try:
        run(words, stop)
    except NotServedError as error:
        sys.exit(f"demo: {error}")
    except StoppedError:
        say("demo: stopped; nothing is kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
