from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.audit import GENESIS, body, canonical_json, chain, restore, verify
from core.model.request import AuditEvent

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@dataclass
class Kept:
    """A record in memory, with a head of its own."""

    links: list
    noted: tuple[int, str]

    async def events(self, after=0):
        for link in self.links:
            if link.seq > after:
                yield link

    async def head(self):
        return self.noted


def record_of(count):
    links, previous = [], GENESIS
    for seq in range(1, count + 1):
        links.append(
            chain(seq, previous, AuditEvent(1000 + seq, "run.started", "main", f"r{seq}", {"n": seq}))
        )
        previous = links[-1].hash
    return Kept(links, (count, previous))


def test_canonical_json_sorts_keys_and_has_no_spaces_and_only_ascii():
    assert canonical_json({"b": [1, "é"], "a": None}) == b'{"a":null,"b":[1,"\\u00e9"]}'


@given(JSON)
def test_canonical_json_is_a_fixed_point(value):
    spelled = canonical_json(value)
    assert canonical_json(json.loads(spelled)) == spelled


def test_keys_that_are_not_strings_still_have_one_spelling():
    spelled = canonical_json({10: "a", 9: ("b",)})
    assert canonical_json(json.loads(spelled)) == spelled == b'{"10":"a","9":["b"]}'


def test_a_number_that_json_lacks_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": float("nan")})


def test_the_hash_covers_the_previous_hash_and_the_canonical_event():
    link = chain(7, "ab" * 32, AuditEvent(5, "request.created", "main", "r1", {"b": 1, "a": 2}))
    covered = (
        "ab" * 32
        + '{"actor":"main","at":5,"data":{"a":2,"b":1},"kind":"request.created","request_id":"r1","seq":7}'
    )
    assert link.hash == hashlib.sha256(covered.encode()).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        {"at": 6},
        {"kind": "request.denied"},
        {"actor": "other"},
        {"request_id": None},
        {"data": {}},
        {"data": None},
    ],
)
def test_every_field_of_an_event_enters_its_hash(other):
    event = AuditEvent(5, "request.created", "main", "r1", {"a": 2})
    assert chain(1, GENESIS, replace(event, **other)).hash != chain(1, GENESIS, event).hash


def test_the_place_and_the_previous_hash_enter_the_hash():
    event = AuditEvent(5, "a.b", "main")
    hashes = {chain(1, GENESIS, event).hash, chain(2, GENESIS, event).hash, chain(1, "1" * 64, event).hash}
    assert len(hashes) == 3


@given(st.integers(1, 2**40), JSON, st.text(st.characters(), max_size=5))
def test_an_event_comes_back_from_its_bytes(seq, value, actor):
    event = AuditEvent(12, "a.b", actor, None, {"v": value})
    link = chain(seq, GENESIS, event)
    back = restore(seq, body(seq, event), GENESIS, link.hash)
    assert body(seq, back.event) == body(seq, event)
    assert back.hash == link.hash


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content.replace(b":", b": ", 1),
        lambda content: content + b" ",
        lambda content: content.replace(b'"at":5', b'"at":5.0'),
        lambda content: content.replace(b'"at":5', b'"at":5,"at":5'),
        lambda content: content.replace(b"main", b"m\\u0061in"),
        lambda content: content.replace(b'"kind":"a.b",', b""),
        lambda content: content.replace(b'"kind"', b'"king"'),
        lambda content: b"\xff" + content,
        lambda _: b"",
        lambda _: b"[]",
        lambda _: b"7",
        lambda _: b"[" * 100_000,
    ],
)
async def test_bytes_that_are_not_the_canonical_ones_are_found(spoil):
    kept = record_of(0)
    event = AuditEvent(5, "a.b", "main")
    link = chain(1, GENESIS, event)
    kept.noted = (1, link.hash)
    kept.links = [restore(1, body(1, event), GENESIS, link.hash)]
    assert (await verify(kept)).ok
    kept.links = [restore(1, spoil(body(1, event)), GENESIS, link.hash)]
    found = await verify(kept)
    assert (found.ok, found.broken_at, found.problem) == (False, 1, "event 1 was changed")


async def test_a_whole_record_verifies():
    kept = record_of(42)
    found = await verify(kept)
    assert found.to_json() == {
        "ok": True,
        "events": 42,
        "head": kept.links[-1].hash,
        "brokenAt": None,
        "problem": None,
    }


async def test_an_empty_record_verifies_unless_its_head_was_changed():
    assert (await verify(Kept([], (0, GENESIS)))).ok
    found = await verify(Kept([], (0, "1" * 64)))
    assert found.problem == "the noted head of the empty record was changed"


async def test_a_changed_event_is_named():
    kept = record_of(20)
    kept.links[11] = replace(kept.links[11], event=replace(kept.links[11].event, actor="other"))
    found = await verify(kept)
    assert (found.ok, found.events, found.broken_at) == (False, 11, 12)
    assert found.problem == "event 12 was changed"
    assert found.head == kept.links[10].hash


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (slice(12, 13), "event 13 is missing"),
        (slice(12, 15), "events 13 to 15 are missing"),
        (slice(0, 1), "event 1 is missing"),
        (slice(18, 20), "events after 18 are missing: the head notes 20"),
        (slice(0, 20), "events after 0 are missing: the head notes 20"),
    ],
)
async def test_missing_events_are_named(gone, words):
    kept = record_of(20)
    del kept.links[gone]
    found = await verify(kept)
    assert not found.ok
    assert found.problem == words


async def test_a_forged_event_with_a_hash_of_its_own_does_not_fit_the_next():
    kept = record_of(20)
    old = kept.links[4]
    kept.links[4] = chain(5, old.previous, replace(old.event, actor="other"))
    found = await verify(kept)
    assert (found.broken_at, found.events) == (6, 5)
    assert "does not follow" in found.problem


async def test_a_forged_last_event_does_not_fit_the_head():
    kept = record_of(20)
    old = kept.links[-1]
    kept.links[-1] = chain(20, old.previous, replace(old.event, actor="other"))
    found = await verify(kept)
    assert (found.broken_at, found.problem) == (20, "event 20 is not the one that the noted head stands for")


async def test_an_event_put_behind_the_head_is_found():
    kept = record_of(20)
    kept.links.append(chain(21, kept.links[-1].hash, AuditEvent(1, "a.b", "x")))
    found = await verify(kept)
    assert (found.broken_at, found.problem) == (21, "event 21 was added without the head, which notes 20")


async def test_an_event_that_is_there_twice_is_found():
    kept = record_of(3)
    kept.links.insert(2, kept.links[1])
    assert (await verify(kept)).problem == "event 2 is there twice or out of order"


async def test_events_appended_during_the_walk_are_no_fault():
    kept = record_of(20)

    class Growing(Kept):
        async def events(self, after=0):
            async for link in super().events(after):
                yield link
            self.links.append(chain(21, kept.links[-1].hash, AuditEvent(1, "a.b", "x")))
            self.noted = (21, self.links[-1].hash)
            yield self.links[-1]

    found = await verify(Growing(list(kept.links), kept.noted))
    assert (found.ok, found.events) == (True, 21)
