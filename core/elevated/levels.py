"""What each level means, and which level holds (text 002 §14). Pure; docs/elevated.md has the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from core.config import Config
from core.elevated.authority import Authority, authority
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.elevation import NOT_ELEVATED, Elevation, Level, Standing


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
    if wanted is None:
        return _granted(standing, configured)
    if configured is not Placement.SANDBOX:
        return _granted(max(standing, wanted, key=_asks), configured)
    if wanted.rank <= standing.rank:
        return _granted(wanted, configured)
    return Treatment(wanted, Placement.HOST, Asking.BY_AUTHORISED)


def _asks(level: Level) -> int:
    return (Asking.NEVER, Asking.AS_POLICY, Asking.ALWAYS).index(_ASKING[level])


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
    if call.depth == call.session.depth or who.inherit:
        kept = _kept_for(by_session.get(str(call.session)), who, now)
        if kept is not None:
            return kept
    above = _above(config, call, by_session, who, now)
    if who.inherit or max(call.depth, config.agent(call.agent).pin.depth) == 0:
        return above
    # What would be asked about above is asked about below too, on the host; nothing else is inherited.
    return replace(above, asks_only=True) if above.level is Level.ASK else NOT_ELEVATED


def _above(
    config: Config, call: ToolCall, by_session: Mapping[str, Elevation], who: Authority, now: int
) -> Standing:
    """Find the level of the nearest session that has one, from the call's own upwards, or the default's."""
    for key in reversed(call.session.lineage):
        kept = _kept_for(by_session.get(key), who, now)
        if kept is not None:
            return kept
    return Standing(Level(config.agents.defaults.elevated_default))


def _kept_for(kept: Elevation | None, who: Authority, now: int) -> Standing | None:
    counts = kept is not None and (_counts(kept, who, now) or (kept.lasts(now) and kept.level is Level.OFF))
    return Standing(kept.level, _kept_as(kept), kept) if kept is not None and counts else None


def _counts(elevation: Elevation, who: Authority, now: int) -> bool:
    return elevation.lasts(now) and (elevation.break_glass or who.admits(elevation.set_by))


def _kept_as(elevation: Elevation) -> str:
    return f"sayso sessions ({elevation.session})"
