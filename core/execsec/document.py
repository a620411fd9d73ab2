"""The document exec-approvals.json, version 1: settings that only tighten, and the entries that are kept.

Beside the keys that the format has had, an entry may hold what makes it narrower: `args`, `argPattern`,
`placement`, `realPath`, `directory` and `sha256`. What is not known is refused by name, and nothing
of it applied.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import structs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from core.audit import canonical_json
from core.config import AskFallback, AskMode, ExecSecurity
from core.config.expressions import re2_fault
from core.config.refusals import in_plain_words
from core.errors import RequestError
from core.execsec.allowlist import pattern_fault
from core.model.allowlist import IMPORTED, AllowlistEntry, ExecApprovals, KeptEntry
from core.model.command import Directory, Placement
from core.model.tightening import DOCUMENT, EVERY_AGENT, AgentLimits, DocumentSettings

REDACTED: Final = "(redacted)"
_LONGEST: Final = 4096
_USE: Final = ("lastUsedAt", "lastUsedCommand", "lastResolvedPath")


def _readable(text: str) -> str:
    fault = re2_fault(text)
    if fault:
        raise ValueError(f"is no RE2 expression: {fault}")
    return text


def _can_match(pattern: str) -> str:
    fault = pattern_fault(pattern)
    if fault:
        raise ValueError(fault)
    return pattern


Text = Annotated[str, Field(max_length=_LONGEST)]
EntryId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{8,64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)


class _Directory(_Part):
    path: Annotated[Text, Field(pattern="^/")]
    device: Annotated[int, Field(ge=0, lt=2**64)]
    inode: Annotated[int, Field(ge=0, lt=2**64)]


class _Entry(_Part):
    pattern: Annotated[Text, AfterValidator(_can_match)]
    id: EntryId | None = None
    args: Annotated[tuple[Text, ...], Strict(strict=False)] | None = None
    arg_pattern: Annotated[Text, Field(min_length=1), AfterValidator(_readable)] | None = None
    placement: Annotated[Placement, Strict(strict=False)] = Placement.SANDBOX
    real_path: Annotated[Text, Field(pattern="^/")] | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    directory: _Directory | None = None
    any_arguments: bool = False
    last_used_at: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    last_used_command: str | None = None
    last_resolved_path: str | None = None

    @model_validator(mode="after")
    def _one_way_to_match(self) -> _Entry:
        if self.args is not None and self.arg_pattern is not None:
            raise ValueError("args and argPattern exclude each other; keep one")
        if self.real_path is None and (self.directory is not None or self.any_arguments):
            raise ValueError(
                "directory and anyArguments go with realPath, as `always` leaves them; take them out"
            )
        if self.any_arguments and self.args is not None:
            raise ValueError("args and anyArguments exclude each other; keep one")
        return self


class _Limits(_Part):
    security: Annotated[ExecSecurity, Strict(strict=False)] | None = None
    ask: Annotated[AskMode, Strict(strict=False)] | None = None
    ask_fallback: Annotated[AskFallback, Strict(strict=False)] | None = None
    auto_allow_skills: bool | None = None

    def value(self) -> AgentLimits:
        """Give the settings as they are kept."""
        return AgentLimits(self.security, self.ask, self.ask_fallback, self.auto_allow_skills)


class _Agent(_Limits):
    allowlist: Annotated[tuple[_Entry, ...], Strict(strict=False)] = ()


class _Socket(_Part):
    path: str | None = None
    token: str | None = None


class Document(_Part):
    """The whole document. Its `socket` is not used: Sayso's own socket and tokens are kept elsewhere."""

    version: Literal[1]
    socket: _Socket | None = None
    defaults: _Limits = _Limits()
    agents: dict[Annotated[str, Field(min_length=1, max_length=200)], _Agent] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _each_id_once(self) -> Document:
        ids = Counter(entry.id for agent in self.agents.values() for entry in agent.allowlist if entry.id)
        twice = next((entry_id for entry_id, count in ids.items() if count > 1), None)
        if twice:
            raise ValueError(f"two entries have the id {twice}; leave one without an id to get a new one")
        return self

    def settings(self) -> DocumentSettings:
        """Give its settings."""
        limits = {agent: section.value() for agent, section in self.agents.items()}
        stated = {agent: each for agent, each in limits.items() if each != AgentLimits()}
        return DocumentSettings(self.defaults.value(), stated)

    def entries(self) -> tuple[KeptEntry, ...]:
        """Give its entries; those without an id have an empty one."""
        return tuple(
            _kept(entry, None if agent == EVERY_AGENT else agent)
            for agent, section in self.agents.items()
            for entry in section.allowlist
        )


