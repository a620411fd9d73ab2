"""`sayso session`: what holds for one session."""

from __future__ import annotations

from bot.cli.parser import Parser, verb
from bot.cli.session_modes import VERBS


def session_command(arguments: list[str]) -> int:
    """Do what one verb says."""
    if arguments[:1] in (["--help"], ["-h"]):
        usage = "sayso session tighten [SESSION] [--security deny|allowlist] [--ask always|on-miss] [--clear]"
        Parser("session", "What holds for one session of an agent.", usage).parse_args(["--help"])
    which, rest = verb("session", arguments, tuple(VERBS))
    return VERBS[which](rest)
