"""Files of policy cases: what they may say, and how slips in them are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.policy_cases import case_files, read_cases
from core.errors import ConfigError


@pytest.fixture
def write(tmp_path):
    def put(text: str, name: str = "a.cases.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return put


def one(text: str) -> str:
    return f"cases:\n  - name: x\n    {text}\n"


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        read_cases(path)
    return [line.removeprefix(f"{path}:") for line in str(refused.value).splitlines()]


def test_a_call_becomes_a_row_of_explain(write):
    (case,) = read_cases(
        write(one("command: rm -rf build\n    agent: ci\n    depth: 1\n    expect: ask\n    rule: exec.miss"))
    ).cases
    assert case.row == {"command": "rm -rf build", "agent": "ci", "depth": 1}
    assert case.expected == {"effect": "ask", "rule": "exec.miss"}
    assert (case.name, case.origin.line, case.about_tools) == ("x", 2, False)


def test_numbers_among_words_and_variables_are_the_text_they_are(write):
    path = write(
        one("argv: [head, -5, 010, true]\n    env: {LEVEL: 3}\n    args: {depth: 2}\n    expect: ask")
    )
    (case,) = read_cases(path).cases
    assert case.row["argv"] == ["head", "-5", "010", "true"]
    assert case.row["env"] == {"LEVEL": "3"}
    assert case.row["args"] == {"depth": 2}


def test_a_tool_set_is_a_case_of_its_own(write):
    (case,) = read_cases(write(one("depth: 1\n    tools: {allowed: [read], denied: [cron]}"))).cases
    assert (case.row, case.about_tools) == ({"depth": 1}, True)
    assert case.expected == {"allowed": ["read"], "denied": ["cron"]}


@pytest.mark.parametrize(
    ("call", "name"),
    [("command: git log", "git log"), ("argv: [git, log]", "git log"), ("tool: read", "read")],
)
def test_a_case_without_a_name_is_called_by_its_call(write, call, name):
    (case,) = read_cases(write(f"cases:\n  - {call}\n    expect: ask\n")).cases
    assert case.name == name


def test_configuration_files_are_relative_to_the_cases(write, tmp_path):
    text = one("command: ls\n    expect: ask")
    assert read_cases(write("config: ../c.yaml\n" + text, "sub/a.yaml")).config == (
        tmp_path / "sub/../c.yaml",
    )
    assert read_cases(write("config: [b.yaml, /c.yaml]\n" + text)).config == (
        tmp_path / "b.yaml",
        Path("/c.yaml"),
    )
    assert read_cases(write(text)).config == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (one("comand: ls\n    expect: ask"), "3: cases[0].comand: is no known key; did you mean command?"),
        (one("command: ls\n    expect: alow"), "4: cases[0].expect: 'alow' must be one of allow, ask, deny;"),
        (one("command: ls\n    expect:"), "4: cases[0].expect: nothing must be text"),
        (one("command: ls\n    expect: [ask]"), "4: cases[0].expect: a list must be text"),
        (one("command: ls"), "2: cases[0]: needs `expect: allow, ask or deny` for a call, or `tools:`"),
        (one("tools: {only: []}\n    expect: ask"), "2: cases[0]: needs `expect: allow, ask or deny`"),
        (one("expect: ask"), "2: cases[0]: give one of command, argv and tool"),
        (one("command: ls\n    argv: [ls]\n    expect: ask"), "4: cases[0].argv: excludes command"),
        (one("command: ls\n    placement: hosst\n    expect: ask"), "4: cases[0].placement: 'hosst' must be"),
        (one("command: ls\n    layer: exec\n    expect: ask"), "4: cases[0].layer: 'exec' must be one of"),
        (one("command: ls\n    plugins: {}\n    expect: ask"), "4: cases[0].plugins: has no place in a case"),
        (one("command: ls\n    tools: {}"), "3: cases[0].command: has no place in a case about a tool set"),
        (one("rule: x\n    tools: {}"), "3: cases[0].rule: has no place in a case about a tool set"),
        (
            one("command: ls\n    expect: ask\n    terms: real-path"),
            "5: cases[0].terms: must be a list of kinds",
        ),
        (one("terms: []\n    tools: {}"), "3: cases[0].terms: has no place in a case about a tool set"),
        (one("tools: {}"), "3: cases[0].tools: needs one of allowed, denied, only"),
        (one("tools: [read]"), "3: cases[0].tools: must be a mapping"),
        (one("tools: {alowed: [read]}"), "3: cases[0].tools.alowed: is no known key; did you mean allowed?"),
        (one("tools: {allowed: read}"), "3: cases[0].tools.allowed: must be a list of tool names"),
        (one("tools: {allowed: [1]}"), "3: cases[0].tools.allowed: must be a list of tool names"),
        (one("depth: -1\n    command: ls\n    expect: ask"), "3: cases[0]: depth: "),
        (one("depth: -1\n    tools: {only: []}"), "3: cases[0]: depth must be 0 or more"),
        (one("command: ls\n    session: mine\n    expect: ask"), "4: cases[0]: session key 'mine' is not"),
        (one("command: ls\n    env: {A: [1]}\n    expect: ask"), "4: cases[0]: env.A: "),
        (one("command: ls\n    expect: ask\n    expect: deny"), "5: cases[0].expect: is written twice"),
        (one("command: ls\n    expect: !!python/name:os.system ask"), "4: cases[0].expect: the tag "),
        ("cases:\n  - name: 12\n    command: ls\n    expect: ask\n", "2: cases[0].name: must be text"),
        ("cases:\n  - ls\n", "2: cases[0]: must be a mapping"),
        ("cases: ls\n", "1: cases: must be a list"),
        ("cases:\n", "1: cases: there are no cases"),
        ("cases: []\n", "1: cases: there are no cases"),
        ("", "1: cases: there are no cases"),
        ("- ls\n", "1: must be a mapping"),
        ("case: []\ncases: []\n", "1: case: is no known key; did you mean cases?"),
        (
            "config: 7\n" + one("command: ls\n    expect: ask"),
            "1: config: must be a file, or a list of files",
        ),
        ("cases: [\n", "2: is no valid YAML"),
    ],
)
def test_a_slip_is_told_with_line_key_and_what_to_do(write, text, told):
    first = problems(write(text))[0]
    assert first.startswith(told), first


def test_all_slips_are_told_at_once(write):
    found = problems(write("cases:\n  - expct: ask\n  - depth: x\n    command: ls\n    expect: ask\n  - 3\n"))
    assert [line.split(":")[0] for line in found] == ["2", "2", "3", "6"]


def test_two_cases_of_one_name_are_refused(write):
    twice = "cases:\n" + 2 * "  - name: y\n    command: ls\n    expect: ask\n"
    assert problems(write(twice)) == [
        "5: cases[1].name: 'y' is the name of another case too (line 2); give it its own"
    ]


def test_aliases_that_multiply_are_refused(write):
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    rows += [
        f"{new}: &{new} [{', '.join(['*' + old] * 10)}]" for old, new in zip("abcdef", "bcdefg", strict=True)
    ]
    (told,) = problems(write("\n".join(rows)))
    assert "aliases repeat without end" in told


def test_a_directory_stands_for_the_case_files_in_it(write, tmp_path):
    text = one("command: ls\n    expect: ask")
    wanted = [write(text, "a.cases.yaml"), write(text, "deep/b.cases.yaml")]
    write(text, "config.yaml")
    assert case_files([tmp_path]) == wanted
    assert case_files([tmp_path, wanted[0]]) == wanted


def test_a_directory_without_case_files_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="no file in it ends in"):
        case_files([tmp_path])
