"""`explain` without a daemon: the configuration files, this machine's programs, and no state at all."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from adapters.parsers.pool import ParserPool
from adapters.resolvers.filesystem import FilesystemResolver
from adapters.resolvers.names import SystemNameResolver
from bot.config import LoadedConfig, merge
from bot.site import settled, survey
from core.explain import explain, listed_segments, read_row
from core.judge import Judge

KEPT_JUDGES = 64


class Explainer:
    """Answers rows against loaded configuration; rows may bring configuration of their own.

    With `any_machine` it answers as on one that can hold runs on the host, whatever this one can.
    """

    def __init__(self, loaded: LoadedConfig, home: Path, *, any_machine: bool = False) -> None:
        self._any_machine = any_machine
        self._loaded = loaded
        self._home = home
        self._resolver = FilesystemResolver()
        self._names = SystemNameResolver()
        self._parsers = ParserPool(workers=1)
        weakref.finalize(self, self._parsers.close)
        self._judges: dict[int, tuple[LoadedConfig, Judge]] = {}

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one row; raises RequestError or ConfigError for one that cannot be read."""
        asked = read_row(row)
        loaded = merge(self._loaded, asked.config) if asked.config else self._loaded
        answer = explain(self._judge(loaded), asked)
        for told in (*answer["trace"], *listed_segments(answer)):
            told["where"] = loaded.where(str(told["source"]))
        return {**answer, "where": loaded.where(str(answer["source"]))}

    def _judge(self, loaded: LoadedConfig) -> Judge:
        """Return the judge of a configuration, which `merge` gives again and again as the same object."""
        if id(loaded) not in self._judges:
            if len(self._judges) >= KEPT_JUDGES:
                self._judges.clear()
            site = survey(loaded.config, self._home, loaded.protected_paths)
            site = replace(site, unheld=None) if self._any_machine else site
            judge = Judge(
                settled(loaded.config), site, self._resolver, self._names, parse=self._parsers.parse
            )
            self._judges[id(loaded)] = (loaded, judge)
        return self._judges[id(loaded)][1]
