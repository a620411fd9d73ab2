"""Each construct that is not judged is refused by its name, at its character."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from core.model.call import CommandText
from core.shell.characters import forbidden_character
from core.shell.inspect import MAX_LENGTH, inspect
from tests.shell_world import World, look

REFUSED = [
    ("ls > out", "redirection", 3),
    ("ls >> out", "redirection", 3),
    ("ls >> /dev/null", "redirection", 3),
    ("ls >| /dev/null", "redirection", 3),
    ("ls 2> err", "redirection", 3),
    ("ls &> all", "redirection", 3),
    ("ls &>> all", "redirection", 3),
    ("ls < in", "redirection", 3),
    ("ls <> both", "redirection", 3),
    ("ls 3>/dev/null", "redirection", 3),
    ("ls 2>&-", "redirection", 3),
    ("ls 2>&1foo", "redirection", 3),
    ("ls >&'1'", "redirection", 3),
    ("ls >& file", "redirection", 3),
    ("ls >/dev/nul*", "redirection", 3),
    ("ls >$X", "redirection", 3),
    ("ls {fd}>/dev/null", "redirection", 3),
    ("ls >", "redirection", 3),
    ("2>/dev/null ls", "leading-redirection", 0),
    (">/dev/null A=1 ls", "leading-redirection", 0),
    ("cat << EOF\nx\nEOF", "heredoc", 4),
    ("cat <<-'EOF'\nx\nEOF", "heredoc", 4),
    ("cat <<< x", "here-string", 4),
    ("echo $(id)", "command-substitution", 5),
    ('echo "$(id)"', "command-substitution", 6),
    ("echo `id`", "command-substitution", 5),
    ('echo "a`id`"', "command-substitution", 7),
    ("echo ~$(id)", "command-substitution", 6),
    ("A=$(id) ls", "command-substitution", 2),
    ("diff <(ls) x", "process-substitution", 5),
    ("ls >(cat)", "process-substitution", 3),
    ("echo ${X:-y}", "parameter-expansion", 5),
    ("echo ${X", "parameter-expansion", 5),
    ('echo "${!X}"', "parameter-expansion", 6),
    ("echo ${#X}", "parameter-expansion", 5),
    ("echo ${a[$(id)]}", "parameter-expansion", 5),
    ("echo $@", "special-parameter", 5),
    ("echo $1", "special-parameter", 5),
    ("echo $$", "special-parameter", 5),
    ("echo $'a\\x41'", "ansi-c-quoting", 5),
    ('echo $"a"', "locale-quoting", 5),
    ("echo $((1+1))", "arithmetic", 5),
    ("echo $[1+1]", "arithmetic", 5),
    ("((a=1))", "arithmetic", 0),
    ("[[ -f x ]]", "conditional", 0),
    ("(ls)", "subshell", 0),
    ("ls; (ls)", "subshell", 4),
    ("{ ls; }", "group", 0),
    ("f() { ls; }", "function", 1),
    ("f () { ls; }", "subshell", 2),
    ("function f { ls; }", "function", 0),
    ("if ls; then ls; fi", "compound-command", 0),
    ("ls && for i in a; do ls; done", "compound-command", 6),
    ("while ls; do ls; done", "compound-command", 0),
    ("until ls; do ls; done", "compound-command", 0),
    ("case x in x) ls;; esac", "compound-command", 11),
    ("ls;# x", "comment", 3),
    ("ls &# x", "comment", 4),
    ("ls |# x\n cat", "comment", 4),
    ("select x in a; do ls; done", "compound-command", 0),
    ("coproc ls", "coprocess", 0),
    ("! ls", "negation", 0),
    ("!! ls", "history-expansion", 0),
    ("time ls", "time-keyword", 0),
    ("ls | time cat", "time-keyword", 5),
    ("ls @(a|b)", "extglob", 4),
    ("ls !(a)", "extglob", 4),
    ("a=(1 2)", "array-assignment", 2),
    ("a[0]=1 ls", "array-assignment", 0),
    ("A+=1 ls", "array-assignment", 0),
    ("$X", "dynamic-command", 0),
    ("'a'$X", "dynamic-command", 0),
    ("ls; /usr/bin/l?", "dynamic-command", 4),
    ("{ls,-l}", "dynamic-command", 0),
    ("~/run", "dynamic-command", 0),
    ("A=1 $X", "dynamic-command", 4),
    ("'' x", "empty-command", 0),
    ("ls 'a", "unbalanced-quote", 3),
    ('ls "a', "unbalanced-quote", 3),
    ('echo "${x', "parameter-expansion", 6),
    ("ls -\\\nexec", "line-continuation", 4),
    ('ls "a\\\nb"', "line-continuation", 5),
    ("ls \\", "line-continuation", 3),
    ("ls\\\n-l", "line-continuation", 2),
    ("ls \\\n", "line-continuation", 3),
    ("ls \\\n ; id", "line-continuation", 3),
    ("ls \\\n\\\n -l", "line-continuation", 5),
    ("ls \t\\\n-l", "line-continuation", 4),
    ("ls &\\\n& id", "line-continuation", 4),
    ("ls 2> \\\n/dev/null", "line-continuation", 6),
    ("ls )", "syntax", 3),
    ("ls ;; ls", "syntax", 3),
    ("; ls", "syntax", 0),
    ("ls && && ls", "syntax", 6),
    ("ls |", "syntax", 0),
    ("", "empty", 0),
    (" \n\t ", "empty", 0),
    ("# only a comment", "empty", 0),
    ("ls \0", "nul-byte", 3),
    ("ls \r", "control-character", 3),
    ("ls \x0b", "control-character", 3),
    ("ls \x1b[0m", "control-character", 3),
    ("ls \x85", "control-character", 3),
    ("ls\u00a0-l", "misleading-space", 2),
    ("ls \u2028", "misleading-space", 3),
    ("ls \u200b", "invisible-character", 3),
    ("ls '\u202e'", "invisible-character", 4),
    ("ls \u2066", "invisible-character", 3),
    ("ls \ufeff", "invisible-character", 3),
    ("ls \U000e0041", "invisible-character", 3),
    ("ls \ufe0f", "invisible-character", 3),
    ("ls \u3164", "invisible-character", 3),
    ("ls \ue000", "private-character", 3),
    ("ls \ud800", "lone-surrogate", 3),
]


@pytest.mark.parametrize(("line", "construct", "position"), REFUSED, ids=[repr(row[0]) for row in REFUSED])
def test_is_refused_by_name_and_position(line: str, construct: str, position: int) -> None:
    facts = look(line)
    assert not facts.analysable
    assert [(r.construct, r.position) for r in facts.refused] == [(construct, position)]
    assert facts.refused[0].reason
    assert facts.canonical == line


@pytest.mark.parametrize(
    ("line", "construct"),
    [
        ("a" * (MAX_LENGTH + 1), "too-long"),
        ("ls;" * 65, "too-many-commands"),
        ("ls " + "a " * 5000, "too-many-words"),
        ("A=1 " * 5000, "too-many-words"),
        ("ls; bash -c '" + "ls;" * 64 + "'", "too-many-commands"),
    ],
)
def test_what_is_too_much_is_refused_whole(line: str, construct: str) -> None:
    assert [r.construct for r in look(line).refused] == [construct]


@pytest.mark.parametrize(
    ("argv", "construct"),
    [
        ((), "empty"),
        (("",), "empty"),
        (("ls", "a\0b"), "nul-byte"),
        (("ls", "a\u202eb"), "invisible-character"),
    ],
)
def test_an_argv_is_checked_too(argv: tuple[str, ...], construct: str) -> None:
    assert [r.construct for r in look(argv).refused] == [construct]


def test_neither_line_nor_argv_is_an_empty_command() -> None:
    facts = inspect(CommandText(), cwd="/", path=(), resolver=World())
    assert [r.construct for r in facts.refused] == ["empty"]


@pytest.mark.parametrize("inner", ["echo $(id)", "ls > x", "$X", "if ls; then ls; fi"])
def test_what_a_shell_is_given_is_refused_as_if_it_stood_alone(inner: str) -> None:
    alone = look(inner).refused[0]
    inside = look(f"ls; bash -c '{inner}'").refused[0]
    assert inside.construct == alone.construct
    assert "inside `bash -c`" in inside.reason
    assert inside.position == len("ls; ")


def test_the_quick_look_at_characters_agrees_with_the_careful_one_on_every_character() -> None:
    """Unicode's categories decide; the quick look is there because lines may be long."""
    plain = {"\t", "\n", *map(chr, range(0x20, 0x7F))}
    unseen = set("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\U00016fe4\U0001d159") | {
        chr(code)
        for low, high in ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF), (0x180B, 0x180F))
        for code in range(low, high + 1)
    }
    for char in map(chr, range(sys.maxunicode + 1)):
        hidden = char not in plain and (unicodedata.category(char)[0] in "CZ" or char in unseen)
        assert (forbidden_character(f"a{char}") is not None) is hidden, hex(ord(char))
