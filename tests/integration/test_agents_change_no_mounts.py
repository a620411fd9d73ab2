"""Whatever an agent says on its socket, its run is laid out as the configuration says, or not at all.

Over a real socket, core and store; the runners note what they are given.
"""

from __future__ import annotations

import base64
from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.ingress.unix_socket import UnixSocketIngress
from core.elevated.levels import Level
from core.model.call import EXEC, ToolCall
from core.model.command import Placement
from core.model.plan import SandboxPlan
from core.model.request import State
from core.model.session import SessionKey
from tests.core_system import MAIN, exec_call
from tests.desks import some_desks

CONFIG = {
    "tools": {
        "profile": "coding",
        "exec": {"security": "full", "ask": "off"},
        "elevated": {"enabled": True, "allowFrom": ["web:operator"]},
    },
    "sandboxing": {"readable": ["/srv"], "masked": ["/etc/ssl"]},
    "agents": {
        "by_id": {"main": {}, "kept": {"workspace": "/var/tmp", "sandbox": {"workspace_access": "ro"}}}
    },
}
OF_MOUNTS = tuple(field.name for field in fields(SandboxPlan) if field.name not in ("env", "limits"))
SESSIONS = (
    *("main", "web:x", "main:subagent:a", "web:../../etc", "web:/root", "web:x:subagent:../y"),
    *("telegram:-1", "", "web:*"),
)
PATHS = ("/", "/usr", "/etc", "/root", "/home/else", "/srv", "/var/tmp", "/proc/self/root", "..", "~", "")
NAMES = ("A", "HOME", "TMPDIR", "PATH", "LD_PRELOAD", "SAYSO_HOME", "SAYSO_SESSION", "XDG_RUNTIME_DIR")
INVENTED = (
    *(
        "workspace",
        "workspaceAccess",
        "readable",
        "writable",
        "masked",
        "read_only",
        "sockets",
        "mounts",
        "binds",
    ),
    *("network", "user", "hostUser", "host", "placement", "sandbox", "plan", "unheld", "level", "directive"),
    *("elevation", "agent", "credential", "byClient", "by_client", "allowFrom", "cwd_preferred", "role"),
)
MODES = {"security": ("deny", "allowlist", "full"), "ask": ("off", "on-miss", "always")}

_values = st.one_of(
    st.sampled_from(PATHS), st.booleans(), st.none(), st.lists(st.sampled_from(PATHS), max_size=2)
)
_claims = st.fixed_dictionaries(
    {},
    optional={
        "provider": st.sampled_from(("x", "anthropic")),
        "model": st.just("y"),
        "depth": st.integers(-1, 3),
        "sandboxed": st.booleans(),
    },
)
_extra = {
    "claims": _claims,
    "cwd": st.sampled_from(PATHS),
    "cwdPreferred": st.booleans(),
    "env": st.dictionaries(st.sampled_from(NAMES), st.sampled_from(PATHS), max_size=2),
    "stdin": st.just(base64.b64encode(b"x").decode()),
    "timeoutSeconds": st.sampled_from((0.5, 10**5)),
    "newPrivileges": st.booleans(),
    "elevated": st.sampled_from(("on", "ask", "full", "off", "FULL")),
    **{name: st.sampled_from(modes) for name, modes in MODES.items()},
}
_invented = dict.fromkeys(INVENTED, _values)
_FIXED = {
    "exec.run": {"argv": ["true"], "detach": True},
    "exec.approval.request": {"argv": ["true"], "twoPhase": True},
    "tool.check": {"tool": "Bash", "args": {"command": "true"}, "wait": False},
    "session.describe": {},
}


def _some(parameters, most):
    """Draw a few parameters by their names: a call with all of them at once would only be refused."""
    names = st.lists(st.sampled_from(sorted(parameters)), max_size=most, unique=True)
    return names.flatmap(lambda drawn: st.fixed_dictionaries({name: parameters[name] for name in drawn}))


def _session_of(agent):
    return st.sampled_from((agent, agent, agent, "other")).flatmap(
        lambda whose: st.sampled_from([f"agent:{whose}:{session}" for session in SESSIONS])
    )


@st.composite
def calls(draw, agent):
    """Draw a call: nearly all of its parameters are those of its method, and one may be made up."""
    method = draw(st.sampled_from(("exec.run", "exec.run", *_FIXED)))
    known = {"session": _session_of(agent), "claims": _claims}
    if "argv" in _FIXED[method]:
        known |= _extra
    drawn = draw(_some(known, 3))
    if draw(st.integers(0, 7)) == 7:
        drawn |= draw(_some(_invented | _extra, 1))
    return method, {**_FIXED[method], **drawn}


AGENT_AND_CALLS = st.sampled_from(("main", "kept")).flatmap(
    lambda agent: st.tuples(st.just(agent), st.lists(calls(agent), min_size=1, max_size=4))
)


def mounts(plan):
    return {name: getattr(plan, name) for name in OF_MOUNTS}


def laid_out(judge, session):
    """Give the layout of a call in this session that says nothing more."""
    return mounts(judge.examine(exec_call("true", session=session), look_up=False).bound.plan)


