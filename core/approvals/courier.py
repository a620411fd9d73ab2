"""Carries messages from the durable outbox to one channel, in order per request, until they have arrived."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress

from core.approvals.notices import reminder
from core.errors import DeliveryRefused, DeliveryUnclear, StoreError
from core.model.card import Card
from core.model.notice import Notice, NoticeKind
from core.model.request import Change, KeptCopy, MessageKind, OutboxMessage
from core.ports import Channel, Clock, OutboxStore, ReviewDesk

log = logging.getLogger(__name__)

BATCH = 50
FIRST_DELAY_MS = 500
LONGEST_DELAY_MS = 60_000
MOST_ATTEMPTS = 30
SLOWEST_DELIVERY_S = 30.0
STORE_DELAY_S = 1.0


class Courier:
    """Serves one channel; a slow or dead one delays no other."""

    def __init__(self, channel: Channel, outbox: OutboxStore, desk: ReviewDesk, clock: Clock) -> None:
        self._channel = channel
        self._outbox = outbox
        self._desk = desk
        self._clock = clock
        self._news = asyncio.Event()

    def wake(self, change: Change) -> None:
        """Look into the outbox soon, if this change left something there for the channel."""
        if any(message.channel == self._channel.name for message in change.messages):
            self._news.set()

    def nudge(self) -> None:
        """Look into the outbox soon."""
        self._news.set()

    async def tell_again(self) -> None:
        """Show everything that waits in a channel whose messages did not outlive the daemon."""
        if self._channel.keeps_copies:
            return
        shown: set[str] = set()
        while stale := await self._outbox.due(self._channel.name, self._clock.now() + 2**40, BATCH):
            for message in stale:
                card = await self._desk.card(message.request_id, (self._channel.name, message.place))
                is_post = message.kind is MessageKind.POST and card is not None
                ref = await self._channel.post(card, message.place, "") if is_post and card else None
                await self._outbox.delivered(message, ref)
                shown.add(message.request_id if is_post else "")
        for card in await self._desk.waiting():
            if card.request_id not in shown:
                await self._channel.post(card, "", "")

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            try:
                await self._serve_once()
            except StoreError as error:
                log.warning("%s: the outbox cannot be read or kept now: %s", self._channel.name, error)
                await asyncio.sleep(STORE_DELAY_S)

    async def _serve_once(self) -> None:
        self._news.clear()
        batch = await self._outbox.due(self._channel.name, self._clock.now(), BATCH)
        for message in batch:
            await self._deliver(message)
        if not batch:
            await self._sleep()

    async def _sleep(self) -> None:
        due = await self._outbox.next_due(self._channel.name)
        delay = None if due is None else max(0.0, (due - self._clock.now()) / 1000)
        # Not wait_for: in Python 3.11 it can swallow a cancellation that comes together with the news.
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._news.wait()

    async def _deliver(self, message: OutboxMessage) -> None:
        try:
            # Not wait_for, which in Python 3.11 loses a cancellation that comes with the answer.
            async with asyncio.timeout(SLOWEST_DELIVERY_S):
                ref = await self._send(message)
        except StoreError:
            raise
        except DeliveryRefused as error:
            await self._outbox.dropped(message, str(error))
        except DeliveryUnclear as error:
            await self._unclear(message, error)
        except Exception as error:  # noqa: BLE001 - a channel's library may raise anything; the message is kept
            await self._keep(message, error)
        else:
            await self._outbox.delivered(message, ref)

    async def _send(self, message: OutboxMessage) -> str | None:
        """Deliver one message; returns the reference of a new copy."""
        if message.notice is not None:
            await self._tell(message.notice, message)
            return None
        card = await self._desk.card(message.request_id, (self._channel.name, message.place))
        copies = await self._outbox.copies(message.request_id)
        here = (self._channel.name, message.place)
        kept = next((kept for kept in copies if (kept.copy.channel, kept.copy.place) == here), None)
        if card is None or kept is None:
            raise DeliveryRefused("its request is no longer kept")
        if message.kind is MessageKind.POST:
            return await self._channel.post(card, message.place, kept.copy.nonce)
        if kept.ref is not None:
            await self._change(message, card, kept)
        return None

    async def _tell(self, notice: Notice, message: OutboxMessage) -> None:
        """Tell a notice; a reminder only while its question is open, with what it says by then."""
        if notice.kind is not NoticeKind.REMINDER:
            return await self._channel.notify(notice, message.place)
        card, now = await self._desk.card(message.request_id), self._clock.now()
        if card is not None and card.waits and now < card.deadline:
            await self._channel.notify(reminder(card, now), message.place)
        return None

    async def _change(self, message: OutboxMessage, card: Card, kept: KeptCopy) -> None:
        """Bring a copy up to date, or remove it; what can no longer be removed says at least how it ended."""
        if message.kind is MessageKind.REMOVE:
            try:
                return await self._channel.remove(message.place, kept.ref or "")
            except DeliveryRefused as error:
                log.info("%s: a message is edited instead of deleted: %s", self._channel.name, error)
        return await self._channel.update(card, message.place, kept.ref or "", kept.copy.nonce)

    async def _unclear(self, message: OutboxMessage, error: DeliveryUnclear) -> None:
        """Try again what comes to the same twice; a post could appear twice, so it is left at that.

        Its buttons work if it did arrive: the nonce in them is kept, and the first press tells the reference.
        """
        if message.kind in (MessageKind.UPDATE, MessageKind.REMOVE) or _must_arrive(message):
            await self._keep(message, error)
        else:
            await self._outbox.dropped(message, f"it may have arrived, so it is not repeated: {error}")

    async def _keep(self, message: OutboxMessage, error: Exception) -> None:
        words = f"{type(error).__name__}: {error}"
        log.warning(
            "%s: message for request %s failed: %s", self._channel.name, message.request_id[:8], words
        )
        if message.attempts + 1 >= MOST_ATTEMPTS and not _must_arrive(message):
            await self._outbox.dropped(message, words)
            return
        delay = min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2**message.attempts)
        # Jitter keeps many messages from knocking at a recovering platform in the same instant.
        delay = int(delay * random.uniform(0.5, 1.5))  # noqa: S311 - not a secret
        asked_for = getattr(error, "retry_after_s", None) or 0
        due = self._clock.now() + max(delay, int(asked_for * 1000))
        await self._outbox.failed(message, due, words)


def _must_arrive(message: OutboxMessage) -> bool:
    """Tell whether a message is never given up: rather twice than not at all, however long a chat is down."""
    return message.notice is not None and message.notice.kind is NoticeKind.ELEVATED
