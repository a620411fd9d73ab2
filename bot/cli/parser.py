"""Argument parsing that reports slips as usage errors in one line."""

from __future__ import annotations

import argparse
import sys

from bot.cli.exits import OK, UsageError
from bot.client import name_socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

_SOCKET_HELP = "where the daemon listens (default: SAYSO_SOCKET, the one in SAYSO_HOME, the agents' own)"
_WIDTH = 100  # a fixed width spares the start a module that asks the terminal for its own


class Parser(argparse.ArgumentParser):
    """An argument parser of one command; a client of the daemon takes `--socket`."""

    def __init__(
        self, command: str, description: str, usage: str | None = None, *, client: bool = True
    ) -> None:
        super().__init__(
            prog=f"sayso {command}",
            description=description,
            usage=usage,
            allow_abbrev=False,
            formatter_class=_formatter,
        )
        self._command = command
        if client:
            self.add_argument(
                "--socket", action=_Socket, default=argparse.SUPPRESS, metavar="PATH", help=_SOCKET_HELP
            )

    def error(self, message: str) -> NoReturn:
        """Report a slip."""
        stray = message.removeprefix("unrecognized arguments: ")
        if stray != message and not stray.startswith("-") and "CMD" in (self.usage or ""):
            message += "; a command stands behind --, a shell line behind -c"
        raise UsageError(f"{self._command}: {message}", self._command)

    def json_flag(self) -> None:
        """Take `--json`."""
        self.add_argument("--json", action="store_true", help="print JSON")


class _Socket(argparse.Action):
    """Hands the path to the client, so that no command has to pass it on."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option: object = None
    ) -> None:
        """Take the path."""
        del namespace, option
        if not values:
            parser.error("--socket is empty; give the path of a socket, or leave it out")
        name_socket(str(values))


def count(text: str) -> int:
    """Read a whole number from an option."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number") from None


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, width=_WIDTH)


def split_command(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """Split at the first `--`: options before it, the command after it (None where there is no `--`)."""
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def verb(command: str, arguments: list[str], about: str, verbs: Mapping[str, str]) -> tuple[str, list[str]]:
    """Take the word after a command that has several; `--json` and `--socket` may stand before it.

    `about` and the words behind `verbs` are its help.
    """
    early = leading(arguments)
    rest = arguments[len(early) :]
    if rest and rest[0] in verbs:
        return rest[0], [*rest[1:], *early]
    if rest and rest[0] in ("--help", "-h"):
        print(_help_of_group(command, about, verbs))
        raise SystemExit(OK)
    got = f", not {rest[0][:60]!r}" if rest else ""
    if not rest:
        print(_help_of_group(command, about, verbs), end="\n\n", file=sys.stderr)
    raise UsageError(f"{command}: give one of {', '.join(verbs)}{got}", command)


def _help_of_group(command: str, about: str, verbs: Mapping[str, str]) -> str:
    width = max(map(len, verbs))
    rows = [f"  {name:<{width}}  {what}" for name, what in verbs.items()]
    head = [f"usage: sayso {command} {'|'.join(verbs)} …", "", about, ""]
    return "\n".join(
        [*head, *rows, "", f"Each tells its options: sayso {command} {next(iter(verbs))} --help."]
    )


def leading(arguments: list[str]) -> list[str]:
    """Return the options before a verb."""
    taken = 0
    while taken < len(arguments) and arguments[taken].partition("=")[0] in ("--json", "--socket"):
        taken += 2 if arguments[taken] == "--socket" else 1
    return arguments[:taken]
