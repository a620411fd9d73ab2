"""Whatever is done in whatever order, and wherever the daemon dies: it stands as a simple model says.

SAYSO_MODEL_EXAMPLES sets how many ways are tried.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.model.principal import Reviewer
from core.model.request import Answer, Review
from core.model.session import SessionKey
from tests.conftest import ManualClock
from tests.core_system import ALICE, exec_call
from tests.lifecycle.mortal import AGENTS, PATIENCE_S, Mortal
from tests.lifecycle.reference import ANY, FREE, MINUTE, NOTHING, WHO, Reference, lawful, required, way

EXAMPLES = int(os.environ.get("SAYSO_MODEL_EXAMPLES", "25"))
COMMANDS = (("ls", "-l"), ("ls", "-a"), ("stat", "a"), ("du", "b"), FREE)
LASTS = {
    "running": "run.started",
    "finished": "run.finished",
    "failed": "run.failed",
    "interrupted": "run.interrupted",
    "expired": "approval.expired",
    "withdrawn": "approval.withdrawn",
}
LASTS_OF_SEVERAL = {
    "waiting": {"approval.requested", "approval.reviewed"},
    "approved": {"approval.approved", "request.allowed"},
    "denied": {"approval.denied", "request.denied", "run.refused"},
}
picks = st.integers(0, 10_000)
agents = st.sampled_from(AGENTS)
# The rule that lets FREE through is one agent's; what "always" would save of it for others is not told here.
calls = st.sampled_from(
    [(agent, command) for agent in AGENTS for command in COMMANDS if (agent, command) != ("other", FREE)]
)


def call_of(agent, command):
    return exec_call(*command, session=SessionKey.main(agent))


class Lifecycle(RuleBasedStateMachine):
    """Does the same to the core and to the model, and compares."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.model = Reference(self.clock.now())
        self.mortal = Mortal(self.clock)
        self.accepted = {}

    @initialize()
    def begin(self):
        self.loop.run_until_complete(self.mortal.start())

    def teardown(self):
        self.loop.run_until_complete(self.mortal.end())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    # What agents do.

    @rule(call=calls)
    def ask_to_run(self, call):
        agent, command = call

        async def act():
            return await self.mortal.ask_to_run(call_of(agent, command))

        self.do(act, lambda model, request_id: model.ask(request_id, agent, command, "run"))

    @rule(call=calls)
    def only_ask(self, call):
        agent, command = call

        async def act():
            return (await self.mortal.system.gate.ask(call_of(agent, command), None)).request_id

        self.do(act, lambda model, request_id: model.ask(request_id, agent, command, "ask"))

    @precondition(lambda self: self.model.requests)
    @rule(pick=picks)
    def come_back(self, pick):
        request_id, asked = self.one(pick)

        async def act():
            await self.mortal.wait_for(asked.agent, request_id)

        def follow(model, _):
            if asked.kind == "run":
                model.requests[request_id].askers += 1
                model.start(request_id)

        self.do(act, follow)

    @precondition(lambda self: self.model.requests)
    @rule(pick=picks)
    def run_what_was_approved(self, pick):
        request_id, asked = self.one(pick, lambda asked: asked.kind == "ask" and asked.state == "approved")
        if asked.state in {"waiting", "running"}:
            return  # it would be told so at once

        async def act():
            work = self.mortal.system.gate.run_approved(
                call_of(asked.agent, asked.command), request_id, NoObserver()
            )
            self.mortal.askers.setdefault(request_id, []).append(asyncio.create_task(work, name="asker"))

        self.do(act, lambda model, _: model.start(request_id))

    @precondition(lambda self: self.model.requests)
    @rule(pick=picks)
    def run_something_else_under_an_approval(self, pick):
        request_id, asked = self.one(pick, lambda asked: asked.state == "approved")
        if asked.state != "approved":
            return

        async def act():
            other = call_of(asked.agent, (*asked.command, "more"))
            outcome = await self.mortal.system.gate.run_approved(other, request_id, NoObserver())
            assert "binding mismatch" in outcome.reason

        def follow(model, _):
            model.requests[request_id].state = "denied"

        self.do(act, follow)

    @precondition(lambda self: self.model.requests)
    @rule(pick=picks)
    def hang_up(self, pick):
        request_id, asked = self.one(pick, lambda asked: asked.askers > 0)
        if asked.askers and asked.state in {"waiting", "running"} and asked.kind == "run":

            async def act():
                task = self.mortal.askers[request_id].pop()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

            def follow(model, _):
                model.requests[request_id].askers -= 1

            self.do(act, follow)

    @precondition(lambda self: self.model.requests)
    @rule(pick=picks)
    def withdraw(self, pick):
        request_id, asked = self.one(pick)

        async def act():
            await self.mortal.system.gate.withdraw(asked.agent, request_id)

        self.do(act, lambda model, _: model.withdraw(request_id))

    # What people do.

    @precondition(lambda self: self.model.requests)
    @rule(
        pick=picks,
        answer=st.sampled_from(["allow-once", "allow-once", *(answer.value for answer in Answer)]),
        minutes=st.sampled_from([1, 3, 10]),
        uses=st.sampled_from([None, 1, 2]),
        who=st.sampled_from(["cli:0", "cli:0", "web:operator", "cli:1", "cli:1", "cli:2", "cli:9"]),
    )
    def answer(self, pick, answer, minutes, uses, who):
        request_id, _ = self.one(pick, lambda asked: asked.state == "waiting")
        terms = (minutes * MINUTE, uses) if answer == "allow-for" else (None, None)

        async def act():
            review = Review(request_id, Answer(answer), Reviewer(*who.split(":"), "somebody"), None, *terms)
            taken = await self.mortal.system.console.resolve(review)
            if taken["accepted"] and taken["state"] != "waiting":
                assert request_id not in self.accepted, "two answers were the last"
                self.accepted[request_id] = answer
            return taken["accepted"]

        def follow(model, taken):
            told = model.answer(request_id, who, (answer, *terms))
            assert taken in (None, told), f"accepted: {taken}, and the model says {told}"

        self.do(act, follow)

    @precondition(lambda self: self.model.facts.permissions)
    @rule(pick=picks)
    def revoke_a_permission(self, pick):
        request_id = sorted(self.model.facts.permissions)[pick % len(self.model.facts.permissions)]

        async def act():
            if await self.mortal.store.permissions(self.clock.now()):
                await asyncio.gather(
                    self.mortal.permissions.revoke(request_id, ALICE), return_exceptions=True
                )

        self.do(act, lambda model, _: model.take_back(request_id))

    @rule(agent=agents)
    def revoke_or_renew_an_agent(self, agent):
        revoked = agent in self.model.facts.revoked
        system = self.mortal.system

        async def act():
            if revoked:
                await system.credentials.mint(agent, "test")
            else:
                await system.console.revoke_agent(agent)

        def follow(model, _):
            if revoked:
                model.facts.revoked.discard(agent)
            else:
                model.revoke(agent)

        self.do(act, follow)

    @rule()
    def lock_or_unlock(self):
        locked = self.model.facts.locked

        async def act():
            await self.mortal.system.console.set_locked(locked=not locked, reviewer=ALICE)

        def follow(model, _):
            if locked:
                model.facts.locked = False
            else:
                model.lock()

        self.do(act, follow)

    # What the machine does.

    @precondition(lambda self: "running" in self.model.states().values())
    @rule(pick=picks, state=st.sampled_from(["finished", "finished", "failed", "denied"]))
    def a_run_ends(self, pick, state):
        request_id, _ = self.one(pick, lambda asked: asked.state == "running")

        async def act():
            self.mortal.runner.end(request_id, state)

        self.do(act, lambda model, _: model.end(request_id, state))

    @precondition(lambda self: "running" in self.model.states().values())
    @rule(pick=picks)
    def cancel_a_run(self, pick):
        request_id, _ = self.one(pick, lambda asked: asked.state == "running")

        async def act():
            assert (await self.mortal.system.console.cancel(request_id, ALICE))["accepted"]

        self.do(act, lambda model, _: model.end(request_id, "interrupted"))

    @rule(ms=st.sampled_from([1_000, 6_000, 61_000, 121_000]))
    def time_passes(self, ms):
        async def act():
            self.mortal.look_at_deadlines()

        self.clock.advance(ms)
        self.do(act, lambda model, _: model.pass_time(ms))

    @rule()
    def killed_and_started_again(self):
        async def work():
            await self.mortal.die()
            await self.mortal.start()

        self.loop.run_until_complete(work())
        self.model.restart()

    @rule(fuse=st.integers(0, 4), after=st.booleans())
    def one_of_the_next_writes_is_the_last(self, fuse, after):
        self.mortal.fused.fuse = fuse
        self.mortal.fused.after = after

    # How both are compared.

    def one(self, pick, wanted=lambda _: True):
        """Pick a request, one that is wanted where there is any."""
        fitting = [pair for pair in self.model.requests.items() if wanted(pair[1])]
        pairs = fitting or list(self.model.requests.items())
        return pairs[pick % len(pairs)]

    def do(self, act, follow):
        self.loop.run_until_complete(self._do(act, follow))

    async def _do(self, act, follow):
        before = deepcopy(self.model)
        acting = asyncio.create_task(act(), name="act")
        dying = asyncio.create_task(self.mortal.fused.burnt.wait(), name="dying")
        await asyncio.wait([acting, dying], return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_S)
        dying.cancel()
        assert acting.done() or self.mortal.fused.burnt.is_set(), "it hangs"
        told = acting.result() if acting.done() else None
        if acting.done() and not self.mortal.fused.burnt.is_set():
            follow(self.model, told)
            if await self.mortal.reach(self.model.states()):
                return
            self.model = deepcopy(before)
        await self._follow_after_death(before, follow, told)

    async def _follow_after_death(self, before, follow, told):
        """It died within a step: each request is somewhere on its way, and all else is as far as that."""
        on_disk = await self.mortal.states()
        new = on_disk.keys() - before.requests.keys()
        assert len(new) <= 1, "one call left two requests"
        after = deepcopy(before)
        if told is None and new:
            (told,) = new
        if told is not None or not self._is_a_new_call(follow):
            follow(after, told)
        for request_id, state in on_disk.items():
            start = before.states().get(request_id, NOTHING)
            allowed = way(start, after.states().get(request_id, start))
            assert state in allowed, f"{request_id} is {state}, and may be one of {allowed}"
        assert before.requests.keys() <= on_disk.keys(), "something accepted is gone"
        locked = await self.mortal.store.locked()
        revoked = {record.id for record in await self.mortal.store.agents() if record.revoked_at is not None}
        happened = on_disk != before.states() or locked != before.facts.locked
        happened = happened or revoked != before.facts.revoked or not self._same_permissions(before, after)
        happened = happened or await self.mortal.yeses() != before.yeses()
        self.model = after if happened else before
        self.model.now = self.clock.now()
        self.model.facts.locked, self.model.facts.revoked = locked, revoked
        for request_id, state in on_disk.items():
            self.model.requests[request_id].state = state
        for request_id in self.model.requests.keys() - on_disk.keys():
            del self.model.requests[request_id]
        await self._settle_permissions()
        await self.mortal.die()
        await self.mortal.start()
        self.model.restart()
        self.model.pass_time(0)
        assert await self.mortal.reach(self.model.states())

    def _is_a_new_call(self, follow):
        return "request_id" in follow.__code__.co_varnames[: follow.__code__.co_argcount]

    def _same_permissions(self, before, after):
        return before.facts.permissions.keys() == after.facts.permissions.keys()

    async def _settle_permissions(self):
        """A permission ends in one write; which side of the death that was, only the disk can tell."""
        kept = {row.id for row in await self.mortal.store.permissions(self.clock.now())}
        facts = self.model.facts
        facts.permissions = {
            key: one for key, one in facts.permissions.items() if key in kept or one.uses == 0
        }

    @invariant()
    def it_stands_as_the_model_says(self):
        self.loop.run_until_complete(self._check())

    async def _check(self):
        if not hasattr(self.mortal, "store"):
            return
        kept = await self.mortal.states()
        assert kept == self.model.states()
        assert await self.mortal.yeses() == self.model.yeses()
        events = await self.mortal.record()
        stories = defaultdict(list)
        for event in events:
            if event.request_id and not event.kind.startswith("permission."):
                stories[event.request_id].append(event)
        for request_id, state in kept.items():
            self._check_story(request_id, state, [event.kind for event in stories[request_id]])
            self._check_quorum(request_id, stories[request_id])
        await self._check_standing()
        await self._check_askers(kept)

    def _check_story(self, request_id, state, kinds):
        asked = self.model.requests[request_id]
        assert lawful(NOTHING, state)
        assert kinds[0] == "request.created"
        assert kinds[-1] in LASTS_OF_SEVERAL.get(state, {LASTS.get(state)}), (state, kinds)
        counts = Counter(kinds)
        once = {kind: count for kind, count in counts.items() if kind != "approval.reviewed"}
        assert max(once.values()) == 1, f"{request_id} did something twice: {kinds}"
        ran = self.mortal.orders.count(request_id)
        assert ran <= counts["run.started"] <= 1, f"{request_id} ran {ran} times: {kinds}"
        if counts["run.started"]:
            assert counts["approval.approved"] + counts["request.allowed"] == 1, kinds
        if request_id in self.accepted:
            yes = self.accepted[request_id].startswith("allow")
            assert counts["approval.approved" if yes else "approval.denied"] == 1, kinds
        if state == "running":
            assert asked.agent not in self.model.facts.revoked
            assert not self.model.facts.locked

    def _check_quorum(self, request_id, events):
        """Told by the record: nothing is allowed before as many different people as are needed said yes."""
        yes = set()
        for event in events:
            if event.kind in {"approval.reviewed", "approval.approved"}:
                yes.add(WHO.get(event.actor.removeprefix("person:"), "nobody"))
            if event.kind == "approval.approved":
                assert len(yes) >= required(self.model.requests[request_id].command), f"only {yes}"
            if event.kind == "approval.reviewed":
                assert required(self.model.requests[request_id].command) > len(yes), "one yes too many"

    async def _check_standing(self):
        now = self.clock.now()
        model = self.model.facts
        standing = {
            row.id: None if row.max_uses is None else row.max_uses - row.uses
            for row in await self.mortal.store.permissions(now)
        }
        expected = {
            key: one.uses for key, one in model.permissions.items() if one.until > now and one.uses != 0
        }
        assert standing == expected
        assert {rule.agent for rule in await self.mortal.store.deny_rules()} == {a for a, _ in model.denied}
        assert len(await self.mortal.store.deny_rules()) >= len(model.denied)
        assert await self.mortal.store.locked() is model.locked
        learned = {
            (agent, (entry.pattern.rpartition("/")[2], *((ANY,) if entry.any_arguments else entry.args)))
            for agent in AGENTS
            for entry in await self.mortal.store.learned(agent)
        }
        assert learned == model.learned

    async def _check_askers(self, kept):
        """Whoever waits for what has ended is told, and told how it ended."""
        for request_id, tasks in self.mortal.askers.items():
            if kept.get(request_id) in {"waiting", "approved", "running"}:
                continue
            for task in tasks:
                outcome = await asyncio.wait_for(task, PATIENCE_S)
                told = (
                    {kept[request_id], "allowed"}
                    if self.model.requests[request_id].kind == "ask"
                    else {kept[request_id]}
                )
                assert outcome.status.value in told
            tasks.clear()


class NoObserver:
    def requested(self, card):
        pass

    def running(self, request_id):
        pass

    def write(self, request_id, stream, data):
        pass


@pytest.mark.timeout(0 if EXAMPLES > 25 else 240)
class TestLifecycle(Lifecycle.TestCase):
    settings = settings(
        max_examples=EXAMPLES,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
