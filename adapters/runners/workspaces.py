"""Makes the directories in which runs work, and checks those that an operator named."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from adapters.runners.accounts import Account, exchangeable_parent
from core.errors import RunError

_KEY = "agents.<id>.workspace"


def ensure(path: str, account: Account) -> None:
    """Make a workspace of Sayso's own, 0700 and the account's; one that is there must already be so."""
    try:
        _make(Path(path), account)
    except OSError as error:
        raise RunError(f"workspace {path} cannot be made: {error.strerror}") from error


def check(path: str, account: Account, *, key: str = _KEY, write: bool = True) -> None:
    """Check that an account can use a directory the operator named by `key`; nothing about it is changed."""
    if not Path(path).is_dir():
        raise RunError(f"workspace {path} {_missing(path, account)}, or change {key}")
    barrier = account.barrier(path)
    if barrier:
        raise RunError(
            f"workspace {path}: the account {account.name} cannot pass {barrier}; give it search permission "
            f"there if it is yours to give, or name another directory: {key}"
        )
    need = os.R_OK | os.X_OK | (os.W_OK if write else 0)
    if not account.may(path, need):
        raise RunError(
            f"workspace {path}: the account {account.name} cannot {'write to' if write else 'read'} it; "
            f"name a directory that is this account's own, or leave {key} out and Sayso makes one"
        )


def _missing(path: str, account: Account) -> str:
    if Path(path).is_symlink():
        return f"is a link to {Path(path).readlink()}, where there is no directory; mend the link"
    if os.path.lexists(path):
        return "is no directory; move it away"
    return f"is not there; make it as {account.name}: mkdir {path}"


def prepare(path: str, account: Account, root: str, *, key: str = _KEY, write: bool = True) -> None:
    """Make or check a workspace: below `root` it is Sayso's own, anywhere else the operator's."""
    if Path(root) in Path(path).parents:
        ensure(path, account)
    else:
        check(path, account, key=key, write=write)


def made(path: str, account: Account, root: str) -> bool:
    """Make a workspace of Sayso's own that is not there yet; tells whether it did."""
    if Path(root) not in Path(path).parents or os.path.lexists(path):
        return False
    ensure(path, account)
    return True


def _make(path: Path, account: Account) -> None:
    if not os.path.lexists(path):
        _make_parents(path)
        _refuse_exchangeable(path)
        path.mkdir(mode=0o700)
    _refuse_exchangeable(path)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise RunError(f"workspace {path} is a link or a file where a directory belongs; move it away")
    if account.drop and status.st_uid == os.geteuid():
        # Ours, and nobody else can put anything here: new, or made for a run on the host.
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
        status = path.lstat()
    if status.st_uid != account.uid:
        raise RunError(
            f"workspace {path} belongs to uid {status.st_uid}, not to {account.name}; move it away, "
            "or set sandboxing.workspaceRoot to another place"
        )
    if status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        path.chmod(0o700)
    barrier = account.barrier(str(path))
    if barrier:
        raise RunError(
            f"workspace {path}: the account {account.name} cannot pass {barrier}; "
            "set sandboxing.workspaceRoot to a place that it can reach"
        )


def _make_parents(path: Path) -> None:
    # 0711: the sandbox account may pass to its own directory and cannot list whose others there are. A run on
    # the host may come first, and must not close the way to those in the sandbox.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(mode=mode)
            parent.chmod(mode)


def _refuse_exchangeable(path: Path) -> None:
    parent = exchangeable_parent(str(path))
    if parent:
        raise RunError(
            f"workspace {path}: {parent} can be changed by other users, who could put a link in its place; "
            "set sandboxing.workspaceRoot to a directory that only you can change"
        )
