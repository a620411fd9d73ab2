"""Is what is kept what was promised? Read from the store of a daemon that is not running."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field

from adapters.stores.sqlite import open_store
from core.audit import verify
from core.model.request import AuditEvent, Request, State
from tests.torture.actors import Notes
from tests.torture.site import PEOPLE, Site

# What may follow what, by the events of one request; written down apart from the code that is tried here.
_SETTLED = ("approval.approved", "approval.denied", "approval.expired", "approval.withdrawn")
_TAKEN = ("run.started", "run.refused", "approval.used", "approval.expired", "approval.withdrawn")
_NEXT: dict[str, tuple[str, ...]] = {
    "": ("request.created",),
    "request.created": ("approval.requested", "request.allowed", "request.denied"),
    "approval.requested": ("approval.reviewed", *_SETTLED),
    "approval.reviewed": ("approval.reviewed", *_SETTLED),
    "request.allowed": _TAKEN,
    "approval.approved": _TAKEN,
    "run.started": ("run.finished", "run.failed", "run.interrupted", "run.refused"),
}
_ENDS = {
    "request.denied": State.DENIED,
    "approval.denied": State.DENIED,
    "approval.expired": State.EXPIRED,
    "approval.withdrawn": State.WITHDRAWN,
    "run.finished": State.FINISHED,
    "run.failed": State.FAILED,
    "run.interrupted": State.INTERRUPTED,
    "run.refused": State.DENIED,
    "approval.used": State.USED,
}
_OPEN = {
    "approval.requested": State.WAITING,
    "approval.reviewed": State.WAITING,
    "approval.approved": State.APPROVED,
    "request.allowed": State.APPROVED,
    "run.started": State.RUNNING,
}
_STARTS_OR_YES = {"approval.requested", "approval.approved", "request.allowed", "run.started"}
_GIVEN = ("approval.reviewed", "approval.approved", "approval.denied")
_ANSWER_STATES = {"allow": "approval.approved", "deny": "approval.denied"}


@dataclass
class Findings:
    """What is wrong (`faults`, each with the request it is about) and what was seen."""

    faults: list[tuple[str, str]] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    stories: dict[str, list[AuditEvent]] = field(default_factory=dict)

    def fault(self, request_id: str, words: str) -> None:
        """Add a fault."""
        self.faults.append((request_id, words))

    def told(self) -> str:
        """Tell the faults, each with the story of its request."""
        lines = []
        for request_id, words in self.faults[:10]:
            lines.append(f"{request_id}: {words}")
            lines += [f"    {e.at} {e.kind} {e.actor} {e.data}" for e in self.stories.get(request_id, ())]
        return "\n".join([f"{len(self.faults)} faults", *lines])


async def examine(site: Site, notes: Notes, *, at_the_end: bool) -> Findings:
    """Hold the store, the record, the marks and the notes against each other."""
    findings = Findings()
    async with open_store(site.home / "sayso.db") as store:
        chain = await verify(store)
        if not chain.ok:
            findings.fault("record", f"broken at {chain.broken_at}: {chain.problem}")
        findings.seen["events"] = chain.events
        requests = {request.id: request for request in await store.in_states(*State)}
        async with aclosing(store.events()) as links:
            events = [link.event async for link in links]
    stories: dict[str, list[AuditEvent]] = defaultdict(list)
    for event in events:
        if event.request_id:
            stories[event.request_id].append(event)
    findings.stories = stories
    findings.seen.update(f"ended {request.state}" for request in requests.values())
    findings.seen["requests"] = len(requests)
    _told_right(findings, requests.values())
    _kept(findings, requests, notes)
    _agreed(findings, requests.values(), site.required)
    _authorised(findings, requests, events)
    _ran_as_started(findings, requests.values(), site.marks())
    if at_the_end:
        for request in requests.values():
            if not request.state.final:
                findings.fault(request.id, f"is stuck in {request.state}")
    return findings


def _told_right(findings: Findings, requests: Iterable[Request]) -> None:
    """The record of each request is a way through the table, and ends where the request stands."""
    for request in requests:
        kinds = [event.kind for event in findings.stories[request.id] if not event.kind.startswith("sec")]
        kinds = [kind for kind in kinds if not kind.startswith("message.")]
        for before, after in zip(["", *kinds], kinds, strict=False):
            if after not in _NEXT.get(before, ()):
                findings.fault(request.id, f"{after} came after {before or 'nothing'}")
        last = kinds[-1] if kinds else ""
        if {**_ENDS, **_OPEN}.get(last) is not request.state:
            findings.fault(request.id, f"is {request.state}, but its record ends with {last}")


def _kept(findings: Findings, requests: dict[str, Request], notes: Notes) -> None:
    """All that anybody was told is still so."""
    for request_id in notes.known - requests.keys():
        findings.fault(request_id, "was told of and is gone")
    for request_id, answer in notes.answers.items():
        kind = _ANSWER_STATES[answer.split("-")[0]]
        given = [event.data["answer"] for event in findings.stories.get(request_id, ()) if event.kind == kind]
        if given != [answer]:
            findings.fault(request_id, f"{answer} was accepted, kept is {given}")
    for request_id, uid, answer in notes.given:
        if (f"person:cli:{uid}", answer) not in _answers(findings.stories.get(request_id, ())):
            findings.fault(request_id, f"{answer} of uid {uid} was taken and is not kept")
    for request_id, status in notes.outcomes.items():
        request = requests.get(request_id)
        if request is not None and request.state != status:
            findings.fault(request_id, f"was told as {status} and is {request.state}")
    for words in notes.contradictions:
        findings.fault(words.partition(":")[0], words)


def _answers(story: Iterable[AuditEvent]) -> list[tuple[str, str]]:
    """List who answered what, in order."""
    return [(event.actor, event.data["answer"]) for event in story if event.kind in _GIVEN and event.data]


def _agreed(findings: Findings, requests: Iterable[Request], required: int) -> None:
    """Nothing is allowed, and so nothing starts, before as many different people said yes as must."""
    people = {f"person:cli:{uid}": person for uid, person in PEOPLE.items()}
    for request in requests:
        yes: set[str] = set()
        for event in findings.stories[request.id]:
            if event.kind in ("approval.reviewed", "approval.approved"):
                yes.add(people.get(event.actor, "nobody"))
            if event.kind == "approval.reviewed" and len(yes) >= required:
                findings.fault(request.id, f"{len(yes)} people agreed and it still waited")
            if event.kind == "approval.approved" and len(yes) < required:
                findings.fault(request.id, f"was allowed by {sorted(yes)}, and {required} people must agree")
        findings.seen["agreed by several"] += len(yes) > 1 and request.started_at is not None
        findings.seen["vetoed"] += bool(yes) and request.state is State.DENIED


def _authorised(findings: Findings, requests: dict[str, Request], events: list[AuditEvent]) -> None:
    """No start without its own yes: a person's answer, a permission with uses left, or a rule."""
    locked = False
    learned: set[tuple[str, str]] = set()
    permissions: dict[str, tuple[int, int]] = {}
    for event in events:
        locked = {"daemon.locked": True, "daemon.unlocked": False}.get(event.kind, locked)
        request = requests.get(event.request_id or "")
        if request is None:
            continue
        if locked and event.kind in _STARTS_OR_YES:
            findings.fault(request.id, f"{event.kind} while everything was locked")
        data = event.data or {}
        if event.kind == "approval.approved":
            allowed = data.get("decision", data["answer"])  # what several people said comes to the narrowest
            if allowed == "allow-for":
                permissions[request.id] = (data["until"], data["maxUses"])
            if allowed == "allow-always":
                learned.add((request.call.agent, request.canonical))
        elif event.kind == "request.allowed":
            _allowed(findings, request, event, learned, permissions)


