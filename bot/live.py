"""The configuration in force, and the judge of it: a reload puts others in their place, in one assignment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from bot.config import LoadedConfig
from bot.reload import Reloaded, reload
from core.config import Config
from core.judge import Judge
from core.model.request import AuditEvent
from core.ports import AuditStore, Clock

log = logging.getLogger(__name__)


class Live:
    """Holds what a reload replaces. `judge_of` raises ConfigError for a configuration that cannot be used."""

    def __init__(
        self,
        loaded: LoadedConfig,
        read: Callable[[], LoadedConfig],
        judge_of: Callable[[LoadedConfig], Judge],
        record: AuditStore,
        clock: Clock,
    ) -> None:
        self._read = read
        self._judge_of = judge_of
        self._record = record
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._in_force = (loaded, judge_of(loaded))

    def config(self) -> Config:
        """Return the configuration in force."""
        return self._in_force[0].config

    def judge(self) -> Judge:
        """Return the judge of the configuration in force."""
        return self._in_force[1]

    def where(self, path: str) -> str | None:
        """Tell file and line of a configuration path."""
        return self._in_force[0].where(path)

    async def reload(self, actor: str) -> Reloaded:
        """Read the configuration again; a bad one changes nothing, and both are recorded."""
        async with self._one_at_a_time:
            told = await asyncio.to_thread(reload, self._in_force[0], self._read, self._put)
            kind = "config.refused" if told.problems else "config.reloaded"
            keys = {
                "atOnce": [each.key for each in told.at_once],
                "atRestart": [each.key for each in told.at_restart],
            }
            data = {"problems": list(told.problems)} if told.problems else keys
            await self._record.append(AuditEvent(self._clock.now(), kind, actor, None, data))
        for line in (*told.problems, *told.warnings):
            log.warning("reload: %s", line)
        log.info("the configuration was read again: %s", "nothing changed" if told.problems else "in force")
        return told

    def _put(self, loaded: LoadedConfig) -> None:
        self._in_force = (loaded, self._judge_of(loaded))
