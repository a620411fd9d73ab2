"""Which tools an agent may use, and with what: `tools`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from core.config.choices import ProfileName
from core.config.exec import ExecSettings
from core.config.section import NonEmpty, Section
from core.config.web import Domain, Origin


def _readable(entry: str) -> str:
    if not entry.isprintable():
        raise ValueError(
            "has a control character or one that cannot be seen; write the name in plain letters"
        )
    if not entry.strip():
        raise ValueError("is blank; give a tool, a group or a pattern, or remove the entry")
    return entry


ListEntry = Annotated[NonEmpty, AfterValidator(_readable)]
_LONGEST_PATH = 4095


def _no_longer_than_paths(pattern: str) -> str:
    size = len(pattern.encode(errors="replace"))
    if size > _LONGEST_PATH:
        raise ValueError(
            f"has {size:,} bytes, and no path has more than {_LONGEST_PATH:,}; "
            "write a shorter pattern, or several"
        )
    return pattern


PathPattern = Annotated[NonEmpty, AfterValidator(_no_longer_than_paths)]


def _without_brackets(pattern: str) -> str:
    found = next((char for char in pattern if char in "[]{}"), None)
    if found is not None:
        raise ValueError(
            f"{pattern!r} holds {found}, and only * and ? are wild here: write one pattern for each of "
            "{a,b} or [ab], and ? for a bracket that is part of a name"
        )
    return pattern


RestrictingPathPattern = Annotated[PathPattern, AfterValidator(_without_brackets)]


class PathRules(Section):
    """`tools.read` and `tools.write`."""

    allow: tuple[PathPattern, ...] = ()
    deny: tuple[RestrictingPathPattern, ...] = ()
    max_size_bytes: int = Field(default=10 * 1024 * 1024, ge=0)


class BrowserRules(Section):
    """`tools.browser`."""

    enabled: bool = True
    evaluate: bool = False
    allowed_origins: tuple[Origin, ...] = ()
    denied_origins: tuple[Origin, ...] = ()


class WebFetchRules(Section):
    """`tools.web_fetch`."""

    enabled: bool = True
    allowed_domains: tuple[Domain, ...] = ()
    denied_domains: tuple[Domain, ...] = ()
    max_response_bytes: int = Field(default=5 * 1024 * 1024, ge=0)
    follow_redirects: bool = True


class FsSettings(Section):
    """`tools.fs`: what restricts file tools; it brings none in."""

    workspace_only: bool = False


class ElevatedSettings(Section):
    """`tools.elevated`: who may elevate sessions, and whether subagents inherit that."""

    enabled: bool = False
    allow_from: tuple[NonEmpty, ...] = ()
    inherit: bool = False


class ElevatedOverrides(Section):
    """`agents.<id>.tools.elevated`: what is not given is as in `tools.elevated`."""

    enabled: bool | None = None
    allow_from: tuple[NonEmpty, ...] | None = None
    inherit: bool | None = None


class ToolLists(Section):
    """Allow and deny lists over tool names, groups and patterns; an empty allow list filters nothing."""

    allow: tuple[ListEntry, ...] = ()
    also_allow: tuple[ListEntry, ...] = ()
    deny: tuple[ListEntry, ...] = ()


class ProviderTools(ToolLists):
    """`tools.byProvider.<providerId>`."""

    profile: ProfileName | None = None


class SandboxTools(Section):
    """`tools.sandbox`: the lists that hold for sandboxed agents."""

    tools: ToolLists = ToolLists()


class SubagentTools(Section):
    """`tools.subagents`: the lists that hold for spawned agents."""

    tools: ToolLists = ToolLists()


class AskRules(Section):
    """`tools.ask`: calls that are put to a person."""

    tools: tuple[ListEntry, ...] = ()
    paths: tuple[RestrictingPathPattern, ...] = ()
    domains: tuple[Domain, ...] = ()


class ToolSettings(ToolLists):
    """`tools`: the global policy. `registered` are tools that exist and belong to no plugin."""

    registered: tuple[ListEntry, ...] = ()
    profile: ProfileName = ProfileName.FULL
    by_provider: dict[str, ProviderTools] = Field(default_factory=dict)
    ask: AskRules = AskRules()
    exec: ExecSettings | None = None
    fs: FsSettings | None = None
    read: PathRules = PathRules()
    write: PathRules = PathRules()
    browser: BrowserRules = BrowserRules()
    web_fetch: WebFetchRules = Field(default=WebFetchRules(), alias="web_fetch")
    elevated: ElevatedSettings = ElevatedSettings()
    sandbox: SandboxTools = SandboxTools()
    subagents: SubagentTools = SubagentTools()


class GroupSettings(Section):
    """`groups.<channel>.<id>`: what holds for sessions of one chat group."""

    tools: ToolLists = ToolLists()
