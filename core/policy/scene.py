"""One identity seen against one configuration: what the steps of the pipeline look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from core.config import AgentSettings, Config, ProfileName, ProviderTools, SandboxTools, ToolLists
from core.model.plan import WorkspaceAccess
from core.policy.lists import ListFilter
from core.policy.sandboxing import Sandboxing, sandboxing_of
from core.policy.toolset import AllowlistResolution, Role, ToolIdentity, role_of
from core.policy.universe import Universe, plugin_tools


@dataclass(frozen=True)
class Scene:
    """Settings and lists that count for one identity, each read once."""

    config: Config
    identity: ToolIdentity

    @cached_property
    def universe(self) -> Universe:
        """The registered tools: built in, configured, and registered at run time."""
        return universe_of(self.config, self.identity)

    @cached_property
    def agent(self) -> AgentSettings:
        """The settings of the agent."""
        return self.config.agent(self.identity.agent)

    @property
    def agent_path(self) -> str:
        """Where the agent's settings are written."""
        return f"agents.{self.identity.agent}"

    @cached_property
    def profile(self) -> tuple[ProfileName, str]:
        """The profile that counts, and where it is written."""
        if self.agent.tools.profile:
            return self.agent.tools.profile, f"{self.agent_path}.tools.profile"
        return self.config.tools.profile, "tools.profile"

    @cached_property
    def depth(self) -> int:
        """The spawn depth: the largest of what is pinned, claimed, and stored of the session."""
        stored = 0 if self.identity.role is Role.ORCHESTRATOR else 1
        return max(self.identity.depth, self.agent.pin.depth, stored)

    @cached_property
    def role(self) -> Role:
        """What the session is: by its depth, or by what was stored of it; the stricter counts."""
        return max(self.identity.role, role_of(self.depth, self.max_spawn_depth[0]))

    @cached_property
    def max_spawn_depth(self) -> tuple[int, str]:
        """The depth from which a subagent is a leaf, and where it is written."""
        if self.agent.subagents:
            return self.agent.subagents.max_spawn_depth, f"{self.agent_path}.subagents.maxSpawnDepth"
        return (
            self.config.agents.defaults.subagents.max_spawn_depth,
            "agents.defaults.subagents.maxSpawnDepth",
        )

    @cached_property
    def sandboxing(self) -> Sandboxing:
        """Whether the session is sandboxed, and what says so."""
        return sandboxing_of(self.config, self.identity.agent, self.depth, claimed=self.identity.sandboxed)

    @cached_property
    def workspace_access(self) -> tuple[WorkspaceAccess, str]:
        """How the workspace appears, and where that is written."""
        own = self.agent.sandbox.workspace_access
        if own is not None:
            return own, f"{self.agent_path}.sandbox.workspaceAccess"
        return self.config.sandboxing.workspace_access, "sandboxing.workspaceAccess"

    @property
    def confined_by(self) -> str | None:
        """The setting that keeps file tools inside the workspace, where one does."""
        access, written = self.workspace_access
        if access is WorkspaceAccess.NONE:
            return written
        fs = self.config.tools.fs
        return "tools.fs.workspaceOnly" if fs and fs.workspace_only else None

    @cached_property
    def global_lists(self) -> ListFilter:
        """`tools.allow`, `alsoAllow`, `deny`."""
        return self._read(self.config.tools, "tools")

    @cached_property
    def agent_lists(self) -> ListFilter:
        """`agents.<id>.tools.allow`, `alsoAllow`, `deny`."""
        return self._read(self.agent.tools, f"{self.agent_path}.tools")

    @cached_property
    def provider_sections(self) -> tuple[tuple[ListFilter, ProviderTools], ...]:
        """The global sections of this provider, pinned and claimed, and their lists."""
        return tuple(self._providers("tools", self.config.tools.by_provider))

    @cached_property
    def agent_provider_sections(self) -> tuple[tuple[ListFilter, ProviderTools], ...]:
        """The agent's own sections of this provider."""
        return tuple(self._providers(f"{self.agent_path}.tools", self.agent.tools.by_provider))

    @cached_property
    def group_lists(self) -> tuple[ListFilter, ...]:
        """The lists of the chat group this session belongs to, then what plugins keep from that group."""
        channel, peer = self.identity.channel, self.identity.peer
        if channel is None or peer is None:
            return ()
        written = [("groups", self.config.groups)]
        written += [(f"plugins.{plugin}.groups", own.groups) for plugin, own in self.config.plugins.items()]
        return tuple(
            self._restrict(groups[peer].tools, f"{path}.{name}.{peer}.tools")
            for path, channels in written
            for name, groups in channels.items()
            if name.lower() == channel.lower() and peer in groups
        )

    @cached_property
    def subagent_lists(self) -> ListFilter:
        """`tools.subagents.tools`."""
        return self._restrict(self.config.tools.subagents.tools, "tools.subagents.tools")

    @cached_property
    def sandbox_lists(self) -> tuple[ListFilter, ...]:
        """The lists for sandboxed agents that somebody wrote: the agent's own, then the global ones."""
        sections: tuple[tuple[str, SandboxTools | None], ...] = (
            (f"{self.agent_path}.tools.sandbox.tools", self.agent.tools.sandbox),
            ("tools.sandbox.tools", self.config.tools.sandbox),
        )
        return tuple(self._restrict(section.tools, path) for path, section in sections if section)

    def allowlists(self) -> tuple[AllowlistResolution, ...]:
        """Tell what became of each allow list that somebody wrote."""
        resolutions = (each.resolution for each in self._filters())
        return tuple(
            each for each in resolutions if each.policy or each.unknown_allowlist or each.stripped_allowlist
        )

    def warnings(self) -> tuple[str, ...]:
        """Tell, once each, what an operator would not expect."""
        texts = [warning for each in self._filters() for warning in each.warnings()]
        texts += [
            f"a plugin offers {tool!r}, which is built in; it is ignored" for tool in self.universe.shadowing
        ]
        return tuple(dict.fromkeys(texts))

    def _filters(self) -> Iterator[ListFilter]:
        yield self.global_lists
        yield from (lists for lists, _ in self.provider_sections)
        yield self.agent_lists
        yield from (lists for lists, _ in self.agent_provider_sections)
        yield from self.group_lists

    def _read(self, lists: ToolLists, path: str) -> ListFilter:
        return ListFilter.read(lists, path, self.universe, universe_of(self.config))

    def _restrict(self, lists: ToolLists, path: str) -> ListFilter:
        return ListFilter.read(lists, path, self.universe)

    def _providers(
        self, path: str, sections: dict[str, ProviderTools]
    ) -> Iterator[tuple[ListFilter, ProviderTools]]:
        identity, pin = self.identity, self.agent.pin
        named = {_plain(name) for name in (identity.provider, pin.provider) if name}
        models = {_plain(name) for name in (identity.model, pin.model) if name}
        wanted = named | {f"{provider}/{model}" for provider in named for model in models}
        for key, section in sections.items():
            if _plain(key) in wanted:
                yield self._restrict(section, f"{path}.byProvider.{key}"), section


def _plain(name: str) -> str:
    """Give the name of a provider or model without blanks and capitals."""
    return "/".join(part.strip() for part in name.casefold().split("/"))


def universe_of(config: Config, identity: ToolIdentity | None = None) -> Universe:
    """Return all tools that a configuration registers, and those registered at run time."""
    plugins: dict[str, tuple[str, ...]] = plugin_tools(config.plugins)
    for plugin, tools in identity.plugins.items() if identity else ():
        plugins[plugin] = (*plugins.get(plugin, ()), *tools)
    return Universe.of(plugins, config.tools.registered)
