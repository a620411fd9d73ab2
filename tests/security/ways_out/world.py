"""What a way out would reach: Sayso's own state as a daemon leaves it, and what starts programs for others.

Everything lies below one directory and belongs to the account of the run, as where the daemon is that
account: no mode protects any of it. Nothing is ever mounted below that directory.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

SECRET = "the-token-of-the-operator"
REACHED = b"REACHED\n"
# A home; what is in directories of work is not looked at.
HOME = {
    ".bashrc": "as it was",
    ".cargo/env": "as it was",
    ".config/tmux/tmux.conf": "as it was",
    ".local/lib/python3/site-packages/x.py": "as it was",
    ".ws/deep/main/notes": "as it was",
    "bin/tool": "as it was",
    "dotfiles/vim/vimrc": "as it was",
    "go/bin/tool": "as it was",
    "notes.txt": "as it was",
}
WORK = ("go/pkg", "projects")
# A process of the user outside: it holds the state open, works in it, and has the token in its environment.
_NEIGHBOUR = """
import ctypes, os, sys
os.chdir(sys.argv[1])
held = open("token"), os.open(".", os.O_PATH)
ctypes.CDLL(None).prctl(4, int(sys.argv[2]), 0, 0, 0)
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
print("up", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class World:
    """The places of one world, and the processes in it."""

    base: Path
    neighbour: int
    closed_neighbour: int
    terminal: str
    cgroup: str  # delegated to the account; empty where none can be

    @property
    def state(self) -> Path:
        return self.base / "g" / "p" / "state"

    @property
    def config(self) -> Path:
        return self.base / "g" / "config.yaml"

    @property
    def program(self) -> Path:
        return self.base / "opt" / "program"

    @property
    def workspace(self) -> Path:
        return self.base / "w"

    @property
    def home(self) -> Path:
        return self.base / "u" / "home"

    @property
    def own(self) -> tuple[str, ...]:
        return (str(self.state), str(self.config))

    def names(self) -> dict[str, str]:
        """What scripts call these places."""
        places = {"S": self.state, "P": self.state.parent, "G": self.base / "g", "C": self.config}
        places |= {"X": self.program, "W": self.workspace, "B": self.base, "H": self.home}
        found = {name: str(path) for name, path in places.items()}
        return {
            **found,
            "N": str(self.neighbour),
            "D": str(self.closed_neighbour),
            "PTY": self.terminal,
            "A": f"sayso-way-{self.base.name}",
            "SECRET": SECRET,
            "K": self.cgroup,
        }

    def spoiled(self) -> str:
        """Say what of Sayso's own is not as it was; nothing where all is."""
        wanted = {
            self.state / "token": SECRET,
            self.state / "sayso.db": SECRET,
            self.config: SECRET,
            self.program / "core.py": "sound",
            self.program / "lib" / "x.py": "sound",
        }
        wrong = [str(path) for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
        places = {self.state: ["sayso.db", "token"], self.program: ["core.py", "lib"]}
        wrong += [str(path) for path, names in places.items() if names_in(path) != names]
        wrong += [str(path) for path in (self.state, self.program) if path.is_symlink()]
        wrong += self._spoiled_home()
        return " ".join(wrong)

    def _spoiled_home(self) -> list[str]:
        found = {str(path.relative_to(self.home)): path for path in self.home.rglob("*")}
        outside = {name: path for name, path in found.items() if not name.startswith(WORK)}
        now = {name: "a link" if path.is_symlink() else _text(path) for name, path in outside.items()}
        return [
            name for name in now.keys() | _HOME_AS_IT_WAS.keys() if now.get(name) != _HOME_AS_IT_WAS.get(name)
        ]


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


_HOME_AS_IT_WAS = {
    **{str(above): "" for name in HOME for above in Path(name).parents if above.name},
    **HOME,
    ".vimrc": "a link",
    ".vim": "a link",
    ".self": "a link",
}


def names_in(directory: Path) -> list[str]:
    return (
        sorted(path.name for path in directory.iterdir() if not path.is_socket())
        if directory.is_dir()
        else []
    )


@contextmanager
def a_world(uid: int, gid: int) -> Iterator[World]:
    """Make a world that belongs to an account, and remove it."""
    with ExitStack() as stack:
        base = stack.enter_context(_directory())
        stack.callback(os.umask, os.umask(0o022))
        for path in ("g/p/state", "opt/program/lib", "w", "sockets", "mixed"):
            (base / path).mkdir(parents=True)
        for path in ("g/p/state/token", "g/p/state/sayso.db", "g/config.yaml"):
            (base / path).write_text(SECRET)
        for path in ("opt/program/core.py", "opt/program/lib/x.py"):
            (base / path).write_text("sound")
        (base / "mixed" / "notes").write_text("x")
        _make_home(base / "u" / "home")
        (base / "w" / "before").symlink_to(base / "g" / "p" / "state")
        for path in (base, *base.rglob("*")):
            os.chown(path, uid, gid, follow_symlinks=False)
        (base / "g" / "p" / "state").chmod(0o700)
        for name in ("g/p/state/s", "sockets/s", "mixed/s"):
            stack.enter_context(_listener(str(base / name), uid, gid))
        stack.enter_context(_listener(f"\0sayso-way-{base.name}", uid, gid))
        open_one, closed = (stack.enter_context(_neighbour(base, uid, gid, dumps)) for dumps in (1, 0))
        cgroup = stack.enter_context(_delegated(base.name, uid, gid))
        yield World(base, open_one, closed, stack.enter_context(_terminal(uid)), cgroup)


def _make_home(home: Path) -> None:
    for name, text in HOME.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for name in WORK:
        (home / name).mkdir()
    (home / ".vimrc").symlink_to("dotfiles/vim/vimrc")
    (home / ".vim").symlink_to("dotfiles/vim")
    (home / ".self").symlink_to("/proc/self")


@contextmanager
def _directory() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="sayso-ways-", dir="/var/tmp"))
    base.chmod(0o755)
    try:
        yield base
    finally:
        mounted = [
            line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {base}" in line
        ]
        if mounted:  # a removal would go through them
            raise RuntimeError(f"still mounted below {base}: {mounted}")
        for path, directories, _ in os.walk(base):
            for name in directories:  # an overlay leaves one that nobody may enter
                if not Path(path, name).is_symlink():
                    Path(path, name).chmod(0o700)
        _remove(base)


