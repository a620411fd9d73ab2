"""Directories of programs that others can write to are pointed out, when loading and by doctor."""

from __future__ import annotations

import os

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
