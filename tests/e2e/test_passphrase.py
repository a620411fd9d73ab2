"""The operator's passphrase: real terminals, a daemon as a process, and processes that are no operator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.home import prepare
from bot.passphrase import PassphraseFile
from tests.e2e.conftest import SAYSO, wait_for
from tests.passphrase_terminal import PASSPHRASE, PROMPT, ShellOnATerminal

pytestmark = pytest.mark.daemon

ROOT = Path(__file__).parents[2]
ASKS = "operator: {{local: passphrase, rememberFor: {}}}\n"
GARBLED = {
    "empty": "",
    "cut-off": "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ\n",
    "other-kind": "$argon2i$v=19$m=65536,t=3,p=4$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaA\n",
    "no-base64": "$argon2id$v=19$m=65536,t=3,p=4$!!!!!!!!!!!!!!!!$!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!\n",
    "binary": "\xff\xfe" * 40,
}
# Unlocks on one connection, and says hello on others until that is over; tells when that was.
UNLOCKS = """
import json, time
from getpass import getpass
from bot.client import Client, home_socket, operator_token

def connection():
    return Client([home_socket()], operator_token(), "operator")

def greeting():
    with connection() as client:
        return client.greeting

given = getpass("secret: ")
with connection() as client:
    until = client.call("operator.unlock", {"passphrase": given})["rememberedUntil"]
first = now = greeting()
while now["passphrase"] == "remembered":
    now = greeting()
print(json.dumps([until, first, time.time() * 1000]))
"""
# Connects at once; its child does what `argv` says and then asks again on that connection.
STAYS = """
import os, signal, sys, time
from pathlib import Path
from bot.client import Client, ClientError, home_socket, operator_token

def told(name, text):
    Path(name + ".new").write_text(text)
    Path(name + ".new").rename(name)

def asked(client):
    try:
        return str(client.call("exec.approval.list"))
    except ClientError as error:
        return str(error)

def wait_for(name):
    while not Path(name).exists():
        time.sleep(0.02)

signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork():
    os._exit(0)
with Client([home_socket()], operator_token(), "operator") as client:
    told("seated", client.greeting["passphrase"])
    wait_for("unlocked")
    told("first", asked(client))
    if sys.argv[1] == "setsid":
        os.setsid()
    wait_for("second-please")
    told("second", asked(client))
