"""Words, tables and colours of the command line."""

from __future__ import annotations

import io

import pytest

from bot.cli.terminal import coloured, left, shown, span, table


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (89, "89 s"),
        (120, "2 min"),
        (3_599, "60 min"),
        (3_600, "1 h"),
        (90_000, "25 h"),
        (90_060, "25 h 1 min"),
        (500_000, "5 days"),
    ],
)
def test_a_length_of_time_reads_well(seconds, words):
    assert span(seconds) == words


def test_a_deadline_that_is_past_has_no_time_left():
    assert left(1) == "0 s left"


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\u202eb", "a\u200bb", "a\rb", "a\nb", "a\x07b"])
def test_nothing_that_is_printed_can_move_hide_or_reorder(text):
    made = shown(text)
    assert all(char.isprintable() for char in made)
    assert made != text


def test_plain_text_stays_as_it_is():
    assert shown("git log --oneline | head -5") == "git log --oneline | head -5"
    assert shown("größe") == "größe"


def test_colour_is_for_terminals_only(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("x", "red", Screen()) == "\x1b[31mx\x1b[0m"
    assert coloured("x", "red", io.StringIO()) == "x"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_is_off_where_it_is_not_wanted(monkeypatch, name, value):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    assert coloured("x", "red", Screen()) == "x"


def test_columns_are_as_wide_as_their_widest_cell(capsys):
    table(("ID", "COMMAND"), [("1234", "ls"), ("1", "git status")])
    assert capsys.readouterr().out == "ID    COMMAND\n1234  ls\n1     git status\n"
