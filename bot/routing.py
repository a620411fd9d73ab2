"""Who is asked where, by the configuration and by those who were let in since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from bot import registry
from core.approvals.people import paired_routes
from core.approvals.rehearsal import routes_of
from core.approvals.routes import LOCAL_CHANNELS, PAIRED, Route, joined
from core.config import Config, ExecApprovals
from core.elevated.senders import reaches
from core.model.pairing import PairedPerson
from core.model.request import Request

People = Callable[[], tuple[PairedPerson, ...]]
Places = frozenset[tuple[str, str]]


class Routing:
    """Works out the routes of a request; the answer follows who is let in."""

    def __init__(self, config: Callable[[], Config], opened: Sequence[str], people: People) -> None:
        self._config = config
        self._opened = opened
        self._people = people
        self._known: tuple[ExecApprovals, tuple[PairedPerson, ...], tuple[Route, ...]] | None = None

    @property
    def _settings(self) -> ExecApprovals:
        return self._config().approvals.exec

    @property
    def _written(self) -> Places:
        approvals = self._config().approvals
        targets = (*approvals.exec.targets, *approvals.notices.targets)
        return frozenset((target.channel, registry.place(target.channel, target.to)) for target in targets)

    def routes(self, request: Request) -> tuple[Route, ...]:
        """List the places in which a request is shown."""
        placed = _placed(routes_of(self._settings, request, self._opened, self._paired()))
        return joined(route for route in placed if self._may_be_asked(route))

    def named(self) -> Places:
        """List the chats that the operator named, to be asked in or told in, and those of people let in."""
        return self._written | {(route.channel, route.place) for route in _placed(self._paired())}

    def undecided(self) -> tuple[str, ...]:
        """List the open chats in which nobody could decide anything."""
        chats = (channel for channel in self._opened if channel not in LOCAL_CHANNELS)
        return tuple(channel for channel in chats if not self._is_decided_in(channel))

    def _may_be_asked(self, route: Route) -> bool:
        # An agent names its session, and with it a chat: only chats that the operator named are spoken to.
        known = route.channel in LOCAL_CHANNELS or route.source == PAIRED
        return known or (route.channel, route.place) in self._written

    def _is_decided_in(self, channel: str) -> bool:
        settings = self._settings
        if not settings.enabled:
            return False
        if any(route.channel == channel for route in self._paired()):
            return True
        patterns: list[str] = []
        if settings.mode != "targets" and any(at[0] == channel for at in self._written):
            patterns += settings.approvers
        if settings.mode != "session":
            for target in settings.targets:
                patterns += (target.approvers or settings.approvers) if target.channel == channel else ()
        return any(reaches(pattern, channel) for pattern in patterns)

    def _paired(self) -> tuple[Route, ...]:
        settings, people = self._settings, self._people()
        known = self._known
        if known is None or known[0] is not settings or known[1] is not people:
            known = (settings, people, paired_routes(settings, people, registry.place))
            self._known = known
        return known[2]


def _placed(routes: Iterable[Route]) -> Iterator[Route]:
    """Name places as their channels do; a session's peer that names none there leads nowhere."""
    for route in routes:
        with suppress(ValueError):
            yield replace(route, place=registry.place(route.channel, route.place))
