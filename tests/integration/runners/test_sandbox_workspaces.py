"""Making and checking workspaces on a real disk."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from adapters.runners.accounts import Account, running_account
from adapters.runners.workspaces import check, ensure, prepare
from core.errors import RunError
from tests.integration.runners.kit import Place

ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


@pytest.fixture
def account() -> Account:
    return running_account("nobody")


def test_a_workspace_is_the_account_s_alone(place: Place, account: Account) -> None:
    path = place.root / "made" / "workspaces" / "one"
    ensure(str(path), account)
    found = path.stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (account.uid, 0o700)
    parent = path.parent.stat()
    assert (parent.st_uid, stat.S_IMODE(parent.st_mode)) == (os.geteuid(), 0o711 if account.drop else 0o700)


def test_making_it_again_keeps_what_is_in_it_and_opens_it_again(place: Place, account: Account) -> None:
    path = place.root / "workspaces" / "one"
    ensure(str(path), account)
    (path / "file").write_text("kept")
    path.chmod(0o000)
    ensure(str(path), account)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert (path / "file").read_text() == "kept"


def test_a_link_is_refused(place: Place, account: Account) -> None:
    (place.root / "elsewhere").mkdir()
    link = place.root / "link"
    link.symlink_to(place.root / "elsewhere")
    with pytest.raises(RunError, match="is a link or a file"):
        ensure(str(link), account)


def test_a_file_is_refused(place: Place, account: Account) -> None:
    (place.root / "file").write_text("")
    with pytest.raises(RunError, match="is a link or a file"):
        ensure(str(place.root / "file"), account)


@ONLY_ROOT
def test_a_directory_of_somebody_else_is_refused_and_left_alone(place: Place, account: Account) -> None:
    path = place.root / "theirs"
    path.mkdir()
    os.chown(path, 12345, 12345)
    with pytest.raises(RunError, match="belongs to uid 12345"):
        ensure(str(path), account)
    assert path.stat().st_uid == 12345


def test_a_parent_that_others_can_change_is_refused(place: Place, account: Account) -> None:
    parent = place.root / "open"
    parent.mkdir()
    parent.chmod(0o777)
    with pytest.raises(RunError, match="can be changed by other users"):
        ensure(str(parent / "one"), account)
    assert list(parent.iterdir()) == []


@ONLY_ROOT
def test_a_root_behind_a_closed_door_is_told(place: Place, account: Account) -> None:
    (place.root / "closed").mkdir(mode=0o700)
    with pytest.raises(RunError, match=r"cannot pass .*/closed; set sandboxing\.workspaceRoot"):
        ensure(str(place.root / "closed" / "one"), account)


def test_an_operator_s_directory_is_never_changed(place: Place, account: Account) -> None:
    path = place.root / "project"
    path.mkdir()
    path.chmod(0o555)
    before = path.stat()
    if os.geteuid() == 0 or not os.access(path, os.W_OK):
        with pytest.raises(RunError, match=f"{account.name} cannot write to it"):
            check(str(path), account)
    check(str(path), account, write=False)
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


def test_below_the_root_it_is_made_and_elsewhere_only_checked(place: Place, account: Account) -> None:
    root = str(place.root / "workspaces")
    prepare(f"{root}/new", account, root)
    assert Path(root, "new").is_dir()
    with pytest.raises(RunError, match="is not there"):
        prepare(f"{place.root}/workspaces-not/new", account, root)
    with pytest.raises(RunError, match="is not there"):
        prepare(str(place.root / "none"), account, root)


def test_what_is_missing_of_an_operator_s_directory_is_told_by_its_name(
    place: Place, account: Account
) -> None:
    (place.root / "link").symlink_to(place.root / "nowhere")
    (place.root / "file").touch()
    for name, told in (
        (
            "none",
            f"none is not there; make it as {account.name}: mkdir {place.root}/none, or change agents.a.wo",
        ),
        ("link", f"link is a link to {place.root}/nowhere, where there is no directory"),
        ("file", "file is no directory; move it away, or change agents.a.workspace"),
    ):
        with pytest.raises(RunError, match=re.escape(told)):
            check(str(place.root / name), account, key="agents.a.workspace")


@ONLY_ROOT
@pytest.mark.parametrize("path", ["/etc", "/root/x", "/"])
def test_no_command_is_named_that_would_change_a_directory_of_the_system(account: Account, path: str) -> None:
    with pytest.raises(RunError) as refused:
        check(path, account)
    assert not re.search("chmod|chown|chgrp|install", str(refused.value))
