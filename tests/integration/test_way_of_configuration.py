"""The way to a file, step by step, and when a way counts as another one."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.runners.groups import members_of
from bot.config.marks import read_marked
from bot.config.way import another_on, way_to
from tests.integration.runners.test_held_host_runs import access_list
from tests.users import needs_users

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "top" / "v1" / "sayso.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("as it was")
    return path


def own(path: Path) -> None:
    os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)


def test_each_directory_link_and_file_is_met_once_in_the_order_of_the_kernel(file: Path) -> None:
    top = file.parent.parent
    (top / "near").symlink_to("v1/../v1")
    (top / "far").symlink_to(file)
    met = [step.path for step in way_to(f"{top}/near//./sayso.yaml")]
    within = [str(top), f"{top}/near", f"{top}/v1", str(top), f"{top}/v1", str(file)]
    assert met[-6:] == within
    assert met[0] == "/"
    met = [step.path for step in way_to(str(top / "far"))]
    assert met.count(str(top)) == 2
    assert met[-1] == str(file)
    last = way_to(str(top / "far"))[-1]
    assert (stat.S_ISREG(last.mode), last.identity[1]) == (True, file.stat().st_ino)


def test_links_without_end_and_ways_to_nothing_are_faults_and_leave_nothing_open(file: Path) -> None:
    (file.parent / "a").symlink_to("a")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only how many
    for path, number in (("a", errno.ELOOP), ("none", errno.ENOENT), ("sayso.yaml/x", errno.ENOTDIR)):
        with pytest.raises(OSError) as found:  # noqa: PT011 - by its number
            way_to(f"{file.parent}/{path}")
        assert found.value.errno == number
    way_to(str(file))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def test_what_is_read_is_what_the_way_led_to(file: Path) -> None:
    content, source = read_marked(file)
    assert content == b"as it was"
    assert source.way[-1].identity == source.mark[:2]
    with file.open("rb") as given:
        content, source = read_marked(Path(f"/proc/self/fd/{given.fileno()}"))
    assert (content, source.way) == (b"as it was", ())


def anew(file: Path) -> None:
    """Make the directory anew, with what was in it."""
    file.parent.rename(file.parent.with_name("old"))
    file.parent.mkdir()
    file.write_text("as it was")


def by_an_editor(file: Path) -> None:
    new = file.with_name("new")
    new.write_text("another")
    new.rename(file)


def away_and_back(file: Path) -> None:
    away = file.parent.rename(file.parent.with_name("old"))
    away.rename(file.parent)


def led_up(file: Path) -> None:
    """Put a link in the place of the directory, which leads to one that was met before."""
    file.parent.rename(file.parent.with_name("old"))
    file.parent.symlink_to(".")
    (file.parent.parent / file.name).write_text("another")


@needs_users
@pytest.mark.parametrize(
    ("change", "another"), [(anew, True), (led_up, True), (by_an_editor, False), (away_and_back, False)]
)
@pytest.mark.parametrize("of_root", [True, False])
def test_it_is_another_way_where_a_directory_was_exchanged_that_not_root_alone_can(
    file: Path,
    change: Callable[[Path], None],
    another: bool,  # noqa: FBT001 - a table
    of_root: bool,  # noqa: FBT001 - as above
) -> None:
    if not of_root:
        own(file.parent.parent)
    before = way_to(str(file))
    change(file)
    named = another_on(before, way_to(str(file)))
    assert named == (str(file.parent) if another and not of_root else None)


@needs_users
def test_an_access_list_lets_in_others_than_a_group_of_one_and_only_where_it_lets_them_write(
    file: Path,
) -> None:
    gid = next(each.gr_gid for each in grp.getgrall() if (members_of(each.gr_gid) or frozenset()) <= {0})
    os.chown(file, 0, gid)

    def others_write(mode: int) -> bool:
        file.chmod(mode)
        return way_to(str(file))[-1].others_write

    assert (others_write(0o664), others_write(0o646)) == (False, True)
    os.setxattr(file, "system.posix_acl_access", access_list(NOBODY.pw_uid))
    assert (others_write(0o664), others_write(0o644)) == (True, False)


@needs_users
def test_a_link_of_root_s_may_lead_elsewhere_and_one_of_another_user_may_not(file: Path) -> None:
    link, second = file.parent.with_name("now"), file.parent.with_name("v2")
    second.mkdir()
    (second / file.name).write_text("the next")
    link.symlink_to("v1")
    before = way_to(f"{link}/{file.name}")
    link.unlink()
    link.symlink_to("v2")
    assert another_on(before, way_to(f"{link}/{file.name}")) is None
    own(link.parent)
    assert another_on(before, way_to(f"{link}/{file.name}")) == str(second)
