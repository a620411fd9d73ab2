"""`sayso policy test` as a user sees it, and the cases that the example configuration ships with."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bot.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config.example.yaml"
CASES = ROOT / "docs" / "examples" / "config.example.cases.yaml"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SAYSO_HOME", str(tmp_path / "home"))


@pytest.fixture
def write(tmp_path):
    def put(text: str, name: str = "a.cases.yaml") -> str:
        (tmp_path / name).write_text(text, "utf-8")
        return str(tmp_path / name)

    return put


@pytest.mark.parametrize("example", ["laptop", "messaging", "subagents"])
def test_the_examples_of_the_guide_answer_as_their_cases_say(capsys, example):
    status = main(["policy", "test", str(CASES.with_name(f"{example}.cases.yaml"))])
    out = capsys.readouterr().out
    assert status == 0, out
    assert len(out.splitlines()) > 8


def test_the_example_configuration_answers_as_its_cases_say(capsys):
    status = main(["policy", "test", str(CASES)])
    out = capsys.readouterr().out
    assert status == 0, out
    *rows, last = out.splitlines()
    assert last == f"{len(rows)} cases: all as expected"
    assert len(rows) >= 40


# Each value of the example that decides something, and another one in its place.
OTHER_POLICIES = [
    "agents: {main: {exec: {allowlist: []}}}",
    "agents: {main: {exec: {allowlist: [{pattern: /usr/bin/git, argPattern: '.*'}]}}}",
    "agents: {main: {exec: {allowlist: [{pattern: /usr/bin/git, args: [--version], placement: host}]}}}",
    "tools: {exec: {allowlist: [{pattern: /usr/bin/git, args: [--version]}]}}",
    "tools: {exec: {allowlist: [{pattern: /usr/bin/rm}]}}",
    "tools: {exec: {allowlist: [{pattern: /usr/bin/head}]}}",
    "tools: {exec: {allowlist: [{pattern: /usr/bin/sort}]}}",
    "tools: {exec: {security: deny}}",
    "tools: {exec: {security: full}}",
    "tools: {exec: {ask: 'off'}}",
    "tools: {exec: {ask: always}}",
    "tools: {exec: {onUnanalysable: ask}}",
    *(
        f"tools: {{exec: {{safeBins: {json.dumps([name for name in safe if name != gone])}}}}}"
        for safe in [["cut", "uniq", "head", "tail", "tr", "wc"]]
        for gone in safe
    ),
    "tools: {exec: {deny: ['git *']}}",
    "tools: {profile: full}",
    "tools: {profile: messaging}",
    "tools: {deny: [image]}",
    "tools: {alsoAllow: [browser]}",
    "tools: {alsoAllow: [message]}",
    "tools: {allow: [group:fs]}",
    "tools: {subagents: {tools: {deny: [process]}}}",
    "tools: {sandbox: {tools: {alsoAllow: [web_search]}}}",
    "tools: {web_fetch: {enabled: false}}",
    "agents: {main: {owner: true}}",
    "agents: {main: {pin: {depth: 1}}}",
    "agents: {main: {pin: {sandboxed: true}}}",
    "agents: {main: {tools: {allow: [cron, read, exec]}}}",
    "agents: {defaults: {subagents: {maxSpawnDepth: 2}}}",
    "sandboxing: {mode: 'off'}",
    "sandboxing: {workspaceAccess: ro}",
]


@pytest.mark.parametrize("other", OTHER_POLICIES)
def test_the_cases_notice_every_change_of_the_policy(write, capsys, other):
    changed = ("--config", str(EXAMPLE), "--config", write(other, "other.yaml"))
    status = main(["policy", "test", str(CASES), *changed])
    assert status == 1, capsys.readouterr().err
    assert "\ndiffers  " in "\n" + capsys.readouterr().out


DIFFERING = f"""\
config: {EXAMPLE}
cases:
  - name: pushing is refused
    command: git push
    expect: deny
    rule: exec.denied
    placement: host
  - name: reading is fine
    tool: read
    args: {{path: notes.txt}}
    expect: allow
  - name: no browser
    tools: {{allowed: [browser], denied: [bash]}}
