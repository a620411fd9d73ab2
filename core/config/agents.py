"""What holds for single agents: `agents`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from core.config.choices import ProfileName
from core.config.exec import ExecOverrides
from core.config.sandboxing import SandboxOverrides
from core.config.section import AbsolutePath, NonEmpty, Section
from core.config.tools import ElevatedOverrides, ProviderTools, SandboxTools, ToolLists


class AgentTools(ToolLists):
    """`agents.<id>.tools`."""

    profile: ProfileName | None = None
    by_provider: dict[str, ProviderTools] = Field(default_factory=dict)
    elevated: ElevatedOverrides | None = None
    sandbox: SandboxTools | None = None


class SubagentSettings(Section):
    """`agents.defaults.subagents`."""

    max_spawn_depth: int = Field(default=1, ge=0)


class AgentDefaults(Section):
    """`agents.defaults`."""

    elevated_default: Literal["off", "on", "ask"] = "off"
    subagents: SubagentSettings = SubagentSettings()


class AgentPin(Section):
    """`agents.<id>.pin`: what the operator knows of an agent; its own claims can only tighten this."""

    provider: NonEmpty | None = None
    model: NonEmpty | None = None
    depth: int = Field(default=0, ge=0)
    sandboxed: bool = False


class AgentSettings(Section):
    """`agents.<id>`; `workspace` is a directory of the operator's, None one that Sayso makes."""

    owner: bool = False
    workspace: AbsolutePath | None = None
    pin: AgentPin = AgentPin()
    tools: AgentTools = AgentTools()
    exec: ExecOverrides = ExecOverrides()
    sandbox: SandboxOverrides = SandboxOverrides()
    subagents: SubagentSettings | None = None


class Agents(Section):
    """`agents`: defaults, and one section for each agent id."""

    defaults: AgentDefaults = AgentDefaults()
    by_id: dict[str, AgentSettings] = Field(default_factory=dict)
