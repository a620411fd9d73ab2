"""The record's hash chain: each event is sealed together with the hash of the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from core.model.request import AuditEvent, ChainedEvent

GENESIS = "0" * 64
UNREADABLE = "audit.unreadable"


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any plain JSON value
    """Give the one spelling of a JSON value: sorted keys, no spaces, ASCII only; NaN raises ValueError."""
    plain = json.loads(json.dumps(value, allow_nan=False))
    return _spell(plain)


def _spell(plain: Any) -> bytes:  # noqa: ANN401 - what json.loads gave
    return json.dumps(
        plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def body(seq: int, event: AuditEvent) -> bytes:
    """Give the bytes of an event that are hashed and kept."""
    return canonical_json(
        {
            "seq": seq,
            "at": event.at,
            "kind": event.kind,
            "actor": event.actor,
            "request_id": event.request_id,
            "data": event.data,
        }
    )


def _seal(previous: str, content: bytes) -> str:
    return hashlib.sha256(previous.encode() + content).hexdigest()


def chain(seq: int, previous: str, event: AuditEvent) -> ChainedEvent:
    """Put an event in its place after the one whose hash is `previous` (`GENESIS` for the first)."""
    return ChainedEvent(seq, event, previous, _seal(previous, body(seq, event)))


def restore(seq: int, content: bytes, previous: str, seal: str) -> ChainedEvent:
    """Read a kept event back from its exact bytes.

    Bytes that are not what `body` gives for this place come back as an event of the kind `UNREADABLE` that
    shows them, so that a reader sees the damage and no hash fits it.
    """
    event = _parse(seq, content)
    if event is None:
        shown = content.decode("ascii", "backslashreplace")
        event = AuditEvent(0, UNREADABLE, "", None, {"stored": shown})
    return ChainedEvent(seq, event, previous, seal)


def _parse(seq: int, content: bytes) -> AuditEvent | None:
    try:
        fields = json.loads(content)
        if _spell(fields) != content or fields.pop("seq") != seq:
            return None
        return AuditEvent(**fields)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


class Record(Protocol):
    """What `verify` reads: any AuditStore."""

    def events(self, after: int = 0) -> AsyncIterator[ChainedEvent]:
        """Yield the chain in order."""
        ...

    async def head(self) -> tuple[int, str]:
        """Return (seq, hash) of the last event, as noted beside the chain."""
        ...


@dataclass(frozen=True, slots=True)
class Verification:
    """`events` links hold, up to the one with the hash `head`; `broken_at` is the first that does not."""

    ok: bool
    events: int
    head: str
    broken_at: int | None = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the answer of `audit verify`."""
        return {
            "ok": self.ok,
            "events": self.events,
            "head": self.head,
            "brokenAt": self.broken_at,
            "problem": self.problem,
        }


async def verify(record: Record) -> Verification:
    """Recompute the whole chain and name the first broken link; new events may be appended meanwhile.

    The noted head is read before the walk, which must reach it, and again after it, when it must not lie
    behind what the walk has seen.
    """
    noted_seq, noted_hash = await record.head()
    seq, previous = 0, GENESIS
    async for link in record.events():
        problem = _fault(seq + 1, previous, link)
        if problem is None and link.seq == noted_seq and link.hash != noted_hash:
            problem = f"event {link.seq} is not the one that the noted head stands for"
        if problem:
            return Verification(ok=False, events=seq, head=previous, broken_at=seq + 1, problem=problem)
        seq, previous = link.seq, link.hash
    problem = _end_fault(seq, noted_seq, noted_hash, await record.head())
    broken_at = seq + 1 if problem else None
    return Verification(problem is None, seq, previous, broken_at, problem)


def _fault(expected: int, previous: str, link: ChainedEvent) -> str | None:
    if link.seq > expected:
        return _missing(expected, link.seq - 1)
    if link.seq < expected:
        return f"event {link.seq} is there twice or out of order"
    if link.event.kind == UNREADABLE or link.hash != _seal(link.previous, body(link.seq, link.event)):
        return f"event {link.seq} was changed"
    if link.previous != previous:
        return f"event {link.seq} does not follow the event before it: one of them was put in later"
    return None


def _missing(first: int, last: int) -> str:
    return f"event {first} is missing" if first == last else f"events {first} to {last} are missing"


def _end_fault(seq: int, noted_seq: int, noted_hash: str, head_now: tuple[int, str]) -> str | None:
    if seq < noted_seq:
        return f"events after {seq} are missing: the head notes {noted_seq}"
    if head_now[0] < seq:
        return f"event {head_now[0] + 1} was added without the head, which notes {head_now[0]}"
    if noted_seq == 0 and noted_hash != GENESIS:
        return "the noted head of the empty record was changed"
    return None
