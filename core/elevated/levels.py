"""What each level means, and which level holds (text 002 §14). Pure; docs/elevated.md has the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.config import Config
from core.elevated.authority import Authority, authority
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.elevation import NOT_ELEVATED, Elevation, Level, Standing
from core.model.session import SessionKey


class Asking(StrEnum):
    """Who is asked about a call, beside what the other layers say."""

    AS_POLICY = "as the policy says"
    ALWAYS = "always"
    NEVER = "never"
    BY_AUTHORISED = "somebody in allowFrom"


_ASKING = {
    Level.OFF: Asking.AS_POLICY,
    Level.ASK: Asking.ALWAYS,
    Level.ON: Asking.AS_POLICY,
    Level.FULL: Asking.NEVER,
}


@dataclass(frozen=True, slots=True)
class Treatment:
    """Where a call runs and who is asked: `level` is the one that counts for it."""

    level: Level
    placement: Placement
    asking: Asking


def treat(standing: Level, wanted: Level | None, configured: Placement) -> Treatment:
    """Say what a level means for a call that would run in `configured` without any.

    `wanted` is what the agent asks for: less than what stands is granted, more is only a question. On the
    host there is nothing to be elevated to, so that more asking is all that an agent can bring about.
    """
    if wanted is None or wanted.rank <= standing.rank:
        return _granted(standing if wanted is None else wanted, configured)
    if configured is not Placement.SANDBOX:
        return _granted(Level.ASK if wanted is Level.ASK else standing, configured)
    return Treatment(wanted, Placement.HOST, Asking.BY_AUTHORISED)


def _granted(level: Level, configured: Placement) -> Treatment:
    placement = configured if level is Level.OFF else Placement.HOST
    return Treatment(level, placement, _ASKING[level])


def standing_for(
    config: Config,
    call: ToolCall,
    by_session: Mapping[str, Elevation],
    directives: Mapping[str, Elevation],
    now: int,
) -> Standing:
    """Find the level that holds for a call: its own directive, else its session's, else the default's.

    `directives` are those that were used, by id. What somebody set who may not any more does not count.
    """
    who = authority(config, call.agent)
    if not who.enabled:
        return Standing(source=who.source)
    directive = directives.get(call.directive) if call.directive else None
    if directive is not None and _counts(directive, who, now):
        return Standing(directive.level, _kept_as(directive), directive)
    for key in _sessions(call, inherit=who.inherit):
        kept = by_session.get(str(key))
        if kept is not None and (_counts(kept, who, now) or (kept.lasts(now) and kept.level is Level.OFF)):
            return Standing(kept.level, _kept_as(kept), kept)
    depth = max(call.depth, config.agent(call.agent).pin.depth)
    if depth > 0 and not who.inherit:
        return NOT_ELEVATED
    return Standing(Level(config.agents.defaults.elevated_default))


def _counts(elevation: Elevation, who: Authority, now: int) -> bool:
    return elevation.lasts(now) and (elevation.break_glass or who.admits(elevation.set_by))


def _sessions(call: ToolCall, *, inherit: bool) -> Iterator[SessionKey]:
    """Yield the sessions whose level holds for a call: its own, and where that is inherited those above."""
    key = call.session
    if inherit or call.depth == key.depth:
        yield key
    while inherit and key.subagents:
        key = SessionKey(key.agent, key.channel, key.peer, key.subagents[:-1])
        yield key


def _kept_as(elevation: Elevation) -> str:
    return f"sayso sessions ({elevation.session})"
