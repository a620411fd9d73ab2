"""Layer 1: which tools an agent may use at all. The steps, in order, are `STEPS` at the end of this module.

Each step is a pure function from a selection of tools to one that is no larger; the first sets out from all
registered tools. A tool must be brought in by the profile, or added to it, and then pass every step; people
are told the first step that takes it out. Nothing an agent claims about itself can bring a tool in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from core.config import Config, ProfileName, ProviderTools
from core.model.plan import WorkspaceAccess
from core.policy import catalog
from core.policy.lists import ListFilter, exactly, together
from core.policy.scene import Scene
from core.policy.toolset import (
    BUILT_IN,
    Admission,
    Removal,
    Role,
    Selection,
    ToolIdentity,
    ToolSet,
)
from core.policy.universe import Kind


def profile(scene: Scene, tools: Selection) -> Selection:
    """Keep the tools of the profile and what is added to it; owners' tools are kept for owners."""
    brought_in = _baseline(scene)
    admitted = {tool: brought_in[tool] for tool in tools.admitted if tool in brought_in}
    absent = tools.admitted.keys() - admitted.keys()
    kept = Selection(admitted, {**tools.removed, **{tool: _not_in_profile(scene, tool) for tool in absent}})
    if scene.agent.owner:
        return kept
    owners = {tool: _owners_only(scene, tool) for tool in catalog.OWNER_ONLY}
    return Selection(
        {tool: why for tool, why in admitted.items() if tool not in owners}, {**kept.removed, **owners}
    )


def provider_profile(scene: Scene, tools: Selection) -> Selection:
    """Keep what the provider's profile holds; it only narrows, because the provider may be a claim."""
    for lists, section in (*scene.provider_sections, *scene.agent_provider_sections):
        tools = tools.without(_outside_profile(section, lists, tools))
    return tools


def global_lists(scene: Scene, tools: Selection) -> Selection:
    """Apply the lists for all agents."""
    return _filtered("tools.allow", (scene.global_lists,), tools)


def provider_lists(scene: Scene, tools: Selection) -> Selection:
    """Apply the lists for this provider."""
    return _filtered("tools.byProvider.allow", (lists for lists, _ in scene.provider_sections), tools)


def agent_lists(scene: Scene, tools: Selection) -> Selection:
    """Apply the agent's own lists."""
    return _filtered("agents.<id>.tools.allow", (scene.agent_lists,), tools)


def agent_provider_lists(scene: Scene, tools: Selection) -> Selection:
    """Apply the agent's own lists for this provider."""
    own = (lists for lists, _ in scene.agent_provider_sections)
    return _filtered("agents.<id>.tools.byProvider.allow", own, tools)


def group_lists(scene: Scene, tools: Selection) -> Selection:
    """Apply the lists for the chat group of this session, and what plugins keep from that group."""
    return _filtered("group tools.allow", scene.group_lists, tools)


def subagents(scene: Scene, tools: Selection) -> Selection:
    """Take out what spawned agents never get and what the last in line does not get; apply their lists."""
    if scene.role is Role.ORCHESTRATOR:
        return tools
    lifted = exactly(scene.agent_lists.allow)
    never = {tool: _for_no_subagent(scene, tool) for tool in catalog.SUBAGENT_DENY_ALWAYS - lifted}
    leaf = {tool: _for_no_leaf(scene, tool) for tool in catalog.SUBAGENT_DENY_LEAF}
    tools = tools.without({**never, **leaf} if scene.role is Role.LEAF else never)
    return _filtered("subagents", (scene.subagent_lists,), tools)


def sandbox(scene: Scene, tools: Selection) -> Selection:
    """Apply the lists for sandboxed agents; the built-in ones hold where the agent was declared sandboxed.

    A list that an operator wrote replaces the built-in one of its name, though it be empty. Both places deny;
    of two allow lists the agent's own counts; a name in alsoAllow passes either.
    """
    if not scene.sandboxing.commands:
        return tools
    for lists in scene.sandbox_lists:
        tools = tools.without(lists.denies("sandbox", tools.admitted.keys()))
    written = next((lists for lists in scene.sandbox_lists if lists.allow), None)
    also = [entry for lists in scene.sandbox_lists for entry in lists.also_allow]
    if scene.sandboxing.agent and not _wrote(scene, "deny"):
        named = exactly((*(written.allow if written else ()), *also))
        tools = tools.without({t: _never_in_sandbox(scene, t) for t in catalog.SANDBOX_DENY - named})
    return tools.without(_outside_sandbox(scene, written, tools.admitted.keys() - together(also)))


def workspace(scene: Scene, tools: Selection) -> Selection:
    """Take out what writes files where the workspace is read-only."""
    access, written = scene.workspace_access
    if access is not WorkspaceAccess.RO:
        return tools
    rule, why = "workspace.read-only", f"{written} is ro, so {{}} is taken out"
    gone = {t: Removal("workspace", rule, written, why.format(t)) for t in catalog.READ_ONLY_DENY}
    return tools.without(gone)


def switches(scene: Scene, tools: Selection) -> Selection:
    """Take out tools whose own switch is off."""
    settings = scene.config.tools
    enabled = {"browser": settings.browser.enabled, "web_fetch": settings.web_fetch.enabled}
    return tools.without({tool: _switched_off(tool) for tool, on in enabled.items() if not on})


