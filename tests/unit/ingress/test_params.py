"""Parameters: nothing is converted, nothing unknown is taken, and the field that is wrong is named."""

from __future__ import annotations

import pytest

from adapters.ingress import params as p
from adapters.ingress.jsonrpc import Code, RpcError
from core.model.session import SessionKey


def refusal(model: type[p.Params], **params: object) -> RpcError:
    with pytest.raises(RpcError) as caught:
        p.read(model, params)
    assert caught.value.code is Code.INVALID_PARAMS
    return caught.value


def test_a_full_call_becomes_a_tool_call():
    asked = p.read(
        p.ExecRun,
        {
            "argv": ["git", "status"],
            "cwd": "/srv",
            "cwdPreferred": True,
            "env": {"B": "2", "A": "1"},
            "stdin": "aGk=",
            "timeoutSeconds": 5,
            "session": "agent:main:cli:1",
            "elevated": "on",
            "claims": {"provider": "p", "model": "m", "depth": 2, "sandboxed": True},
        },
    )
    call = asked.call("main")
    assert call.tool == "exec"
    assert call.session == SessionKey("main", "cli", "1")
    assert call.command.argv == ("git", "status")
    assert call.command.env == (("A", "1"), ("B", "2"))
    assert (call.command.stdin, call.command.timeout_s, call.command.cwd_preferred) == (b"hi", 5.0, True)
    assert (call.claims.depth, call.elevated) == (2, "on")


def test_without_a_session_it_is_the_main_one_of_the_agent_whose_token_it_is():
    assert p.read(p.ExecRun, {"command": "ls"}).call("ci").session == SessionKey.main("ci")


def test_a_session_of_another_agent_is_refused():
    asked = p.read(p.ExecRun, {"command": "ls", "session": "agent:other:main"})
    with pytest.raises(RpcError, match="another agent") as caught:
        asked.call("main")
    assert caught.value.field == "session"


def test_a_session_that_is_no_key_is_refused():
    with pytest.raises(RpcError) as caught:
        p.read(p.ExecRun, {"command": "ls", "session": "main"}).call("main")
    assert caught.value.field == "session"


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"command": 3}, "command"),
        ({"command": ""}, "command"),
        ({"command": "echo \0"}, "command"),
        ({"argv": []}, "argv"),
        ({"argv": "ls"}, "argv"),
        ({"argv": ["ls", 3]}, "argv.1"),
        ({"argv": ["ls", "\0"]}, "argv.1"),
        ({"command": "ls", "cwd": "here"}, "cwd"),
        ({"command": "ls", "cwdPreferred": 1}, "cwdPreferred"),
        ({"command": "ls", "cwd_preferred": True}, "cwd_preferred"),
        ({"command": "ls", "env": {"A": 1}}, "env.A"),
        ({"command": "ls", "env": {"A=B": "1"}}, "env.A=B"),
        ({"command": "ls", "env": {"": "1"}}, "env."),
        ({"command": "ls", "stdin": "not base64!"}, "stdin"),
        ({"command": "ls", "timeoutSeconds": 0}, "timeoutSeconds"),
        ({"command": "ls", "timeoutSeconds": "5"}, "timeoutSeconds"),
        ({"command": "ls", "elevated": "max"}, "elevated"),
        ({"command": "ls", "claims": {"depth": -1}}, "claims.depth"),
        ({"command": "ls", "claims": {"owner": True}}, "claims.owner"),
        ({"command": "ls", "sandbox": "off"}, "sandbox"),
        ({"command": "ls", "approvalId": ""}, "approvalId"),
    ],
)
def test_a_wrong_parameter_is_named(params, field):
    error = refusal(p.ExecRun, **params)
    assert error.field == field
    assert field in error.message


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({}, "missing"),
        ({"command": "  "}, "empty"),
        ({"argv": [""]}, "no program"),
        ({"command": "ls", "argv": ["ls"]}, "exclude"),
        ({"command": "ls", "detach": True, "approvalId": "12345678"}, "exclude"),
    ],
)
def test_a_call_needs_exactly_one_command(params, told):
    assert told in refusal(p.ExecRun, **params).message


@pytest.mark.parametrize(
    "params", [{}, {"tool": "read", "command": "ls"}, {"command": "ls", "args": {"a": 1}}]
)
def test_a_request_for_approval_needs_exactly_one_subject(params):
    refusal(p.ApprovalRequest, **params)


@pytest.mark.parametrize("decision", ["allow", "ALLOW-ONCE", "", 1, None, "allow-once "])
def test_only_the_three_decisions_are_taken(decision):
    assert refusal(p.Resolve, id="12345678", decision=decision).field == "decision"


@pytest.mark.parametrize("limit", [0, -1, 1001, "5", True, 2.5])
def test_a_limit_is_a_whole_number_in_bounds(limit):
    assert refusal(p.Listing, limit=limit).field == "limit"


def test_a_missing_parameter_is_said_to_be_missing():
    assert refusal(p.ById).message == "id: is missing"


def test_locked_is_a_boolean_and_not_a_number():
    assert refusal(p.Lock, locked=1).field == "locked"
    assert p.read(p.Lock, {"locked": False}).locked is False


def test_a_tool_call_tells_where_its_relative_paths_start():
    asked = {"tool": "read", "args": {"path": "a"}, "cwd": "/srv"}
    assert p.read(p.ToolCheck, asked).call("main").cwd == "/srv"
    assert p.read(p.ApprovalRequest, asked).call("main").cwd == "/srv"
    assert p.read(p.ToolCheck, {"tool": "read"}).call("main").cwd is None
    assert p.read(p.ApprovalRequest, {"command": "ls", "cwd": "/srv"}).call("main").cwd is None


@pytest.mark.parametrize("cwd", ["", "srv", "./srv", "~/srv", "/a\0b", 7, ["/srv"]])
def test_a_working_directory_is_an_absolute_path(cwd):
    for model in (p.ToolCheck, p.ApprovalRequest):
        assert refusal(model, tool="read", cwd=cwd).field == "cwd"


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({f"V{n}": "" for n in range(1001)}, "1000"),
        ({"V": "v" * 131_072}, "131073 characters and may have 131072"),
    ],
)
def test_an_environment_that_no_program_is_given_is_refused(env, told):
    error = refusal(p.ExecRun, argv=["rg"], env=env)
    assert error.field == "env"
    assert told in error.message


def test_an_environment_as_large_as_it_may_be_is_taken():
    env = {f"V{n:03}": "x" * 120 for n in range(1000)}
    assert len(p.read(p.ExecRun, {"argv": ["rg"], "env": env}).env) == 1000


def test_only_what_tool_check_asks_about_is_carried_out_by_the_client():
    bash = {"tool": "Bash", "args": {"command": "ls"}}
    assert p.read(p.ToolCheck, bash).call("main").by_client
    assert not p.read(p.ExecRun, {"command": "ls"}).call("main").by_client
    for asked in ({"command": "ls"}, {"argv": ["ls"]}, bash):
        assert not p.read(p.ApprovalRequest, asked).call("main").by_client


@pytest.mark.parametrize("field", ["elevated", "env", "by_client", "byClient", "placement", "command"])
def test_tool_check_takes_nothing_that_would_change_where_or_how_it_is_judged(field):
    assert refusal(p.ToolCheck, tool="Bash", args={"command": "ls"}, **{field: "full"}).field == field