"""
RIGHT = (PROMPT, PASSPHRASE)


@pytest.fixture
def locked(make_daemon):
    """A daemon that asks for the passphrase, not started; it is set."""

    def make(remember_for="15m"):
        daemon = make_daemon(ASKS.format(remember_for))
        PassphraseFile(prepare(daemon.home).passphrase).keep(PASSPHRASE)
        return daemon

    return make


@pytest.fixture
def open_terminal():
    opened = []

    def make(daemon, **options):
        env = {**daemon.env, "PATH": f"{SAYSO.parent}:{os.environ['PATH']}"}
        opened.append(ShellOnATerminal(env, daemon.root, **options))
        return opened[-1]

    yield make
    for terminal in opened:
        terminal.close()


def test_the_passphrase_is_asked_for_once_in_a_terminal_and_again_in_another(locked, open_terminal):
    daemon = locked().start()
    one, other = open_terminal(daemon), open_terminal(daemon)
    assert one.run("sayso pending", RIGHT) == (0, f"Sayso's {PROMPT}\nnothing waits\n")
    assert one.run("sayso pending") == (0, "nothing waits\n")
    mark, start = other.start("sayso pending")
    other.see(PROMPT, start)
    other.type(PASSPHRASE)
    assert other.end(mark, start)[0] == 0


def test_what_has_no_terminal_is_no_operator_though_it_holds_the_token(locked, make_daemon):
    guarded, open_one = locked().start(), make_daemon().start()
    for verb in (["pending"], ["approve", "12345678"], ["web", "link"], ["agent", "add", "mine"], ["unlock"]):
        refused = guarded.sayso(*verb, status=77, start_new_session=True)
        assert "no terminal" in refused.stderr
        assert "on the page" in refused.stderr
    open_one.sayso("agent", "add", "mine", start_new_session=True)  # where it is off, the token is enough


def test_a_process_that_left_the_unlocked_terminal_by_setsid_is_refused(locked, make_daemon, open_terminal):
    daemon = locked().start()
    terminal = open_terminal(daemon)
    assert terminal.run("sayso operator unlock", RIGHT)[0] == 0
    assert terminal.run("sayso pending")[0] == 0
    status, shown = terminal.run("setsid --wait sayso pending")
    assert status == 77
    assert "no terminal" in shown
    unguarded = open_terminal(make_daemon().start())
    assert unguarded.run("setsid --wait sayso pending")[0] == 0


@pytest.mark.parametrize("leaves", ["setsid", "shell ends", "stays"])
def test_a_connection_counts_only_while_its_process_is_in_the_unlocked_terminal(
    locked, open_terminal, leaves
):
    daemon = locked().start()
    terminal = open_terminal(daemon)
    (daemon.root / "stays.py").write_text(STAYS)

    def told(name):
        return wait_for(lambda: (daemon.root / name).exists() and (daemon.root / name).read_text())

    assert terminal.run(f"PYTHONPATH={ROOT} {sys.executable} stays.py {leaves!r}")[0] == 0
    assert told("seated") == "needed"
    assert terminal.run("sayso operator unlock", RIGHT)[0] == 0
    (daemon.root / "unlocked").touch()
    assert told("first") == "[]"
    if leaves == "shell ends":
        terminal.type("exit")
        wait_for(lambda: terminal.ended() or None)
    (daemon.root / "second-please").touch()
    assert told("second") == "[]" if leaves == "stays" else "sees no terminal" in told("second")


def test_a_process_with_a_terminal_of_its_own_is_asked_though_another_is_unlocked(locked, open_terminal):
    daemon = locked().start()
    terminal = open_terminal(daemon)
    assert terminal.run("sayso operator unlock", RIGHT)[0] == 0
    status, shown = terminal.run(
        "script -qec 'sayso pending </dev/null' /dev/null", (PROMPT, "a wrong guess")
    )
    assert status == 77
    assert "not the operator's passphrase" in shown


def test_it_is_remembered_for_connections_of_the_terminal_until_the_time_has_passed(locked, open_terminal):
    daemon = locked("3s").start()
    terminal = open_terminal(daemon)
    (daemon.root / "unlocks.py").write_text(UNLOCKS)
    before = time.time() * 1000
    status, shown = terminal.run(f"{sys.executable} unlocks.py", ("secret: ", PASSPHRASE))
    assert status == 0, shown
    until, first, ended = json.loads(shown.splitlines()[-1])
    assert before + 3_000 <= until
    assert first == {"role": "operator", "passphrase": "remembered", "rememberedUntil": until}
    assert ended >= until
    assert terminal.run("sayso pending", RIGHT)[0] == 0


def test_zero_asks_each_time(locked, open_terminal):
    daemon = locked("0").start()
    terminal = open_terminal(daemon)
    assert terminal.run("sayso pending", RIGHT)[0] == 0
    assert terminal.run("sayso pending", RIGHT)[0] == 0
    assert "asked for each time" in terminal.run("sayso operator unlock", RIGHT)[1]


def test_a_daemon_that_was_killed_knows_no_terminal(locked, open_terminal):
    daemon = locked().start()
    terminal = open_terminal(daemon)
    assert terminal.run("sayso pending", RIGHT)[0] == 0
    daemon.kill()
    daemon.start()
    assert terminal.run("sayso pending", RIGHT)[0] == 0


def test_forget_and_the_kill_switch_forget_every_terminal(locked, open_terminal):
    daemon = locked().start()
    terminal = open_terminal(daemon)
    assert terminal.run("sayso pending", RIGHT)[0] == 0
    assert "1 terminal is forgotten" in daemon.sayso("operator", "forget", start_new_session=True).stdout
    assert terminal.run("sayso lock", RIGHT)[0] == 0
    assert terminal.run("sayso unlock", RIGHT)[0] == 0


def test_a_wrong_passphrase_does_nothing_and_makes_the_next_wait(locked, open_terminal):
    daemon = locked().start()
    terminal = open_terminal(daemon)
    status, shown = terminal.run("sayso agent add sly", (PROMPT, "some other words"))
    assert status == 77
    assert "not the operator's passphrase; the next try counts in 1 s" in shown
    for guess in range(3):  # some come while the delay runs: none of them is looked at
        terminal.run("sayso pending", (PROMPT, f"guess number {guess}"))

    def admitted():
        return terminal.run("sayso agent list", RIGHT)[0] == 0 or None

    wait_for(admitted, 60)
    assert "sly" not in terminal.run("sayso agent list")[1]
    assert "operator.passphrase-wrong" in terminal.run("sayso audit tail")[1]


def test_status_tells_without_it_that_the_daemon_lives_and_no_more(locked, open_terminal):
    daemon = locked().start()
    told = json.loads(daemon.sayso("status", "--json", start_new_session=True).stdout)
    assert told.keys() == {"version", "uptimeSeconds", "passphrase"}
    assert told["passphrase"] == "no-terminal"
    terminal = open_terminal(daemon)
    assert json.loads(terminal.run("sayso status --json")[1])["passphrase"] == "needed"
    plain = terminal.run("sayso status")[1]
    assert "after: sayso operator unlock" in plain
    assert "runs on the host" not in plain
    terminal.run("sayso operator unlock", RIGHT)
    assert "runs on the host are" in terminal.run("sayso status")[1]
    assert "waiting" in json.loads(terminal.run("sayso status --json")[1])


def test_it_is_set_while_stopped_changed_while_running_and_stands_nowhere(make_daemon, open_terminal):
    daemon = make_daemon(ASKS.format("15m"))
    refused = subprocess.run(
        [SAYSO, "up", "--config", daemon.config, "--port", "0"],
        env=daemon.env,
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 78
    assert "sayso operator passphrase" in refused.stderr
    terminal = open_terminal(daemon, echo=True)
    new, again = ("New passphrase", PASSPHRASE), ("The same again", PASSPHRASE)
    assert terminal.run("sayso operator passphrase", new, again)[0] == 0
    assert (daemon.home / "operator.passphrase").stat().st_mode & 0o777 == 0o600
    daemon.start()
    assert terminal.run("sayso pending", RIGHT)[0] == 0
    other = "another long sentence"
    old, new, again = ("until now", PASSPHRASE), ("New passphrase", other), ("The same again", other)
    status, shown = terminal.run("sayso operator passphrase", ("until now", "wrong guess"))
    assert (status, "New passphrase" in shown) == (77, False)
    wait_for(lambda: terminal.run("sayso operator unlock", (PROMPT, PASSPHRASE))[0] == 0 or None)
    assert terminal.run("sayso operator passphrase", old, new, again)[0] == 0
    assert terminal.run("sayso pending", (PROMPT, other))[0] == 0  # forgotten by the change
    assert "operator.passphrase-set" in terminal.run("sayso audit tail")[1]
    assert daemon.stop() == 0
    assert "sayso audit tail; echo" in terminal.text  # what is typed is shown, but for the passphrase
    written = [path for path in daemon.root.rglob("*") if path.is_file()]
    assert daemon.log in written
    for secret in (PASSPHRASE, other, "wrong guess"):
        assert secret not in terminal.text
        assert not [path for path in written if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("running", [False, True])
def test_where_none_is_asked_for_the_old_one_is_still_looked_at_first(make_daemon, open_terminal, running):
    daemon = make_daemon("operator: {local: token}\n")
    terminal = open_terminal(daemon)
    new, again = ("New passphrase", PASSPHRASE), ("The same again", PASSPHRASE)
    assert terminal.run("sayso operator passphrase", new, again)[0] == 0
    if running:
        daemon.start()
        said = daemon.sayso("operator", "forget").stdout
        assert said == "operator.local is token, so no passphrase is asked for.\n"
    status, shown = terminal.run("sayso operator passphrase", ("until now", "wrong guess"))
    assert (status, "New passphrase" in shown) == (77, False)
    assert terminal.run("sayso operator passphrase", ("until now", PASSPHRASE), new, again)[0] == 0


@pytest.mark.parametrize(
    ("typed", "why"),
    [(("short",), "needs at least 8 characters"), (("long enough", "long enouhg"), "the two differ")],
)
def test_what_is_too_short_or_mistyped_is_not_set(make_daemon, open_terminal, typed, why):
    daemon = make_daemon(ASKS.format("15m"))
    terminal = open_terminal(daemon)
    prompts = ("New passphrase", "The same again")
    status, shown = terminal.run("sayso operator passphrase", *zip(prompts, typed, strict=False))
    assert status == 64
    assert why in shown
    assert not (daemon.home / "operator.passphrase").exists()


def test_a_passphrase_is_never_read_from_a_pipe_or_the_arguments(locked):
    daemon = locked().start()
    for verb in ("unlock", "passphrase"):
        piped = subprocess.run(
            [SAYSO, "operator", verb],
            env={**daemon.env, "SAYSO_PASSPHRASE": PASSPHRASE},
            input=f"{PASSPHRASE}\n" * 3,
            capture_output=True,
            text=True,
            start_new_session=True,
        )
        assert piped.returncode == 64
        assert "typed on a terminal" in piped.stderr
    assert daemon.sayso("operator", "unlock", PASSPHRASE, status=64, start_new_session=True)


def test_a_shorter_time_counts_at_once_after_a_reload(locked, open_terminal):
    daemon = locked().start()
    terminal = open_terminal(daemon)
    assert terminal.run("sayso operator unlock", RIGHT)[0] == 0
    daemon.config.write_text(daemon.config.read_text().replace("15m", "0"))
    assert "operator.rememberFor" in terminal.run("sayso reload")[1]
    assert terminal.run("sayso pending", RIGHT)[0] == 0


@pytest.mark.parametrize("damage", ["missing", "open", "no-file", "linked", *sorted(GARBLED)])
def test_a_hash_that_cannot_be_relied_on_ends_the_start_with_its_mend(locked, damage):
    daemon = locked()
    file = daemon.home / "operator.passphrase"
    if damage == "open":
        file.chmod(0o644)
    elif damage == "linked":
        file.rename(daemon.home / "elsewhere")
        file.symlink_to(daemon.home / "elsewhere")
    else:
        file.unlink()
    if damage in GARBLED:
        file.write_text(GARBLED[damage])
        file.chmod(0o600)
    if damage == "no-file":
        file.mkdir(mode=0o700)
    up = [SAYSO, "up", "--config", daemon.config, "--port", "0"]
    refused = subprocess.run(up, env=daemon.env, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 78
    mend = "chmod 600" if damage == "open" else "sayso operator passphrase"
    assert mend in refused.stderr
    assert not (daemon.home / "sayso.sock").exists()
