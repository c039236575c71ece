"""The options of every program of OpenStack; those of its log are accepted, without an effect."""

import argparse
from collections.abc import Sequence
from typing import Any

_FLAGS = ("--nodebug", "--nouse-journal", "--nouse-json", "--nouse-syslog", "--use-journal")
_VALUES = {
    "--log-config-append": "PATH",
    "--log-date-format": "DATE_FORMAT",
    "--log-dir": "LOG_DIR",
    "--log-file": "PATH",
    "--syslog-log-facility": "SYSLOG_LOG_FACILITY",
}
_OTHER_NAMES = {
    "--log-config-append": ("--log-config", "--log_config"),
    "--log-dir": ("--logdir",),
    "--log-file": ("--logfile",),
}


class _ShowVersion(argparse.Action):
    """Prints the version, which is determined only then."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        from moorage import __version__

        print(__version__)  # noqa: T201 - the output of the program
        parser.exit()


def parser_of(program: str, *, version: bool) -> argparse.ArgumentParser:
    """Return a parser with the common options; `files` are those of the configuration, in order."""
    parser = argparse.ArgumentParser(prog=program)
    common: dict[str, Any] = {"action": "append", "dest": "files"}
    parser.add_argument("--config-dir", metavar="DIR", **common)
    parser.add_argument("--config-file", metavar="PATH", **common)
    parser.add_argument("--debug", "-d", action="store_true")
    for flag in (*_FLAGS, "--use-json", "--use-syslog"):
        parser.add_argument(flag, action="store_true", help=argparse.SUPPRESS)
    for name, metavar in _VALUES.items():
        names = (name, *_OTHER_NAMES.get(name, ()))
        parser.add_argument(*names, metavar=metavar, help=argparse.SUPPRESS)
    if version:
        parser.add_argument("--version", action=_ShowVersion, nargs=0)
    return parser
