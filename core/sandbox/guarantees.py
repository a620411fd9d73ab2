"""Whether a run on the host can be held from Sayso's own state, and what follows where it cannot. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from core.config import ExecSecurity, ExecSettings, UnconfinedHost
from core.display import safe
from core.elevated.levels import Asking
from core.elevated.placement import Placed
from core.execsec.policy import ExecPolicy
from core.model.command import CommandFacts, Executable, Placement
from core.model.decision import Decision, Effect, Layer, Obligation
from core.model.plan import SandboxPlan

NOT_HELD: Final = "host.not-held"
NEW_PRIVILEGES: Final = "host.new-privileges"
_SOURCE: Final = "tools.exec.unconfinedHost"
_ONCE: Final = frozenset({Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK})
_ASKED_FOR: Final = "the agent asks for new privileges (newPrivileges)"


def needs_privileges(facts: CommandFacts, *, asked_for: bool) -> str | None:
    """Say why a command cannot run where no program gets new rights, or None where it can."""
    programs = (program for segment in facts.segments for program in segment.executables)
    taking = next((program for program in programs if program.privileged), None)
    if taking is not None:
        return _takes(taking)
    return _ASKED_FOR if asked_for else None


def _takes(program: Executable) -> str:
    return (
        f"`{safe(program.path)}` takes rights that its caller has not (setuid, setgid or file capabilities)"
    )


def question(
    plan: SandboxPlan, placed: Placed, policy: ExecPolicy, settings: ExecSettings, *, privileges: bool
) -> Decision | None:
    """Ask about a run on the host that nothing holds, whatever else admits it; None where it is held.

    Only what the operator accepted for the whole machine goes unasked, and only by `full`: an entry never
    admits there, because a program that it names could read the operator's token.
    """
    if placed.placement is not Placement.HOST or plan.unheld is None:
        return None
    full = policy.security is ExecSecurity.FULL or placed.asking is Asking.NEVER
    if not privileges and full and settings.unconfined_host is UnconfinedHost.ACCEPT:
        reason = f"{plan.unheld}, which tools.exec.unconfinedHost accepts"
        return Decision(Layer.ELEVATED, Effect.ALLOW, reason, NOT_HELD, _SOURCE)
    rule = NEW_PRIVILEGES if privileges else NOT_HELD
    reason = (
        "nothing keeps this run from Sayso's own keys, so it could answer questions in your name: "
        f"{plan.unheld}; a yes to it counts once"
    )
    return Decision(Layer.ELEVATED, Effect.ASK, reason, rule, _SOURCE, _ONCE)


def may_skip_people(trace: Iterable[Decision]) -> bool:
    """Tell whether elevated full may answer for people: never for a run that nothing holds."""
    return not any(each.rule in (NOT_HELD, NEW_PRIVILEGES) and each.effect > Effect.ALLOW for each in trace)