def _remove(base: Path) -> None:
    """Remove a tree, into which a run that began meanwhile may put an empty place to mount on."""
    for _ in range(20):
        try:
            return shutil.rmtree(base)
        except OSError:
            time.sleep(0.05)
    return shutil.rmtree(base)


@contextmanager
def _listener(address: str, uid: int, gid: int) -> Iterator[None]:
    """Answer whoever connects, as a program would that starts others on request."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        if not address.startswith("\0"):
            os.chown(address, uid, gid)
        listening.listen()
        child = os.fork()
        if child == 0:
            _answer(listening)
        try:
            yield
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _answer(listening: socket.socket) -> None:
    while True:
        connection, _ = listening.accept()
        with connection:
            try:
                connection.sendall(REACHED)
            except OSError:
                continue


@contextmanager
def _neighbour(base: Path, uid: int, gid: int, dumpable: int) -> Iterator[int]:
    state = base / "g" / "p" / "state"
    command = [_python(), "-I", "-S", "-c", _NEIGHBOUR, str(state), str(dumpable)]
    identity = {"user": uid, "group": gid, "extra_groups": ()} if os.geteuid() == 0 else {}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env={"TOKEN": SECRET}, cwd="/", **pipes, **identity) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        try:
            yield process.pid
        finally:
            process.kill()


def _python() -> str:
    """Give a Python that every account can reach."""
    known = ("/usr/bin/python3", "/usr/local/bin/python3", sys.executable)
    return next(path for path in known if Path(path).exists())


def cgroups() -> Path | None:
    """Tell where control groups can be made; None where none can."""
    rows = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    places = (Path(row[4]) for row in rows if row[row.index("-") + 1] == "cgroup2")
    return next((place for place in places if os.access(place, os.W_OK)), None)


@contextmanager
def _delegated(name: str, uid: int, gid: int) -> Iterator[str]:
    """Make a control group that belongs to an account, as systemd gives each login one."""
    place = cgroups()
    if place is None:
        yield ""
        return
    group = place / name
    group.mkdir()
    try:
        for path in (group, *group.iterdir()):
            os.chown(path, uid, gid)
        yield str(group)
    finally:
        for path in (*(each for each in group.iterdir() if each.is_dir()), group):
            path.rmdir()


@contextmanager
def _terminal(uid: int) -> Iterator[str]:
    """Open a terminal of somebody else's, in which a line waits to be read."""
    ours, theirs = os.openpty()
    try:
        name = os.ttyname(theirs)
        os.chown(name, uid, -1)
        os.write(ours, SECRET.encode() + b"\n")
        yield name
    finally:
        os.close(ours)
        os.close(theirs)
