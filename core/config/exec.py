"""How commands are judged: `tools.exec` and what an agent may set differently."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from core.config.choices import AskFallback, AskMode, ExecHost, ExecSecurity, Unanalysable, UnconfinedHost
from core.config.expressions import re2_fault
from core.config.section import AbsolutePath, AccountName, NonEmpty, Section
from core.model.command import Placement


class AllowlistRule(Section):
    """An allowlist entry written by an operator."""

    pattern: NonEmpty
    args: tuple[str, ...] | None = None
    arg_pattern: NonEmpty | None = None
    placement: Placement = Placement.SANDBOX

    @field_validator("arg_pattern")
    @classmethod
    def _compiles(cls, text: str | None) -> str | None:
        fault = re2_fault(text or "")
        if fault:
            raise ValueError(f"is no RE2 expression: {fault}")
        return text

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


class SkillSettings(Section):
    """`skills.<id>`: the programs that a skill brings, by bare name or absolute path."""

    bins: tuple[NonEmpty, ...] = ()

    @field_validator("bins")
    @classmethod
    def _names_or_paths(cls, bins: tuple[str, ...]) -> tuple[str, ...]:
        for text in bins:
            if ("/" in text and not text.startswith("/")) or text != text.strip() or set(text) & set("*?"):
                raise ValueError(f"{text!r} is neither the bare name of a program nor an absolute path")
        return bins


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
    host_user: AccountName | None = None
    host_sockets: tuple[AbsolutePath, ...] = ()
    unconfined_host: UnconfinedHost = UnconfinedHost.ASK
    node: NonEmpty | None = None
    security: ExecSecurity | None = None  # None: deny in a sandbox, allowlist elsewhere
    ask: AskMode = AskMode.ON_MISS
    ask_fallback: AskFallback = AskFallback.DENY
    on_unanalysable: Unanalysable = Unanalysable.DENY
    strict_inline_eval: bool = False
    auto_allow_skills: bool = False
    path_prepend: tuple[AbsolutePath, ...] = ()
    safe_bins: tuple[NonEmpty, ...] = ("cut", "uniq", "head", "tail", "tr", "wc")
    safe_bin_trusted_dirs: tuple[AbsolutePath, ...] = ("/bin", "/usr/bin")
    safe_bin_profiles: dict[str, SafeBinProfile] = Field(default_factory=dict)
    allowlist: tuple[AllowlistRule, ...] = ()
    deny: tuple[NonEmpty, ...] = ()
    timeout_seconds: float = Field(default=600, gt=0, le=86_400)
    max_output_bytes: int = Field(default=16 * 1024 * 1024, ge=1024, le=1024**3)
