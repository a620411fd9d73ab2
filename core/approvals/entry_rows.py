"""How allowlist entries are told to an operator."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Any

from core.config import AllowlistRule, Config
from core.display import safe
from core.execsec.allowlist import admits_nothing
from core.model.allowlist import AllowlistEntry, KeptEntry
from core.model.principal import named
from core.shell.names import variants
from core.shell.programs import CARRIERS, PACKAGE_RUNNERS, PRIVILEGE_CHANGERS, RUNS_ANYTHING
from core.shell.render import quote

_OUTDATED = (
    "it admits nothing: Always left it before directory and arguments were noted; remove it, and answer "
    "Always the next time its command is asked about"
)
_NEVER_LISTED = CARRIERS | PRIVILEGE_CHANGERS | PACKAGE_RUNNERS


def configured_rows(config: Config, where: Callable[[str], str | None]) -> list[dict[str, Any]]:
    """List the entries of the configuration, with file and line."""
    written: list[tuple[str, str | None, tuple[AllowlistRule, ...]]] = [
        ("tools.exec.allowlist", None, config.exec.allowlist)
    ]
    written += [
        (f"agents.{agent}.exec.allowlist", agent, section.exec.allowlist)
        for agent, section in config.agents.by_id.items()
    ]
    return [
        _configured(rule, agent, f"{path}[{index}]", where)
        for path, agent, rules in written
        for index, rule in enumerate(rules)
    ]


def kept_row(kept: KeptEntry, secrets: Sequence[str]) -> dict[str, Any]:
    """Tell everything about a kept entry; configured secrets are masked."""

    def shown(text: str | None) -> str | None:
        return None if text is None else safe(text, secrets=secrets)

    by = named(kept.given_by)
    entry = kept.entry
    return {
        **_row(entry, secrets),
        "id": kept.id,
        "where": None,
        "by": shown(by) if by else None,
        "at": kept.given_at,
        "request": kept.request_id,
        "lastUsedAt": kept.last_used_at,
        "lastUsedCommand": shown(kept.last_command),
        "lastResolvedPath": shown(kept.last_path),
    }


def notes_on(entry: AllowlistEntry, config: Config, agents: frozenset[str]) -> list[str]:
    """Say what an operator may not expect of an entry."""
    notes = [f"`{safe(entry.pattern)}`: {_OUTDATED}"] if admits_nothing(entry) else []
    base = posixpath.basename(entry.pattern)
    found = variants(base) if base else frozenset[str]()
    if found & _NEVER_LISTED:
        notes.append(f"`{base}` runs other commands: it is asked about each time, whatever is listed")
    elif found & RUNS_ANYTHING and entry.args is None and entry.arg_pattern is None:
        notes.append(f"`{base}` can run anything: without arguments the entry admits none of its commands")
    if entry.agent is not None and entry.agent not in agents | config.agents.by_id.keys():
        notes.append(f"there is no agent {entry.agent!r} yet: no token, and no section in the configuration")
    return notes


def _configured(
    rule: AllowlistRule, agent: str | None, source: str, where: Callable[[str], str | None]
) -> dict[str, Any]:
    entry = AllowlistEntry(
        rule.pattern, rule.args, rule.arg_pattern, rule.placement, agent=agent, source=source
    )
    nothing = dict.fromkeys(
        ("id", "by", "at", "request", "lastUsedAt", "lastUsedCommand", "lastResolvedPath")
    )
    return {**_row(entry, ()), **nothing, "where": where(source)}


def _row(entry: AllowlistEntry, secrets: Sequence[str]) -> dict[str, Any]:
    return {
        "pattern": safe(entry.pattern, secrets=secrets),
        "args": None if entry.args is None else [safe(word, secrets=secrets) for word in entry.args],
        "argPattern": entry.arg_pattern,
        "words": safe(_words(entry), secrets=secrets),
        "directory": safe(entry.directory.path, secrets=secrets) if entry.directory else None,
        "admitsNothing": _OUTDATED if admits_nothing(entry) else None,
        "placement": entry.placement.value,
        "realPath": entry.real_path,
        "sha256": entry.sha256,
        "agent": entry.agent,
        "source": entry.source,
    }


def _words(entry: AllowlistEntry) -> str:
    here = f", in {quote(entry.directory.path)}" if entry.directory else ""
    if entry.args is not None:
        return (f"exactly {' '.join(map(quote, entry.args))}" if entry.args else "without arguments") + here
    if entry.arg_pattern is not None:
        return f"arguments that match {entry.arg_pattern}"
    return "any arguments"
