"""The operator's desk for the allowlist: what is on it, who left it, and changing it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from core.approvals.entry_rows import configured_rows, kept_row, notes_on
from core.config import Config
from core.config.expressions import re2_fault
from core.display import safe
from core.errors import RequestError, StoreError, UnknownRequest
from core.execsec.allowlist import pattern_fault
from core.execsec.document import base_hash, document_of, read_document
from core.model.allowlist import ADDED, IMPORTED, AllowlistEdit, AllowlistEntry, ExecApprovals, KeptEntry
from core.model.principal import Reviewer
from core.model.request import AuditEvent
from core.model.tightening import EVERY_AGENT, AgentLimits, DocumentSettings
from core.ports import Clock, Store

MIN_PREFIX = 8
_TRIES = 5

Make = Callable[[ExecApprovals], tuple[AllowlistEdit, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the desk knows of the daemon; `where` tells file and line of a configuration path."""

    config: Callable[[], Config]
    where: Callable[[str], str | None]
    socket: str = ""
    secrets: Sequence[str] = ()


class AllowlistEntries:
    """Answers `core.desks.AllowlistDesk`; every change is one transaction, and recorded in it."""

    def __init__(self, store: Store, clock: Clock, around: Surroundings) -> None:
        self._store = store
        self._clock = clock
        self._around = around

    async def entries(self, agent: str | None = None) -> dict[str, Any]:
        """List what is written in the configuration, then what is kept, oldest first."""
        kept = await self._store.exec_approvals()
        rows = configured_rows(self._around.config(), self._around.where)
        rows += [kept_row(each, self._around.secrets) for each in kept.entries]
        document = document_of(kept)
        stated = {name: _settings(section) for name, section in document["agents"].items()}
        return {
            "entries": [row for row in rows if agent is None or row["agent"] in {None, agent}],
            "settings": {
                "defaults": document["defaults"],
                "agents": {name: section for name, section in stated.items() if section},
            },
        }

    async def add(self, entry: AllowlistEntry, reviewer: Reviewer) -> dict[str, Any]:
        """Keep an entry of the operator's."""
        _check(entry)
        agent = None if entry.agent == EVERY_AGENT else entry.agent
        entry = structs.replace(entry, source=ADDED, id=None, agent=agent)
        kept = KeptEntry(str(uuid.uuid4()), entry, (reviewer,), self._clock.now())

        def make(state: ExecApprovals) -> tuple[AllowlistEdit, dict[str, Any]]:
            there = next((each for each in state.entries if _content(each) == _content(kept)), None)
            if there is not None:
                raise RequestError(f"it is on the list already, as {there.id[:8]}", field="pattern")
            return AllowlistEdit(put=(kept,)), _told(kept)

        await self._edit("allowlist.added", reviewer, make)
        notes = notes_on(entry, self._around.config(), await self._agents())
        return {"id": kept.id, "notes": notes, "entry": kept_row(kept, self._around.secrets)}

    async def remove(self, entry_id: str, reviewer: Reviewer) -> dict[str, Any]:
        """Forget a kept entry, by a unique prefix of its id."""
        if "allowlist[" in entry_id:
            raise self._written(entry_id)

        def make(state: ExecApprovals) -> tuple[AllowlistEdit, dict[str, Any]]:
            found = _find(state, entry_id)
            return AllowlistEdit(remove=(found.id,)), _told(found)

        told = await self._edit("allowlist.removed", reviewer, make)
        text = "Removed: what it admitted is judged without it from now on."
        return {"id": told["id"], "text": text}

    async def document(self) -> dict[str, Any]:
        """Give exec-approvals.json and its hash."""
        document = document_of(await self._store.exec_approvals(), self._around.socket)
        for section in document["agents"].values():
            for row in section.get("allowlist", ()):
                if "lastUsedCommand" in row:
                    row["lastUsedCommand"] = safe(row["lastUsedCommand"], secrets=self._around.secrets)
        return {"document": document, "hash": base_hash(document)}

    async def replace_document(
        self, document: Mapping[str, Any], base: str | None, reviewer: Reviewer
    ) -> dict[str, Any]:
        """Put a document in place of the one whose hash is `base` (None: of whichever is there)."""
        read = read_document(document)
        wanted, settings = read.entries(), read.settings()

        def make(state: ExecApprovals) -> tuple[AllowlistEdit, dict[str, Any]]:
            now = base_hash(document_of(state))
            if base not in (None, now):
                why = "the document was changed since it was read; read it again, and make the change to that"
                raise RequestError(
                    f"baseHash is not the hash of the document as it is: {why}", field="baseHash"
                )
            return _replaced(state, self._completed(wanted, reviewer), settings)

        told = await self._edit("allowlist.replaced", reviewer, make)
        return {**told, **await self._after(wanted)}

    async def bring(self, document: Mapping[str, Any], reviewer: Reviewer) -> dict[str, Any]:
        """Add what a document holds to what is kept; its settings take the place of those kept."""
        read = read_document(document)
        wanted, settings = read.entries(), read.settings()

        def make(state: ExecApprovals) -> tuple[AllowlistEdit, dict[str, Any]]:
            return _merged(state, self._completed(wanted, reviewer), settings)

        told = await self._edit("allowlist.imported", reviewer, make)
        return {**told, **await self._after(wanted)}

    async def _after(self, wanted: Sequence[KeptEntry]) -> dict[str, Any]:
        config, agents = self._around.config(), await self._agents()
        notes = dict.fromkeys(note for each in wanted for note in notes_on(each.entry, config, agents))
        return {"notes": list(notes), "hash": (await self.document())["hash"]}

    def _completed(self, wanted: Sequence[KeptEntry], reviewer: Reviewer) -> list[KeptEntry]:
        now = self._clock.now()
        return [replace(each, given_by=(reviewer,), given_at=now) for each in wanted]

    async def _agents(self) -> frozenset[str]:
        return frozenset(record.id for record in await self._store.agents())

    async def _edit(self, kind: str, reviewer: Reviewer, make: Make) -> dict[str, Any]:
        """Read, make the edit, and apply it to what was read; again where that was changed meanwhile."""
        actor = f"person:{reviewer.channel}:{reviewer.id}"
        for _ in range(_TRIES):
            state = await self._store.exec_approvals()
            edit, told = make(state)
            event = AuditEvent(self._clock.now(), kind, actor, None, told)
            if await self._store.edit_allowlist(state.revision, edit, event):
                return told
        raise StoreError("the allowlist is being changed all the time; nothing was changed, ask again")

    def _written(self, path: str) -> RequestError:
        where = self._around.where(path)
        if where is None:
            return UnknownRequest(f"the configuration has no {path[:80]}", field="id")
        return RequestError(
            f"{path} is written in the configuration; take it out at {where}, then run sayso reload",
            field="id",
        )


