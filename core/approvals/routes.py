"""Who is asked where: from settings and a session to the places that show a question. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import re2

from core.approvals.terms import ANYTHING, Terms
from core.config import ExecApprovals, RouteTarget
from core.config.expressions import delimited
from core.elevated.senders import KNOWN_CHANNELS, reaches
from core.model.session import SessionKey
from core.model.standing import LONGEST_MS

WEB, TERMINAL = "web", "terminal"
LOCAL_CHANNELS = (WEB, TERMINAL)
PAIRED = "sayso pair"


@dataclass(frozen=True, slots=True)
class Route:
    """One place to ask in, who may answer there, for how long, and where that is written.

    So many people as `required` must say yes to what is asked there, and `terms` bound what they may answer.

    `place` is empty in local channels, whose login proves the operator: they need no approvers. In chats it
    is what the settings or the session call it: `user:ID`, `channel:ID`, `thread:ID`, or an id alone.
    """

    channel: str
    place: str
    approvers: tuple[str, ...]
    timeout_ms: int
    source: str
    required: int = 1
    terms: Terms = ANYTHING


def routes_for(
    settings: ExecApprovals,
    *,
    agent: str,
    session: SessionKey,
    open_channels: Sequence[str],
    paired: Sequence[Route] = (),
) -> tuple[Route, ...]:
    """List where a question is shown, chats first; empty where nobody can be asked.

    `paired` are the routes of people who were let in by a code; filters hold for them too. They come after
    the others: `joined` makes one of routes to the same place.
    """
    chats = tuple(_chats(settings, agent, session, open_channels, paired))
    return (*chats, *_local(settings, open_channels, chat_is_asked=bool(chats)))


def joined(routes: Iterable[Route]) -> tuple[Route, ...]:
    """Keep the first route of each place; who was let in by a code joins those who may answer there."""
    found: dict[tuple[str, str], Route] = {}
    for route in routes:
        at = (route.channel, route.place)
        first = found.setdefault(at, route)
        if first is not route and route.source == PAIRED:
            found[at] = replace(first, approvers=(*first.approvers, *route.approvers))
    return tuple(found.values())


def _local(settings: ExecApprovals, open_channels: Sequence[str], *, chat_is_asked: bool) -> Iterator[Route]:
    terminal = settings.local_prompt == "always" or (settings.local_prompt == "auto" and not chat_is_asked)
    for channel in LOCAL_CHANNELS:
        if channel in open_channels and (channel != TERMINAL or terminal):
            source = f"channels.{channel}"
            yield Route(channel, "", (), settings.timeout, source, settings.required, general_terms(settings))


def _chats(
    settings: ExecApprovals,
    agent: str,
    session: SessionKey,
    open_channels: Sequence[str],
    paired: Sequence[Route],
) -> Iterator[Route]:
    if not settings.enabled or not _passes(settings, agent, session):
        return
    # A target speaks for its place, also where its approvers are fewer than those of the session's chat.
    found: dict[tuple[str, str], Route] = {}
    for route in (*_targets(settings), *_own_chat(settings, session)):
        found.setdefault((route.channel, route.place), route)
    for route in (*found.values(), *paired):
        if route.approvers and route.channel in open_channels and route.channel not in LOCAL_CHANNELS:
            yield route


def _targets(settings: ExecApprovals) -> Iterator[Route]:
    if settings.mode in ("targets", "both"):
        for index, target in enumerate(settings.targets):
            yield _to_target(settings, target, f"approvals.exec.targets[{index}]")


def _to_target(settings: ExecApprovals, target: RouteTarget, source: str) -> Route:
    approvers = _present(target.approvers or settings.approvers, target.channel)
    return to_place(settings, target, approvers, source)


def to_place(settings: ExecApprovals, target: RouteTarget, approvers: tuple[str, ...], source: str) -> Route:
    """Make the route to a target; what it does not say itself is as in the general settings."""
    timeout = settings.timeout if target.timeout is None else target.timeout
    required = max(settings.required, target.required or 1)
    return Route(target.channel, target.to, approvers, timeout, source, required, _terms(settings, target))


def general_terms(settings: ExecApprovals) -> Terms:
    """Give what may be answered where no target says otherwise."""
    longest = LONGEST_MS if settings.max_duration is None else settings.max_duration
    return Terms(longest, settings.allow_always)


def _terms(settings: ExecApprovals, target: RouteTarget) -> Terms:
    terms = general_terms(settings)
    if target.max_duration is not None:
        terms = replace(
            terms, max_duration_ms=target.max_duration, duration_by=f"{_path(settings, target)}.maxDuration"
        )
    if target.allow_always is not None:
        terms = replace(
            terms, allow_always=target.allow_always, always_by=f"{_path(settings, target)}.allowAlways"
        )
    return terms


def _path(settings: ExecApprovals, target: RouteTarget) -> str:
    return f"approvals.exec.targets[{settings.targets.index(target)}]"


def _own_chat(settings: ExecApprovals, session: SessionKey) -> Iterator[Route]:
    if settings.mode in ("session", "both") and session.channel and session.peer:
        approvers = _present(settings.approvers, session.channel)
        yield Route(
            session.channel,
            session.peer,
            approvers,
            settings.timeout,
            "approvals.exec.mode",
            settings.required,
            general_terms(settings),
        )


def _present(approvers: Sequence[str], channel: str) -> tuple[str, ...]:
    """Leave those who can be in a channel: a place where nobody can answer must not count as asked."""
    return tuple(pattern for pattern in approvers if reaches(pattern, channel))


def _passes(settings: ExecApprovals, agent: str, session: SessionKey) -> bool:
    if settings.agent_filter and agent not in settings.agent_filter:
        return False
    return not settings.session_filter or any(_names(text, session) for text in settings.session_filter)


def _names(text: str, session: SessionKey) -> bool:
    if text in KNOWN_CHANNELS:
        return text == session.channel
    expression = delimited(text)
    if expression is not None:
        return _matches(expression, str(session))
    return text in str(session)


def _matches(expression: str, key: str) -> bool:
    try:
        return _compiled(expression).search(key) is not None
    except re2.error:
        return False


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:  # noqa: ANN401 - re2 is untyped
    options = re2.Options()
    options.log_errors = False
    return re2.compile(expression, options)
