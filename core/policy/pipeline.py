"""Layer 1: which tools an agent may use at all. The steps, in order, are `STEPS` at the end of this module.

A tool must be brought in by the profile, or added to it, and then pass every step; people are told the first
step that takes it out. Nothing an agent claims about itself can bring a tool in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType

from core.config import Config, ProfileName
from core.model.plan import WorkspaceAccess
from core.policy import catalog
from core.policy.lists import ListFilter
from core.policy.patterns import Entry, Kind
from core.policy.scene import Scene
from core.policy.toolset import Admission, Removal, ToolIdentity, ToolSet


def baseline(scene: Scene) -> dict[str, Admission]:
    """Step 1: the tools of the profile, and what is added to it; the first that adds a tool is named."""
    profile, written = scene.profile
    in_profile = catalog.PROFILES.get(profile, scene.universe.tools - catalog.NAMED_ONLY)
    found = {tool: Admission("tools.profile", f"profile.{profile.value}", written) for tool in in_profile}
    for tools, admission in _additions(scene):
        for tool in tools:
            found.setdefault(tool, admission)
    return found


def _additions(scene: Scene) -> Iterator[tuple[frozenset[str], Admission]]:
    tools = scene.config.tools
    if tools.exec is not None and tools.exec.model_fields_set:
        yield frozenset({"exec", "process"}), Admission("tools.profile", "profile.implied", "tools.exec")
    if tools.fs is not None:
        yield frozenset({"read", "write", "edit"}), Admission("tools.profile", "profile.implied", "tools.fs")
    full = scene.profile[0] is ProfileName.FULL
    for lists in (scene.global_lists, scene.agent_lists):
        for index, entry in enumerate(lists.also_allow):
            reached = entry.tools - catalog.NAMED_ONLY if entry.kind is Kind.PATTERN else entry.tools
            yield reached, Admission(lists.path, "tool.also-allowed", f"{lists.path}.alsoAllow[{index}]")
        for index, entry in enumerate(lists.allow if full else ()):
            named = entry.tools & catalog.NAMED_ONLY if entry.kind is not Kind.PATTERN else frozenset()
            yield named, Admission(lists.path, "tool.named", f"{lists.path}.allow[{index}]")


def provider_profile(scene: Scene, tool: str) -> Removal | None:
    """Step 2: a profile set for the provider; it can only narrow, because the provider may be a claim."""
    sections = (*scene.provider_sections, *scene.agent_provider_sections)
    lists = (*scene.provider_lists, *scene.agent_provider_lists)
    for (path, section), own in zip(sections, lists, strict=True):
        tools = catalog.PROFILES.get(section.profile) if section.profile else None
        if tools is not None and tool not in tools and not own.adds(tool):
            source = f"{path}.profile"
            reason = f"{source} is {section.profile}, which does not hold {tool}"
            return Removal("tools.byProvider.profile", "tool.not-in-profile", source, reason)
    return None


def global_lists(scene: Scene, tool: str) -> Removal | None:
    """Step 3: the lists for all agents."""
    return scene.global_lists.removes(tool)


def provider_lists(scene: Scene, tool: str) -> Removal | None:
    """Step 4: the lists for this provider."""
    return _first(scene.provider_lists, tool)


def agent_lists(scene: Scene, tool: str) -> Removal | None:
    """Step 5: the agent's own lists."""
    return scene.agent_lists.removes(tool)


def agent_provider_lists(scene: Scene, tool: str) -> Removal | None:
    """Step 6: the agent's own lists for this provider."""
    return _first(scene.agent_provider_lists, tool)


def group_lists(scene: Scene, tool: str) -> Removal | None:
    """Step 7: the lists for the chat group of this session."""
    return _first(scene.group_lists, tool)


def subagents(scene: Scene, tool: str) -> Removal | None:
    """Step 8: what spawned agents never get, what the last in line does not get, then the lists for them."""
    if scene.depth < 1:
        return None
    most, written = scene.max_spawn_depth
    if scene.depth >= most and tool in catalog.SUBAGENT_DENY_LEAF:
        reason = f"a subagent at depth {scene.depth} is a leaf ({written} is {most}) and cannot use {tool}"
        return Removal("tools.subagents", "subagent.leaf", written, reason)
    if tool in catalog.SUBAGENT_DENY_ALWAYS and tool not in _exact(scene.agent_lists.allow):
        reason = f"subagents cannot use {tool} unless {scene.agent_path}.tools.allow names it"
        return Removal("tools.subagents", "subagent.always", "built-in", reason)
    return scene.subagent_lists.removes(tool)


