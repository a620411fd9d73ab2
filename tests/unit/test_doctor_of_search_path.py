"""Directories of programs that others can write to are pointed out, when loading and by doctor."""

from __future__ import annotations

import os
import subprocess

import pytest
import yaml

from bot.config import load
from bot.config.search_path import changeable_part
from bot.doctor import Status, search_path

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of root's own")


@pytest.fixture
def loaded(tmp_path):
    def read(*directories):
        path = tmp_path / "sayso.yaml"
        settings = {"tools": {"exec": {"pathPrepend": list(map(str, directories))}}}
        path.write_text(yaml.safe_dump(settings), "utf-8")
        return load([path], env={})

    return read


def test_a_directory_that_everybody_can_write_to_is_named_with_what_it_means_and_the_mend(loaded, tmp_path):
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o777)
    config = loaded("/usr/bin", place)
    (warning,) = config.warnings
    assert warning.startswith(f"tools.exec.pathPrepend[1]: others than root can write to {place}, where")
    assert "no bare name or glob of an allowlist admits what is found there" in warning
    assert f"chmod go-w {place}" in warning
    check = next(search_path(config.config))
    assert (check.name, check.status) == ("search path", Status.WARN)
    assert str(place) in check.detail
    assert f"chmod go-w {place}" in check.mend


@needs_root
def test_the_mend_is_a_command_that_a_shell_takes_as_it_is(loaded, tmp_path):
    place = tmp_path / "pro grams; touch x"
    place.mkdir()
    place.chmod(0o777)
    (check,) = [check for check in search_path(loaded(place).config) if str(place) in check.detail]
    subprocess.run(["/bin/sh", "-c", check.mend.split(", or")[0]], check=True, cwd=tmp_path)
    assert place.stat().st_mode & 0o022 == 0
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("below", ["", "below"])
def test_no_command_is_told_for_what_serves_others_or_lies_on_the_way(loaded, tmp_path, below):
    place = tmp_path / "shared"
    (place / "below").mkdir(parents=True)
    place.chmod(0o1777)
    (check,) = [check for check in search_path(loaded(place / below).config) if str(place) in check.detail]
    assert check.mend == "let only root write there, or take it off the PATH"


@needs_root
def test_the_way_to_it_and_where_a_link_leads_count_too(tmp_path):
    assert changeable_part("/usr/bin") is None
    below = tmp_path / "open" / "below"
    below.mkdir(parents=True)
    below.parent.chmod(0o777)
    assert changeable_part(str(below)) == str(below.parent)
    link = tmp_path / "link"
    link.symlink_to("/usr/bin")
    assert changeable_part(str(link)) is not None  # whoever can write beside it can put another in its place


@needs_root
def test_where_only_root_can_write_nothing_is_said(loaded):
    config = loaded("/usr/bin", "/usr/sbin", "/usr/no-such-directory")
    assert config.warnings == ()
    assert [check.status for check in search_path(config.config)] == [Status.OK]
