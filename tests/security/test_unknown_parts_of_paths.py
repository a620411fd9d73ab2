"""What bash would make of brackets, variables and tildes counts as whatever it may become."""

from __future__ import annotations

import pytest

from core.execsec.deny_rules import component_may_be
from core.model.command import Placement
from tests.shell_world import HOME, judge, look

DENIED = [
    "cat ../.[^x]ayso/token", "cat ../.[[:alpha:]]ayso/token", "cat ../.say[[:alpha:]]o/token",
    'cat ../.[!a"-"z]ayso/token', r"cat ../.[\!s]ayso/token", "cat ../.sa[]y]so/token",
    "cat ../.sa[x-z]so/token", "rm -rf ../.[^x]ayso", "rm -rf ../.[^x]*", "cat ../.[a][b]yso/token",
    "cat ../[.]sayso/token", 'cat ../.say$X"so"/token', "cat ../.say${X}so/token", "cat ../.say$X/token",
    "cat ../.$X/token", 'cat ../".say$X"/token', "cat $PWD/../.sayso/token", "cat ${PWD}/../.sayso/token",
    'cat "$PWD"/../.sayso/token', "cat ~+/../.sayso/token", "cat $PWD/../.say?o/token",
    "cat $PWD/../.say$X/token", "cat ~agent/.sayso/token", "sort --files=$PWD/../.sayso/token",
    "cat ~/.say$X", "cat ../.$X", r"cat ../.[s\][x]ayso/x", "cat ../.s[!]]yso/x",
    "cat $HOME/.say${X}o/token", "cat ~/$X/token",
    "sort -uo$PWD/../.sayso/x",
]  # fmt: skip
RUN = [
    "cat $HOME/project/x", 'cat "$FILE"', "cat $FILE", "cat $DIR/token", "cat $X/.sayso/token",
    "cat $PWD/notes", "cat ~+/notes", "cat $PWD", "cat ../.[^x]aysox/token",
    "cat ../[a-c]x/token", "cat [abc]/x", "cat ../.say$X/../../x", "cat ../a$X/token",
    "cat ~other/.sayso/x", "cat ~/project/$X", "echo $PATH", "cat 'a$b'", "make -j$N", "cat a[0]",
    "cat ../.[x]", "cat ~root/x",
]  # fmt: skip


def rule(line: str, cwd: str = f"{HOME}/ws") -> str:
    facts = look(line, cwd=cwd)
    return judge(facts, placement=Placement.HOST, security="full", ask="off").decision.rule


@pytest.mark.parametrize("line", DENIED)
def test_what_may_become_our_own_state_is_denied(line: str) -> None:
    assert rule(line) == "exec.deny-own-state"


@pytest.mark.parametrize("line", RUN)
def test_what_cannot_or_what_nobody_can_tell_is_not(line: str) -> None:
    assert rule(line) == "exec.security-full"


@pytest.mark.parametrize("line", ["cat $FILE", "make -j$N", "cat $PWD/x/y", "cat --file=$FILE", "cat -o$X"])
def test_a_word_that_is_a_variable_is_not_denied_above_the_state_either(line: str) -> None:
    assert rule(line, HOME) == "exec.security-full"


@pytest.mark.parametrize(
    ("pattern", "name", "may"),
    [
        (".[^x]ayso", ".sayso", True),
        (".s[a", ".sayso", True),
        ("[[:alpha:]", ".sayso", True),
        (".[[:alpha:]]ays", ".sayso", False),
        ("s[^x]", ".sayso", False),
        (".[ab]ayso[x", ".sayso", True),
        (".[ab]", ".sayso", False),
        (".[ab]ayso", ".sayso", True),
        (".[a][b]o", ".sayso", True),
        (".[!]", ".sayso", True),
    ],
)
def test_brackets_may_be_any_letter_and_several_of_them_anything(
    pattern: str, name: str, *, may: bool
) -> None:
    assert component_may_be(pattern, name) is may
