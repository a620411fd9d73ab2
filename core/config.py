"""The configuration, as validated values (text 002 §16). No file access here: `bot.config` reads files.

Keys are camelCase; snake_case is accepted. Every model is frozen and refuses unknown keys.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic.alias_generators import to_camel

from core.model.command import Placement
from core.model.plan import WorkspaceAccess


class Section(BaseModel):
    """A mapping of the configuration file."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, use_enum_values=False
    )

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(data, dict):
            for name, field in cls.model_fields.items():
                if field.alias and field.alias != name and {name, field.alias} <= data.keys():
                    raise ValueError(f"{name} and {field.alias} are the same key; keep one")
        return data


class ExecHost(StrEnum):
    """Where exec runs; `gateway` means this host."""

    SANDBOX = "sandbox"
    GATEWAY = "gateway"
    NODE = "node"


class ExecSecurity(StrEnum):
    """What may run at all."""

    DENY = "deny"
    ALLOWLIST = "allowlist"
    FULL = "full"


class AskMode(StrEnum):
    """When people are asked."""

    OFF = "off"
    ON_MISS = "on-miss"
    ALWAYS = "always"


class AskFallback(StrEnum):
    """What a question nobody answered in time turns into."""

    DENY = "deny"
    ALLOWLIST = "allowlist"


class Unanalysable(StrEnum):
    """What becomes of a command line that cannot be analysed."""

    DENY = "deny"
    ASK = "ask"


class SandboxMode(StrEnum):
    """Which sessions run in a sandbox."""

    OFF = "off"
    NON_MAIN = "non-main"
    ALL = "all"


class SandboxBackend(StrEnum):
    """How the sandbox is made; only bubblewrap is built yet."""

    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    SSH = "ssh"
    OPEN_SHELL = "openShell"


class Scope(StrEnum):
    """What shares one sandbox workspace."""

    SESSION = "session"
    AGENT = "agent"
    SHARED = "shared"


class ProfileName(StrEnum):
    """The built-in tool profiles."""

    FULL = "full"
    CODING = "coding"
    MESSAGING = "messaging"
    MINIMAL = "minimal"


NonEmpty = Annotated[str, Field(min_length=1)]


class AllowlistRule(Section):
    """An allowlist entry written by an operator."""

    pattern: NonEmpty
    args: tuple[str, ...] | None = None
    arg_pattern: NonEmpty | None = None
    placement: Placement = Placement.SANDBOX

    @model_validator(mode="after")
    def _one_way_to_match(self) -> AllowlistRule:
        if self.args is not None and self.arg_pattern is not None:
            raise ValueError("args and argPattern exclude each other; keep one")
        return self


class SafeBinProfile(Section):
    """What a safe bin's arguments may be (text 002 §7)."""

    allowed_value_flags: tuple[str, ...] = ()
    allowed_flags: tuple[str, ...] = ()
    denied_flags: tuple[str, ...] = ()
    max_positional: int = Field(default=0, ge=0)


class ExecOverrides(Section):
    """What an agent may set differently; None keeps what `tools.exec` says."""

    host: ExecHost | None = None
    security: ExecSecurity | None = None
    ask: AskMode | None = None
    ask_fallback: AskFallback | None = None
    strict_inline_eval: bool | None = None
    auto_allow_skills: bool | None = None
    allowlist: tuple[AllowlistRule, ...] = ()
    deny: tuple[NonEmpty, ...] = ()


