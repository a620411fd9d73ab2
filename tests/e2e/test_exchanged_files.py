"""The files of the program are exchanged under a running daemon: nothing of the new ones runs or is shown."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e.conftest import wait_for

pytestmark = pytest.mark.daemon

ROOT = Path(__file__).parents[2]
# Also the libraries that load parts of themselves late.
LIBRARIES = ("bashlex", "jinja2", "aiohttp", "httpx", "httpcore", "anyio", "telegram", "pydantic", "yaml")
UP = "import sys; from bot.cli import main; sys.exit(main())"
NEEDS_GRAMMAR = "echo $X | wc -l"
PARSED = "is not literal"
TARGET = """
approvals: {exec: {targets: [{channel: telegram, to: 'user:5'}]}}
"""


class Copy:
    """A private copy of the program, and the daemon that runs from it."""

    def __init__(self, root: Path, daemon) -> None:
        self.root = root
        self.marks = root / "marks"
        self.daemon = daemon
        for name in ("core", "adapters", "bot"):
            self._add(ROOT / name)
        for name in LIBRARIES:
            self._add(Path(find_spec(name).origin).parent)

    def _add(self, folder: Path) -> None:
        shutil.copytree(folder, self.root / folder.name)

    def start(self) -> str:
        """Start the daemon, and give what it says first."""
        daemon = self.daemon
        with daemon.log.open("a") as log:
            daemon.process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-c", UP, "up", "--port", "0"),
                    *("--config", daemon.example, "--config", daemon.config),
                ],
                env={**daemon.env, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=daemon.root,
            )
        daemon.ready = daemon.process.stdout.readline()
        return daemon.ready

    def exchange(self) -> None:
        """Put a program that leaves a mark into the place of every file."""
        for file in self.root.rglob("*.py"):
            mark = f"with open({str(self.marks)!r}, 'a') as marks: print({str(file)!r}, file=marks)\n"
            file.write_text(mark + "raise SystemExit('exchanged')\n")
        for file in (*self.root.rglob("*.html"), *self.root.rglob("*.sql"), *self.root.rglob("static/*")):
            file.write_text("EXCHANGED")

    def marked(self) -> str:
        return self.marks.read_text() if self.marks.exists() else ""


@pytest.fixture
def copy(reachable_tmp, make_daemon):
    root = reachable_tmp / "program"
    root.mkdir()
    copied = Copy(root, make_daemon())
    assert copied.start().startswith("ready "), copied.daemon.log.read_text()
    return copied


def children_of(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def workers_of(daemon) -> list[int]:
    return children_of(server_of(daemon))


def servers_of(daemon) -> list[int]:
    """Its fork server; its guardian and what runs are children of it too."""
    children = children_of(daemon.process.pid)
    return [pid for pid in children if b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def server_of(daemon) -> int:
    (server,) = servers_of(daemon)
    return server


def read(opener, url: str, **form: str) -> str:
    data = urllib.parse.urlencode(form).encode() if form else None
    origin = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url))
    request = urllib.request.Request(url, data, {"Origin": origin})  # noqa: S310 - the page's own address
    with opener.open(request) as response:
        return response.read().decode()


def pages_of(daemon) -> str:
    """Sign in, and read every page."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    link = daemon.json("web", "link")["url"]
    first = read(opener, link)
    home = read(opener, daemon.page + "login", code=link.rsplit("/", 1)[1])
    others = (read(opener, daemon.page + path) for path in ("permissions", "sessions", "static/sayso.css"))
    return "\n".join((first, home, *others))


def exercise(daemon, finish) -> None:
    """Use all that a daemon may put off until it is used."""
    assert daemon.json("status")["version"] != "unknown"
    assert finish(daemon.ask("--", "git", "--version"))[0] == 0
    asking = daemon.ask("--", "date")
    (waiting,) = daemon.pending()
    pages = pages_of(daemon)
    assert "EXCHANGED" not in pages
    assert "date" in pages
    daemon.sayso("approve", waiting["id"])
    assert finish(asking)[0] == 0
    daemon.sayso("exec", "-c", "echo $(id)", status=77)
    daemon.config.write_text(daemon.config.read_text() + TARGET)
    assert daemon.json("reload")["ok"]
    daemon.config.write_text(daemon.config.read_text().replace("user:5", "@name"))
    assert "is a name" in daemon.sayso("reload", status=None).stderr
    daemon.json("status")
    daemon.json("tools")


def reason(daemon, line: str = NEEDS_GRAMMAR) -> str:
    return daemon.json("explain", "-c", line, status=None)["reason"]


def is_parsed(daemon) -> bool:
    return PARSED in reason(daemon)


def test_nothing_of_exchanged_files_runs_in_a_daemon_that_is_up(copy, finish):
    daemon = copy.daemon
    assert is_parsed(daemon)
    copy.exchange()
    exercise(daemon, finish)
    for number in (signal.SIGKILL, signal.SIGSTOP):
        before = set(workers_of(daemon))
        for pid in before:
            os.kill(pid, number)
        wait_for(lambda before=before: is_parsed(daemon) and not before & set(workers_of(daemon)))
    assert len(workers_of(daemon)) == 2
    assert copy.marked() == ""
    assert daemon.stop() == 0
    assert copy.marked() == ""


def guardians_of(daemon) -> list[int]:
    children = children_of(daemon.process.pid)
    return [pid for pid in children if b"sweeper" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_guardian_that_was_killed_comes_again_as_it_was_loaded(copy, finish):
    daemon = copy.daemon
    copy.exchange()
    (before,) = guardians_of(daemon)
    os.kill(before, signal.SIGKILL)
    assert finish(daemon.ask("--", "git", "--version"))[0] == 0
    wait_for(lambda: guardians_of(daemon) not in ([], [before]))
    assert copy.marked() == ""
    assert daemon.stop() == 0
    assert daemon.log.read_text().count("has ended (status -9)") == 1


def test_without_their_fork_server_nothing_but_plain_lines_is_judged(copy):
    daemon = copy.daemon
    copy.exchange()
    os.kill(server_of(daemon), signal.SIGKILL)
    wait_for(lambda: "restart Sayso" in reason(daemon))
    assert "restart Sayso" in reason(daemon)
    daemon.sayso("exec", "-c", NEEDS_GRAMMAR, status=77)
    daemon.sayso("exec", "-c", "git --version")
    assert servers_of(daemon) == []
    assert copy.marked() == ""
    assert daemon.log.read_text().count("restart Sayso") == 1


def test_a_daemon_that_is_started_after_the_exchange_runs_the_new_files(copy):
    """The positive control: the exchange has an effect where files are read."""
    assert copy.daemon.stop() == 0
    copy.exchange()
    assert copy.start() == ""
    assert copy.daemon.process.wait(20) != 0
    assert "bot/__init__.py" in copy.marked()
