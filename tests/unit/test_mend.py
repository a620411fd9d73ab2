"""Commands that people are told to run on a path."""

from __future__ import annotations

import os
import pwd
import shlex

import pytest

from bot.mend import run_on

ME = pwd.getpwuid(os.geteuid()).pw_name
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.mark.parametrize("name", ["plain", "with blank", "it's; rm -rf ~", "$(id)", "-x"])
def test_a_shell_takes_the_path_as_it_is(tmp_path, name):
    place = tmp_path / name
    place.mkdir()
    first, second = run_on(place, "chmod o-rwx", "chmod g+x").split(" && ")
    assert shlex.split(first) == ["chmod", "o-rwx", str(place)]
    assert shlex.split(second) == ["chmod", "g+x", str(place)]


def test_as_whom_is_said_where_it_is_another():
    assert run_on("/usr", "chmod go-w").removeprefix("as root: ") == "chmod go-w /usr"
    assert run_on("/usr", "chmod go-w").startswith("as root: ") is (ME != "root")


@needs_root
def test_the_owner_is_named_or_who_can_make_it(tmp_path):
    os.chown(tmp_path, 65534, 65534)
    assert run_on(tmp_path, "chmod go-w") == f"as nobody: chmod go-w {tmp_path}"
    assert run_on(tmp_path / "a" / "b", "install -d") == f"as nobody: install -d {tmp_path}/a/b"
    assert run_on(tmp_path, "chown root", "chmod go-w") == f"chown root {tmp_path} && chmod go-w {tmp_path}"
    os.chown(tmp_path, 54321, 54321)
    assert run_on(tmp_path, "chmod go-w").startswith("as uid 54321: ")
