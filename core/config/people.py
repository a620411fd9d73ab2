"""Who is asked, and where: `approvals`, `channels`, `operator`."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, field_validator, model_validator

from core.config.expressions import delimited, re2_fault
from core.config.section import NonEmpty, Secret, Section
from core.model.standing import LONGEST_MS, SHORTEST_MS

SHORTEST_WINDOW_MS = 1_000
LONGEST_WINDOW_MS = 7 * 86_400_000
SHORTEST_MEMORY_MS, LONGEST_MEMORY_MS = 1_000, 12 * 3_600_000
_UNIT_MS = {"h": 3_600_000, "d": 86_400_000}


_PLACE = (
    r"^((user|channel):[A-Za-z0-9_.@+-][A-Za-z0-9_.@+:-]*"
    r"|thread:[A-Za-z0-9_.@+-][A-Za-z0-9_.@+:-]*(/[0-9]+)?"
    r"|[A-Za-z0-9_.@+-]+)$"
)


_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NO_TIME = "0"


def _milliseconds(value: object) -> object:
    """Turn a time such as 30m into milliseconds; whatever else is given is for others to judge."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        return int(found[1]) * _UNIT_MS[found[2]]
    if isinstance(value, str) and value != _NO_TIME:
        raise ValueError("is no time; write 30s, 30m, 2h or 1d, or a number of milliseconds")
    return value


def _offerable(ms: int) -> int:
    if ms and not SHORTEST_MS <= ms <= LONGEST_MS:
        raise ValueError("is out of bounds; a time is from 10s to 30d, or 0 for none")
    return ms


def _rememberable(ms: int) -> int:
    if ms and not SHORTEST_MEMORY_MS <= ms <= LONGEST_MEMORY_MS:
        raise ValueError("is out of bounds; a time is from 1s to 12h, or 0 to ask each time")
    return ms


LongestTime = Annotated[int, BeforeValidator(_milliseconds), AfterValidator(_offerable)]

CHANNELS_OF_PEOPLE = ("telegram", "discord", "slack", "web", "terminal", "cli")
MOST_REQUIRED = 20
_PINNED_ID = re.compile(rf"({'|'.join(CHANNELS_OF_PEOPLE)}):(?:(?i:id|user):)?([!-9;-~]+)")
_LONGEST_NAME = 64


def _each_id_once(people: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    owners: dict[tuple[str, str], str] = {}
    for person, texts in people.items():
        if not person.isprintable() or person != person.strip() or not 0 < len(person) <= _LONGEST_NAME:
            raise ValueError(f"{person!r} is no name to show; use up to {_LONGEST_NAME} visible characters")
        for text in texts:
            channel, identifier = _pinned(person, text)
            owner = owners.setdefault((channel, identifier), person)
            if owner != person:
                raise ValueError(f"{text!r} belongs to {owner!r} and to {person!r}; one id is one person's")
    return people


def _pinned(person: str, text: str) -> tuple[str, str]:
    found = _PINNED_ID.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{person!r}: {text!r} pins no id; write CHANNEL:ID, as in telegram:123456789, web:operator "
            "(the page) or cli:1000 (the command line of that Unix user); channels: "
            f"{', '.join(CHANNELS_OF_PEOPLE)}"
        )
    return found[1], found[2]


PeopleById = Annotated[dict[str, tuple[NonEmpty, ...]], AfterValidator(_each_id_once)]


class ChatTarget(Section):
    """One place to write to: `to` is `user:ID`, `channel:ID`, `thread:ID`, or an id alone.

    A topic of a Telegram group is `thread:CHAT/TOPIC`.
    """

    channel: NonEmpty
    to: str = Field(pattern=_PLACE, max_length=128)


class RouteTarget(ChatTarget):
    """`approvals.exec.targets[]`: one place to ask in; what it says replaces what holds in general there.

    `required` alone can only be raised: it is of a question, wherever that is answered.
    """

    approvers: tuple[NonEmpty, ...] = ()
    timeout: int | None = Field(default=None, ge=SHORTEST_WINDOW_MS, le=LONGEST_WINDOW_MS)
    required: int | None = Field(default=None, ge=1, le=MOST_REQUIRED)
    max_duration: LongestTime | None = None
    allow_always: bool | None = None