class ExecSettings(Section):
    """`tools.exec`."""

    host: ExecHost = ExecHost.SANDBOX
    node: str | None = None
    security: ExecSecurity | None = None  # None: deny in a sandbox, allowlist elsewhere
    ask: AskMode = AskMode.ON_MISS
    ask_fallback: AskFallback = AskFallback.DENY
    on_unanalysable: Unanalysable = Unanalysable.DENY
    strict_inline_eval: bool = False
    auto_allow_skills: bool = False
    path_prepend: tuple[NonEmpty, ...] = ()
    safe_bins: tuple[NonEmpty, ...] = ("cut", "uniq", "head", "tail", "tr", "wc")
    safe_bin_trusted_dirs: tuple[NonEmpty, ...] = ("/bin", "/usr/bin")
    safe_bin_profiles: dict[str, SafeBinProfile] = Field(default_factory=dict)
    allowlist: tuple[AllowlistRule, ...] = ()
    deny: tuple[NonEmpty, ...] = ()
    timeout_seconds: float = Field(default=600, gt=0, le=86_400)
    max_output_bytes: int = Field(default=16 * 1024 * 1024, ge=1024, le=1024**3)


class PathRules(Section):
    """`tools.read` and `tools.write`."""

    allow: tuple[NonEmpty, ...] = ()
    deny: tuple[NonEmpty, ...] = ()
    max_size_bytes: int = Field(default=10 * 1024 * 1024, ge=0)


class BrowserRules(Section):
    """`tools.browser`."""

    enabled: bool = True
    allowed_origins: tuple[NonEmpty, ...] = ()
    denied_origins: tuple[NonEmpty, ...] = ()


class WebFetchRules(Section):
    """`tools.web_fetch`."""

    enabled: bool = True
    allowed_domains: tuple[NonEmpty, ...] = ()
    denied_domains: tuple[NonEmpty, ...] = ()
    max_response_bytes: int = Field(default=5 * 1024 * 1024, ge=0)
    follow_redirects: bool = True


class FsSettings(Section):
    """`tools.fs`: its presence adds read, write and edit to the profile."""

    workspace_only: bool = False


class ElevatedSettings(Section):
    """`tools.elevated`: who may turn elevation on."""

    enabled: bool = False
    allow_from: tuple[NonEmpty, ...] = ()


class ToolLists(Section):
    """Allow and deny lists over tool names, groups and patterns; an empty allow list filters nothing."""

    allow: tuple[NonEmpty, ...] = ()
    also_allow: tuple[NonEmpty, ...] = ()
    deny: tuple[NonEmpty, ...] = ()


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

    tools: tuple[NonEmpty, ...] = ()
    paths: tuple[NonEmpty, ...] = ()
    domains: tuple[NonEmpty, ...] = ()


class ToolSettings(ToolLists):
    """`tools`: the global policy."""

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


class AgentTools(ToolLists):
    """`agents.<id>.tools`."""

    profile: ProfileName | None = None
    by_provider: dict[str, ProviderTools] = Field(default_factory=dict)
    elevated: ElevatedSettings | None = None
    sandbox: SandboxTools | None = None


class DockerSettings(Section):
    """`sandboxing.docker`."""

    image: str = "debian:stable-slim"
    memory_mb: int = Field(default=512, gt=0)
    cpus: float = Field(default=1.0, gt=0)
    network: Literal["none", "bridge", "host"] = "none"


class SandboxSettings(Section):
    """`sandboxing`: how runs are confined. `workspaceRoot` None means below the state directory."""

    mode: SandboxMode = SandboxMode.ALL
    backend: SandboxBackend = SandboxBackend.BUBBLEWRAP
    scope: Scope = Scope.SESSION
    workspace_access: WorkspaceAccess = WorkspaceAccess.RW
    workspace_root: NonEmpty | None = None
    user: NonEmpty = "nobody"
    network: bool = False
    readable: tuple[NonEmpty, ...] = ()
    masked: tuple[NonEmpty, ...] = ()
    docker: DockerSettings = DockerSettings()


class SandboxOverrides(Section):
    """`agents.<id>.sandbox`; None keeps what `sandboxing` says."""

    enabled: bool | None = None
    mode: SandboxMode | None = None
    backend: SandboxBackend | None = None
    scope: Scope | None = None
    workspace_access: WorkspaceAccess | None = None