def _allowed(
    findings: Findings,
    request: Request,
    event: AuditEvent,
    learned: set[tuple[str, str]],
    permissions: dict[str, tuple[int, int]],
) -> None:
    permission = (event.data or {}).get("permission")
    if permission is not None:
        until, uses = permissions.get(permission, (0, 0))
        if until <= request.created_at or uses < 1:
            findings.fault(request.id, f"was allowed by {permission}, which gave nothing any more")
        permissions[permission] = (until, uses - 1)
        findings.seen["by permission"] += 1
        return
    by_rule = "/free " in request.canonical and request.call.agent == "main"
    by_learning = (request.call.agent, request.canonical) in learned
    if not by_rule and not by_learning:
        findings.fault(request.id, "was allowed by nothing that anybody gave")
    findings.seen["by rule" if by_rule else "by learning"] += 1


def _ran_as_started(findings: Findings, requests: Iterable[Request], marks: Counter[str]) -> None:
    """Each mark belongs to one start, and every run that finished left its mark."""
    asked: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        asked[request.canonical.split()[-1]].append(request)
    for word, count in marks.items():
        about = asked[word]
        starts = [r for r in about if any(e.kind == "run.started" for e in findings.stories[r.id])]
        finished = [r for r in about if r.state is State.FINISHED]
        name = about[0].id if about else word
        if count > len(starts):
            findings.fault(name, f"{word} ran {count} times and was started {len(starts)} times")
        if count < len(finished):
            findings.fault(name, f"{word} ran {count} times and is told as finished {len(finished)} times")
    for word in asked.keys() - marks.keys():
        if any(r.state is State.FINISHED for r in asked[word]):
            findings.fault(asked[word][0].id, f"{word} is told as finished and never ran")
    findings.seen["marks"] = marks.total()
