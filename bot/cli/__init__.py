"""The command line. Each command lives in a module of its own, imported when it is called."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from bot.cli import exits
from bot.client import ClientError

COMMANDS = {
    "up": "up",
    "exec": "run",
    "check": "run",
    "wait": "run",
    "agent": "agents",
    "pending": "requests",
    "history": "requests",
    "show": "requests",
    "approve": "decide",
    "deny": "decide",
    "permissions": "permissions",
    "allowlist": "allowlist",
    "sessions": "sessions",
    "session": "sessions",
    "elevated": "sessions",
    "operator": "passphrase",
    "cancel": "decide",
    "lock": "decide",
    "unlock": "decide",
    "config": "configuration",
    "reload": "reload",
    "web": "daemon",
    "status": "daemon",
    "channels": "channels",
    "init": "init",
    "pair": "pair",
    "people": "people",
    "audit": "daemon",
    "tools": "policy",
    "explain": "policy",
    "policy": "policy_test",
    "doctor": "doctor",
    "version": "about",
    "help": "about",
}
LATER = ("service",)
SYNONYMS = {"--version": "version", "-V": "version", "--help": "help", "-h": "help"}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except exits.UsageError as error:
        hint = f"sayso {error.command} --help" if error.command else "sayso help"
        return _fail(exits.USAGE, f"{error}; {hint} shows how")
    except (ClientError, exits.BadConfiguration) as error:
        return _fail(exits.of_error(error), str(error))
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads: the interpreter must not try again
        return exits.BROKEN_PIPE


def _run(arguments: list[str]) -> int:
    name, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    name = SYNONYMS.get(name, name)
    if name in LATER:
        raise exits.UsageError(f"sayso {name} is not available in this version")
    if name not in COMMANDS:
        raise exits.UsageError(f"there is no command {name[:60]!r}{_nearest(name)}")
    status: int = getattr(import_module(f"bot.cli.{COMMANDS[name]}"), f"{name}_command")(rest)
    sys.stdout.flush()
    return status


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only after a slip

    near = get_close_matches(name, COMMANDS, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _fail(status: int, text: str) -> int:
    try:
        sys.stdout.flush()
        from bot.cli.terminal import note  # noqa: PLC0415 - only where there is something to tell

        note(f"sayso: {text}")
    except BrokenPipeError:
        return exits.BROKEN_PIPE
    return status