"""


def test_a_difference_tells_what_was_expected_what_came_why_and_where_that_is_written(write, capsys):
    file = write(DIFFERING)
    assert main(["policy", "test", file]) == 1
    out = capsys.readouterr().out
    line = EXAMPLE.read_text("utf-8").splitlines().index("    security: allowlist") + 1
    for told in (
        f"differs  pushing is refused  ({file}:3)\n",
        "    effect     expected deny, got ask\n",
        "    rule       expected exec.denied, got exec.allowlist-miss\n",
        "    placement  expected host, got sandbox\n",
        "    because    `/usr/bin/git` can run anything",
        f"    written    tools.exec.security ({EXAMPLE}:{line}), rule exec.allowlist-miss\n",
        "ok       reading is fine\n",
        "    browser  expected allowed, got denied\n",
        "    exec     expected denied, got allowed\n",
        "    because  the coding profile does not hold browser",
        "3 cases: 2 differ\n",
    ):
        assert told in out, out


def test_with_json_there_is_one_object(write, capsys):
    file = write(DIFFERING)
    assert main(["policy", "test", "--json", file]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["ok"], told["cases"], told["differing"]) == (False, 3, 2)
    first, second, _ = told["results"]
    assert (first["name"], first["file"], first["line"], first["ok"]) == (
        "pushing is refused",
        file,
        3,
        False,
    )
    assert first["differences"][0] == {"field": "effect", "expected": "deny", "got": "ask"}
    assert first["answer"]["rule"] == "exec.allowlist-miss"
    assert (second["ok"], second["differences"]) == (True, [])


@pytest.mark.parametrize(
    ("field", "matching", "missing"),
    [
        ("rule", "exec.allowlist", "exec.allowlis"),
        ("rule", "profile.coding", "exec.allowlist-miss"),
        ("source", "tools.profile", "tools"),
        ("reason", "this agent", "that agent"),
        ("reason", "THIS AGENT", "agent this"),
        ("layer", "exec_security", "approvals"),
        ("placement", "sandbox", "host"),
        ("canonical", "/usr/bin/git --version", "git --version"),
    ],
)
def test_each_field_of_an_answer_is_compared(write, capsys, field, matching, missing):
    case = f"config: {EXAMPLE}\ncases:\n  - command: git --version\n    expect: allow\n    {field}: "
    assert main(["policy", "test", write(case + matching)]) == 0
    assert main(["policy", "test", write(case + missing)]) == 1
    assert f"{field.ljust(7)}  expected {missing}, got" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("terms", "status"),
    [
        ("[real-path, max-size-bytes]", 0),
        ("[max-size-bytes, real-path]", 0),
        ("[real-path]", 1),
        ("[real-path, max-size-bytes, connect-to]", 1),
        ("[]", 1),
    ],
)
def test_all_terms_of_a_yes_are_compared(write, terms, status):
    call = "tool: read\n    args: {path: notes.txt}\n    expect: allow"
    assert main(["policy", "test", write(f"cases:\n  - {call}\n    terms: {terms}\n")]) == status


@pytest.mark.parametrize(
    ("tools", "status"),
    [
        ("{allowed: [exec, read]}", 0),
        ("{allowed: [exec, browser]}", 1),
        ("{denied: [browser]}", 0),
        ("{denied: [browser, Bash]}", 1),
        ("{only: [session_status]}", 0),
        ("{only: []}", 1),
        ("{only: [session_status, read]}", 1),
    ],
)
def test_lists_of_tools_are_compared_both_ways(write, tools, status):
    minimal = "config: {tools: {profile: minimal}}" if "only" in tools else "agent: main"
    assert main(["policy", "test", write(f"cases:\n  - {minimal}\n    tools: {tools}\n")]) == status


def test_what_cannot_be_judged_is_a_fault_and_no_difference(write, capsys):
    file = write(
        "cases:\n"
        "  - name: a\n    command: ls\n    config: {tools: {profil: coding}}\n    expect: ask\n"
        "  - name: b\n    tools: {denied: [brwser]}\n"
    )
    assert main(["policy", "test", file]) == 78
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{file}:4: a: this row's config: tools.profil: is no known key; did you mean profile?" in err
    assert f"{file}:7: b: tools.denied: no tool is registered as 'brwser'; did you mean browser?" in err


def test_faults_of_all_files_are_told_and_nothing_is_judged(write, capsys):
    good = write("cases:\n  - command: ls\n    expect: ask\n", "good.yaml")
    bad = [write("cases:\n  - expect: ask\n", f"bad{n}.yaml") for n in (1, 2)]
    assert main(["policy", "test", good, *bad]) == 78
    out, err = capsys.readouterr()
    assert out == ""
    assert all(f"{file}:2: " in err for file in bad)


@pytest.mark.parametrize("of", ["cases", "config"])
def test_a_file_that_is_not_there_is_a_clear_error(write, capsys, of):
    file = write("config: gone.yaml\ncases:\n  - command: ls\n    expect: ask\n")
    assert main(["policy", "test", "gone.yaml" if of == "cases" else file]) == 78
    assert "gone.yaml: there is no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["policy"], ["policy", "tst", "x"], ["policy", "test"], ["policy", "test", "--conf", "x", "y"]],
)
def test_a_wrong_command_line_is_a_usage_error(capsys, arguments):
    assert main(arguments) == 64
    assert "policy" in capsys.readouterr().err


def test_the_configuration_on_the_command_line_wins(write, capsys):
    cases = write("config: gone.yaml\ncases:\n  - tool: read\n    expect: deny\n")
    policy = write("tools: {deny: [read]}", "policy.yaml")
    assert main(["policy", "test", cases, "--config", policy]) == 0
    assert capsys.readouterr().err == ""


def test_without_any_configuration_the_defaults_are_tested_and_that_is_said(write, capsys):
    assert main(["policy", "test", write("cases:\n  - command: git --version\n    expect: deny\n")]) == 0
    assert "names no config and there is no --config: the defaults are tested" in capsys.readouterr().err


def test_a_hostile_name_moves_nothing_in_the_terminal(write, capsys):
    main(["policy", "test", write('cases:\n  - name: "a\\e[2J\\u202eb"\n    command: ls\n    expect: ask\n')])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_a_thousand_cases_take_seconds(write, capsys):
    rows = "".join(
        f"  - name: case {n}\n    command: git log -n {n} | head -{n + 1}\n    expect: ask\n"
        for n in range(1000)
    )
    file = write(f"config: {EXAMPLE}\ncases:\n{rows}")
    started = time.perf_counter()
    assert main(["policy", "test", file]) == 0
    assert time.perf_counter() - started < 10
    assert capsys.readouterr().out.endswith("1000 cases: all as expected\n")
