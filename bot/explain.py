"""`explain` without a daemon: the configuration files, this machine's programs, and no state at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from adapters.resolvers.filesystem import FilesystemResolver

from bot.config import LoadedConfig, merge
from bot.site import survey
from core.explain import explain, read_row
from core.judge import Judge


class Explainer:
    """Answers rows against loaded configuration; rows may bring configuration of their own."""

    def __init__(self, loaded: LoadedConfig, home: Path) -> None:
        self._loaded = loaded
        self._home = home
        self._resolver = FilesystemResolver()
        self._judge = lru_cache(maxsize=64)(self._make_judge)

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one row; raises RequestError or ConfigError for one that cannot be read."""
        asked = read_row(row)
        loaded = merge(self._loaded, asked.config) if asked.config else self._loaded
        answer = explain(self._judge(loaded), asked)
        return {**answer, "where": loaded.where(str(answer["source"]))}

    def _make_judge(self, loaded: LoadedConfig) -> Judge:
        return Judge(loaded.config, survey(loaded.config, self._home, loaded.protected_paths), self._resolver)
