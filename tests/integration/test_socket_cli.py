"""The command line against a real socket: streams, statuses, words."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from pathlib import Path

import pytest


async def test_output_streams_as_bytes_and_nothing_is_added(site):
    status, out, err = await site.sayso("exec", "--", "say", "hello")
    assert (status, out) == (0, b"hello")
    assert "raw" in err


async def test_bytes_that_are_no_text_come_through(site):
    process = await site.start("exec", "--", "say", "x")
    _, err = await process.communicate()
    assert err == b"\xff\x00 raw\n"


async def test_with_json_the_last_line_is_the_outcome(site):
    status, out, _ = await site.sayso("exec", "--json", "--", "say", "hello")
    *before, last = out.splitlines()
    assert before == [b"hello"]
    outcome = json.loads(last)
    assert (status, outcome["status"], outcome["exitCode"]) == (0, "finished", 0)


async def test_output_that_was_not_streamed_is_printed_from_the_outcome(site):
    assert await site.sayso("exec", "--", "quiet") == (0, b"kept\n", "")


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 137", 137),
        ("deny", 77),
        ("nobody", 75),
        ("end expired", 75),
        ("end withdrawn", 75),
        ("end interrupted", 74),
        ("end failed", 74),
        ("full", 74),
        ("fault", 74),
        ("malformed", 64),
    ],
)
async def test_the_exit_status_says_how_it_ended(site, command, status):
    assert (await site.sayso("exec", "-c", command))[0] == status


async def test_a_denial_says_why_by_which_rule_where_and_what_next(site):
    _, out, err = await site.sayso("exec", "--", "deny")
    assert out == b""
    for told in (
        "redirected to a file",
        "exec.redirection",
        "tools.exec.security (config.yaml:12)",
        "sayso show 3f2b91c0",
    ):
        assert told in err


async def test_the_current_directory_is_preferred_and_one_that_is_named_is_required(site, tmp_path):
    await site.sayso("exec", "--", "exit", "0")
    await site.sayso("exec", "--cwd", str(tmp_path), "--", "exit", "0")
    first, second = (call.command for call in site.desk.calls)
    assert (first.cwd, first.cwd_preferred) == (str(Path.cwd()), True)
    assert (second.cwd, second.cwd_preferred) == (str(tmp_path), False)


async def test_the_options_of_exec_arrive(site):
    options = (
        "--env",
        "A=1=2",
        "--timeout",
        "2.5",
        "--session",
        "agent:main:cli:1",
        "--elevated",
        "ask",
        "--stdin",
    )
    await site.sayso("exec", *options, "--", "exit", "0", "--json", stdin=b"\x00in")
    (call,) = site.desk.calls
    assert call.command.argv == ("exit", "0", "--json")  # what follows -- is the command's own
    assert call.command.env == (("A", "1=2"),)
    assert (call.command.timeout_s, call.command.stdin) == (2.5, b"\x00in")
    assert (str(call.session), call.elevated) == ("agent:main:cli:1", "ask")


async def test_a_question_is_told_on_stderr_while_it_waits(site):
    process = await site.start("exec", "--", "wait")
    async with asyncio.timeout(10):
        note = (await process.stderr.readline()).decode()
    assert note.startswith("waiting for a person: 3f2b91c0 (sayso approve 3f2b91c0), ")
    assert "left" in note
    site.desk.answered.set()
    out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"")


async def test_ctrl_c_leaves_the_question_open_and_says_how_to_come_back(site, until):
    process = await site.start("exec", "--", "wait")
    await process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert process.returncode == 130
    assert b"the question stays open: sayso wait 3f2b91c0 joins it again" in err
    assert b"Traceback" not in err
    await until(lambda: site.desk.hung_up == [""])


async def test_no_wait_prints_the_id_and_wait_joins_it_again(site, request_id):
    status, out, err = await site.sayso("exec", "--no-wait", "--", "wait")
    assert (status, out.decode().strip()) == (0, request_id)
    assert err == "a person must decide: sayso wait 3f2b91c0 waits for it\n"
    site.desk.answered.set()
    status, out, _ = await site.sayso("wait", "--json", request_id[:8])
    assert (status, json.loads(out)["status"]) == (0, "finished")


async def test_a_tool_is_checked(site):
    status, _, err = await site.sayso("check", "read", "--args", '{"path": "/x"}')
    assert (status, err.strip()) == (0, "allowed: read is allowed")
    assert dict(site.desk.calls[0].args) == {"path": "/x"}
    status, out, _ = await site.sayso("check", "write", "--no-wait", "--json")
    assert (status, json.loads(out)["status"]) == (0, "pending")


async def test_a_reader_that_goes_away_ends_it_quietly(site):
    process = await site.start("exec", "--", "flood", "200")
    await process.stdout.read(10)
    process.stdout._transport.close()
    err = await process.stderr.read()
    assert await process.wait() == 141
    assert err == b""


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("exec",), "give a command after --"),
        (("exec", "--"), "the command is empty"),
        (("exec", "--", ""), "the command is empty"),
        (("exec", "-c", "  "), "the command is empty"),
        (("exec", "-c", "ls", "--", "ls"), "give a command after --"),
        (("exec", "ls"), "unrecognized arguments: ls; a command stands behind --, a shell line behind -c"),
        (("exec", "--env", "A", "--", "ls"), "NAME=VALUE"),
        (("exec", "--timeout", "soon", "--", "ls"), "--timeout"),
        (("exec", "--timeout", "nan", "--", "exit", "0"), "timeout"),
        (("exec", "--session", "agent:other:main", "--", "exit", "0"), "another agent"),
        (("exec", "-c", "x" * 120_000 + " " + "\udcff"), "UTF-8"),
        (("check", "read", "--args", "[1]"), "must be a JSON object"),
        (("check", "read", "--args", "{"), "is not JSON"),
        (("wait",), "required: id"),
        (("wait", "99999999"), "no request of this agent"),
        (("show", "99999999"), "no request has an id"),
        (("history", "--limit", "0"), "limit"),
        (("approve", "3f2b91c0", "perhaps"), "say once, always or for a time"),
        (("approve", "3f2b91c0", "for"), "`for` needs a time such as 30s, 30m, 2h or 1d"),
        (("approve", "3f2b91c0", "for", "10"), "30m, 2h or 1d, not “10”"),
        (("approve", "3f2b91c0", "for", "-10m"), "-10m"),
        (("approve", "3f2b91c0", "for", "9s"), "9s is out of bounds: 10 s to 30 d"),
        (("approve", "3f2b91c0", "for", "31d"), "31d is out of bounds: 10 s to 30 d"),
        (("approve", "3f2b91c0", "for", "10m", "20m"), "not 'for 10m 20m'"),
        (("approve", "3f2b91c0", "10m"), "for a time (for 30m), not '10m'"),
        (("approve", "3f2b91c0", "always", "--max-uses", "3"), "--max-uses goes with a time"),
        (("approve", "3f2b91c0", "always", "any", "--max-uses", "3"), "--max-uses goes with a time"),
        (("approve", "3f2b91c0", "any"), "not 'any'"),
        (("approve", "3f2b91c0", "always", "any", "thing"), "not 'always any thing'"),
        (("approve", "3f2b91c0", "for", "10m", "--max-uses", "0"), "a number from 1 to 10000, not '0'"),
        (("approve", "3f2b91c0", "for", "10m", "--max-uses", "10001"), "not '10001'"),
        (("approve", "3f2b91c0", "for", "10m", "--max-uses", "\u0663"), "--max-uses is a number"),
        (("deny", "3f2b91c0", "always", "because"), "a reason goes after --reason"),
        (("deny", "3f2b91c0", "always", "always"), "what is 'always'?"),
        (("deny", "3f2b91c0", "because"), "--reason"),
        (("agent", "make"), "not 'make'"),
        (("permissions", "end"), "give one of list, revoke, not 'end'"),
        (("permissions", "revoke"), "the following arguments are required: id"),
        (("pendign",), "did you mean pending?"),
        (("up", "--port", "70000"), "--port"),
        (("explain",), "give a command"),
    ],
)
async def test_a_slip_is_one_line_and_status_64(site, args, told):
    status, out, err = await site.sayso(*args)
    assert status == 64
    assert told in err
    assert (out, err.count("\n")) == (b"", 1)
    assert site.desk.calls == []


async def test_a_line_over_a_mebibyte_is_one_clear_line(site):
    status, _, err = await site.sayso("exec", "--stdin", "--", "exit", "0", stdin=b"x" * 1_000_000)
    assert status == 64
    assert "1048576" in err
    assert site.desk.calls == []


async def test_no_daemon_is_status_69_and_says_how_to_start_it(short_home):
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "sayso",
        "exec",
        "--",
        "ls",
        env={"SAYSO_HOME": str(short_home), "SAYSO_TOKEN": "x"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == 69
    assert b"sayso up" in err


async def test_a_daemon_that_goes_away_is_status_69(site):
    process = await site.start("exec", "--", "wait")
    await process.stderr.readline()
    await site.ingress.close()
    _, err = await process.communicate()
    assert process.returncode == 69
    assert b"went away" in err
    assert b"sayso wait 3f2b91c0 joins the question again, which stays open" in err


async def test_a_daemon_that_goes_away_while_the_command_runs_tells_how_to_learn_its_end(site, until):
    process = await site.start("exec", "--", "hold")
    await until(lambda: site.desk.calls)
    await asyncio.sleep(0.2)  # until the client has read that it runs
    await site.ingress.close()
    _, err = await process.communicate()
    assert b"sayso wait 3f2b91c0 tells how the command ended" in err


async def test_a_token_that_does_not_count_is_status_77(site):
    status, _, err = await site.sayso("exec", "--", "exit", "0", SAYSO_TOKEN="nope")
    assert status == 77
    assert "not known" in err


async def test_no_token_at_all_is_status_78_and_says_how_to_get_one(site):
    status, _, err = await site.sayso("exec", "--agent", "ci", "--", "exit", "0", SAYSO_TOKEN="")
    assert status == 78
    assert "sayso agent add ci --save" in err


async def test_the_operator_decides_with_a_reason(site):
    for args in (
        ("approve", "3f2b91c0"),
        ("approve", "3f2b91c0", "always"),
        ("approve", "3f2b91c0", "always", "any"),
        ("deny", "3f2b91c0", "--reason", "no"),
    ):
        status, out, _ = await site.sayso(*args)
        assert (status, out) == (0, b"Allowed once.\n")
    assert [(seen.answer, seen.reason) for seen in site.console.seen] == [
        ("allow-once", None),
        ("allow-always", None),
        ("allow-always-any", None),
        ("deny", "no"),
    ]
    site.console.accepts = False
    assert (await site.sayso("approve", "3f2b91c0"))[0] == 1


async def test_a_time_how_often_and_always_are_said_to_the_daemon(site):
    for args in (
        ("approve", "3f2b91c0", "for", "30m"),
        ("approve", "3f2b91c0", "--reason", "  release\nday\u202e", "for", "2H", "--max-uses", "3"),
        ("deny", "3f2b91c0", "always", "--reason", "x" * 2000),
        ("deny", "--reason", "no", "3f2b91c0", "always"),
    ):
        status, _, err = await site.sayso(*args)
        assert status == 0, err
    first, second, third, fourth = site.console.seen
    assert (first.answer, first.for_ms, first.max_uses) == ("allow-for", 1_800_000, None)
    assert (second.answer, second.for_ms, second.max_uses) == ("allow-for", 7_200_000, 3)
    assert second.reason == "release day\\u{202e}"
    assert (third.answer, third.for_ms) == ("deny-always", None)
    assert "[1,500 characters left out]" in third.reason
    assert (fourth.answer, fourth.reason) == ("deny-always", "no")


async def test_a_reason_that_is_much_too_long_is_refused_and_decides_nothing(site):
    status, _, err = await site.sayso("deny", "3f2b91c0", "--reason", "x" * 2001)
    assert status != 0
    assert "reason" in err
    assert site.console.seen == []


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"decision": "allow-for"}, "forMs goes with allow-for"),
        ({"decision": "allow-for", "forMs": None}, "forMs goes with allow-for"),
        ({"decision": "allow-for", "forMs": 9_999}, "forMs"),
        ({"decision": "allow-for", "forMs": 2_592_000_001}, "forMs"),
        ({"decision": "allow-for", "forMs": -60_000}, "forMs"),
        ({"decision": "allow-for", "forMs": 60_000.5}, "forMs"),
        ({"decision": "allow-for", "forMs": "30m"}, "forMs"),
        ({"decision": "allow-for", "forMs": True}, "forMs"),
        ({"decision": "allow-for", "forMs": 60_000, "maxUses": 0}, "maxUses"),
        ({"decision": "allow-for", "forMs": 60_000, "maxUses": 10_001}, "maxUses"),
        ({"decision": "allow-once", "forMs": 60_000}, "forMs goes with allow-for"),
        ({"decision": "allow-always", "maxUses": 2}, "maxUses with forMs"),
        ({"decision": "deny-always", "forMs": 60_000}, "forMs goes with allow-for"),
        ({"decision": "deny-forever"}, "decision"),
    ],
)
async def test_a_forged_time_is_refused_by_name_and_decides_nothing(site, params, told):
    answer = await (await site.operator()).call("exec.approval.resolve", id="3f2b91c0", **params)
    assert told in answer["error"]["message"]
    assert site.console.seen == []


@pytest.mark.parametrize("method", ["permission.list", "permission.revoke"])
async def test_what_stands_is_for_the_operator_only(site, method):
    site.permissions.stand()
    answer = await (await site.agent()).call(method, id="5a5a5a5a")
    assert "error" in answer
    assert len(site.permissions.rows) == 1


async def test_what_stands_is_listed_with_who_gave_it_and_how_much_is_left(site):
    site.permissions.stand(command="git push \u202e", expiresAt=2**42)
    site.permissions.forbid()
    status, out, _ = await site.sayso("permissions")
    head, allowed, denied = out.decode().splitlines()
    assert (status, head.split()) == (0, ["ID", "ANSWER", "AGENT", "BY", "TIME", "USED", "COMMAND"])
    assert re.fullmatch(
        r"5a5a5a5a +allow +main +ann \(telegram:1234\) +\d+ days left +2 of 5 +git push \\u\{202e\}", allowed
    )
    assert re.fullmatch(
        r"6b6b6b6b +deny +main +ann .* +until revoked +- +/usr/bin/git push origin main", denied
    )
    _, out, _ = await site.sayso("permissions", "--json", "list")
    assert json.loads(out) == site.permissions.rows


async def test_one_that_stands_is_revoked_by_the_beginning_of_its_id(site):
    site.permissions.stand()
    status, out, _ = await site.sayso("permissions", "revoke", "5a5a5a5a")
    assert (status, out) == (0, b"Revoked: the same command is put to people again.\n")
    assert [(one, who.channel) for one, who in site.permissions.revoked] == [
        ("5a5a5a5a-1111-4222-8333-444455556666", "cli")
    ]
    status, out, err = await site.sayso("permissions", "revoke", "5a5a5a5a", "--json")
    assert (status, out) != (0, b"")
    assert "5a5a5a5a" in err


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (("pending",), "rm -rf build"),
        (("history", "--limit", "5"), "finished (3)"),
        (("show", "3f2b91c0"), "exec.redirection"),
        (("agent", "list"), "main"),
        (("agent", "add", "ci"), "t0ken"),
        (("agent", "revoke", "ci"), "ci"),
        (("permissions",), "nothing stands"),
        (("permissions", "list"), "nothing stands"),
        (("cancel", "3f2b91c0"), "Ending the run."),
        (("lock",), "Locked."),
        (("unlock",), "Unlocked."),
        (("web", "link"), "http://127.0.0.1:8717/login/x"),
        (("status",), "no"),
        (("audit", "tail"), "a.b"),
        (("audit", "verify"), "the record is whole: 9 events"),
        (("tools",), "exec"),
        (("explain", "--", "ls"), "exec.redirection"),
    ],
)
async def test_facts_are_printed_for_people_and_as_json(site, args, shown):
    status, out, err = await site.sayso(*args)
    assert status == 0, err
    assert shown in out.decode()
    assert "\x1b" not in out.decode() + err
    assert "\u202e" not in out.decode()  # what an agent wrote cannot reorder the table
    status, out, _ = await site.sayso(args[0], "--json", *args[1:])
    assert status == 0
    assert all(json.loads(line) is not None for line in out.splitlines())


async def test_a_broken_record_is_named_and_is_status_1(site):
    site.console.accepts = False
    status, out, _ = await site.sayso("audit", "verify")
    assert status == 1
    assert b"broken at event 7: the hash does not match" in out


async def test_a_saved_token_is_private_and_is_found_again(site):
    status, out, _ = await site.sayso("agent", "add", "ci", "--save")
    assert (status, out) == (0, b"")
    path = site.home / "agents" / "ci.token"
    assert path.stat().st_mode & 0o777 == 0o600
    site.gatekeeper.agents["t0ken"] = "ci"
    assert (await site.sayso("exec", "--agent", "ci", "--", "exit", "0", SAYSO_TOKEN=""))[0] == 0
    assert site.desk.calls[0].agent == "ci"


@pytest.mark.parametrize("command", ["tools", "explain"])
async def test_a_bad_row_of_a_batch_is_answered_and_the_others_go_on(site, command):
    rows = [
        b"{",
        b"3",
        b'{"id": "a", "depth": -1, "command": "ls"}',
        b'{"id": "b", "config": {"tols": 1}}',
        b'{"id": "c", "command": "ls"}',
    ]
    status, out, err = await site.sayso(
        command, "--batch", stdin=b"\n".join(rows) + b"\n", SAYSO_HOME=str(site.home / "none")
    )
    assert status == 0, err
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["id"] for answer in answers] == [None, None, "a", "b", "c"]
    assert all("error" in answer for answer in answers[:4])
    assert "error" not in answers[4]