class ExecApprovals(Section):
    """`approvals.exec`: who is asked, where, for how long. `timeout` is in milliseconds."""

    enabled: bool = True
    mode: Literal["session", "targets", "both"] = "session"
    agent_filter: tuple[NonEmpty, ...] = ()
    session_filter: tuple[NonEmpty, ...] = ()
    timeout: int = Field(default=120_000, ge=SHORTEST_WINDOW_MS, le=LONGEST_WINDOW_MS)
    approvers: tuple[NonEmpty, ...] = ()
    targets: tuple[RouteTarget, ...] = ()
    required: int = Field(default=1, ge=1, le=MOST_REQUIRED)
    separation_of_duties: bool = False
    max_duration: LongestTime | None = None
    allow_always: bool = True
    reminder: str = "auto"
    local_prompt: Literal["auto", "always", "never"] = "auto"
    cleanup_after_resolve: bool = False
    max_open: int = Field(default=20, ge=1, le=100_000)
    max_per_minute: int = Field(default=30, ge=1, le=100_000)

    @field_validator("reminder")
    @classmethod
    def _is_a_time(cls, text: str) -> str:
        if text in ("auto", "never"):
            return text
        ms = _milliseconds(text)
        if not isinstance(ms, int) or not SHORTEST_MS <= ms <= LONGEST_MS:
            raise ValueError("must be auto, never, or a time before the end from 10s to 30d")
        return text

    @field_validator("session_filter")
    @classmethod
    def _compile(cls, filters: tuple[str, ...]) -> tuple[str, ...]:
        for text in filters:
            expression = delimited(text)
            fault = "it is empty" if expression == "" else expression and re2_fault(expression)
            if fault:
                raise ValueError(f"{text!r} is no RE2 expression: {fault}")
        return filters

    @field_validator("targets")
    @classmethod
    def _each_place_once(cls, targets: tuple[RouteTarget, ...]) -> tuple[RouteTarget, ...]:
        places = [(target.channel, target.to) for target in targets]
        for index, place in enumerate(places):
            first = places.index(place)
            if first != index:
                raise ValueError(f"[{index}] is the same place as [{first}]; keep one")
        return targets


class NoticeSettings(Section):
    """`approvals.notices`: what is told without being asked, besides in the chat of the session."""

    targets: tuple[ChatTarget, ...] = ()
    denied: bool = True
    security: bool = True
    asked_elsewhere: bool = False
    finished: bool = False
    channel: bool = True
    elevated: bool = True


class ApprovalSettings(Section):
    """`approvals`; `retention` is how long settled requests are kept, as `30d` or `12h`."""

    exec: ExecApprovals = ExecApprovals()
    notices: NoticeSettings = NoticeSettings()
    retention: str = Field(default="30d", pattern=r"^[1-9][0-9]{0,4}[hd]$")

    @property
    def retention_ms(self) -> int:
        """`retention` in milliseconds."""
        return int(self.retention[:-1]) * _UNIT_MS[self.retention[-1]]


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


class TelegramWebhook(Section):
    """`channels.telegram.webhook`: Telegram calls `url`, and a proxy there passes it on to listen:port."""

    listen: NonEmpty = "127.0.0.1"
    port: int = Field(default=8718, ge=0, le=65_535)
    url: Annotated[str, Field(pattern=r"^https://")]
    secret: Annotated[SecretStr, Field(min_length=16, max_length=256)]

    @field_validator("secret")
    @classmethod
    def _as_telegram_takes_it(cls, secret: SecretStr) -> SecretStr:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", secret.get_secret_value()):
            raise ValueError("must have letters, digits, _ and - only, because Telegram takes no others")
        return secret


class TelegramSettings(Section):
    """`channels.telegram`; `api_url` is the root of a Bot API server of one's own."""

    enabled: bool = True
    token: Secret
    mode: Literal["polling", "webhook"] = "polling"
    webhook: TelegramWebhook | None = None
    api_url: Annotated[str, Field(pattern=r"^https?://")] | None = None

    @model_validator(mode="after")
    def _webhook_is_described(self) -> Self:
        if self.mode == "webhook" and self.webhook is None:
            raise ValueError("mode webhook needs webhook.url and webhook.secret")
        return self


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
    """`operator`: what proves the operator on this machine. `remember_for` is in milliseconds."""

    local: Literal["token", "passphrase", "off"] = "token"
    remember_for: Annotated[int, BeforeValidator(_milliseconds), AfterValidator(_rememberable)] = 900_000
