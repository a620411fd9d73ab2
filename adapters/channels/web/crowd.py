"""Bounds the connections of whoever is not signed in, so that nobody keeps others from the page.

Where there are too many, the oldest of whoever has most makes room: one who has few is always let in.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import Final
from weakref import WeakSet

from adapters.tcp_ends import Address, owner_of
from core.ports import Clock

logger = logging.getLogger("sayso.web")

MOST_GUESTS: Final = 128
MOST_SIGNED_IN: Final = 512
GUEST_S: Final = 30.0  # for a page, what belongs to it, and a form; a browser connects again
_QUIET_S: Final = 60.0
_NETWORK_BITS: Final = {4: 32, 6: 64}  # of an address, what one household or machine cannot choose

Connection = asyncio.Transport
Handlers = Callable[[], asyncio.BaseProtocol]


class Crowd:
    """Lets connections in as an `asyncio.Server` makes them, and hands them on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._handlers: Handlers = asyncio.Protocol
        self._guests: defaultdict[str, dict[Connection, asyncio.TimerHandle]] = defaultdict(dict)
        self._count = 0
        self._signed_in: WeakSet[asyncio.BaseTransport] = WeakSet()
        self._closed: defaultdict[str, int] = defaultdict(int)
        self._warned_at: float | None = None

    def hands_to(self, handlers: Handlers) -> None:
        """Hand each connection to what this makes from now on."""
        self._handlers = handlers

    def door(self) -> asyncio.Protocol:
        """Make what meets one connection."""
        return _Door(self)

    def enter(self, connection: Connection) -> asyncio.BaseProtocol:
        """Take a new connection as a guest's."""
        peer = peer_of(connection)
        if self._count >= MOST_GUESTS:
            self._forget_ended()
        if self._count >= MOST_GUESTS:
            self._make_room()
        timer = asyncio.get_running_loop().call_later(GUEST_S, self._end, peer, connection)
        self._guests[peer][connection] = timer
        self._count += 1
        return self._handlers()

    def sign_in(self, connection: asyncio.BaseTransport | None) -> None:
        """Let a connection stay: somebody who may has shown a login on it."""
        if not isinstance(connection, Connection) or len(self._signed_in) >= MOST_SIGNED_IN:
            return
        self._signed_in.add(connection)
        for peer in [peer for peer, guests in self._guests.items() if connection in guests]:
            self._leave(peer, connection)

    def _forget_ended(self) -> None:
        ended = [
            (peer, each) for peer, guests in self._guests.items() for each in guests if each.is_closing()
        ]
        for peer, connection in ended:
            self._leave(peer, connection)

    def _make_room(self) -> None:
        peer, guests = max(self._guests.items(), key=lambda each: len(each[1]))
        self._warn(peer)
        self._end(peer, next(iter(guests)))

    def _end(self, peer: str, connection: Connection) -> None:
        self._leave(peer, connection)
        connection.abort()

    def _leave(self, peer: str, connection: Connection) -> None:
        guests = self._guests.get(peer, {})
        timer = guests.pop(connection, None)
        if timer is not None:
            timer.cancel()
            self._count -= 1
        if not guests:
            self._guests.pop(peer, None)

    def _warn(self, peer: str) -> None:
        self._closed[peer] += 1
        now = self._clock.monotonic()
        if self._warned_at is None or now - self._warned_at >= _QUIET_S:
            self._warned_at = now
            told = ", ".join(f"{count:,} of {who}" for who, count in self._closed.items())
            self._closed.clear()
            logger.warning(
                "connections to the page were closed, because too many are not signed in: %s", told
            )


def peer_of(connection: asyncio.BaseTransport) -> str:
    """Name who is at the other end: a user of this machine, or a machine, as far as one can tell."""
    theirs, ours = (connection.get_extra_info(name) for name in ("peername", "sockname"))
    if theirs is None or ours is None:
        return "nobody"
    return _named(theirs[:2], ours[:2])


def _named(theirs: Address, ours: Address) -> str:
    owner = owner_of(theirs, ours)
    if owner is not None:
        return f"user {owner.uid}" if owner.inode else "somebody who left"
    address = ip_address(theirs[0].partition("%")[0])
    bits = _NETWORK_BITS[address.version]
    return str(ip_network(f"{address}/{bits}", strict=False))


class _Door(asyncio.Protocol):
    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, Connection):
            raise TypeError(transport)
        protocol = self._crowd.enter(transport)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
