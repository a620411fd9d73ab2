"""Tells people what they did not ask for: from commits and events to notices in the outbox."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from core.approvals.notices import (
    CUT_OFF,
    ELEVATED_RAN,
    ELEVATED_SET,
    Spot,
    channel_notice,
    cut_off_notice,
    destinations,
    elevated_notice,
    elsewhere,
    notices_for,
    repeats,
    security_notice,
    summed_up,
)
from core.approvals.routes import LOCAL_CHANNELS
from core.config import NoticeSettings
from core.errors import StoreError
from core.model.notice import Notice, NoticeKind
from core.model.request import AuditEvent, Change, MessageKind, OutboxMessage
from core.model.session import SessionKey
from core.ports import Clock, OutboxStore

WINDOW_MS = 60_000
MOST_IN_WINDOW = 10
MOST_WINDOWS = 500
MOST_NEWS = 1_000
MOST_REMEMBERED = 1_000
MOST_TRIES = 10
RETRY_S = 1.0

log = logging.getLogger(__name__)

News = Change | AuditEvent
_ABOUT_LEVELS = (NoticeKind.ELEVATED, NoticeKind.UNASKED)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where notices can go: the channels that are open by now, and how each names its places.

    `place` raises ValueError where a name leads nowhere. An agent names its session, and with it a chat:
    only chats in `named`, which the operator wrote down, are spoken to as a session's own.
    """

    opened: Sequence[str]
    place: Callable[[str, str], str]
    named: Callable[[], Collection[tuple[str, str]]] = frozenset[tuple[str, str]]

    def spot(self, channel: str, to: str) -> Spot | None:
        """Return the place of this name; None where its channel is not open or knows no such place."""
        if channel not in self.opened:
            return None
        if channel in LOCAL_CHANNELS:
            return Spot(channel, "")
        try:
            return Spot(channel, self.place(channel, to))
        except ValueError:
            return None

    def own(self, session: SessionKey) -> Spot | None:
        """Return the chat that a session belongs to."""
        if not session.channel or not session.peer or session.channel in LOCAL_CHANNELS:
            return None
        spot = self.spot(session.channel, session.peer)
        return spot if spot and (spot.channel, spot.place) in self.named() else None

    def asked(self) -> tuple[Spot, ...]:
        """List the places in which people are asked: page, terminal, and the chats that were named."""
        chats = (Spot(*at) for at in sorted(self.named()) if at[0] not in LOCAL_CHANNELS)
        return (*(Spot(channel, "") for channel in LOCAL_CHANNELS), *chats)


@dataclass(slots=True)
class Window:
    """What one place was told of one kind since a moment, and how much was held back."""

    since: int
    sent: int = 0
    held: int = 0


@dataclass(slots=True)
class Measure:
    """Keeps what a place is told within bounds: repeats are told once a minute, and so much in all.

    Each kind has bounds of its own, so that many denials cannot hide a security event.
    """

    _windows: dict[tuple[Spot, NoticeKind], Window] = field(default_factory=dict)
    _told: OrderedDict[tuple[str, ...], int] = field(default_factory=OrderedDict)

    def is_news(self, key: tuple[str, ...], now: int) -> bool:
        """Tell whether this was not told within the last minute, and take note of it."""
        last = self._told.get(key)
        if last is not None and 0 <= now - last < WINDOW_MS:
            return False
        self._told[key] = now
        self._told.move_to_end(key)
        if len(self._told) > MOST_REMEMBERED:
            self._told.popitem(last=False)
        return True

    def admits(self, spot: Spot, kind: NoticeKind, now: int) -> bool:
        """Tell whether a place may be told one more of this kind; what it may not is counted."""
        window = self._windows.get((spot, kind))
        if window is None:
            # Agents name their own sessions: chats without number must not be reached that way.
            if len(self._windows) >= MOST_WINDOWS:
                return False
            window = self._windows[spot, kind] = Window(now)
        if window.sent < MOST_IN_WINDOW:
            window.sent += 1
            return True
        window.held += 1
        return False

    def next_end(self) -> int | None:
        """Return when the next window is over."""
        return min((window.since + WINDOW_MS for window in self._windows.values()), default=None)

    def ended(self, now: int) -> Iterator[tuple[Spot, Notice]]:
        """Close the windows that are over, and sum up what each held back."""
        over = [key for key, window in self._windows.items() if not 0 <= now - window.since < WINDOW_MS]
        for spot, kind in over:
            held = self._windows.pop((spot, kind)).held
            if held:
                yield spot, summed_up(kind, held)


