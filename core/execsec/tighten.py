"""Policies that hold beside the configured one: the strictest answer of all of them counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from core.config import AskFallback, AskMode, ExecSecurity
from core.execsec.policy import ExecPolicy
from core.model.call import ToolCall
from core.model.tightening import NOTHING_TIGHTER, REQUEST, Stated, Tightening

Mode = TypeVar("Mode", ExecSecurity, AskMode, AskFallback)

_SECURITY: Final = (ExecSecurity.DENY, ExecSecurity.ALLOWLIST, ExecSecurity.FULL)


def tightened(policy: ExecPolicy, by: Tightening) -> ExecPolicy | None:
    """Return the policy with what is stated put in, or None where that changes nothing.

    Of two modes of security the stricter one stays. Of `ask` neither of two modes is the stricter for every
    command (`off` denies what `always` asks), so what is stated takes the place of what is configured; as
    both policies are asked and the strictest answer counts, it can loosen nothing.
    """
    sources: dict[str, str] = dict(policy.sources)
    security = min(policy.security, _stated(ExecSecurity, by.security, policy.security), key=_SECURITY.index)
    ask = _stated(AskMode, by.ask, policy.ask)
    fallback = _stated(AskFallback, by.ask_fallback, policy.ask_fallback)
    no_skills = by.auto_allow_skills is not None and by.auto_allow_skills.value == "false"
    skills = () if no_skills else policy.skill_bins
    stated = (security, ask, fallback, skills)
    if stated == (policy.security, policy.ask, policy.ask_fallback, policy.skill_bins):
        return None
    if security is not policy.security:
        _note(sources, "security", by.security)
        _note(sources, "ask", by.security)
    _note(sources, "ask", by.ask)
    _note(sources, "ask_fallback", by.ask_fallback)
    return replace(
        policy, security=security, ask=ask, ask_fallback=fallback, skill_bins=skills, sources=sources
    )


def in_force(policy: ExecPolicy, call: ToolCall, beside: Sequence[Tightening]) -> tuple[ExecPolicy, ...]:
    """Return the configured policy first, then each that what is kept, or the request, puts beside it."""
    stated = (by for by in (*beside, _stated_by(call)) if by != NOTHING_TIGHTER)
    return (policy, *(found for by in stated if (found := tightened(policy, by))))


def _stated_by(call: ToolCall) -> Tightening:

    def stated(value: str | None) -> Stated | None:
        return Stated(value, REQUEST) if value is not None else None

    return Tightening(stated(call.security), stated(call.ask))


def _note(sources: dict[str, str], setting: str, stated: Stated | None) -> None:
    if stated is not None:
        sources[setting] = stated.source


def _stated(kind: type[Mode], stated: Stated | None, otherwise: Mode) -> Mode:
    return otherwise if stated is None else kind(stated.value)
