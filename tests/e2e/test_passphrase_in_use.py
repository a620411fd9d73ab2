"""The passphrase where other parts meet it: events, the question at a prompt, the doctor, the page."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from bot.home import prepare
from bot.passphrase import PassphraseFile
from tests.e2e.conftest import SAYSO, wait_for
from tests.passphrase_terminal import PASSPHRASE, PROMPT, ShellOnATerminal

pytestmark = pytest.mark.daemon

ROOT = Path(__file__).parents[2]
RIGHT = (PROMPT, PASSPHRASE)
# Subscribes, tells that it did, and writes down each event until the daemon hangs up.
LISTENS = """
import sys
from bot.client import Client, ClientError, home_socket, operator_token
with Client([home_socket()], operator_token(), "operator") as client:
    client.call("events.subscribe")
    print("subscribed", flush=True)
    try:
        while True:
            print(client._receive(), flush=True)
    except ClientError as error:
        print("over:", error, flush=True)
"""
# What the prompt leaves behind: whether others may read this process, and the length of what was typed.
ASKS = "from bot.cli.secret_prompt import secret; import ctypes; print(len(secret('your secret: ', None)), \
ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"


@pytest.fixture
def daemon(make_daemon):
    daemon = make_daemon("operator: {local: passphrase}\n")
    PassphraseFile(prepare(daemon.home).passphrase).keep(PASSPHRASE)
    return daemon.start()


@pytest.fixture
def terminal(daemon):
    env = {**daemon.env, "PATH": f"{SAYSO.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    terminal = ShellOnATerminal(env, daemon.root)
    yield terminal
    terminal.close()


def test_events_end_where_the_terminal_is_forgotten(daemon, terminal, finish):
    assert terminal.run("sayso operator unlock", RIGHT)[0] == 0
    (daemon.root / "listens.py").write_text(LISTENS)
    mark, start = terminal.start(f"{sys.executable} listens.py")
    terminal.see("subscribed", start)
    first = daemon.ask("--no-wait", "--", "touch", "seen")
    finish(first)
    terminal.see("touch seen", start)
    daemon.sayso("operator", "forget", start_new_session=True)
    finish(daemon.ask("--no-wait", "--", "touch", "unseen"))
    shown = terminal.see("over:", start)
    assert "unseen" not in shown
    assert terminal.end(mark, start)[0] == 0


def test_the_prompt_is_answered_by_the_terminal_alone_though_input_and_output_go_elsewhere(terminal, daemon):
    status, _ = terminal.run("echo not this | sayso pending --json > listed", RIGHT)
    assert status == 0
    assert json.loads((daemon.root / "listed").read_text()) == []


def test_nothing_typed_is_no_guess(terminal):
    status, shown = terminal.run("sayso pending", (PROMPT, ""))
    assert status == 77
    assert "no passphrase was given" in shown
    assert terminal.run("sayso pending", RIGHT)[0] == 0


def test_a_process_that_was_given_a_secret_can_be_read_by_no_other_of_its_user(terminal):
    status, shown = terminal.run(f'{sys.executable} -c "{ASKS}"', ("your secret: ", PASSPHRASE))
    assert status == 0
    assert shown.split()[-2:] == [str(len(PASSPHRASE)), "0"]


def test_a_question_is_answered_and_a_login_made_from_an_unlocked_terminal(daemon, terminal, finish):
    asking = daemon.ask("--", "touch", "made")
    waiting = wait_for(lambda: json.loads(terminal.run("sayso pending --json", RIGHT)[1].splitlines()[-1]))
    assert daemon.sayso("approve", waiting[0]["id"], status=77, start_new_session=True)
    assert terminal.run(f"sayso approve {waiting[0]['id']}")[0] == 0
    assert finish(asking)[0] == 0
    assert daemon.sayso("web", "link", status=77, start_new_session=True)
    assert "/login/" in terminal.run("sayso web link")[1]


def test_the_doctor_says_what_it_cannot_see_without_it(daemon, terminal):
    checks = json.loads(daemon.sayso("doctor", "--json", status=None, start_new_session=True).stdout)
    (channels,) = [check for check in checks if check["name"] == "channels"]
    assert "sayso operator unlock" in channels["mend"]
    assert terminal.run("sayso operator unlock", RIGHT)[0] == 0
    assert '"channel web"' in terminal.run("sayso doctor --json")[1]
