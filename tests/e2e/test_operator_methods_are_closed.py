"""Every method of the operator on a living socket: without the passphrase, without a terminal, with `off`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.ingress.operator_methods import OPERATOR_METHODS, WITHOUT_PASSPHRASE
from bot.home import prepare
from bot.passphrase import PassphraseFile
from tests.passphrase_terminal import PASSPHRASE, ShellOnATerminal

pytestmark = pytest.mark.daemon

ROOT = Path(__file__).parents[2]
NOT_PERMITTED, NEEDED, INVALID = -32002, -32008, -32602

# Calls every method without parameters, then gives what is piped in as the passphrase, and calls them again.
CALLS = """
import json, sys
from bot.client import Client, Refused, home_socket
with open(sys.argv[1]) as file:
    token, methods, passphrase = json.load(file)
def code(client, method, params={}):
    try:
        client.call(method, params)
    except Refused as refused:
        return [refused.code, refused.message]
    return [0, ""]
with Client([home_socket()], token, "operator") as client:
    told = {"before": {method: code(client, method) for method in methods}}
    if passphrase:
        told["unlock"] = code(client, "operator.unlock", {"passphrase": passphrase})
        told["after"] = {method: code(client, method) for method in methods}
with open(sys.argv[2], "w") as file:
    json.dump(told, file)
"""


@pytest.fixture
def guarded(make_daemon):
    daemon = make_daemon("operator: {local: passphrase}\n")
    PassphraseFile(prepare(daemon.home).passphrase).keep(PASSPHRASE)
    return daemon.start()


@pytest.fixture
def called(tmp_path):
    """Call all methods that need the passphrase, on a terminal or without one; returns what came of it."""

    def call(daemon, passphrase=PASSPHRASE, *, terminal=True):
        asked, told = tmp_path / "asked.json", tmp_path / "told.json"
        token = (daemon.home / "operator.token").read_text().strip()
        closed = sorted(OPERATOR_METHODS.keys() - WITHOUT_PASSPHRASE - {"config.reload"})
        asked.write_text(json.dumps([token, closed, passphrase]))
        (tmp_path / "calls.py").write_text(CALLS)
        words = [sys.executable, str(tmp_path / "calls.py"), str(asked), str(told)]
        if terminal:
            shell = ShellOnATerminal(daemon.env, ROOT)
            try:
                status, shown = shell.run(" ".join(words))
            finally:
                shell.close()
            assert status == 0, shown
        else:
            subprocess.run(words, env=daemon.env, start_new_session=True, check=True, timeout=60)
        return json.loads(told.read_text())

    return call


def codes(told):
    return {code for code, _ in told.values()}


def test_each_needs_the_passphrase_on_a_terminal_and_is_open_after_it(guarded, called):
    told = called(guarded)
    assert len(told["before"]) > 40
    assert codes(told["before"]) == {NEEDED}
    assert told["unlock"] == [0, ""]
    assert not codes(told["after"]) & {NEEDED, NOT_PERMITTED}


def test_none_is_open_without_a_terminal_whatever_is_given(guarded, called):
    told = called(guarded, terminal=False)
    assert codes(told["before"]) == codes(told["after"]) == {NOT_PERMITTED}
    code, why = told["unlock"]
    assert (code, "no terminal" in why) == (NOT_PERMITTED, True)


def test_where_the_token_is_enough_each_is_open_without_a_terminal(daemon, called):
    """The same calls as above, which shows that it is the passphrase that closes them."""
    told = called(daemon, None, terminal=False)
    assert not codes(told["before"]) & {NEEDED, NOT_PERMITTED}


@pytest.mark.parametrize(
    "params",
    [
        {"passphrase": [PASSPHRASE]},
        {"passphrase": {"x": PASSPHRASE}},
        {"passphrase": 12345678901234567890},
        {"passphrase": PASSPHRASE * 50},
        {"passphrase": PASSPHRASE + "\0"},
        {"pass": PASSPHRASE},
        {"passphrase": PASSPHRASE, "old": PASSPHRASE},
        {"passphrase": "wrong " + PASSPHRASE},
    ],
    ids=["list", "object", "number", "long", "nul", "misnamed", "too-much", "wrong"],
)
def test_what_is_refused_is_not_repeated_in_any_answer(guarded, tmp_path, params):
    """Also without a terminal: shapes are looked at first."""
    (tmp_path / "params").write_text(json.dumps(params))
    code = (
        "import json, sys\n"
        "from bot.client import Client, Refused, home_socket, operator_token\n"
        "with Client([home_socket()], operator_token(), 'operator') as client:\n"
        "    try: print(client.call('operator.unlock', json.load(open(sys.argv[1]))))\n"
        "    except Refused as refused: print(refused.code, refused.message, refused.field)\n"
    )
    words = [sys.executable, "-c", code, tmp_path / "params"]
    done = subprocess.run(words, env=guarded.env, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.startswith((str(INVALID), str(NOT_PERMITTED))), done
    for secret in (PASSPHRASE, "1234567890"):
        assert secret not in done.stdout
        assert secret not in guarded.log.read_text()


def test_off_refuses_every_method_of_the_operator_and_names_the_other_ways(make_daemon, daemon):
    closed = make_daemon("operator: {local: 'off'}\n")
    prepare(closed.home)
    (closed.home / "operator.token").write_text("left from before")
    closed.start()
    verbs = (["pending"], ["lock"], ["status"], ["web", "link"], ["operator", "forget"], ["agent", "list"])
    for verb in verbs:
        refused = closed.sayso(*verb, status=77)
        assert "operator.local is off" in refused.stderr
        assert "on the page or in a chat" in refused.stderr
        daemon.sayso(*verb)  # and none of them where it is not off
    code = (
        "import sys\n"
        "from bot.client import Client, Refused, home_socket, operator_token\n"
        "for token in (operator_token(), '', 'x'):\n"
        "    try: Client([home_socket()], token or '-', 'operator').connect()\n"
        "    except Refused as refused: print(refused.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=closed.env,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert done.stdout.split() == [str(NOT_PERMITTED)] * 3
