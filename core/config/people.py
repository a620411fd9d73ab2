"""Who is asked, and where: `approvals`, `channels`, `operator`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from core.config.section import NonEmpty, Secret, Section


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
    token: Secret


class DiscordSettings(Section):
    """`channels.discord`."""

    enabled: bool = True
    token: Secret


class SlackSettings(Section):
    """`channels.slack`."""

    enabled: bool = True
    bot_token: Secret
    app_token: Secret


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
