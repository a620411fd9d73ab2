"""`sayso pending` tells below its list who has allowed what several people must allow."""

from __future__ import annotations

from bot.cli.requests import _print_progress


def test_only_questions_that_need_several_people_have_a_line(capsys):
    rows = [
        {"id": "aaaaaaaa-1", "progress": None},
        {"id": "bbbbbbbb-2", "progress": "1 of 2: Ann (cli:0) allowed once, because: \u202efine"},
        {"id": "cccccccc-3"},
    ]
    _print_progress(rows)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("bbbbbbbb: 1 of 2: Ann (cli:0) allowed once")
    assert "\u202e" not in line
