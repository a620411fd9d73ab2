"""What `sayso explain` and `sayso tools` tell people: why, by which rule, written where, on which terms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.cli import main
from bot.cli.follow import Follower
from bot.cli.policy_print import print_decision, print_tools
from core.model.outcome import Outcome, Status

POLICY = """\
tools:
  profile: coding
  deny: [image]
  exec:
    security: allowlist
agents:
  main:
    tools:
      alsoAllow: [browser]
"""
TERMS = [
    {"kind": "connect-to", "host": "example.com", "addresses": ["203.0.113.7", "2001:db8::7"]},
    {"kind": "no-redirects"},
]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SAYSO_HOME", str(tmp_path / "home"))


@pytest.fixture
def policy(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY, "utf-8")
    return str(file)


def test_each_layer_of_a_decision_tells_its_rule_and_where_that_is_written(policy, capsys):
    assert main(["explain", "--config", policy, "-c", "rm -rf build | wc -l"]) == 0
    out = capsys.readouterr().out
    for told in (
        "ask: `/usr/bin/rm` with these arguments is on no allowlist\n",
        f"written    tools.exec.security ({policy}:5)\n",
        "judged as  /usr/bin/rm -rf build | /usr/bin/wc -l\n",
        "runs in    sandbox\n",
        "parts      /usr/bin/rm: on no list\n           /usr/bin/wc: admitted by safe_bin\n",
        "  allow  tool policy    tools.profile lets this agent use exec\n",
        f"profile.coding, written: tools.profile ({policy}:2)\n",
        "  ask    exec security  `/usr/bin/rm` with these arguments is on no allowlist\n",
        "  allow  placement      it runs in the bubblewrap sandbox\n",
        "placement.sandbox, written: sandboxing.mode\n",
    ):
        assert told in out, out


def test_each_part_tells_what_admits_it_where_that_is_written_and_what_it_goes_through(
    policy, capsys, tmp_path
):
    with Path(policy).open("a", encoding="utf-8") as file:
        file.write("    exec: {allowlist: [{pattern: /usr/bin/git, args: [--version]}]}\n")
        file.write(f"    workspace: {tmp_path / 'work'}\n")
    (tmp_path / "work").mkdir()
    assert (
        main(["explain", "--config", policy, "-c", "bash -c 'git --version' && echo done && git push"]) == 0
    )
    out = capsys.readouterr().out
    for told in (
        "bash -c: /usr/bin/git: admitted by allowlist:/usr/bin/git, agents.main.exec.allowlist[0]",
        f" ({policy}:10)\n",
        " echo: admitted by builtin\n",
        " /usr/bin/git: on no list\n",
        f"always     exactly `git push` in {tmp_path / 'work'}, in the sandbox\n",
    ):
        assert told in out, out


def test_where_nothing_would_be_remembered_that_is_said(policy, capsys, tmp_path):
    with Path(policy).open("a", encoding="utf-8") as file:
        file.write(f"    workspace: {tmp_path / 'gone'}\n")
    assert main(["explain", "--config", policy, "-c", "git push"]) == 0
    told = f"always     {tmp_path / 'gone'}, in which `git` would run, is not there now\n"
    assert told in capsys.readouterr().out


def test_what_was_refused_is_named_with_its_place(policy, capsys):
    assert main(["explain", "--config", policy, "-c", "rg x > out"]) == 0
    out = capsys.readouterr().out
    assert "refused    redirection at character 6: " in out, out


def test_each_tool_that_is_out_tells_why_by_which_step_and_where_that_is_written(policy, capsys):
    assert main(["tools", "--config", policy]) == 0
    out = capsys.readouterr().out
    assert out.startswith("allowed  apply_patch, browser, edit, exec,")
    for told in (
        (
            "denied   agents_list, canvas, message, tts\n"
            "           the coding profile does not hold it; agents.main.tools.alsoAllow adds it\n"
            f"           step tools.profile, tool.not-in-profile, written: tools.profile ({policy}:2)\n"
        ),
        (
            "denied   cron, gateway, nodes, whatsapp_login\n"
            "           it is for agents with agents.main.owner: true; no list adds it\n"
        ),
        (
            "denied   image\n"
            "           tools.deny[0] denies it\n"
            f"           step tools.allow, tool.denied, written: tools.deny[0] ({policy}:3)\n"
        ),
    ):
        assert told in out, out
    assert max(map(len, out.splitlines()[:3])) <= 100


def test_with_json_each_removal_and_each_layer_tells_its_line(policy, capsys):
    main(["tools", "--json", "--config", policy])
    assert json.loads(capsys.readouterr().out)["denied"]["image"]["where"] == f"{policy}:3"
    main(["explain", "--json", "--config", policy, "--", "ls"])
    trace = json.loads(capsys.readouterr().out)["trace"]
    assert [row["where"] for row in trace] == [f"{policy}:2", f"{policy}:5", None]


def test_warnings_are_told(capsys):
    answer = {"allowed": [], "denied": {}, "warnings": ["tools.allow lists only plugin tools"]}
    print_tools(answer)
    out, err = capsys.readouterr()
    assert (out, err) == ("allowed  nothing\n", "warning: tools.allow lists only plugin tools\n")


def test_the_terms_of_a_yes_are_told(capsys):
    answer = {"effect": "allow", "reason": "r", "rule": "x", "source": "s", "placement": "client"}
    print_decision({**answer, "constraints": TERMS})
    out = capsys.readouterr().out
    assert "on terms  connect-to host=example.com addresses=203.0.113.7,2001:db8::7\n" in out
    assert "          no-redirects\n" in out
    assert "runs in   the agent's own program\n" in out


def test_who_checks_a_tool_is_told_the_terms_too(capsys):
    outcome = Outcome(Status.ALLOWED, "web_fetch is allowed", decision={"constraints": TERMS})
    assert Follower(as_json=False).finish({"stdout": "", "stderr": "", **outcome.to_json()}) == 0
    assert capsys.readouterr().err.splitlines()[1:] == [
        "  keep:  connect-to host=example.com addresses=203.0.113.7,2001:db8::7",
        "  keep:  no-redirects",
    ]


def test_nothing_in_an_answer_can_move_the_cursor(capsys):
    bad = "a\x1b[2Jb\u202e"
    answer = {"effect": "deny", "reason": bad, "rule": bad, "source": bad, "canonical": bad, "where": bad}
    row = {"effect": "deny", "layer": bad, "reason": bad, "rule": bad, "source": bad}
    print_decision({**answer, "trace": [row], "constraints": [{"kind": bad, "host": bad}]})
    print_tools({"allowed": [bad], "denied": {bad: {**row, "step": bad}}, "warnings": [bad]})
    told = "".join(capsys.readouterr())
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_of_a_yes_to_a_command_what_admitted_it_is_told_first(policy, capsys):
    main(["explain", "--config", policy, "-c", "echo a | wc -l"])
    out = capsys.readouterr().out
    assert out.startswith(
        "allow: every command in it is admitted: builtin, safe_bin\nrule       exec.allowlist\n"
    )
    main(["explain", "--config", policy, "--tool", "read", "--args", '{"path": "/srv/x"}'])
    assert capsys.readouterr().out.startswith("allow: tools.profile lets this agent use read\n")


def test_a_setting_that_nobody_wrote_is_told_by_its_key_and_without_a_line(policy, capsys):
    main(["explain", "--config", policy, "-c", "rg x > out"])
    assert "written    tools.exec.onUnanalysable (default)\n" in capsys.readouterr().out
    main(["explain", "--json", "--config", policy, "-c", "rg x > out"])
    told = json.loads(capsys.readouterr().out)
    assert (told["source"], told["where"]) == ("tools.exec.onUnanalysable (default)", None)


DENIALS = [
    ("exec.deny-own-state", "built-in", "no setting changes it: leave Sayso's own files out of the command"),
    ("exec.deny-operator-verb", "built-in", "no setting changes it: only a person may do this"),
    ("exec.not-found", "built-in", "install the program, or add its directory to tools.exec.pathPrepend"),
    ("exec.nul-byte", "built-in", "no setting changes it"),
    ("exec.heredoc", "tools.exec.onUnanalysable (default)", "write it without that; with onUnanalysable"),
    ("exec.allowlist-miss", "tools.exec.ask", "changing it takes the configuration"),
    ("exec.deny", "tools.exec.deny[0]", "changing it takes the configuration"),
    ("locked", "sayso lock", "sayso unlock ends it"),
    ("denied-always", "sayso permissions (0d0c0649)", "sayso permissions revoke takes it back"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "source", "step"), DENIALS)
def test_a_denial_names_the_next_step_that_is_true_for_it(rule, source, step, capsys):
    decision = {"effect": "deny", "rule": rule, "source": source}
    outcome = {"stdout": "", "stderr": "", **Outcome(Status.DENIED, "no", decision=decision).to_json()}
    Follower(as_json=False).finish({**outcome, "id": "0d0c0649aa"})
    err = capsys.readouterr().err
    assert f"  next:  sayso show 0d0c0649 has the whole decision; {step}" in err
    assert ("takes the configuration" in err) is (step == "changing it takes the configuration")


def test_a_refusal_that_is_built_in_and_of_no_command_promises_nothing(capsys):
    decision = {"effect": "deny", "rule": "tool.unknown", "source": "built-in"}
    outcome = {"stdout": "", "stderr": "", **Outcome(Status.DENIED, "no", decision=decision).to_json()}
    Follower(as_json=False).finish({**outcome, "id": "0d0c0649aa"})
    assert capsys.readouterr().err.endswith("sayso show 0d0c0649 has the whole decision\n")
