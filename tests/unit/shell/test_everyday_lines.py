"""A hundred lines as agents write them: people are asked about commands, and not about our parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.call import CommandText
from core.shell.inspect import inspect
from core.shell.parse import parse_plain
from tests.shell_world import look

LINES = (Path(__file__).parents[2] / "benchmarks" / "agent_commands.txt").read_text().splitlines()
NAMED = {
    "command-substitution": ["echo $(date)", "git log --since=`date +%F`", 'tar czf "b-$(date +%F).tgz" src'],
    "redirection": [
        "echo done > result.txt",
        "sort < in.txt",
        "make 2> errors.log",
        "cat a >> b",
        "xargs ls <list",
    ],
    "heredoc": ["cat <<EOF\nhello\nEOF", "python3 - <<'PY'\nprint(1)\nPY"],
    "here-string": ["wc -w <<< 'a b'"],
    "process-substitution": ["diff <(sort a) <(sort b)"],
    "compound-command": [
        "for f in *.py; do echo $f; done",
        "if [ -f a ]; then ls; fi",
        "case x in a) ls;; esac",
    ],
    "subshell": ["(cd src && make)"],
    "group": ["{ ls; pwd; }"],
    "parameter-expansion": ["echo ${PATH:-none}", 'echo "${#HOME}"'],
    "special-parameter": ["echo $1", "kill $!"],
    "arithmetic": ["echo $((1 + 2))"],
    "conditional": ["[[ -f a ]] && ls"],
    "time-keyword": ["time make"],
    "negation": ["! grep -q x y"],
    "function": ["f() { ls; }"],
    "ansi-c-quoting": ["printf $'a\\tb'"],
}


def test_there_are_a_hundred_different_ones() -> None:
    assert len(set(LINES)) == len(LINES) == 100


def test_nearly_all_are_judged_command_by_command_most_without_the_grammar() -> None:
    judged = [line for line in LINES if look(line).analysable]
    assert len(judged) >= 85
    assert sum(parse_plain(line) is not None for line in judged) >= 70


@pytest.mark.parametrize("line", LINES)
def test_its_canonical_form_is_its_own_canonical_form_on_this_machine(line: str) -> None:
    def found(text: str) -> tuple[str, tuple[object, ...]]:
        command = CommandText(line=text)
        facts = inspect(command, cwd="/usr", path=("/usr/bin", "/bin"), resolver=FilesystemResolver())
        return facts.canonical, facts.refused

    canonical, refused = found(line)
    assert refused == ()
    assert found(canonical) == (canonical, ())


@pytest.mark.parametrize(
    ("construct", "line"), [(name, line) for name, lines in NAMED.items() for line in lines]
)
def test_what_is_not_judged_is_refused_by_the_name_that_people_know(construct: str, line: str) -> None:
    assert [refusal.construct for refusal in look(line).refused] == [construct]
