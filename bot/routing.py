"""Who is asked where, by the configuration and by those who were let in since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from bot import registry
from core.approvals.pairing import with_people
from core.approvals.rehearsal import routes_of
from core.approvals.routes import LOCAL_CHANNELS, Route
from core.config import Config, ExecApprovals
from core.model.pairing import PairedPerson
from core.model.request import Request

People = Callable[[], tuple[PairedPerson, ...]]


class Routing:
    """Works out the routes of a request; the answer follows who is let in."""

    def __init__(self, config: Config, opened: Sequence[str], people: People) -> None:
        self._config = config
        self._opened = opened
        self._people = people
        self._known: tuple[tuple[PairedPerson, ...], ExecApprovals] | None = None

    def routes(self, request: Request) -> tuple[Route, ...]:
        """List the places in which a request is shown."""
        placed = _placed(routes_of(self._settings(), request, self._opened))
        first = {(route.channel, route.place): route for route in reversed(tuple(placed))}
        named = self.named()
        # An agent names its session, and with it a chat: only chats that the operator named are spoken to.
        return tuple(route for at, route in first.items() if at[0] in LOCAL_CHANNELS or at in named)

    def named(self) -> frozenset[tuple[str, str]]:
        """List the chats that the operator named, to be asked in or to be told in."""
        targets = (*self._settings().targets, *self._config.approvals.notices.targets)
        return frozenset((target.channel, registry.place(target.channel, target.to)) for target in targets)

    def _settings(self) -> ExecApprovals:
        people = self._people()
        if self._known is None or self._known[0] is not people:
            self._known = (people, with_people(self._config.approvals.exec, people, registry.place))
        return self._known[1]


def _placed(routes: Iterable[Route]) -> Iterator[Route]:
    """Name places as their channels do; a session's peer that names none there leads nowhere."""
    for route in routes:
        with suppress(ValueError):
            yield replace(route, place=registry.place(route.channel, route.place))