Step = Callable[[Scene, Selection], Selection]

# The pipeline, in its order: seven steps, then what restricts further.
STEPS: tuple[Step, ...] = (
    profile,
    provider_profile,
    global_lists,
    provider_lists,
    agent_lists,
    agent_provider_lists,
    group_lists,
    subagents,
    sandbox,
    workspace,
    switches,
)


def resolve(config: Config, identity: ToolIdentity) -> ToolSet:
    """Return the tools this identity may use, and for every other one what took it out."""
    scene = Scene(config, identity)
    tools = Selection(dict.fromkeys(scene.universe.names.ordered, _REGISTERED), {})
    for step in STEPS:
        tools = step(scene, tools)
    return replace(
        ToolSet.frozen(tools),
        warnings=scene.warnings(),
        allowlists=scene.allowlists(),
        role=scene.role,
        confined_by=scene.confined_by,
    )


_REGISTERED = Admission("registered", "tool.registered", BUILT_IN)


def _baseline(scene: Scene) -> dict[str, Admission]:
    """Bring tools in; the first that adds a tool is named."""
    name, written = scene.profile
    in_profile = catalog.PROFILES.get(name, scene.universe.tools - catalog.NAMED_ONLY)
    found = dict.fromkeys(in_profile, Admission("tools.profile", f"profile.{name.value}", written))
    for tools, admission in _additions(scene):
        for tool in tools:
            found.setdefault(tool, admission)
    return found


def _additions(scene: Scene) -> Iterator[tuple[frozenset[str], Admission]]:
    full = scene.profile[0] is ProfileName.FULL
    for lists in (scene.global_lists, scene.agent_lists):
        for index, entry in enumerate(lists.also_allow):
            reached = entry.tools - catalog.NAMED_ONLY if entry.kind is Kind.PATTERN else entry.tools
            yield reached, Admission(lists.path, "tool.also-allowed", f"{lists.path}.alsoAllow[{index}]")
        for index, entry in enumerate(lists.allow if full else ()):
            named = entry.tools & catalog.NAMED_ONLY if entry.kind is not Kind.PATTERN else frozenset()
            yield named, Admission(lists.path, "tool.named", f"{lists.path}.allow[{index}]")


def _filtered(step: str, filters: Iterable[ListFilter], tools: Selection) -> Selection:
    for lists in filters:
        tools = tools.without(lists.removes(step, tools.admitted.keys()))
    return tools


def _owners_only(scene: Scene, tool: str) -> Removal:
    source = f"{scene.agent_path}.owner"
    reason = f"{tool} is for agents with {source}: true; no list adds it"
    return Removal("tools.profile", "tool.owner-only", source, reason)


def _not_in_profile(scene: Scene, tool: str) -> Removal:
    name, written = scene.profile
    reason = f"the {name} profile does not hold {tool}; {scene.agent_path}.tools.alsoAllow adds it"
    return Removal("tools.profile", "tool.not-in-profile", written, reason)


def _outside_profile(section: ProviderTools, lists: ListFilter, tools: Selection) -> dict[str, Removal]:
    held = catalog.PROFILES.get(section.profile) if section.profile else None
    if held is None:
        return {}
    step, source = "tools.byProvider.profile", f"{lists.path}.profile"
    why = f"{source} is {section.profile}, which does not hold {{}}"
    return {
        tool: Removal(step, "tool.not-in-profile", source, why.format(tool))
        for tool in tools.admitted.keys() - held - lists.added
    }


def _for_no_subagent(scene: Scene, tool: str) -> Removal:
    path = f"{scene.agent_path}.tools.allow"
    reason = f"subagents cannot use {tool} unless {path} names it"
    return Removal("subagents", "subagent.always", BUILT_IN, reason, path)


def _for_no_leaf(scene: Scene, tool: str) -> Removal:
    most, written = scene.max_spawn_depth
    why = f"a subagent at depth {scene.depth} is a leaf ({written} is {most}) and cannot use {tool}"
    return Removal("subagents", "subagent.leaf", written, why)


def _wrote(scene: Scene, key: str) -> bool:
    return any(key in lists.written for lists in scene.sandbox_lists)


def _never_in_sandbox(scene: Scene, tool: str) -> Removal:
    path = f"{scene.agent_path}.sandbox.alsoAllow"
    reason = f"sandboxed agents cannot use {tool} unless {path} names it"
    return Removal("sandbox", "sandbox.denied", BUILT_IN, reason, path)


def _outside_sandbox(scene: Scene, written: ListFilter | None, tools: AbstractSet[str]) -> dict[str, Removal]:
    if written is not None:
        return written.narrows("sandbox", tools)
    if not scene.sandboxing.agent or _wrote(scene, "allow"):
        return {}
    path = f"{scene.agent_path}.sandbox.alsoAllow"
    why = f"{{}} is not among the tools of sandboxed agents; {path} adds it"
    return {
        tool: Removal("sandbox", "sandbox.not-allowed", BUILT_IN, why.format(tool), path)
        for tool in tools - catalog.SANDBOX_ALLOW
    }


def _switched_off(tool: str) -> Removal:
    source = f"tools.{tool}.enabled"
    return Removal("switches", "tool.switched-off", source, f"{source} is false")
