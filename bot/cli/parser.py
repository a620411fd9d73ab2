"""Argument parsing that reports slips as usage errors in one line."""

from __future__ import annotations

import argparse

from bot.cli.exits import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_WIDTH = 100  # a fixed width spares the start a module that asks the terminal for its own


class Parser(argparse.ArgumentParser):
    """An argument parser of one command."""

    def __init__(self, command: str, description: str, usage: str | None = None) -> None:
        super().__init__(
            prog=f"sayso {command}",
            description=description,
            usage=usage,
            allow_abbrev=False,
            formatter_class=_formatter,
        )
        self._command = command

    def error(self, message: str) -> NoReturn:
        """Report a slip."""
        stray = message.removeprefix("unrecognized arguments: ")
        if stray != message and not stray.startswith("-") and "CMD" in (self.usage or ""):
            message += "; a command stands behind --, a shell line behind -c"
        raise UsageError(f"{self._command}: {message}", self._command)

    def json_flag(self) -> None:
        """Take `--json`."""
        self.add_argument("--json", action="store_true", help="print JSON")


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, width=_WIDTH)


def split_command(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """Split at the first `--`: options before it, the command after it (None where there is no `--`)."""
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def verb(command: str, arguments: list[str], verbs: tuple[str, ...]) -> tuple[str, list[str]]:
    """Take the word after a command that has several; `--json` may stand before it."""
    early = [word for word in arguments[:1] if word == "--json"]
    rest = arguments[len(early) :]
    if rest and rest[0] in verbs:
        return rest[0], [*rest[1:], *early]
    got = f", not {rest[0][:60]!r}" if rest else ""
    raise UsageError(f"{command}: give one of {', '.join(verbs)}{got}")