class Agents:
    """The socket of a real core, and an agent of each kind at it."""

    def __init__(self, system, peers):
        self.system, self.peers = system, peers

    async def call(self, agent, method, params):
        return await self.peers[agent].call(method, **params)

    def level(self, session):
        return self.system.elevations.standing(ToolCall(EXEC, session)).level

    async def settle(self):
        """End what waits, so that the next call finds no flood of questions."""
        for request in await self.system.store.in_states(State.WAITING, State.APPROVED):
            await self.system.gate.withdraw(request.call.agent, request.id)
        self.system.clock.advance(3_600_000)


@pytest.fixture
async def agents(site, make_system, short_home):
    system = make_system(CONFIG)
    tokens = {name: (await system.console.add_agent(name))["token"] for name in ("main", "kept")}
    place = short_home / "real"
    place.mkdir(mode=0o700)
    desks = some_desks(console=system.console)
    ingress = UnixSocketIngress(place / "sayso.sock", system.credentials, system.gate, desks)
    await ingress.open()
    real = replace(site, home=place, ingress=ingress, peers=[])
    yield Agents(system, {name: await real.agent(token) for name, token in tokens.items()})
    for peer in real.peers:
        peer.writer.transport.abort()
    await ingress.close()


@given(AGENT_AND_CALLS)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
async def test_no_call_of_an_agent_changes_elevation_placement_or_mounts(agents, drawn):
    system, (agent, said) = agents.system, drawn
    for method, params in said:
        answer = (await agents.call(agent, method, params)).get("result", {})
        if method == "exec.approval.request" and answer.get("status") == "allowed":
            spent = {name: value for name, value in params.items() if name != "twoPhase"}
            await agents.call(agent, "exec.run", {**spent, "approvalId": answer["id"]})
    for request in await system.store.in_states(State.RUNNING, State.FINISHED, State.USED):
        assert request.resolution.by is None
        assert request.placement is (Placement.CLIENT if request.call.by_client else Placement.SANDBOX)
        assert request.call.agent == request.call.session.agent
        assert agents.level(request.call.session) is Level.OFF
    assert system.runners[Placement.HOST].orders == []
    for order in system.runners[Placement.SANDBOX].orders:
        session = SessionKey.parse(order.bound.session)
        assert (order.agent, order.by_person) == (agent, False)
        assert mounts(order.bound.plan) == laid_out(system.judge, session)
    await agents.settle()
    for runner in system.runners.values():
        runner.orders.clear()


@pytest.mark.parametrize(
    "more",
    [
        *({"session": f"agent:main:{session}"} for session in SESSIONS[:3]),
        {"cwd": "/usr"},
        {"cwd": "/home", "cwdPreferred": True},
        {"env": {"HOME": "/", "SAYSO_HOME": "/", "TMPDIR": "/etc"}},
        {"stdin": base64.b64encode(b"x").decode(), "timeoutSeconds": 0.5},
        {"claims": {"depth": 2, "sandboxed": True, "provider": "x"}, "elevated": "off"},
        {"security": "full", "ask": "off"},
    ],
    ids=str,
)
async def test_the_control_calls_that_say_more_do_run_and_are_laid_out_the_same(agents, more):
    answer = await agents.call("main", "exec.run", {**_FIXED["exec.run"], **more})
    assert answer["result"]["status"] == "finished", answer
    (order,) = agents.system.orders
    session = SessionKey.parse(more.get("session", str(MAIN)))
    assert (order.bound.placement, order.bound.session) == (Placement.SANDBOX, str(session))
    assert mounts(order.bound.plan) == laid_out(agents.system.judge, session)


@pytest.mark.parametrize("name", INVENTED)
@pytest.mark.parametrize("method", list(_FIXED))
async def test_what_no_method_knows_is_refused_by_its_name_and_nothing_runs(agents, method, name):
    answer = await agents.call("main", method, {**_FIXED[method], name: ["/"]})
    assert (answer["error"]["code"], answer["error"]["data"]["field"].split(".")[0]) == (-32602, name)
    assert agents.system.orders == []
    assert "result" in await agents.call("main", method, _FIXED[method])


@pytest.mark.parametrize("level", ["on", "ask", "full"])
async def test_elevation_that_an_agent_asks_for_is_a_question_and_leaves_nothing(agents, level):
    before = laid_out(agents.system.judge, MAIN)
    asked = (await agents.call("main", "exec.run", {**_FIXED["exec.run"], "elevated": level}))["result"]
    assert (asked["status"], agents.system.orders) == ("pending", [])
    assert agents.level(MAIN) is Level.OFF
    assert (await agents.call("main", "exec.run", _FIXED["exec.run"]))["result"]["status"] == "finished"
    assert [mounts(order.bound.plan) for order in agents.system.orders] == [before]


async def test_the_control_what_an_operator_writes_does_change_them(agents, make_system):
    before = laid_out(agents.system.judge, MAIN)
    for section in ({"readable": ["/"]}, {"masked": []}, {"network": True}, {"mode": "off"}):
        sandboxing = CONFIG["sandboxing"] | section
        other = make_system(CONFIG | {"sandboxing": sandboxing})
        assert laid_out(other.judge, MAIN) != before, section
