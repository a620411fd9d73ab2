"""The terminal decides: a daemon whose standard input and output are a terminal, typed at by a person."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.daemon

SAYSO = Path(sys.executable).parent / "sayso"
EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
ID = re.compile(r"asks to run · ([0-9a-f]{8})")


class Terminal:
    """The screen and the keyboard of a daemon: all it printed, and a way to type."""

    def __init__(self, daemon, wait_for):
        self.daemon = daemon
        self._wait_for = wait_for
        self._fd, inner = pty.openpty()
        termios.tcsetwinsize(inner, (40, 100))
        self._screen = bytearray()
        with daemon.log.open("a") as log:
            daemon.process = subprocess.Popen(
                [SAYSO, "up", "--config", EXAMPLE, "--config", daemon.config, "--port", "0"],
                env=daemon.env,
                stdin=inner,
                stdout=inner,
                stderr=log,
                cwd=daemon.root,
                start_new_session=True,
            )
        os.close(inner)
        self._reader = threading.Thread(target=self._read, name="screen")
        self._reader.start()

    def _read(self):
        # EIO is how a terminal ends whose last program has gone.
        while True:
            try:
                data = os.read(self._fd, 4096)
            except OSError:
                return
            self._screen += data

    @property
    def text(self):
        return self._screen.decode(errors="replace").replace("\r\n", "\n")

    def see(self, *parts, seconds=15.0):
        """Wait until every part stands on the screen, and return all of it."""
        try:
            return self._wait_for(lambda: all(part in self.text for part in parts) and self.text, seconds)
        except AssertionError:
            raise AssertionError(f"{parts} not all on the screen:\n{self.text}") from None

    def card(self, command):
        """Wait for the card of a command, and until an answer to it counts; returns its short id."""
        screen = self.see(command, "╰─")
        threading.Event().wait(0.7)
        return ID.findall(screen)[-1]

    def type(self, line):
        os.write(self._fd, f"{line}\n".encode())

    def close(self):
        if self.daemon.process is not None:
            self.daemon.process.terminate()
            self.daemon.process.wait(25)
            self.daemon.process = None
        self._reader.join(10)
        os.close(self._fd)


@pytest.fixture
def terminal(make_daemon, wait_for):
    terminal = Terminal(make_daemon(), wait_for)
    terminal.see("ready socket=", "page=http://127.0.0.1:")
    yield terminal
    terminal.close()


def test_a_card_is_printed_and_a_runs_the_command(terminal, finish):
    asking = terminal.daemon.ask("--", "touch", "typed-a")
    short = terminal.card("/usr/bin/touch typed-a")
    (request,) = terminal.daemon.pending()
    assert request["id"].startswith(short)
    screen = terminal.see("exec.allowlist-miss", "config.example.yaml:", "left", "exactly `touch typed-a` in")
    assert "main asks to run" in screen
    terminal.type("a")
    assert finish(asking)[0] == 0
    terminal.see("Allowed once by", f"{short} finished with status 0")


def test_d_and_words_deny_with_these_words_as_the_reason(terminal, finish):
    asking = terminal.daemon.ask("--", "touch", "typed-d")
    terminal.card("/usr/bin/touch typed-d")
    terminal.type("d because it is late")
    status, _, err = finish(asking)
    assert status == 77
    assert "because it is late" in err
    terminal.see("Denied by", ": because it is late")


def test_big_a_is_always_and_the_next_call_runs_at_once(terminal, finish):
    asking = terminal.daemon.ask("--", "rg", "--version")
    terminal.card("/usr/bin/rg --version")
    terminal.type("A")
    assert finish(asking)[0] == 0
    terminal.see("Allowed always by")
    again = terminal.daemon.json("exec", "--", "rg", "--version")
    assert again["approval"]["decision"] == "allowed-by-policy"


def test_f_and_a_time_lets_the_same_run_again_until_it_is_revoked(terminal, finish):
    asking = terminal.daemon.ask("--", "touch", "typed-f")
    short = terminal.card("/usr/bin/touch typed-f")
    terminal.type("f 30x")
    terminal.see("not “30x”", "Nothing was decided")
    terminal.type("f 30m")
    assert finish(asking)[0] == 0
    terminal.see("Allowed for a time by")
    again = terminal.daemon.json("exec", "--", "touch", "typed-f")
    assert again["approval"]["decision"] == "allowed-by-permission"
    terminal.daemon.sayso("permissions", "revoke", short)
    asking = terminal.daemon.ask("--", "touch", "typed-f")
    (request,) = terminal.daemon.pending()
    terminal.daemon.sayso("deny", request["id"])
    assert finish(asking)[0] == 77


def test_big_d_denies_always_with_its_reason(terminal, finish):
    asking = terminal.daemon.ask("--", "touch", "typed-D")
    terminal.card("/usr/bin/touch typed-D")
    terminal.type("D not on this machine")
    assert finish(asking)[0] == 77
    terminal.see("Denied always by", ": not on this machine")
    again = terminal.daemon.sayso("exec", "--", "touch", "typed-D", status=77)
    assert "denied exactly this always" in again.stderr
    assert "not on this machine" in again.stderr


def test_what_was_decided_elsewhere_is_told_and_a_late_answer_finds_nothing(terminal, finish):
    asking = terminal.daemon.ask("--", "touch", "elsewhere")
    short = terminal.card("/usr/bin/touch elsewhere")
    terminal.daemon.sayso("deny", short, "--reason", "not today")
    assert finish(asking)[0] == 77
    terminal.see(f"· {short} Denied by", "not today")
    terminal.type("a")
    terminal.see("Nothing waits")
    (past,) = terminal.daemon.json("history")
    assert past["state"] == "denied"


def test_the_second_question_waits_behind_the_first_and_an_id_picks_it(terminal, finish):
    first = terminal.daemon.ask("--", "touch", "number-one")
    terminal.card("/usr/bin/touch number-one")
    second = terminal.daemon.ask("--", "touch", "number-two")
    waiting = terminal.daemon.pending(2)
    other = next(r["id"][:8] for r in waiting if r["command"].endswith("number-two"))
    terminal.see(f"{other} waits too, 2 in all")
    # It was not shown yet, so a yes does not count before it was.
    terminal.type(f"a {other}")
    terminal.see("Read it, then answer again")
    terminal.card("/usr/bin/touch number-two")
    terminal.type(f"a {other}")
    assert finish(second)[0] == 0
    assert [r["command"] for r in terminal.daemon.pending(1)] == ["/usr/bin/touch number-one"]
    terminal.type("d")
    assert finish(first)[0] == 77


def test_what_is_no_answer_decides_nothing(terminal, finish):
    asking = terminal.daemon.ask("--", "touch", "no-answer")
    terminal.card("/usr/bin/touch no-answer")
    for line in ("yes", "y", "allow it", "a 00000000", "a because"):
        terminal.type(line)
    terminal.see("“yes” is no answer here", "begins with because")
    (request,) = terminal.daemon.pending()
    terminal.daemon.sayso("deny", request["id"])
    assert finish(asking)[0] == 77


@pytest.fixture
def elevating(make_daemon, wait_for):
    """A terminal whose user may elevate."""
    config = f"tools: {{elevated: {{enabled: true, allowFrom: ['terminal:{os.getuid()}']}}}}\n"
    terminal = Terminal(make_daemon(config), wait_for)
    terminal.see("ready socket=", "page=http://127.0.0.1:")
    yield terminal
    terminal.close()


def test_a_session_is_elevated_and_its_card_says_so_below_the_host(elevating, finish):
    elevating.type("/elevated on")
    elevating.see("No session belongs to this chat")
    elevating.type("/elevated on for 30m agent:main:main")
    elevating.see("agent:main:main: elevated on until", "its commands run on the host")
    asking = elevating.daemon.ask("--", "touch", "on-the-host")
    elevating.card("/usr/bin/touch on-the-host")
    elevating.see(" HOST ", " ELEVATED  it runs on the host: elevated on (set by")
    elevating.type("/pending")
    short = ID.findall(elevating.text)[-1]
    elevating.see(f"{short}  /usr/bin/touch on-the-host")
    elevating.type(f"/deny {short} not there")
    assert finish(asking)[0] == 77
    elevating.see(": not there")
    elevating.type("/sayso bind agent:main:main")
    elevating.see("This chat means agent:main:main")
    elevating.type("/elev off")
    elevating.see("agent:main:main: elevated off")


def test_an_answer_may_be_a_command_with_the_id(elevating, finish):
    asking = elevating.daemon.ask("--", "touch", "by-command")
    short = elevating.card("/usr/bin/touch by-command")
    elevating.type("/approve 00000000")
    elevating.see("There is no request with this id")
    elevating.type(f"/approve {short}")
    assert finish(asking)[0] == 0
    elevating.see("Allowed once by")


def test_who_is_not_in_allow_from_elevates_nothing_and_locks_nothing(terminal):
    terminal.type("/elevated full agent:main:main")
    terminal.see("not among the people who may elevate")
    terminal.type("/sayso lock")
    terminal.see("not among the people who may decide")
    assert terminal.daemon.json("status")["locked"] is False


def test_who_is_in_allow_from_locks_everything(elevating):
    elevating.type("/sayso status")
    elevating.see("0 waiting, 0 running, not locked")
    elevating.type("/sayso lock")
    elevating.see("ocked")
    assert elevating.daemon.json("status")["locked"] is True
