"""Runs on the host that nothing holds from Sayso's own state: no entry admits, and a yes counts once."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from itertools import product

import pytest
from msgspec import structs

from core.model.command import Placement
from core.model.decision import Obligation
from core.model.outcome import Status
from core.model.principal import Reviewer
from core.model.request import Answer, Review
from tests.core_system import Noting, exec_call

OPERATOR = Reviewer("web", "operator", "Ada")
WHY = "no user namespace can be made here"
LS = {"pattern": "/usr/bin/ls", "placement": "host"}


def settings(security="allowlist", ask="on-miss", **exec_settings):
    rules = {"security": security, "ask": ask, "host": "gateway", "allowlist": [LS], **exec_settings}
    return {"tools": {"profile": "coding", "exec": rules}}


@pytest.fixture
def unheld(make_system):
    def make(*args, why=WHY, **fields):
        system = make_system(settings(*args, **fields))
        system.judge.site = replace(system.judge.site, unheld=why)
        return system

    return make


def judged_unheld(security, ask, accepted, listed):
    """Say what becomes of a command on a host that nothing holds."""
    if security == "deny":
        return "deny"
    if security == "allowlist" and ask == "off" and not listed:
        return "deny"
    full_and_accepted = security == "full" and accepted == "accept"
    return "allow" if full_and_accepted and ask == "off" else "ask"


@pytest.mark.parametrize(
    ("security", "ask", "accepted", "listed"),
    list(
        product(("deny", "allowlist", "full"), ("off", "on-miss", "always"), ("ask", "accept"), (True, False))
    ),
)
async def test_every_mode_where_nothing_holds(unheld, security, ask, accepted, listed):
    system = unheld(security, ask, unconfinedHost=accepted)
    _, verdict = await system.gate.consider(
        exec_call("ls" if listed else "touch", *([] if listed else ["x"]))
    )
    assert str(verdict.effect) == judged_unheld(security, ask, accepted, listed)


@pytest.mark.parametrize(("security", "ask"), [("allowlist", "on-miss"), ("full", "off")])
async def test_where_it_is_held_the_same_runs_unasked(unheld, security, ask):
    system = unheld(security, ask, why=None)
    _, verdict = await system.gate.consider(exec_call("ls"))
    assert str(verdict.effect) == "allow"


async def test_the_card_says_why_and_a_yes_is_good_for_one_run(unheld):
    system = unheld()
    asking, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    request_id = observer.seen[0][1]
    card = await system.approvals.card(request_id)
    assert WHY in card.reason
    host, unprotected = card.marks
    assert (host.word, unprotected.word) == ("HOST", "UNPROTECTED")
    assert unprotected.text == card.reason
    assert "counts once" in unprotected.text
    assert card.because == "see UNPROTECTED above"
    assert card.always == ()
    assert card.durations == ()
    assert not (await system.approvals.review(Review(request_id, Answer.ALLOW_ALWAYS, OPERATOR))).accepted
    await system.approvals.review(Review(request_id, Answer.ALLOW_ONCE, OPERATOR))
    assert (await asking).status is Status.FINISHED
    [order] = system.orders
    assert order.bound.plan.unheld == WHY
    again, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)


async def test_full_that_was_approved_before_asks_again(unheld):
    system = unheld("full", "on-miss")
    for _ in range(2):
        asking, observer = system.asking(exec_call("ls"))
        await observer.asked.wait()
        await system.approvals.review(Review(observer.seen[0][1], Answer.ALLOW_ONCE, OPERATOR))
        assert (await asking).status is Status.FINISHED


async def test_the_binding_knows_whether_the_run_is_held(unheld):
    held, not_held = unheld(why=None), unheld()
    first, _ = await held.gate.consider(exec_call("ls"))
    second, _ = await not_held.gate.consider(exec_call("ls"))
    assert first.binding.changed(second.binding) == ("plan",)


@pytest.fixture
def programs(tmp_path):
    tmp_path.chmod(0o755)
    for name, mode in (("plain", 0o755), ("risen", 0o4755), ("grouped", 0o2755)):
        shutil.copy("/usr/bin/true", tmp_path / name)
        (tmp_path / name).chmod(mode)
    return tmp_path


@pytest.mark.parametrize("name", ["risen", "grouped"])
@pytest.mark.parametrize(("security", "ask"), [("allowlist", "on-miss"), ("full", "off")])
@pytest.mark.parametrize("accepted", ["ask", "accept"])
async def test_a_program_that_takes_rights_asks_though_it_is_listed(
    unheld, programs, name, security, ask, accepted
):
    listed = [{"pattern": str(each), "placement": "host"} for each in programs.iterdir()]
    system = unheld(security, ask, why=None, allowlist=listed, unconfinedHost=accepted)
    case, verdict = await system.gate.consider(exec_call(str(programs / name)))
    assert (str(verdict.effect), verdict.decision.rule) == ("ask", "host.new-privileges")
    assert verdict.obliges(Obligation.NEVER_REMEMBER)
    assert verdict.obliges(Obligation.NO_FALLBACK)
    assert case.bound.plan.unheld is not None
    plain, verdict = await system.gate.consider(exec_call(str(programs / "plain")))
    assert (str(verdict.effect), plain.bound.plan.unheld) == ("allow", None)


async def test_a_program_that_takes_rights_is_found_behind_what_is_looked_through(unheld, programs):
    listed = [{"pattern": str(each), "placement": "host"} for each in programs.iterdir()]
    system = unheld(why=None, allowlist=listed)
    line = f"{programs}/plain && env A=1 {programs}/risen"
    _, verdict = await system.gate.consider(exec_call(line=line))
    assert str(verdict.effect) == "ask"
    assert "host.new-privileges" in {each.rule for each in verdict.trace}


async def test_file_capabilities_count_like_setuid(unheld, programs):
    capable = bytes.fromhex("0000000200200000000000000000000000000000")  # version 2, cap_net_raw permitted
    try:
        os.setxattr(programs / "plain", "security.capability", capable)
    except PermissionError:
        pytest.fail("this test has to be run as root, who may give capabilities to a file")
    listed = [{"pattern": str(each), "placement": "host"} for each in programs.iterdir()]
    system = unheld(why=None, allowlist=listed)
    _, verdict = await system.gate.consider(exec_call(str(programs / "plain")))
    assert verdict.decision.rule == "host.new-privileges"


def privileged(call):
    return replace(call, command=structs.replace(call.command, new_privileges=True))


@pytest.mark.parametrize(("security", "ask"), [("allowlist", "on-miss"), ("full", "off")])
async def test_new_privileges_that_are_asked_for_always_ask(unheld, security, ask):
    system = unheld(security, ask, why=None)
    case, verdict = await system.gate.consider(privileged(exec_call("ls")))
    assert (str(verdict.effect), verdict.decision.rule) == ("ask", "host.new-privileges")
    assert case.bound.plan.unheld is not None


async def test_in_the_sandbox_there_are_no_new_privileges(make_system):
    system = make_system()
    _, verdict = await system.gate.consider(privileged(exec_call("git", "--version")))
    assert (str(verdict.effect), verdict.decision.rule) == ("deny", "exec.new-privileges")


async def test_a_directory_that_a_held_run_does_not_have_is_refused_before_anybody_is_asked(unheld):
    call = exec_call("ls")
    call = replace(call, command=structs.replace(call.command, cwd="/run"))
    _, verdict = await unheld(why=None).gate.consider(call)
    assert (str(verdict.effect), verdict.decision.rule) == ("deny", "exec.cwd")
    _, verdict = await unheld().gate.consider(call)
    assert str(verdict.effect) == "ask"


async def test_the_order_says_whether_a_person_allowed_it(unheld):
    system = unheld(why=None)
    assert (await system.gate.run(exec_call("ls"), None, Noting())).status is Status.FINISHED
    asking, observer = system.asking(exec_call("touch", "x"))
    await observer.asked.wait()
    review = Review(observer.seen[0][1], Answer.ALLOW_FOR, OPERATOR, for_ms=60_000)
    assert (await system.approvals.review(review)).accepted
    await asking
    assert (await system.gate.run(exec_call("touch", "x"), None, Noting())).status is Status.FINISHED
    assert [order.by_person for order in system.orders] == [False, True, True]
    assert {order.bound.placement for order in system.orders} == {Placement.HOST}