def sandbox(scene: Scene, tool: str) -> Removal | None:
    """Step 9: the lists for sandboxed agents; the built-in ones hold where nobody wrote others."""
    if not scene.sandboxed:
        return None
    denied = next((removal for each in scene.sandbox_lists if (removal := each.denies(tool))), None)
    if denied:
        return denied
    written = next((lists for lists in scene.sandbox_lists if lists.allow), ListFilter("tools.sandbox.tools"))
    added = [entry for lists in scene.sandbox_lists for entry in lists.also_allow]
    if tool in catalog.SANDBOX_DENY - _exact((*written.allow, *added)):
        reason = f"sandboxed agents cannot use {tool} unless {scene.agent_path}.sandbox.alsoAllow names it"
        return Removal("tools.sandbox", "sandbox.denied", "built-in", reason)
    if any(tool in entry.tools for entry in added):
        return None
    return written.narrows(tool) if written.allow else _outside_sandbox_default(scene, tool)


def _outside_sandbox_default(scene: Scene, tool: str) -> Removal | None:
    if tool in catalog.SANDBOX_ALLOW:
        return None
    reason = (
        f"{tool} is not among the tools of sandboxed agents; {scene.agent_path}.sandbox.alsoAllow adds it"
    )
    return Removal("tools.sandbox", "sandbox.not-allowed", "built-in", reason)


def _exact(entries: Iterable[Entry]) -> frozenset[str]:
    return frozenset[str]().union(*(entry.tools for entry in entries if entry.kind is Kind.NAME))


def read_only_workspace(scene: Scene, tool: str) -> Removal | None:
    """Step 10: a read-only workspace leaves nothing to write with."""
    access, written = scene.workspace_access
    if access is not WorkspaceAccess.RO or tool not in catalog.READ_ONLY_DENY:
        return None
    return Removal(
        "sandboxing.workspaceAccess",
        "workspace.read-only",
        written,
        f"{written} is ro, so {tool} is taken out",
    )


def switched_off(scene: Scene, tool: str) -> Removal | None:
    """Step 11: tools with a switch of their own."""
    tools = scene.config.tools
    off = {"browser": not tools.browser.enabled, "web_fetch": not tools.web_fetch.enabled}
    if not off.get(tool, False):
        return None
    path = f"tools.{tool}"
    return Removal(path, "tool.switched-off", f"{path}.enabled", f"{path}.enabled is false")


def _first(filters: tuple[ListFilter, ...], tool: str) -> Removal | None:
    return next((removal for each in filters if (removal := each.removes(tool))), None)


Step = Callable[[Scene, str], Removal | None]

# Step 1 is `baseline` without what is for owners; each tool it offers goes through these, in this order.
STEPS: tuple[Step, ...] = (
    provider_profile,
    global_lists,
    provider_lists,
    agent_lists,
    agent_provider_lists,
    group_lists,
    subagents,
    sandbox,
    read_only_workspace,
    switched_off,
)


def resolve(config: Config, identity: ToolIdentity) -> ToolSet:
    """Return the tools this identity may use, and for every other one what took it out."""
    scene = Scene(config, identity)
    offered = baseline(scene)
    admitted: dict[str, Admission] = {}
    removed: dict[str, Removal] = {}
    for tool in scene.universe.tools:
        verdict = _verdict(scene, tool, offered.get(tool))
        if isinstance(verdict, Removal):
            removed[tool] = verdict
        else:
            admitted[tool] = verdict
    return ToolSet(MappingProxyType(admitted), MappingProxyType(removed), scene.warnings(), scene.stripped)


def _verdict(scene: Scene, tool: str, admission: Admission | None) -> Admission | Removal:
    if tool in catalog.OWNER_ONLY and not scene.agent.owner:
        return _owners_only(scene, tool)
    if admission is None:
        return _not_in_profile(scene, tool)
    return next((removal for step in STEPS if (removal := step(scene, tool))), admission)


def _owners_only(scene: Scene, tool: str) -> Removal:
    source = f"{scene.agent_path}.owner"
    reason = f"{tool} is for agents with {source}: true; no list adds it"
    return Removal("tools.profile", "tool.owner-only", source, reason)


def _not_in_profile(scene: Scene, tool: str) -> Removal:
    profile, written = scene.profile
    reason = f"the {profile} profile does not hold {tool}; {scene.agent_path}.tools.alsoAllow adds it"
    return Removal("tools.profile", "tool.not-in-profile", written, reason)
