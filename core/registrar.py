"""The operator's desk for tools: registers plugins while the daemon runs. They are forgotten when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from core.acts import Acts
from core.config import Config
from core.model.principal import Reviewer
from core.model.request import AuditEvent
from core.policy.registry import NONE, Plugins, with_plugin, without_plugin
from core.policy.universe import plugin_tools
from core.ports import AuditStore, Clock
from core.store_ports import RevisionStore


class _Store(AuditStore, RevisionStore, Protocol):
    """The parts of the store that this is about."""


class Registrar:
    """Holds what was registered at run time; what the record could not take does not count."""

    def __init__(self, config: Callable[[], Config], store: _Store, clock: Clock) -> None:
        self._config = config
        self._store = store
        self._clock = clock
        self._plugins = NONE
        self._acts = Acts("plugins")

    async def close(self) -> None:
        """Wait for what is under way."""
        await self._acts.close()

    def plugins(self) -> Plugins:
        """Return the plugins registered at run time; the value never changes, another one takes its place."""
        return self._plugins

    async def register(self, plugin: str, tools: Sequence[str], reviewer: Reviewer) -> dict[str, Any]:
        """Register the tools of a plugin, in place of those it had."""
        return await self._acts.whole(self._registered(plugin, tools, reviewer))

    async def _registered(self, plugin: str, tools: Sequence[str], reviewer: Reviewer) -> dict[str, Any]:
        with_plugin(self._plugins, self._config(), plugin, tools)
        await self._record("tools.registered", reviewer, {"plugin": plugin, "tools": list(tools)})
        self._plugins = with_plugin(self._plugins, self._config(), plugin, tools)
        await self._store.revise()  # what was decided with the tools it had before is void
        return {"plugin": plugin, "tools": list(self._plugins[plugin]), "until": "the daemon ends"}

    async def unregister(self, plugin: str, reviewer: Reviewer) -> dict[str, Any]:
        """Take a plugin out again; from then on its tools are unknown."""
        return await self._acts.whole(self._unregistered(plugin, reviewer))

    async def _unregistered(self, plugin: str, reviewer: Reviewer) -> dict[str, Any]:
        self._plugins = without_plugin(self._plugins, plugin)
        await self._store.revise(self._event("tools.unregistered", reviewer, {"plugin": plugin}))
        return {"plugin": plugin, "text": "Unregistered: calls of its tools are denied from now on."}

    async def registered(self) -> list[dict[str, Any]]:
        """List all plugins, by id, with where each was registered."""
        configured = plugin_tools(self._config().plugins)
        rows = [_row(plugin, tools, f"plugins.{plugin}") for plugin, tools in configured.items()]
        rows += [_row(plugin, tools, "run time") for plugin, tools in self._plugins.items()]
        return sorted(rows, key=lambda row: str(row["plugin"]))

    async def _record(self, kind: str, reviewer: Reviewer, data: dict[str, Any]) -> None:
        await self._store.append(self._event(kind, reviewer, data))

    def _event(self, kind: str, reviewer: Reviewer, data: dict[str, Any]) -> AuditEvent:
        actor = f"person:{reviewer.channel}:{reviewer.id}"
        return AuditEvent(self._clock.now(), kind, actor, None, data)


def _row(plugin: str, tools: Sequence[str], source: str) -> dict[str, Any]:
    return {"plugin": plugin, "tools": list(tools), "source": source}
