"""The state directory: who may see it, which daemon holds it, and the operator's token in it."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.runners.accounts import exchangeable_parent, is_own
from bot.config.way import Way, another_on, way_to
from bot.mend import run_on
from core.credentials import new_token
from core.errors import StartError

log = logging.getLogger(__name__)

_BELOW: Final = ("agents", "output")
_MADE: Final = (*_BELOW, "agents/*.token", "daemon.lock", "operator.token", "sayso.db*")
_UP: Final = " up"  # behind the pid of a daemon that was not asked to end


class AnotherDaemon(StartError):  # noqa: N818 - reads as what it is
    """A daemon runs on this state directory."""


@dataclass(frozen=True, slots=True)
class Home:
    """`$SAYSO_HOME` and what lies in it; `made` are directories that were not there before.

    `way` is what was met on the way to it when it was taken.
    """

    path: Path
    made: tuple[Path, ...] = ()
    way: Way = ()

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
        _look_at(path)
        made = _make(path)
        _look_at(path)
        return Home(path, made, way_to(str(path.absolute())))
    except OSError as error:
        raise StartError(
            f"SAYSO_HOME {path} cannot be used: {error.strerror}; choose another directory"
        ) from None


def look_again(home: Home) -> None:
    """Check that the state directory is the one that was taken; raises StartError where it is not."""
    try:
        _look_at(home.path)
        another = another_on(home.way, way_to(str(home.path.absolute())))
    except OSError as error:
        raise StartError(f"SAYSO_HOME {home.path} cannot be looked at: {error.strerror}") from None
    if another:
        raise StartError(
            f"SAYSO_HOME {home.path}: the directory {another} is another one than when Sayso started, so "
            "that somebody may have exchanged it; if that was you, restart Sayso"
        )


def _look_at(path: Path) -> None:
    """Check a state directory, or the way to one that is not there yet."""
    if path.exists():
        found = path.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise StartError(f"SAYSO_HOME {path} is no directory; choose another place")
        if found.st_uid != os.geteuid():
            raise StartError(
                f"SAYSO_HOME {path} belongs to uid {found.st_uid}, not to the user who starts Sayso"
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise StartError(f"SAYSO_HOME {path} is open to other users; {mend_of_open(path)}")
    if changeable := exchangeable_parent(str(path.resolve())):
        raise StartError(
            f"SAYSO_HOME {path}: other users can change {changeable} and so exchange it; "
            f"{mend_of_exchangeable(changeable)}"
        )


def mend_of_exchangeable(above: str) -> str:
    """Say what to do about a directory above the state directory that others can change."""
    close = f"close it ({run_on(above, 'chmod go-w')}), or " if is_own(above) else ""
    return f"{close}choose a place on the way to which all belongs to you or root and nobody else can write"


def mend_of_open(path: Path) -> str:
    """Say what to do about a state directory that is open to others."""
    return f"close it: {run_on(path, 'chmod 700')}" if _is_ours(path) else "choose one that is Sayso's alone"


def _is_ours(path: Path) -> bool:
    """Tell whether a directory is Sayso's, or can become so: then its mode can be changed."""
    return is_own(path) or (path / "daemon.lock").exists()


def _make(path: Path) -> tuple[Path, ...]:
    """Make a directory and what lacks above it; returns what was made, the innermost first."""
    made = tuple(each for each in (path, *path.parents) if not each.exists())
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return made


class Hold:
    """The state directory in the hands of this process; its note there tells the next one how it ended."""

    def __init__(self, home: Home, descriptor: int, before: str, *, found: frozenset[Path]) -> None:
        self.home = home
        self._found = found
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

    def undo(self) -> None:
        """Remove what was made since it is held: a first start that is refused leaves nothing behind."""
        if self.home.database in self._found:  # it holds what belongs to the other files, by now
            return
        for path in sorted(_files(self.home.path) - self._found, reverse=True):  # what lies in one, first
            with suppress(OSError):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        for path in self.home.made:
            with suppress(OSError):
                path.rmdir()

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
    found = _files(home.path)
    descriptor = os.open(home.path / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor, home)
        _make_below(home)
        yield Hold(home, descriptor, _noted(descriptor), found=found)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, home: Home) -> None:
    """Lock it; a file that a refused start removed meanwhile holds nothing."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pid = _noted(descriptor).removesuffix(_UP) or "unknown"
        raise AnotherDaemon(
            f"another Sayso (pid {pid}) runs on {home.path}; stop it, or set SAYSO_HOME elsewhere"
        ) from None
    if os.fstat(descriptor).st_nlink == 0:
        raise AnotherDaemon(f"another Sayso was just refused on {home.path}; start again")


def _make_below(home: Home) -> None:
    try:
        for below in _BELOW:
            (home.path / below).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StartError(f"SAYSO_HOME {home.path} cannot be used: {error.strerror}") from None


def _files(home: Path) -> frozenset[Path]:
    """List what a start makes in the state directory, as far as it is there."""
    return frozenset(path for made in _MADE for path in home.glob(made))


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
