"""YAML files, environment and flags ▶ `core.config`; every error names file, line and key."""

from __future__ import annotations

from bot.config.enforcement import NOT_ENFORCED_YET
from bot.config.loaded import LoadedConfig, load, merge
from bot.config.overrides import Overrides

__all__ = ["NOT_ENFORCED_YET", "LoadedConfig", "Overrides", "load", "merge"]
