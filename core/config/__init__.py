"""The configuration, as validated values (text 002 §16). No file access here: `bot.config` reads files.

Keys are camelCase; snake_case is accepted. Every model is frozen and refuses unknown keys.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from core.config.agents import (
    AgentDefaults,
    AgentPin,
    Agents,
    AgentSettings,
    AgentTools,
    SubagentSettings,
)
from core.config.choices import (
    AskFallback,
    AskMode,
    ExecHost,
    ExecSecurity,
    ProfileName,
    SandboxBackend,
    SandboxMode,
    Scope,
    Unanalysable,
    UnconfinedHost,
)
from core.config.daemon import DaemonSettings, SocketSettings
from core.config.exec import AllowlistRule, ExecOverrides, ExecSettings, SafeBinProfile, SkillSettings
from core.config.people import (
    ApprovalSettings,
    ChannelSettings,
    ChatTarget,
    DiscordSettings,
    ExecApprovals,
    NoticeSettings,
    OperatorSettings,
    PeopleById,
    RouteTarget,
    SlackSettings,
    TelegramSettings,
    TelegramWebhook,
    TerminalSettings,
    WebSettings,
)
from core.config.plugins import PluginSettings
from core.config.sandboxing import DockerSettings, SandboxOverrides, SandboxSettings
from core.config.section import (
    AbsolutePath,
    AccountOnThisMachine,
    NonEmpty,
    PathOnThisMachine,
    Secret,
    Section,
)
from core.config.tools import (
    AskRules,
    BrowserRules,
    ElevatedOverrides,
    ElevatedSettings,
    FsSettings,
    GroupSettings,
    PathRules,
    ProviderTools,
    SandboxTools,
    SubagentTools,
    ToolLists,
    ToolSettings,
    WebFetchRules,
)

__all__ = [
    "AbsolutePath",
    "AccountOnThisMachine",
    "AgentDefaults",
    "AgentPin",
    "AgentSettings",
    "AgentTools",
    "Agents",
    "AllowlistRule",
    "ApprovalSettings",
    "AskFallback",
    "AskMode",
    "AskRules",
    "BrowserRules",
    "ChannelSettings",
    "ChatTarget",
    "Config",
    "DaemonSettings",
    "DiscordSettings",
    "DockerSettings",
    "ElevatedOverrides",
    "ElevatedSettings",
    "ExecApprovals",
    "ExecHost",
    "ExecOverrides",
    "ExecSecurity",
    "ExecSettings",
    "FsSettings",
    "GroupSettings",
    "LogSettings",
    "NonEmpty",
    "NoticeSettings",
    "OperatorSettings",
    "PathOnThisMachine",
    "PathRules",
    "PeopleById",
    "PluginSettings",
    "ProfileName",
    "ProviderTools",
    "RouteTarget",
    "SafeBinProfile",
    "SandboxBackend",
    "SandboxMode",
    "SandboxOverrides",
    "SandboxSettings",
    "SandboxTools",
    "Scope",
    "Secret",
    "Section",
    "SkillSettings",
    "SlackSettings",
    "SocketSettings",
    "SubagentSettings",
    "SubagentTools",
    "TelegramSettings",
    "TelegramWebhook",
    "TerminalSettings",
    "ToolLists",
    "ToolSettings",
    "Unanalysable",
    "UnconfinedHost",
    "WebFetchRules",
    "WebSettings",
]


_NO_SECTION = AgentSettings()
_NO_EXEC = ExecSettings()


class LogSettings(Section):
    """`log`."""

    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(Section):
    """The whole configuration; an empty file is a valid one."""

    tools: ToolSettings = ToolSettings()
    agents: Agents = Agents()
    groups: dict[str, dict[str, GroupSettings]] = Field(default_factory=dict)
    plugins: dict[str, PluginSettings] = Field(default_factory=dict)
    skills: dict[str, SkillSettings] = Field(default_factory=dict)
    approvals: ApprovalSettings = ApprovalSettings()
    people: PeopleById = Field(default_factory=dict)
    sandboxing: SandboxSettings = SandboxSettings()
    channels: ChannelSettings = ChannelSettings()
    operator: OperatorSettings = OperatorSettings()
    daemon: DaemonSettings = DaemonSettings()
    log: LogSettings = LogSettings()

    def agent(self, agent_id: str) -> AgentSettings:
        """Return the settings of an agent, or the defaults for one that has no section."""
        return self.agents.by_id.get(agent_id, _NO_SECTION)

    @property
    def exec(self) -> ExecSettings:
        """`tools.exec`, or its defaults where the section is absent."""
        return self.tools.exec or _NO_EXEC