class SubagentSettings(Section):
    """`agents.defaults.subagents`."""

    max_spawn_depth: int = Field(default=1, ge=0)


class AgentDefaults(Section):
    """`agents.defaults`."""

    elevated_default: Literal["off", "on", "ask"] = "off"
    subagents: SubagentSettings = SubagentSettings()


class AgentSettings(Section):
    """`agents.<id>`; `workspace` is a directory of the operator's, None one that Sayso makes."""

    owner: bool = False
    workspace: NonEmpty | None = None
    tools: AgentTools = AgentTools()
    exec: ExecOverrides = ExecOverrides()
    sandbox: SandboxOverrides = SandboxOverrides()
    subagents: SubagentSettings | None = None


class Agents(Section):
    """`agents`: defaults, and one section for each agent id."""

    defaults: AgentDefaults = AgentDefaults()
    by_id: dict[str, AgentSettings] = Field(default_factory=dict)


class RouteTarget(Section):
    """`approvals.exec.targets[]`: one place to ask in."""

    channel: NonEmpty
    to: NonEmpty


class ExecApprovals(Section):
    """`approvals.exec`: who is asked, where, for how long. `timeout` is in milliseconds."""

    enabled: bool = True
    mode: Literal["session", "targets", "both"] = "session"
    agent_filter: tuple[NonEmpty, ...] = ()
    session_filter: tuple[NonEmpty, ...] = ()
    timeout: int = Field(default=120_000, ge=1_000, le=7 * 86_400_000)
    approvers: tuple[NonEmpty, ...] = ()
    targets: tuple[RouteTarget, ...] = ()
    local_prompt: Literal["auto", "always", "never"] = "auto"


class ApprovalSettings(Section):
    """`approvals`."""

    exec: ExecApprovals = ExecApprovals()


class WebSettings(Section):
    """`channels.web`: the page. `hosts` are further Host headers to accept, as `name` or `name:port`."""

    enabled: bool = True
    host: NonEmpty = "127.0.0.1"
    port: int = Field(default=8717, ge=0, le=65_535)
    hosts: tuple[NonEmpty, ...] = ()
    login_hours: float = Field(default=168, gt=0)


class TerminalSettings(Section):
    """`channels.terminal`: questions in the terminal the daemon runs in; `auto` where stdin is one."""

    enabled: Literal["auto", "never"] = "auto"


class TelegramSettings(Section):
    """`channels.telegram`."""

    enabled: bool = True
    token: SecretStr


class DiscordSettings(Section):
    """`channels.discord`."""

    enabled: bool = True
    token: SecretStr


class SlackSettings(Section):
    """`channels.slack`."""

    enabled: bool = True
    bot_token: SecretStr
    app_token: SecretStr


class ChannelSettings(Section):
    """`channels`: where people review."""

    web: WebSettings = WebSettings()
    terminal: TerminalSettings = TerminalSettings()
    telegram: TelegramSettings | None = None
    discord: DiscordSettings | None = None
    slack: SlackSettings | None = None


class OperatorSettings(Section):
    """`operator`: what proves the operator on this machine."""

    local: Literal["token", "passphrase", "off"] = "token"


class LogSettings(Section):
    """`log`."""

    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(Section):
    """The whole configuration; an empty file is a valid one."""

    tools: ToolSettings = ToolSettings()
    agents: Agents = Agents()
    approvals: ApprovalSettings = ApprovalSettings()
    sandboxing: SandboxSettings = SandboxSettings()
    channels: ChannelSettings = ChannelSettings()
    operator: OperatorSettings = OperatorSettings()
    log: LogSettings = LogSettings()

    def agent(self, agent_id: str) -> AgentSettings:
        """Return the settings of an agent, or the defaults for one that has no section."""
        return self.agents.by_id.get(agent_id, AgentSettings())

    @property
    def exec(self) -> ExecSettings:
        """`tools.exec`, or its defaults where the section is absent."""
        return self.tools.exec or ExecSettings()