def _check(entry: AllowlistEntry) -> None:
    fault = pattern_fault(entry.pattern)
    if fault:
        raise RequestError(f"pattern {entry.pattern[:80]!r} {fault}", field="pattern")
    if entry.args is not None and entry.arg_pattern is not None:
        raise RequestError("args and argPattern exclude each other; keep one", field="argPattern")
    fault = re2_fault(entry.arg_pattern or "")
    if fault:
        raise RequestError(f"argPattern is no RE2 expression: {fault}", field="argPattern")


def _find(state: ExecApprovals, prefix: str) -> KeptEntry:
    if len(prefix) < MIN_PREFIX:
        raise UnknownRequest(f"id {prefix!r} is too short; give at least {MIN_PREFIX} characters", field="id")
    found = [each for each in state.entries if each.id.startswith(prefix)]
    if not found:
        raise UnknownRequest(
            f"no kept entry has an id that begins with {prefix[:40]!r}; sayso allowlist list shows them",
            field="id",
        )
    if len(found) > 1:
        raise UnknownRequest(f"{prefix} is ambiguous: {', '.join(each.id for each in found)}", field="id")
    return found[0]


def _content(kept: KeptEntry) -> AllowlistEntry:
    """Give what an entry says, wherever it came from."""
    return structs.replace(kept.entry, source=IMPORTED)


def _told(kept: KeptEntry) -> dict[str, Any]:
    entry = kept.entry
    return {
        "id": kept.id,
        "pattern": entry.pattern,
        "args": None if entry.args is None else list(entry.args),
        "argPattern": entry.arg_pattern,
        "agent": entry.agent,
        "placement": entry.placement.value,
        "source": entry.source,
    }


def _replaced(
    state: ExecApprovals, wanted: Sequence[KeptEntry], settings: DocumentSettings
) -> tuple[AllowlistEdit, dict[str, Any]]:
    """Keep what the document has unchanged as it is, with who left it; the rest goes, and comes, anew."""
    distinct = {_content(each): each for each in reversed(wanted)}
    same = {each.id: each for each in state.entries if _content(each) in distinct}
    staying = {_content(each) for each in same.values()}
    gone = tuple(each.id for each in state.entries if each.id not in same)
    new = [each for content, each in reversed(distinct.items()) if content not in staying]
    put = _with_ids(new, frozenset(same))
    return AllowlistEdit(gone, put, settings), _counted(put, gone, same)


def _merged(
    state: ExecApprovals, wanted: Sequence[KeptEntry], settings: DocumentSettings
) -> tuple[AllowlistEdit, dict[str, Any]]:
    there = {_content(each) for each in state.entries}
    distinct = {_content(each): each for each in reversed(wanted)}
    new = [each for content, each in reversed(distinct.items()) if content not in there]
    put = _with_ids(new, frozenset(each.id for each in state.entries))
    present = [each for each in distinct.values() if _content(each) in there]
    return AllowlistEdit((), put, _laid_over(state.settings, settings)), _counted(put, (), present)


def _with_ids(new: Sequence[KeptEntry], taken: frozenset[str]) -> tuple[KeptEntry, ...]:
    return tuple(
        each if each.id and each.id not in taken else replace(each, id=str(uuid.uuid4())) for each in new
    )


def _counted(put: Sequence[KeptEntry], gone: Sequence[str], same: Any) -> dict[str, Any]:  # noqa: ANN401 - sized
    return {
        "added": [_told(each) for each in put],
        "removed": list(gone),
        "unchanged": len(same),
    }


def _laid_over(before: DocumentSettings, new: DocumentSettings) -> DocumentSettings:
    agents = dict(before.agents)
    for agent, limits in new.agents.items():
        agents[agent] = _limits(agents.get(agent, AgentLimits()), limits)
    return DocumentSettings(_limits(before.defaults, new.defaults), agents)


def _limits(before: AgentLimits, new: AgentLimits) -> AgentLimits:
    return AgentLimits(
        new.security or before.security,
        new.ask or before.ask,
        new.ask_fallback or before.ask_fallback,
        before.auto_allow_skills if new.auto_allow_skills is None else new.auto_allow_skills,
    )


def _settings(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key != "allowlist"}
