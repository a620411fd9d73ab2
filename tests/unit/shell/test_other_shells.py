"""`sh` may be a shell that reads a line otherwise than bash, whose grammar judges it."""

from __future__ import annotations

import pytest

from core.model.command import Word
from core.shell.shells import shell_script


def words(*values):
    return [Word(value, value) for value in values]


@pytest.mark.parametrize("script", ["ls |& wc", "echo '|&'"])
def test_what_only_bash_reads_so_is_not_looked_into_for_sh(script):
    assert shell_script(words("sh", "-c", script)) is None
    assert shell_script(words("/usr/bin/dash", "-c", script)) is None


@pytest.mark.parametrize("shell", ["bash", "/bin/bash"])
def test_bash_reads_it_as_its_grammar_does(shell):
    assert shell_script(words(shell, "-c", "ls |& wc")).text == "ls |& wc"


def test_what_every_shell_reads_alike_is_looked_into():
    assert shell_script(words("sh", "-c", "ls 2>&1 | wc")).text == "ls 2>&1 | wc"
