"""May this call of `process` be made? Looking at running commands and ending them types nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.arguments.judgement import ArgumentJudgement
from core.arguments.places import shown
from core.model.decision import Decision, Effect, Layer
from core.policy.names import normalise
from core.shell.word_list import word_list

_PROCESS = "process"
_HARMLESS = word_list("list poll log output status wait kill stop remove clear")
# Beside the action: which command is meant, and which part of its output.
_NAMING = word_list("sessionId session_id id bash_id shell_id task_id filter")
_INSTEAD = "a command is judged as a whole, so run it by a call of exec of its own"


def judge_process(tool: str, args: Mapping[str, Any]) -> ArgumentJudgement:
    """Deny what may type into a running command; nothing is said about other tools."""
    if normalise(tool) != _PROCESS:
        return ArgumentJudgement()
    why = _action_fault(tool, args) or _argument_fault(args)
    if why is None:
        return ArgumentJudgement()
    reason = f"{why}; {_INSTEAD}"
    return ArgumentJudgement((Decision(Layer.TOOL_POLICY, Effect.DENY, reason, "process.input", "built-in"),))


def _action_fault(tool: str, args: Mapping[str, Any]) -> str | None:
    # Clients' own tools (BashOutput, KillShell) do one thing each and take no action.
    if "action" not in args and tool.strip().casefold() != _PROCESS:
        return None
    action = args.get("action")
    if isinstance(action, str) and action in _HARMLESS:
        return None
    named = (
        f"the action {shown(action)!r}" if isinstance(action, str) else "a call of process without an action"
    )
    return f"{named} may write to a running command, and only {', '.join(sorted(_HARMLESS))} are known not to"


def _argument_fault(args: Mapping[str, Any]) -> str | None:
    for name, value in args.items():
        known = name == "action" or (name in _NAMING and isinstance(value, str))
        if not known and not (value is None or isinstance(value, (int, float))):
            return f"the argument {shown(str(name))!r} may be written to a running command"
    return None
