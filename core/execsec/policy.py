"""What holds for one agent in one placement, and where each setting is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.config import (
    AllowlistRule,
    AskFallback,
    AskMode,
    Config,
    ExecOverrides,
    ExecSecurity,
    ExecSettings,
    SafeBinProfile,
    Section,
    Unanalysable,
)
from core.model.allowlist import AllowlistEntry
from core.model.command import Placement
from core.model.decision import default_of

_COMMON = "tools.exec"


@dataclass(frozen=True, slots=True)
class DenyPattern:
    """An operator's `exec.deny` pattern, and where it is written."""

    pattern: str
    source: str


@dataclass(frozen=True, slots=True)
class ExecPolicy:
    """`sources` gives for each setting its configuration path, with `(default)` where nobody wrote it.

    `home` is what `~` means in patterns; `protected_paths` are Sayso's own state and configuration.
    `workspaces` are the directories that agents can write.
    `skill_bins` are the programs of skills, where these run without asking.
    """

    agent: str
    security: ExecSecurity
    ask: AskMode = AskMode.ON_MISS
    ask_fallback: AskFallback = AskFallback.DENY
    on_unanalysable: Unanalysable = Unanalysable.DENY
    strict_inline_eval: bool = False
    safe_bins: tuple[str, ...] = ()
    safe_bin_profiles: Mapping[str, SafeBinProfile] = field(default_factory=dict)
    trusted_dirs: tuple[str, ...] = ("/bin", "/usr/bin")
    deny: tuple[DenyPattern, ...] = ()
    allowlist: tuple[AllowlistEntry, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    home: str = ""
    protected_paths: tuple[str, ...] = ()
    skill_bins: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()

    def source(self, setting: str) -> str:
        """Return where a setting is written."""
        return self.sources.get(setting) or _unwritten(setting)


def effective(
    config: Config,
    agent: str,
    placement: Placement,
    *,
    home: str = "",
    protected_paths: tuple[str, ...] = (),
    workspaces: tuple[str, ...] = (),
) -> ExecPolicy:
    """Merge `tools.exec` with what the agent sets differently."""
    common, own = config.exec, config.agent(agent).exec
    pick = _Picker(common, own, f"agents.{agent}.exec")
    by_place = ExecSecurity.DENY if placement is Placement.SANDBOX else ExecSecurity.ALLOWLIST
    return ExecPolicy(
        agent=agent,
        security=own.security or common.security or by_place,
        ask=own.ask or common.ask,
        ask_fallback=own.ask_fallback or common.ask_fallback,
        on_unanalysable=common.on_unanalysable,
        strict_inline_eval=(
            common.strict_inline_eval if own.strict_inline_eval is None else own.strict_inline_eval
        ),
        safe_bins=common.safe_bins,
        safe_bin_profiles=common.safe_bin_profiles,
        trusted_dirs=common.safe_bin_trusted_dirs,
        deny=(
            *_deny(own.deny, f"agents.{agent}.exec.deny"),
            *_deny(common.deny, "tools.exec.deny"),
        ),
        allowlist=(
            *_entries(own.allowlist, f"agents.{agent}.exec.allowlist", agent, home),
            *_entries(common.allowlist, "tools.exec.allowlist", None, home),
        ),
        sources={name: pick.source(name) for name in _SETTINGS},
        home=home,
        protected_paths=protected_paths,
        skill_bins=_skill_bins(config, own),
        workspaces=workspaces,
    )


def _skill_bins(config: Config, own: ExecOverrides) -> tuple[str, ...]:
    common = config.exec.auto_allow_skills
    if not (common if own.auto_allow_skills is None else own.auto_allow_skills):
        return ()
    return tuple(dict.fromkeys(text for skill in config.skills.values() for text in skill.bins))


_SETTINGS = (
    "security",
    "ask",
    "ask_fallback",
    "on_unanalysable",
    "strict_inline_eval",
    "safe_bins",
    "safe_bin_trusted_dirs",
)


@dataclass(frozen=True, slots=True)
class _Picker:
    common: Section
    own: Section
    own_path: str

    def source(self, name: str) -> str:
        """Tell where a setting was written: by the agent, for all, or nowhere."""
        for section, path in ((self.own, self.own_path), (self.common, _COMMON)):
            field_info = type(section).model_fields.get(name)
            if field_info and name in section.model_fields_set and getattr(section, name) is not None:
                return f"{path}.{field_info.alias or name}"
        return _unwritten(name)


def _unwritten(setting: str) -> str:
    """Name the key that nobody wrote, and that would change what holds."""
    return default_of(f"{_COMMON}.{ExecSettings.model_fields[setting].alias or setting}")


def _deny(patterns: tuple[str, ...], path: str) -> tuple[DenyPattern, ...]:
    return tuple(DenyPattern(pattern, f"{path}[{index}]") for index, pattern in enumerate(patterns))


def _entries(
    rules: tuple[AllowlistRule, ...], path: str, agent: str | None, home: str
) -> tuple[AllowlistEntry, ...]:
    return tuple(
        AllowlistEntry(
            pattern=_expanded(rule.pattern, home),
            args=rule.args,
            arg_pattern=rule.arg_pattern,
            placement=rule.placement,
            agent=agent,
            source=f"{path}[{index}]",
        )
        for index, rule in enumerate(rules)
    )


def _expanded(pattern: str, home: str) -> str:
    return home + pattern[1:] if home and (pattern == "~" or pattern.startswith("~/")) else pattern
