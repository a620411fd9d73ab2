"""A file of the configuration is replaced while a run on the host goes on that may write the new one."""

from __future__ import annotations

import os
import pwd
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import wait_for
from tests.e2e.daemon_of_user import DaemonOfUser, nobody
from tests.users import needs_users

pytestmark = [pytest.mark.daemon, needs_users]

ON_HOST = "tools: {{exec: {{security: full, ask: 'off', host: gateway, deny: [{denied}]}}}}\n"
# Waits until it sees the file that was replaced, and puts its own words there.
WRITES = "until grep -qs theirs {file}; do sleep 0.05; done; echo '{words}' >{file}; {then}"


class Desk:
    """A daemon, a configuration in a directory of root's, and runs of `nobody` on the host."""

    def __init__(self, daemon, *, owner: str) -> None:
        self.daemon = daemon
        self.account = pwd.getpwnam(owner)
        daemon.config = daemon.root / "conf" / "overlay.yaml"
        daemon.config.parent.mkdir()
        self.replace("none")
        daemon.start()

    @property
    def file(self) -> Path:
        return self.daemon.config

    def replace(self, denied: str) -> None:
        """Save the file as an editor does: a new one, renamed."""
        new = self.file.with_name("overlay.yaml~")
        head = f"sandboxing: {{workspaceRoot: {self.daemon.root}/workspaces}}\n"
        new.write_text(head + ON_HOST.format(denied=denied))
        os.chown(new, self.account.pw_uid, self.account.pw_gid)
        new.rename(self.file)

    def run(self, script: str):
        """Run a script on the host; its words do not name the file, which would be denied for that."""
        file, begun = self.daemon.root / "work.sh", self.daemon.root / "marks" / "begun"
        begun.parent.mkdir(exist_ok=True)
        begun.parent.chmod(0o777)
        begun.unlink(missing_ok=True)
        file.write_text(f"touch {begun}; {script}")
        asked = self.daemon.ask("--", "sh", str(file))
        # Not only started: what its namespace is without has been looked up by then.
        wait_for(lambda: begun.exists() or None)
        return asked

    def running(self) -> str:
        (row,) = [row for row in self.daemon.json("history") if row["state"] == "running"]
        return row["id"]

    def refusal(self) -> str:
        told = self.daemon.json("reload", status=78)
        assert not told["ok"]
        assert told["atOnce"] == []
        (problem,) = told["problems"]
        return problem

    def denies(self, program: str) -> bool:
        return self.daemon.sayso("exec", "--", program, status=None).returncode == 77

    def writing(self, then: str) -> str:
        words = ON_HOST.format(denied="date")
        return WRITES.format(file=self.file, words=words.replace("'", '"').strip(), then=then)


@pytest.fixture
def open_desk(reachable_tmp):
    """A daemon of `nobody`, whose own the file is; root's would not take one."""
    daemon = DaemonOfUser(reachable_tmp, nobody())
    yield Desk(daemon, owner="nobody")
    daemon.end()


@pytest.fixture
def closed_desk(make_daemon):
    return Desk(make_daemon(), owner="root")


def test_what_a_run_wrote_into_a_file_that_was_replaced_is_not_taken_while_it_goes_on(open_desk, finish):
    asked = open_desk.run(open_desk.writing("sleep 600"))
    open_desk.replace("theirs")
    wait_for(lambda: "date" in open_desk.file.read_text() or None)
    for _ in range(2):  # however often: the run can write until it ends
        said = open_desk.refusal()
        assert f"{open_desk.file}: was changed while a run on the host went on" in said
        assert f"End it (sayso cancel {open_desk.running()[:8]})" in said
        assert "as nobody" in said
    assert not open_desk.denies("date")
    open_desk.replace("date")  # the operator looks, and saves once more
    assert "was changed" in open_desk.refusal()
    open_desk.daemon.sayso("cancel", open_desk.running()[:8])
    assert finish(asked)[0] == 74
    assert open_desk.daemon.json("reload")["ok"]
    assert open_desk.denies("date")


def test_what_a_run_wrote_that_has_ended_is_told_of_once(open_desk, finish):
    asked = open_desk.run(open_desk.writing("true"))
    open_desk.replace("theirs")
    assert finish(asked)[0] == 0
    assert "date" in open_desk.file.read_text()
    open_desk.daemon.process.send_signal(signal.SIGHUP)  # nobody sees this answer, so that it is not the one
    wait_for(lambda: "reload refused" in open_desk.daemon.log.read_text() or None)
    assert "It has ended: look at the file" in open_desk.refusal()
    assert not open_desk.denies("date")
    assert open_desk.daemon.json("reload")["ok"]
    assert open_desk.denies("date")


def test_what_was_saved_before_the_run_began_or_reads_the_same_is_taken(open_desk, finish):
    open_desk.replace("date")
    asked = open_desk.run("sleep 600")
    assert open_desk.daemon.json("reload")["ok"]
    assert open_desk.denies("date")
    open_desk.replace("date")
    assert open_desk.daemon.json("reload")["ok"]
    open_desk.replace("none")
    assert "work.sh) as nobody" in open_desk.refusal()
    open_desk.daemon.sayso("cancel", open_desk.running()[:8])
    finish(asked)


def test_a_file_that_the_run_s_account_cannot_write_is_taken_while_it_goes_on(closed_desk, finish):
    asked = closed_desk.run(closed_desk.writing("sleep 600"))
    closed_desk.replace("theirs,date")
    assert closed_desk.daemon.json("reload")["ok"]
    assert closed_desk.denies("date")
    closed_desk.daemon.sayso("cancel", closed_desk.running()[:8])
    finish(asked)
