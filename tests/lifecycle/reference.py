"""What a request may go through, told a second time and much more simply, without looking at the code."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

MINUTE = 60_000
WINDOW = 2 * MINUTE
LAST_MOMENT = 5_000
FREE = ("git", "--version")
ANY = "any arguments"
BY_TWO = {"stat", "du"}  # what these would do, two different people must allow
WHO = {"cli:0": "Ann", "web:operator": "Ann", "cli:1": "Bea", "cli:2": "Cem"}  # cli:9 is nobody's
OPEN = {"waiting", "approved"}
Yes = tuple[str, int | None, int | None]  # the answer, for how long, how often
NOTHING = "nothing"  # the state of a request that is not kept

# Each step that a single write may make; whatever else is seen is a fault.
STEPS = {
    NOTHING: {"waiting", "approved", "running", "denied"},
    "waiting": {"approved", "denied", "expired", "withdrawn"},
    "approved": {"running", "denied", "expired", "withdrawn"},
    "running": {"finished", "failed", "denied", "interrupted"},
}


def lawful(before: str, after: str) -> bool:
    """Tell whether one state can become the other, in any number of steps."""
    seen, ahead = {before}, [before]
    while ahead:
        new = STEPS.get(ahead.pop(), set()) - seen
        seen |= new
        ahead += new
    return after in seen


def required(command: tuple[str, ...]) -> int:
    """Tell how many different people must say yes."""
    return 2 if command[0] in BY_TWO else 1


def narrowest(answers: list[Yes]) -> Yes:
    """Give what all of them allow."""
    kinds = {kind for kind, _, _ in answers}
    if kinds == {"allow-always-any"}:
        return "allow-always-any", None, None
    if kinds <= {"allow-always", "allow-always-any"}:
        return "allow-always", None, None
    if "allow-once" in kinds:
        return "allow-once", None, None
    times = [for_ms for _, for_ms, _ in answers if for_ms is not None]
    uses = [most for _, _, most in answers if most is not None]
    return "allow-for", min(times), min(uses, default=None)


def way(before: str, after: str) -> list[str]:
    """List the states that a request has, one write after the other, from one state to another."""
    if before == after:
        return [before]
    if after in STEPS[before]:
        return [before, after]
    middle = "approved" if before == "waiting" else "running"
    found = [before, *way(middle, after)]
    assert all(then in STEPS[now] for now, then in pairwise(found))
    return found


@dataclass
class Asked:
    """One request of the model; `askers` wait for it and start it once it is approved.

    `yes` is the last yes of each person.
    """

    agent: str
    command: tuple[str, ...]
    kind: str
    state: str
    deadline: int
    askers: int = 0
    yes: dict[str, Yes] = field(default_factory=dict)


@dataclass
class Permission:
    """What "for a time" leaves."""

    agent: str
    command: tuple[str, ...]
    until: int
    uses: int | None


@dataclass
class Facts:
    """What answers and the operator leave standing."""

    locked: bool = False
    revoked: set[str] = field(default_factory=set)
    learned: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    denied: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    permissions: dict[str, Permission] = field(default_factory=dict)
    taken_back: set[str] = field(default_factory=set)


@dataclass
class Reference:
    """The model: every request by its id, and what stands."""

    now: int
    requests: dict[str, Asked] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)

    def states(self) -> dict[str, str]:
        """Give each request's state."""
        return {request_id: asked.state for request_id, asked in self.requests.items()}

    def verdict(self, agent: str, command: tuple[str, ...]) -> tuple[str, str | None]:
        """Decide: deny, allow or ask; with the permission that allows, where one does."""
        facts = self.facts
        if facts.locked or agent in facts.revoked or (agent, command) in facts.denied:
            return "deny", None
        if command == FREE or not facts.learned.isdisjoint({(agent, command), (agent, (command[0], ANY))}):
            return "allow", None
        counting = [
            (permission.until, request_id)
            for request_id, permission in facts.permissions.items()
            if (permission.agent, permission.command) == (agent, command)
            and permission.until > self.now
            and permission.uses != 0
        ]
        return ("allow", max(counting)[1]) if counting else ("ask", None)

    def twin(self, agent: str, command: tuple[str, ...], kind: str) -> str | None:
        """Find the same question, where it waits already."""
        for request_id, asked in self.requests.items():
            if (asked.agent, asked.command, asked.kind, asked.state) == (agent, command, kind, "waiting"):
                return request_id
        return None

    def ask(self, request_id: str, agent: str, command: tuple[str, ...], kind: str) -> None:
        """Take a call under the id that it got."""
        effect, permission = self.verdict(agent, command)
        twin = self.twin(agent, command, kind) if effect == "ask" else None
        asker = 1 if kind == "run" else 0
        if twin is not None:
            assert request_id == twin, f"the same question waits as {twin}, and was put again"
            self.requests[twin].askers += asker
            return
        assert request_id not in self.requests, f"{request_id} was given twice"
        allowed = "running" if kind == "run" else "approved"
        state = {"deny": "denied", "allow": allowed, "ask": "waiting"}[effect]
        if permission is not None and self.facts.permissions[permission].uses is not None:
            self.facts.permissions[permission].uses -= 1
        self.requests[request_id] = Asked(agent, command, kind, state, self.now + WINDOW, asker)

    def answer(self, request_id: str, who: str, yes: Yes) -> bool:
        """Take an answer given by this id; False where it comes too late or may not be given."""
        asked, (answer, _, _) = self.requests[request_id], yes
        needed, person = required(asked.command), WHO.get(who)
        shut = self.facts.locked or asked.agent in self.facts.revoked
        if asked.state != "waiting":
            return False
        if not answer.startswith("allow"):
            asked.state = "denied"
            if answer == "deny-always":
                self.facts.denied.add((asked.agent, asked.command))
            return True
        if shut or (needed > 1 and person is None):
            return False
        if needed > 1:
            asked.yes[str(person)] = yes
            yes = narrowest(list(asked.yes.values()))
        if needed == 1 or len(asked.yes) >= needed:
            self._allow(request_id, yes)
        return True

    def _allow(self, request_id: str, yes: Yes) -> None:
        asked, (answer, for_ms, uses) = self.requests[request_id], yes
        asked.state = "approved"
        asked.deadline = max(asked.deadline, self.now + LAST_MOMENT)
        if answer == "allow-always":
            self.facts.learned.add((asked.agent, asked.command))
        if answer == "allow-always-any":
            self.facts.learned.add((asked.agent, (asked.command[0], ANY)))
        if for_ms is not None:
            self.facts.permissions[request_id] = Permission(
                asked.agent, asked.command, self.now + for_ms, uses
            )
        if asked.kind == "run" and asked.askers:
            self.start(request_id)

    def yeses(self) -> dict[str, dict[str, Yes]]:
        """Give who has said yes to questions that several people must allow, and what."""
        return {request_id: dict(asked.yes) for request_id, asked in self.requests.items() if asked.yes}

    def start(self, request_id: str) -> None:
        """Start what is approved, unless it is denied by now."""
        asked = self.requests[request_id]
        if asked.state == "approved":
            denied = (asked.agent, asked.command) in self.facts.denied
            asked.state = "denied" if denied or request_id in self.facts.taken_back else "running"

    def take_back(self, request_id: str) -> None:
        """Revoke a permission; the yes that left it is worth nothing where nobody came for it yet."""
        permission = self.facts.permissions.pop(request_id)
        if permission.until > self.now and permission.uses != 0:
            self.facts.taken_back.add(request_id)

    def end(self, request_id: str, state: str) -> None:
        """End a run."""
        assert self.requests[request_id].state == "running"
        self.requests[request_id].state = state

    def withdraw(self, request_id: str) -> None:
        """Take back what is open."""
        if self.requests[request_id].state in OPEN:
            self.requests[request_id].state = "withdrawn"

    def pass_time(self, ms: int) -> None:
        """Let time pass."""
        self.now += ms
        for asked in self.requests.values():
            if asked.state in OPEN and asked.deadline <= self.now:
                asked.state = "expired"

    def lock(self) -> None:
        """Stop everything, for everybody."""
        self.facts.locked = True
        self._stop(None)

    def revoke(self, agent: str) -> None:
        """Stop everything of one agent."""
        self.facts.revoked.add(agent)
        self._stop(agent)

    def restart(self) -> None:
        """The daemon ended and another started: runs were cut off, nobody waits any more."""
        for asked in self.requests.values():
            asked.askers = 0
            if asked.state == "running":
                asked.state = "interrupted"
        if self.facts.locked:
            self._stop(None)
        for agent in self.facts.revoked:
            self._stop(agent)

    def _stop(self, agent: str | None) -> None:
        for request_id, asked in self.requests.items():
            if agent in (None, asked.agent):
                self.withdraw(request_id)
                if asked.state == "running":
                    asked.state = "interrupted"
        gone = [key for key, one in self.facts.permissions.items() if agent in (None, one.agent)]
        for key in gone:
            del self.facts.permissions[key]
