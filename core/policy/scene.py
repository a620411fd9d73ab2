"""One identity seen against one configuration: what the steps of the pipeline look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from core.config import AgentSettings, Config, ProfileName, ProviderTools, SandboxTools, ToolLists
from core.model.plan import WorkspaceAccess
from core.policy.lists import ListFilter
from core.policy.patterns import Universe
from core.policy.toolset import ToolIdentity


@dataclass(frozen=True)
class Scene:
    """Settings and lists that count for one identity, each read once."""

    config: Config
    identity: ToolIdentity

    @cached_property
    def universe(self) -> Universe:
        """The registered tools."""
        return Universe.of(self.identity.plugins)

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
        """The spawn depth: the larger of what is pinned and what is claimed."""
        return max(self.identity.depth, self.agent.pin.depth)

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
    def sandboxed(self) -> bool:
        """Whether the agent is sandboxed: pinned or claimed."""
        return self.identity.sandboxed or self.agent.pin.sandboxed

    @cached_property
    def workspace_access(self) -> tuple[WorkspaceAccess, str]:
        """How the workspace appears, and where that is written."""
        own = self.agent.sandbox.workspace_access
        if own is not None:
            return own, f"{self.agent_path}.sandbox.workspaceAccess"
        return self.config.sandboxing.workspace_access, "sandboxing.workspaceAccess"

    @cached_property
    def global_lists(self) -> ListFilter:
        """`tools.allow`, `alsoAllow`, `deny`."""
        return self._read(self.config.tools, "tools")

    @cached_property
    def agent_lists(self) -> ListFilter:
        """`agents.<id>.tools.allow`, `alsoAllow`, `deny`."""
        return self._read(self.agent.tools, f"{self.agent_path}.tools")

    @cached_property
    def provider_sections(self) -> tuple[tuple[str, ProviderTools], ...]:
        """The global sections of this provider, pinned and claimed, with their paths."""
        return tuple(self._providers("tools", self.config.tools.by_provider))

    @cached_property
    def agent_provider_sections(self) -> tuple[tuple[str, ProviderTools], ...]:
        """The agent's own sections of this provider."""
        return tuple(self._providers(f"{self.agent_path}.tools", self.agent.tools.by_provider))

    @cached_property
    def provider_lists(self) -> tuple[ListFilter, ...]:
        """The lists of `tools.byProvider`."""
        return tuple(self._read(section, path) for path, section in self.provider_sections)

    @cached_property
    def agent_provider_lists(self) -> tuple[ListFilter, ...]:
        """The lists of `agents.<id>.tools.byProvider`."""
        return tuple(self._read(section, path) for path, section in self.agent_provider_sections)

    @cached_property
    def group_lists(self) -> tuple[ListFilter, ...]:
        """The lists of the chat group this session belongs to."""
        channel, peer = self.identity.channel, self.identity.peer
        group = self.config.groups.get(channel or "", {}).get(peer or "")
        return (self._read(group.tools, f"groups.{channel}.{peer}.tools"),) if group else ()

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

    def warnings(self) -> tuple[str, ...]:
        """Tell, once each, what an operator would not expect."""
        lists = (
            self.global_lists,
            *self.provider_lists,
            self.agent_lists,
            *self.agent_provider_lists,
            *self.group_lists,
        )
        texts = [warning for each in lists for warning in each.warnings()]
        texts += [
            f"a plugin offers {tool!r}, which is built in; it is ignored" for tool in self.universe.shadowing
        ]
        return tuple(dict.fromkeys(texts))

    @property
    def stripped(self) -> bool:
        """Whether an allow list of plugin tools only was set aside."""
        lists = (*self.provider_lists, *self.agent_provider_lists, *self.group_lists)
        return any(each.stripped for each in (self.global_lists, self.agent_lists, *lists))

    def _read(self, lists: ToolLists, path: str) -> ListFilter:
        return ListFilter.read(lists, path, self.universe)

    def _restrict(self, lists: ToolLists, path: str) -> ListFilter:
        return ListFilter.read(lists, path, self.universe, keep_plugin_only=True)

    def _providers(
        self, path: str, sections: dict[str, ProviderTools]
    ) -> Iterator[tuple[str, ProviderTools]]:
        identity, pin = self.identity, self.agent.pin
        named = {name.casefold() for name in (identity.provider, pin.provider) if name}
        models = {name.casefold() for name in (identity.model, pin.model) if name}
        wanted = named | {f"{provider}/{model}" for provider in named for model in models}
        for key, section in sections.items():
            if key.casefold() in wanted:
                yield f"{path}.byProvider.{key}", section
