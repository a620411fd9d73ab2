"""Updates on their way to the bot: numbering, confirmation, one poller at a time, webhook delivery."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from tests.platforms.telegram.description import union_problems
from tests.platforms.telegram.errors import ApiError
from tests.platforms.telegram.faults import Faults, conflict

Update = dict[str, Any]

_NOT_BY_DEFAULT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
_RETRY_SECONDS = 0.05
_WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)


class Signal:
    """Wakes everyone who waits for a change."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def fire(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._event.wait(), max(seconds, 0))
        except TimeoutError:
            return


class Updates:
    """The queue of one bot; an update leaves it when a later offset or a webhook's 2xx confirms it."""

    def __init__(self, faults: Faults) -> None:
        self.changed = Signal()
        self.pending: list[Update] = []
        self.webhook: dict[str, Any] = {}
        self.deliveries: list[tuple[int, int]] = []
        self.closed = False
        self._faults = faults
        self._allowed: list[str] = []
        self._next_id = 810_000_001
        self._polls = 0

    def add(self, kind: str, payload: dict[str, Any]) -> int | None:
        """Queue an update; None says that the bot does not want this kind."""
        update = {"update_id": self._next_id, kind: payload}
        problems = union_problems(["Update"], update, "update", outgoing=True)
        assert not problems, f"the server made a wrong update: {problems}"
        if not (kind in self._allowed if self._allowed else kind not in _NOT_BY_DEFAULT):
            return None
        self._next_id += 1
        self.pending.append(update)
        self.changed.fire()
        return update["update_id"]

    def allow(self, kinds: list[str] | None) -> None:
        self._allowed = self._allowed if kinds is None else kinds

    def _confirm(self, offset: int) -> None:
        if offset < 0:
            self.pending = self.pending[offset:]
        else:
            self.pending = [update for update in self.pending if update["update_id"] >= offset]

    async def poll(self, values: dict[str, Any]) -> list[Update]:
        """Answer getUpdates: wait for updates, give way to a newer poller with 409."""
        if self.webhook:
            raise ApiError(409, _WEBHOOK_ACTIVE)
        self._polls += 1
        mine = self._polls
        self.changed.fire()
        self.allow(values.get("allowed_updates"))
        self._confirm(values.get("offset", 0))
        until = asyncio.get_running_loop().time() + values.get("timeout", 0)
        while True:
            if batch := self._batch(values.get("limit", 100)):
                return batch
            left = until - asyncio.get_running_loop().time()
            if left <= 0 or self.closed:
                return []
            await self.changed.wait(left)
            if self._polls != mine:
                raise conflict().error or AssertionError

    def _batch(self, limit: int) -> list[Update]:
        batch = self.pending[:limit]
        match self._faults.twist("getUpdates", len(batch)) if batch else "":
            case "wait":
                return []
            case "duplicate":
                return [update for update in batch for _ in range(2)]
            case "reorder":
                return batch[::-1]
            case _:
                return batch

    async def deliver(self) -> None:
        """Send updates to the webhook, one after another, until each is answered with 2xx."""
        async with aiohttp.ClientSession(trust_env=False) as session:
            while not self.closed:
                if not (self.webhook and self.pending):
                    await self.changed.wait(3600)
                    continue
                await self._deliver_next(session)

    async def _deliver_next(self, session: aiohttp.ClientSession) -> None:
        twist = self._faults.twist("webhook", len(self.pending))
        if twist == "wait":
            await self.changed.wait(3600)
            return
        chosen = self.pending[1 if twist == "reorder" else 0]
        for _ in range(2 if twist == "duplicate" else 1):
            status = await self._send(session, chosen)
            self.deliveries.append((chosen["update_id"], status))
        if 200 <= status < 300:
            self.pending = [update for update in self.pending if update is not chosen]
        else:
            await asyncio.sleep(_RETRY_SECONDS)
        self.changed.fire()

    async def _send(self, session: aiohttp.ClientSession, update: Update) -> int:
        headers = {"Content-Type": "application/json"}
        if secret := self.webhook.get("secret_token"):
            headers["X-Telegram-Bot-Api-Secret-Token"] = secret
        try:
            async with session.post(self.webhook["url"], data=json.dumps(update), headers=headers) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0