class Herald:
    """Turns news into kept notices in a task of its own: no commit waits for it, none fails by it."""

    def __init__(
        self,
        outbox: OutboxStore,
        clock: Clock,
        settings: Callable[[], NoticeSettings],
        addresses: Addresses,
        masked: tuple[str, ...] = (),
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._settings = settings
        self._addresses = addresses
        self._masked = masked
        self._measure = Measure()
        self._news: asyncio.Queue[News] = asyncio.Queue(MOST_NEWS)
        self._unkept: list[OutboxMessage] = []
        self.on_post: list[Callable[[], None]] = []

    def hear(self, news: News) -> None:
        """Take note of a commit or an event; returns at once, and never raises."""
        try:
            self._news.put_nowait(news)
        except asyncio.QueueFull:
            log.warning("too much happens at once: one piece of news is not told to people")

    async def run(self) -> None:
        """Tell until cancelled; what was heard by then is still kept for the couriers."""
        try:
            while True:
                news = await self._next()
                self._unkept += self._messages(news)
                await self._keep()
        finally:
            await self._tell_the_rest()

    async def _next(self) -> News | None:
        """Wait for news; None where a window ends before any comes."""
        end = self._measure.next_end()
        delay = None if end is None else min(max(0, end - self._clock.now()), WINDOW_MS) / 1000
        try:
            async with asyncio.timeout(delay):
                return await self._news.get()
        except TimeoutError:
            return None

    async def _tell_the_rest(self) -> None:
        while not self._news.empty():
            self._unkept += self._messages(self._news.get_nowait())
        try:
            await self._post()
        except StoreError as error:
            log.warning("%d notices could not be kept at the end: %s", len(self._unkept), error)

    def _messages(self, news: News | None) -> list[OutboxMessage]:
        now = self._clock.now()
        messages = [self._message(spot, notice, now) for spot, notice in self._measure.ended(now)]
        try:
            if news is not None:
                messages += self._told(news, now)
        except Exception:  # a notice that cannot be built must not silence all that come after it
            log.exception("a notice could not be built")
        return messages

    def _told(self, news: News, now: int) -> Iterator[OutboxMessage]:
        request = news.request if isinstance(news, Change) else None
        for notice in self._notices(news):
            spots = self._spots(notice, news)
            if notice.kind is NoticeKind.ELEVATED:  # only people cause these, and the last word must be told
                yield from (self._message(spot, notice, now) for spot in spots)
            elif spots and self._measure.is_news(repeats(notice, request), now):
                admitted = (spot for spot in spots if self._measure.admits(spot, notice.kind, now))
                yield from (self._message(spot, notice, now) for spot in admitted)

    def _notices(self, news: News) -> tuple[Notice, ...]:
        if isinstance(news, Change):
            return notices_for(news, self._settings(), self._masked)
        builders = (security_notice, channel_notice, cut_off_notice, elevated_notice)
        made = (build(news, self._settings(), self._masked) for build in builders)
        return tuple(notice for notice in made if notice is not None)

    def _spots(self, notice: Notice, news: News) -> tuple[Spot, ...]:
        targets = self._targets()
        if notice.kind in _ABOUT_LEVELS:
            return self._about_levels(news)
        if isinstance(news, Change):
            own = self._addresses.own(news.request.call.session)
            return destinations(notice.kind, news.request, own, targets)
        if notice.kind is NoticeKind.CHANNEL:
            channel = str((news.data or {})["channel"])
            return elsewhere(channel, self._addresses.opened, targets, self._addresses.asked())
        if news.kind == CUT_OFF:
            return targets or self._everywhere()
        return destinations(notice.kind, None, None, targets)

    def _about_levels(self, news: News) -> tuple[Spot, ...]:
        """List the chats of the session and where its level was set, and the targets; else all places.

        Where a level was just set, the answer to the command told it already.
        """
        events = news.events if isinstance(news, Change) else (news,)
        event = next(event for event in events if event.kind in (ELEVATED_SET, ELEVATED_RAN))
        data = event.data or {}
        set_in = Spot(str(data["channel"]), data["place"]) if data["place"] is not None else None
        own = self._addresses.own(SessionKey.parse(str(data["session"])))
        wanted = dict.fromkeys(spot for spot in (own, set_in, *self._targets()) if spot is not None)
        if event.kind == ELEVATED_SET and set_in is not None:
            wanted.pop(set_in, None)
        return self._everywhere() if data.get("breakGlass") or not wanted else tuple(wanted)

    def _everywhere(self) -> tuple[Spot, ...]:
        """List all places, those too whose channel does not work now: what is kept is told when it does."""
        asked = self._addresses.asked()
        local = [spot for spot in asked if spot.channel in self._addresses.opened]
        chats = [spot for spot in asked if spot.channel not in LOCAL_CHANNELS]
        return tuple(dict.fromkeys((*chats, *local, *self._targets())))

    def _targets(self) -> tuple[Spot, ...]:
        found = (self._addresses.spot(target.channel, target.to) for target in self._settings().targets)
        return tuple(spot for spot in found if spot is not None)

    def _message(self, spot: Spot, notice: Notice, now: int) -> OutboxMessage:
        about = notice.request_id or ""
        return OutboxMessage(spot.channel, MessageKind.NOTICE, about, now, spot.place, notice)

    async def _keep(self) -> None:
        for _ in range(MOST_TRIES):
            try:
                await self._finish_post()
            except StoreError as error:
                log.warning("notices cannot be kept now: %s", error)
                await asyncio.sleep(RETRY_S)
            else:
                return
        log.error("%d notices were given up: the store did not take them", len(self._unkept))
        self._unkept = []

    async def _finish_post(self) -> None:
        """Post, and when cancelled wait for its end, so that the same is not posted again."""
        posting = asyncio.create_task(self._post(), name="herald-post")
        try:
            await asyncio.shield(posting)
        finally:
            await asyncio.wait([posting])

    async def _post(self) -> None:
        if not self._unkept:
            return
        await self._outbox.post(*self._unkept)
        self._unkept = []
        for told in self.on_post:
            told()
