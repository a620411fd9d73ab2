"""The state directory: who may see it, which daemon holds it, and the operator's token in it."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.runners.accounts import exchangeable_parent
from core.credentials import new_token
from core.errors import StartError

log = logging.getLogger(__name__)

_UP: Final = " up"  # behind the pid of a daemon that was not asked to end


class AnotherDaemon(StartError):  # noqa: N818 - reads as what it is
    """A daemon runs on this state directory."""


@dataclass(frozen=True, slots=True)
class Home:
    """`$SAYSO_HOME` and what lies in it."""

    path: Path

    @property
    def database(self) -> Path:
        """Requests, grants, allowlist, outbox and record."""
        return self.path / "sayso.db"

    @property
    def socket(self) -> Path:
        """Where agents and operators connect."""
        return self.path / "sayso.sock"

    @property
    def output(self) -> Path:
        """What runs printed, whole up to the limit."""
        return self.path / "output"

    @property
    def operator_token(self) -> Path:
        """The operator's token, readable by the daemon's user alone."""
        return self.path / "operator.token"

    @property
    def passphrase(self) -> Path:
        """The operator's passphrase, as a hash."""
        return self.path / "operator.passphrase"

    def agent_token(self, agent: str) -> Path:
        """Return where an agent's token may lie for local clients of the same user."""
        return self.path / "agents" / f"{agent}.token"


def prepare(path: Path) -> Home:
    """Make the state directory, private to its user; raises StartError where it is not."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for below in ("agents", "output"):
            (path / below).mkdir(mode=0o700, exist_ok=True)
        found = path.stat()
    except OSError as error:
        raise StartError(
            f"SAYSO_HOME {path} cannot be used: {error.strerror}; choose another directory"
        ) from None
    if found.st_uid != os.geteuid():
        raise StartError(f"SAYSO_HOME {path} belongs to uid {found.st_uid}, not to the user who starts Sayso")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise StartError(f"SAYSO_HOME {path} is open to other users; close it: chmod 700 {path}")
    if changeable := exchangeable_parent(str(path.resolve())):
        raise StartError(
            f"SAYSO_HOME {path}: other users can change {changeable} and so exchange it; "
            f"close it (chmod go-w {changeable}, owned by you or root), or choose another place"
        )
    return Home(path)


class Hold:
    """The state directory in the hands of this process; its note there tells the next one how it ended."""

    def __init__(self, home: Home, descriptor: int, before: str) -> None:
        self.home = home
        self.cut_off = before.endswith(_UP)
        self._descriptor = descriptor
        self._note_first(up=self.cut_off)  # that an earlier one was cut off stays noted until it is told

    def up(self) -> None:
        """Note that from here on an end without `ended` is one that nobody asked for."""
        self.cut_off = False
        self._note_first(up=True)

    def ended(self) -> None:
        """Note that this process was asked to end, or says itself why it does."""
        if self.cut_off:
            return
        try:
            self._note(up=False)
        except OSError as error:
            log.warning("%s/daemon.lock cannot be written: %s", self.home.path, error.strerror)

    def _note_first(self, *, up: bool) -> None:
        try:
            self._note(up=up)
        except OSError as error:
            raise StartError(f"{self.home.path}/daemon.lock cannot be written: {error.strerror}") from None

    def _note(self, *, up: bool) -> None:
        text = f"{os.getpid()}{_UP if up else ''}\n".encode()
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))


@contextmanager
def held(home: Home) -> Iterator[Hold]:
    """Hold the state directory for this process alone; raises StartError where another daemon has it."""
    descriptor = os.open(home.path / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = _noted(descriptor).removesuffix(_UP) or "unknown"
            raise AnotherDaemon(
                f"another Sayso (pid {pid}) runs on {home.path}; stop it, or set SAYSO_HOME elsewhere"
            ) from None
        yield Hold(home, descriptor, _noted(descriptor))
    finally:
        os.close(descriptor)


def _noted(descriptor: int) -> str:
    lines = os.pread(descriptor, 32, 0).decode("ascii", "replace").splitlines()
    return lines[0] if lines else ""


def operator_token(home: Home) -> str:
    """Return the operator's token, made on the first start."""
    try:
        return home.operator_token.read_text().strip()
    except FileNotFoundError:
        token = new_token()
        write_secret(home.operator_token, token)
        return token
    except OSError as error:
        raise StartError(f"{home.operator_token} cannot be read: {error.strerror}") from None


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read, never readable or half there; raises StartError."""
    new = path.with_name(f".{path.name}.new")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, 0o600)
            file.write(text + "\n")
            file.flush()
            os.fsync(descriptor)
        new.replace(path)
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from None
