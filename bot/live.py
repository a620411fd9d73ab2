"""The configuration in force, and the judge of it: a reload puts others in their place, in one assignment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from bot.config import LoadedConfig
from bot.config.marks import Mark
from bot.reload import Reloaded, reload
from bot.witness import Doubt, Witness
from core.acts import Acts
from core.config import Config
from core.judge import Judge
from core.model.request import AuditEvent
from core.ports import AuditStore, Clock
from core.store_ports import RevisionStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InForce:
    """A configuration, and the judge of it."""

    loaded: LoadedConfig
    judge: Judge


class _Record(AuditStore, RevisionStore, Protocol):
    """The parts of the store that this is about."""


class Live:
    """Holds what a reload replaces. `judge_of` raises ConfigError for a configuration that cannot be used."""

    def __init__(
        self,
        loaded: LoadedConfig,
        read: Callable[[], LoadedConfig],
        judge_of: Callable[[LoadedConfig], Judge],
        record: _Record,
        clock: Clock,
    ) -> None:
        self.witness = Witness(self._files, loaded.secrets)
        self._read = read
        self._judge_of = judge_of
        self._record = record
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._acts = Acts("reload")
        self._in_force = self._made(loaded)

    async def close(self) -> None:
        """Wait for a reload that is under way."""
        await self._acts.close()

    def loaded(self) -> LoadedConfig:
        """Return the configuration in force, and where it was read."""
        return self._in_force.loaded

    def config(self) -> Config:
        """Return the configuration in force."""
        return self._in_force.loaded.config

    def judge(self) -> Judge:
        """Return the judge of the configuration in force."""
        return self._in_force.judge

    def where(self, path: str) -> str | None:
        """Tell file and line of a configuration path."""
        return self._in_force.loaded.where(path)

    async def reload(self, actor: str, *, answered: bool = False) -> Reloaded:
        """Read the configuration again; a bad one changes nothing, and what is not recorded does not hold.

        Once this returns, nothing starts that was decided by the configuration before. `answered` tells that
        a person is told what this returns.
        """
        return await self._acts.whole(self._reload(actor, answered=answered))

    async def _reload(self, actor: str, *, answered: bool) -> Reloaded:
        async with self._one_at_a_time:
            made: list[InForce] = []
            doubts: list[Doubt] = []
            unheld = self.judge().site.unheld

            def put(loaded: LoadedConfig) -> None:
                made.append(self._made(loaded))

            def doubted(read: Mapping[str, Mark]) -> list[Doubt]:
                doubts.extend(self.witness.doubts(read))
                return doubts

            told = await asyncio.to_thread(
                reload, self._in_force.loaded, self._read, put, doubted, anew=unheld is not None
            )
            if unheld is not None and made and not told.problems:
                told = replace(told, host=_of_host(made[0].judge.site.unheld))
            await self._record.append(self._event(told, actor))
            if answered:
                self.witness.told(doubts)
            if made:
                self._in_force = made[0]
                await self._record.revise()
        _log(told)
        return told

    def _files(self) -> tuple[str, ...]:
        return self._in_force.loaded.protected_paths

    def _made(self, loaded: LoadedConfig) -> InForce:
        return InForce(loaded, self._judge_of(loaded))

    def _event(self, told: Reloaded, actor: str) -> AuditEvent:
        if told.problems:
            return AuditEvent(
                self._clock.now(), "config.refused", actor, None, {"problems": [*told.problems]}
            )
        keys = {
            "atOnce": [each.key for each in told.at_once],
            "atRestart": [each.key for each in told.at_restart],
        }
        return AuditEvent(self._clock.now(), "config.reloaded", actor, None, keys)


def _log(told: Reloaded) -> None:
    for line in told.problems:
        log.warning("reload refused, what was in force stays: %s", line)
    for line in (*told.warnings, *([told.host] if told.host else [])):
        log.warning("reload: %s", line)
    if not told.problems:
        differs = told.at_once or told.at_restart
        log.info("the configuration was read again: %s", "in force" if differs else "it is the same")


def _of_host(unheld: str | None) -> str:
    return (
        f"runs on the host are still not held: {unheld}"
        if unheld
        else "runs on the host are held from now on"
    )
