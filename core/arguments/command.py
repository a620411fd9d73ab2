"""The command of an exec call, in the shapes in which clients send their arguments."""

from __future__ import annotations

import posixpath
from typing import Final

from core.model.call import CommandText, ToolCall

# Beside the command itself, what clients send along and what changes nothing about what runs.
_BESIDE: Final = frozenset(
    {"description", "timeout", "timeout_ms", "run_in_background", "yield_time_ms", "max_output_tokens"}
)
_COMMAND_ARGS: Final = ("command", "argv", "cmd")
_CWD_ARGS: Final = ("cwd", "workdir")
EXEC_ARGS: Final = _BESIDE.union(_COMMAND_ARGS, _CWD_ARGS)


def command_from(call: ToolCall) -> CommandText | None:
    """Read the command of an exec call; None where it is unclear, or brings what is not judged."""
    args = call.args
    given = [args[name] for name in _COMMAND_ARGS if name in args]
    wheres = [args[name] for name in _CWD_ARGS if args.get(name) is not None]
    if args.keys() - EXEC_ARGS or len(given) != 1 or len(wheres) > 1:
        return None  # what is not judged must not ride along with what is
    cwd = _directory(call, wheres[0]) if wheres else call.cwd
    if wheres and cwd is None:
        return None
    command = given[0]
    if isinstance(command, str) and "argv" not in args:
        return CommandText(line=command, cwd=cwd)
    if isinstance(command, (list, tuple)) and command and all(isinstance(word, str) for word in command):
        return CommandText(argv=tuple(command), cwd=cwd)
    return None


def _directory(call: ToolCall, where: object) -> str | None:
    """Give the directory that an argument names; a relative one starts from the cwd of the call."""
    if not isinstance(where, str) or not where:
        return None
    path = posixpath.join(call.cwd or "", where)
    return path if posixpath.isabs(path) else None
