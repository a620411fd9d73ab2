"""Where the fuzzer's lines come from: some to begin with, and ways to make others of them."""

from __future__ import annotations

import random
from pathlib import Path

from core.shell.builtins import BUILTINS, RESERVED
from core.shell.word_list import word_list

_WRITTEN = Path(__file__).parents[1] / "benchmarks" / "agent_commands.txt"
SEEDS = (
    *_WRITTEN.read_text().splitlines(),
    "one 'a b' \"c $A\" d\\ e",
    "A=1 B='x y' one x{a,b}y HEAD@{1} {} { } !",
    "cd sub && one; cd .. || two & three",
    "env -u A B=2 nice -n 5 timeout -k 1 5 one a | two |& three",
    "bash -c 'cd sub && one \"a b\"; two' && sh -c '$0 \"$1\"' three x",
    "one &>/dev/null 2>&1 </dev/null # c",
    "one $A ${B} *.py ~/x [a-z] a=~ a:~",
    "one a && two b; three c | one 'd' \"e\"",
    "bash -c 'one {a} \"b c\" | two' && env A=1 three \\\n d",
    "one <<E\n$(two)\nE\nthree",
    "stdbuf -oL nohup -- ionice -c3 one é 漢 😀",
)
PIECES = (
    *sorted({*BUILTINS, *RESERVED}),
    *sorted(
        word_list(
            """
            one two three cd sub .. env nice timeout bash sh dash -c -lc -n 5 A= B=1 A+=2 a[1]= rg npx busybox
            ' " \\ ` $ $$ $A ${A} ${A: $( ) ( (( $(( $' $" <( >( < > >> >& <& <> >| << <<< 2>&1 >&2 >/dev/null
            </dev/null &>/dev/null & && | || |& ; ;; ;& { } {} {a,b} {1..3} , .. ! [ ] [[ ]] * ? ~ # = +
            @ % ^ : -- - -x 0 1 2 3 é 漢 😀
            """
        )
    ),
    *(" ", "  ", "\t", "\n", "\\\n", " \\\n ", "\r", "\x00", "\x7f", "\u00a0", "\u200b", "\u202e", "\ud800"),
    *(" 'a b' ", ' "c d" ', "''", '""', "'\n'", " # ", " bash -c '", " && "),
)
LONGEST = 300


def mutated(line: str, others: list[str], chance: random.Random) -> str:
    """Change a line in a few places."""
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        line = chance.choice(_WAYS)(line, others, chance)
    return line[:LONGEST]


def _put(line: str, others: list[str], chance: random.Random) -> str:
    del others
    at = chance.randint(0, len(line))
    return line[:at] + chance.choice(PIECES) + line[at:]


def _replace(line: str, others: list[str], chance: random.Random) -> str:
    at, end = _span(line, chance)
    return _put(line[:at] + line[end:], others, chance)


def _remove(line: str, others: list[str], chance: random.Random) -> str:
    del others
    at, end = _span(line, chance)
    return line[:at] + line[end:]


def _repeat(line: str, others: list[str], chance: random.Random) -> str:
    del others
    at, end = _span(line, chance)
    return line[:end] + line[at:end] + line[end:]


def _splice(line: str, others: list[str], chance: random.Random) -> str:
    other = chance.choice(others)
    return line[: chance.randint(0, len(line))] + other[chance.randint(0, len(other)) :]


def _wrap(line: str, others: list[str], chance: random.Random) -> str:
    del others
    before, behind = chance.choice((("'", "'"), ('"', '"'), ("{", "}"), ("bash -c '", "'"), ("env ", "")))
    at, end = _span(line, chance)
    return line[:at] + before + line[at:end] + behind + line[end:]


def _span(line: str, chance: random.Random) -> tuple[int, int]:
    at = chance.randint(0, len(line))
    return at, min(len(line), at + chance.choice((1, 1, 2, 4, 12)))


_WAYS = (_put, _put, _put, _replace, _remove, _repeat, _splice, _wrap)