def read_document(value: Any) -> Document:  # noqa: ANN401 - any JSON value
    """Read a document; raises RequestError that names the field."""
    if not isinstance(value, Mapping):
        raise RequestError(
            f"{DOCUMENT} is a JSON object, with version, defaults and agents", field="document"
        )
    try:
        return Document.model_validate(dict(value))
    except ValidationError as error:
        raise _refusal(error) from None


def document_of(kept: ExecApprovals, socket_path: str = "") -> dict[str, Any]:
    """Give the document for what is kept; no token is ever in it."""
    agents = {agent: _stated(limits) for agent, limits in kept.settings.agents.items()}
    for each in kept.entries:
        section = agents.setdefault(each.entry.agent or EVERY_AGENT, {})
        section.setdefault("allowlist", []).append(_row(each))
    return {
        "version": 1,
        "socket": {"path": socket_path, "token": REDACTED},
        "defaults": _stated(kept.settings.defaults),
        "agents": dict(sorted(agents.items())),
    }


def base_hash(document: Mapping[str, Any]) -> str:
    """Digest what a person may change of a document: uses are noted all the time, and are left out."""
    agents = {
        agent: {
            **section,
            "allowlist": [
                {key: value for key, value in row.items() if key not in _USE}
                for row in section.get("allowlist", ())
            ],
        }
        for agent, section in document["agents"].items()
    }
    return hashlib.sha256(canonical_json([1, document["defaults"], agents])).hexdigest()


def _kept(entry: _Entry, agent: str | None) -> KeptEntry:
    value = AllowlistEntry(
        entry.pattern,
        entry.args,
        entry.arg_pattern,
        entry.placement,
        entry.real_path,
        entry.sha256,
        agent,
        IMPORTED,
        directory=Directory(**entry.directory.model_dump()) if entry.directory else None,
        any_arguments=entry.any_arguments,
    )
    use = (entry.last_used_at, entry.last_used_command, entry.last_resolved_path)
    return KeptEntry(entry.id or "", value, (), 0, None, *use)


def _row(kept: KeptEntry) -> dict[str, Any]:
    entry = kept.entry
    elsewhere = entry.placement.value if entry.placement is not Placement.SANDBOX else None
    row = {
        "id": kept.id,
        "pattern": entry.pattern,
        "args": None if entry.args is None else list(entry.args),
        "argPattern": entry.arg_pattern,
        "placement": elsewhere,
        "realPath": entry.real_path,
        "sha256": entry.sha256,
        "directory": structs.asdict(entry.directory) if entry.directory else None,
        "anyArguments": entry.any_arguments or None,
        **dict(zip(_USE, (kept.last_used_at, kept.last_command, kept.last_path), strict=True)),
    }
    return {key: value for key, value in row.items() if value is not None}


def _stated(limits: AgentLimits) -> dict[str, Any]:
    row = {
        "security": limits.security,
        "ask": limits.ask,
        "askFallback": limits.ask_fallback,
        "autoAllowSkills": limits.auto_allow_skills,
    }
    return {key: value for key, value in row.items() if value is not None}


def _refusal(error: ValidationError) -> RequestError:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"] if part != "[key]") or "document"
    message = in_plain_words(first)
    if first["type"] == "extra_forbidden":
        message = "is not a key of this document; take it out"
    elif first["type"] == "value_error" and isinstance(first["input"], str | int | float | bool):
        message = f"{str(first['input'])[:80]!r}: {message}"
    return RequestError(f"{DOCUMENT}: {field}: {message}; nothing was changed", field=field)
