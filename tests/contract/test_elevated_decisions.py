"""Elevation beside every other layer: what it moves, what it skips, and what it never lifts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.resolvers.names import SystemNameResolver
from core.approvals.routes import Route
from core.config import Config
from core.elevator import Elevator, Wish
from core.judge import Judge
from core.model.command import Placement
from core.model.elevation import Level
from core.model.outcome import Status
from core.model.principal import Claims, Reviewer, Sender
from core.model.request import Answer, AuditEvent, Review
from core.model.session import SessionKey
from tests.core_system import CONFIG, MAIN, Noting, exec_call

OPERATOR = Sender("web", "operator", "Ada")
STRANGER = Reviewer("cli", "0", "root")
ELEVATED = {"enabled": True, "allowFrom": ["web:operator"]}
HOST, SANDBOX = Placement.HOST, Placement.SANDBOX


def settings(security="allowlist", ask="on-miss", host="sandbox", unconfinedHost="ask", **tools):  # noqa: N803 - the key
    rules = {"security": security, "ask": ask, "host": host, "allowlist": [{"pattern": "/usr/bin/ls"}]}
    rules["unconfinedHost"] = unconfinedHost
    rules["allowlist"].append({"pattern": "/usr/bin/ls", "placement": "host"})
    return {"tools": {"profile": "coding", "exec": rules, "elevated": ELEVATED, **tools}}


@pytest.fixture
def set_level():
    async def setter(system, level, session=MAIN, by=OPERATOR, **fields):
        if not system.credentials.alive(session.agent):
            await system.credentials.mint(session.agent, "operator")
        elevator = Elevator(
            system.elevations, system.store, system.clock, lambda: system.judge.config, lambda _event: None
        )
        return await elevator.set(Wish(session, Level(level), **fields), by)

    return setter


def expected(level, security, ask, listed, host):
    """Say what becomes of a command: the oracle of the table in docs/elevated.md."""
    placement = SANDBOX if (level, host) == ("off", "sandbox") else HOST
    if security == "deny":
        return "deny", placement
    if security == "full":
        effect = "allow" if ask == "off" else "ask"
    else:
        effect = {
            "off": "allow" if listed else "deny",
            "on-miss": "allow" if listed else "ask",
            "always": "ask",
        }[ask]
    if level == "ask" and effect == "allow":
        effect = "ask"
    if level == "full" and effect == "ask":
        effect = "allow"
    return effect, placement


@pytest.mark.parametrize(
    ("level", "security", "ask", "listed", "host"),
    list(
        product(
            ("off", "ask", "on", "full"),
            ("deny", "allowlist", "full"),
            ("off", "on-miss", "always"),
            (True, False),
            ("sandbox", "gateway"),
        )
    ),
)
async def test_every_level_beside_every_mode(make_system, set_level, level, security, ask, listed, host):
    system = make_system(settings(security, ask, host))
    await set_level(system, level)
    call = exec_call("ls" if listed else "touch", *([] if listed else ["x"]))
    case, verdict = await system.gate.consider(call)
    assert (str(verdict.effect), case.placed.placement) == expected(level, security, ask, listed, host)


@pytest.mark.parametrize(("unheld", "accepted"), list(product((None, "a reason"), ("ask", "accept"))))
async def test_full_skips_people_only_where_the_run_is_held(make_system, set_level, unheld, accepted):
    base = settings(unconfinedHost=accepted)
    system = make_system(base)
    system.judge.site = replace(system.judge.site, unheld=unheld)
    await set_level(system, "full")
    for call in (exec_call("ls"), exec_call("touch", "x")):
        _, verdict = await system.gate.consider(call)
        expected_effect = "ask" if unheld and accepted == "ask" else "allow"
        assert str(verdict.effect) == expected_effect


@pytest.mark.parametrize("level", ["ask", "on", "full"])
@pytest.mark.parametrize(
    ("tools", "line"),
    [
        ({"deny": ["exec"]}, "ls"),
        (
            {
                "exec": {
                    "security": "full",
                    "ask": "off",
                    "deny": ["/usr/bin/touch **", "touch **", "touch x", "/usr/bin/touch x"],
                }
            },
            "touch x",
        ),
        ({}, "sayso approve 12345678"),
        ({}, "cat /etc/passwd > copy"),
        ({}, "echo $(id)"),
    ],
)
async def test_no_level_lifts_what_is_denied(make_system, set_level, level, tools, line):
    base = settings()
    system = make_system({"tools": {**base["tools"], **tools}})
    await set_level(system, level)
    outcome = await system.gate.run(exec_call(line=line), None, Noting())
    assert outcome.status is Status.DENIED
    assert system.orders == []


async def test_full_runs_on_the_host_unasked_and_the_record_says_so(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full")
    outcome = await system.gate.run(exec_call("touch", "x"), None, Noting())
    assert outcome.status is Status.FINISHED
    assert outcome.approval["decision"] == "allowed-by-elevation"
    assert [order.bound.placement for order in system.orders] == [HOST]
    kinds = [link.event.kind async for link in system.store.events()]
    assert kinds.count("elevated.ran") == 1


async def test_on_asks_the_ordinary_people_about_what_the_host_does_not_know(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "on")
    task, observer = system.asking(exec_call("touch", "x"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    assert waiting["placement"] == "host"
    assert (await system.console.resolve(Review(waiting["id"], Answer.ALLOW_ONCE, STRANGER)))["accepted"]
    assert (await task).status is Status.FINISHED


@pytest.mark.parametrize("end", ["off", "lock-free end", "not trusted any more"])
async def test_an_answer_given_under_a_level_does_not_run_once_that_ended(make_system, set_level, end):
    system = make_system(settings())
    await set_level(system, "on")
    asked = await system.gate.ask(exec_call("touch", "x"), None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, STRANGER))
    if end == "off":
        await set_level(system, "off")
    elif end == "lock-free end":
        await system.elevations.end(str(MAIN), _ended(system))
    else:
        elevated = {"enabled": True, "allowFrom": ["web:other"]}
        reconfigure(system, {"tools": {**settings()["tools"], "elevated": elevated}})
    outcome = await system.gate.run_approved(exec_call("touch", "x"), asked.request_id, Noting())
    assert outcome.status is Status.DENIED
    assert "approval binding mismatch" in outcome.reason
    assert system.orders == []


def _ended(system):
    return AuditEvent(system.clock.now(), "session.ended", "test")


async def test_what_was_decided_under_a_level_that_ended_before_the_start_is_decided_again(
    make_system, set_level
):
    system = make_system(settings())
    await set_level(system, "full")
    commit = system.store.commit

    async def late(change):
        system.store.commit = commit
        await system.elevations.end(str(MAIN), _ended(system))
        return await commit(change)

    system.store.commit = late
    task, observer = system.asking(exec_call("touch", "x"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    assert waiting["placement"] == "sandbox"
    await system.console.resolve(Review(waiting["id"], Answer.DENY, STRANGER))
    assert (await task).status is Status.DENIED
    assert system.orders == []


async def test_a_run_goes_on_when_its_level_ends_and_the_next_one_is_not_elevated(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full", for_ms=60_000)
    system.runners[HOST].hold = asyncio.Event()
    task, observer = system.asking(exec_call("touch", "x"))
    await observer.started.wait()
    system.clock.advance(60_000)
    _, verdict = await system.gate.consider(exec_call("touch", "x"))
    assert (str(verdict.effect), verdict.placement) == ("ask", SANDBOX)
    system.runners[HOST].hold.set()
    assert (await task).status is Status.FINISHED


async def test_an_agent_only_asks_and_a_person_outside_allow_from_can_only_deny(make_system):
    system = make_system(settings())
    task, observer = system.asking(replace(exec_call("ls"), elevated="on"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    no = await system.console.resolve(Review(waiting["id"], Answer.ALLOW_ONCE, STRANGER))
    assert not no["accepted"]
    assert "tools.elevated.allowFrom" in no["text"]
    assert system.orders == []
    for answer in (Answer.ALLOW_ALWAYS, Answer.ALLOW_FOR):
        review = Review(waiting["id"], answer, Reviewer("web", "operator", "Ada"), for_ms=60_000)
        assert not (await system.console.resolve(review))["accepted"]
    yes = Review(waiting["id"], Answer.ALLOW_ONCE, Reviewer("web", "operator", "Ada"))
    assert (await system.console.resolve(yes))["accepted"]
    assert (await task).status is Status.FINISHED
    assert [order.bound.placement for order in system.orders] == [HOST]


async def test_a_yes_to_an_elevation_is_not_for_the_next_time(make_system):
    system = make_system(settings())
    for _ in range(2):
        task, observer = system.asking(replace(exec_call("ls"), elevated="full"))
        await observer.asked.wait()
        (waiting,) = await system.console.pending()
        yes = Review(waiting["id"], Answer.ALLOW_ONCE, Reviewer("web", "operator", "Ada"))
        assert (await system.console.resolve(yes))["accepted"]
        await task
    assert len(system.orders) == 2


async def test_where_nobody_in_allow_from_can_be_asked_it_is_denied_at_once(make_system):
    base = settings()["tools"]
    system = make_system({"tools": {**base, "elevated": {"enabled": True, "allowFrom": ["telegram:1"]}}})
    outcome = await system.gate.run(replace(exec_call("ls"), elevated="on"), None, Noting())
    assert (outcome.status, outcome.decision["rule"]) == (Status.DENIED, "elevated.nobody")


async def test_an_agent_may_always_go_back_into_the_sandbox(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full")
    _, verdict = await system.gate.consider(replace(exec_call("touch", "x"), elevated="off"))
    assert (str(verdict.effect), verdict.placement) == ("ask", SANDBOX)
    _, verdict = await system.gate.consider(replace(exec_call("ls"), elevated="ask"))
    assert (str(verdict.effect), verdict.placement) == ("ask", HOST)


async def test_a_directive_counts_for_the_next_command_alone(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full", once=True)
    outcomes = [await system.gate.ask(exec_call("touch", "x"), None) for _ in range(2)]
    assert [outcome.status for outcome in outcomes] == [Status.ALLOWED, Status.PENDING]
    ran = await system.gate.run_approved(exec_call("touch", "x"), outcomes[0].request_id, Noting())
    assert ran.status is Status.FINISHED
    assert [order.bound.placement for order in system.orders] == [HOST]


async def test_of_two_commands_at_once_one_gets_the_directive(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full", once=True)
    calls = [system.gate.ask(exec_call("touch", f"x{number}"), None) for number in range(8)]
    statuses = [outcome.status for outcome in await asyncio.gather(*calls)]
    assert statuses.count(Status.ALLOWED) == 1


async def test_a_directive_is_over_after_five_minutes(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full", once=True)
    system.clock.advance(5 * 60_000)
    assert (await system.gate.ask(exec_call("touch", "x"), None)).status is Status.PENDING


async def test_a_directive_is_not_for_subagents_or_other_sessions(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full", once=True)
    for session in (SessionKey("main", subagents=("x",)), SessionKey("main", "telegram", "1")):
        outcome = await system.gate.ask(replace(exec_call("touch", "x"), session=session), None)
        assert outcome.status is Status.PENDING, session
    assert (await system.gate.ask(exec_call("touch", "x"), None)).status is Status.ALLOWED


async def test_a_directive_that_was_taken_back_does_not_run_what_it_allowed(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full", once=True)
    asked = await system.gate.ask(exec_call("touch", "x"), None)
    assert asked.status is Status.ALLOWED
    await set_level(system, "off")
    outcome = await system.gate.run_approved(exec_call("touch", "x"), asked.request_id, Noting())
    assert outcome.status is Status.DENIED
    assert system.orders == []


async def test_a_change_of_level_ends_the_permissions_of_the_session(make_system, set_level):
    system = make_system(settings())
    task, observer = system.asking(exec_call("touch", "x"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    await system.console.resolve(Review(waiting["id"], Answer.ALLOW_FOR, STRANGER, for_ms=3_600_000))
    await task
    assert (await system.gate.ask(exec_call("touch", "x"), None)).status is Status.ALLOWED
    await set_level(system, "on")
    await set_level(system, "off")
    assert (await system.gate.ask(exec_call("touch", "x"), None)).status is Status.PENDING


async def test_a_lock_ends_every_level(make_system, set_level):
    system = make_system(settings())
    await set_level(system, "full")
    await system.console.set_locked(locked=True, reviewer=STRANGER)
    await system.console.set_locked(locked=False, reviewer=STRANGER)
    assert (await system.gate.ask(exec_call("touch", "x"), None)).status is Status.PENDING
    assert await system.store.elevations() == ()


async def test_an_agent_on_the_host_is_told_that_elevation_is_not_needed(make_system, set_level):
    system = make_system(settings(host="gateway"))
    _, words = await set_level(system, "on")
    assert "not needed" in words
    _, verdict = await system.gate.consider(exec_call("touch", "x"))
    assert (str(verdict.effect), verdict.placement) == ("ask", HOST)


async def test_the_configuration_of_the_tests_elevates_nobody(make_system):
    system = make_system(CONFIG)
    outcome = await system.gate.run(replace(exec_call("ls"), elevated="full"), None, Noting())
    assert outcome.decision["rule"] == "elevated.disabled"


async def allowed_under(system, set_level, level, call):
    """Have an ordinary approver allow what is asked under a level, and return its id."""
    await set_level(system, level)
    asked = await system.gate.ask(call, None)
    reviewed = await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, STRANGER))
    assert reviewed["accepted"]
    return asked.request_id


@pytest.mark.parametrize("asks", [None, "on"])
@pytest.mark.parametrize("claims", [None, "on", "full"])
async def test_a_yes_given_under_a_level_is_no_yes_to_leave_the_sandbox_without_it(
    make_system, set_level, asks, claims
):
    system = make_system(settings())
    call = replace(exec_call("touch", "x"), elevated=asks)
    request_id = await allowed_under(system, set_level, "on", call)
    await set_level(system, "off")
    outcome = await system.gate.run_approved(replace(call, elevated=claims), request_id, Noting())
    assert outcome.status is Status.DENIED
    assert system.orders == []


async def test_a_question_asked_on_the_host_is_not_run_there_once_the_agent_is_confined(make_system):
    system = make_system(settings(host="gateway"))
    asked = await system.gate.ask(exec_call("touch", "x"), None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, STRANGER))
    reconfigure(system, settings())
    call = replace(exec_call("touch", "x"), elevated="on")
    outcome = await system.gate.run_approved(call, asked.request_id, Noting())
    assert outcome.status is Status.DENIED
    assert system.orders == []


async def test_whoever_allowed_an_elevation_must_still_be_in_allow_from_when_it_starts(make_system):
    system = make_system(settings())
    call = replace(exec_call("ls"), elevated="on")
    asked = await system.gate.ask(call, None)
    yes = Review(asked.request_id, Answer.ALLOW_ONCE, Reviewer("web", "operator", "Ada"))
    assert (await system.console.resolve(yes))["accepted"]
    base = settings()["tools"]
    reconfigure(system, {"tools": {**base, "elevated": {"enabled": True, "allowFrom": ["web:somebody"]}}})
    outcome = await system.gate.run_approved(call, asked.request_id, Noting())
    assert outcome.status is Status.DENIED
    assert "not in tools.elevated.allowFrom any more" in outcome.reason
    assert system.orders == []


async def test_a_refused_yes_to_an_elevation_is_a_security_event_wherever_it_was_given(make_system):
    system = make_system(settings())
    task, observer = system.asking(replace(exec_call("ls"), elevated="on"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    await system.console.resolve(Review(waiting["id"], Answer.ALLOW_ONCE, STRANGER))
    kinds = [link.event.kind async for link in system.store.events()]
    assert kinds.count("security.elevation-refused") == 1
    await system.console.resolve(Review(waiting["id"], Answer.DENY, STRANGER))
    await task


async def test_what_a_person_allowed_is_not_told_as_run_without_asking(make_system, set_level):
    system = make_system(settings())
    request_id = await allowed_under(system, set_level, "on", exec_call("touch", "x"))
    await set_level(system, "full")
    outcome = await system.gate.run_approved(exec_call("touch", "x"), request_id, Noting())
    assert outcome.status is Status.FINISHED
    assert "elevated.ran" not in [link.event.kind async for link in system.store.events()]


async def test_a_directive_is_not_for_a_session_that_once_was_a_subagents(make_system, set_level):
    system = make_system(settings())
    await system.gate.ask(replace(exec_call("ls"), claims=Claims(depth=1)), None)
    await set_level(system, "full", once=True)
    assert (await system.gate.ask(exec_call("touch", "x"), None)).status is Status.PENDING


async def test_where_approvers_and_allow_from_have_nobody_in_common_it_is_denied_at_once(make_system):
    base = settings()["tools"]
    system = make_system({"tools": {**base, "elevated": {"enabled": True, "allowFrom": ["telegram:111"]}}})
    route = Route("telegram", "-100", ("telegram:222",), 120_000, "test")
    system.approvals.routes = lambda _request: (route,)
    call = replace(exec_call("ls"), elevated="on")
    assert (await system.gate.ask(call, None)).decision["rule"] == "elevated.nobody"
    system.approvals.routes = lambda _request: (replace(route, approvers=("telegram:222", "id:111")),)
    assert (await system.gate.ask(call, None)).status is Status.PENDING


def reconfigure(system, config):
    system.judge = Judge(
        Config.model_validate(config),
        system.judge.site,
        FilesystemResolver(),
        SystemNameResolver(),
    )


@pytest.mark.parametrize("claims", [{"elevated": "off"}, {"elevated": "on"}, {"claims": Claims(depth=1)}])
async def test_on_the_host_an_agent_cannot_end_that_it_is_asked_about(make_system, set_level, claims):
    system = make_system(settings(host="gateway"))
    await set_level(system, "ask")
    _, verdict = await system.gate.consider(replace(exec_call("ls"), **claims))
    assert (str(verdict.effect), verdict.placement) == ("ask", HOST)


async def test_a_default_of_ask_holds_for_subagents_on_the_host_and_moves_none_there(make_system):
    for host, effect, placement in (("gateway", "ask", HOST), ("sandbox", "allow", SANDBOX)):
        config = {**settings(host=host), "agents": {"defaults": {"elevatedDefault": "ask"}}}
        _, verdict = await make_system(config).gate.consider(replace(exec_call("ls"), claims=Claims(depth=1)))
        assert (str(verdict.effect), verdict.placement) == (effect, placement)
