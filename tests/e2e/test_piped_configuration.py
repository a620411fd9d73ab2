"""A configuration from standard input, a descriptor or a pipe: what holds, and what a reload says."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.e2e.conftest import SAYSO

pytestmark = pytest.mark.daemon

DENIES = "tools: {exec: {deny: ['%s']}}\n"
OF_FILES = {
    "standard input from a file": ("/dev/stdin", 'exec "$@" --config /dev/stdin < given'),
    "a descriptor of a file": ("/dev/fd/7", 'exec "$@" --config /dev/fd/7 7< given'),
    "a descriptor by /proc": ("/proc/self/fd/0", 'exec "$@" --config /proc/self/fd/0 < given'),
}
OF_PIPES = {
    "standard input by a pipe": ("/dev/stdin", 'exec "$@" --config /dev/stdin < <(cat given)'),
    "a process substitution": ("/dev/fd/63", 'exec "$@" --config <(cat given)'),
    "a fifo": ("pipe", 'mkfifo -m 600 pipe; cat given > pipe & exec "$@" --config pipe'),
    "a file without a name": (
        "/dev/fd/7",
        'cp given gone; exec 7< gone; rm gone; exec "$@" --config /dev/fd/7',
    ),
}
NOWHERE = {
    "a descriptor that is not open": ("/dev/fd/99", 'exec "$@" --config /dev/fd/99'),
    "standard input that is closed": ("/dev/stdin", 'exec "$@" --config /dev/stdin <&-'),
    "a dash": ("-", 'exec "$@" --config - < given'),
}


def by(daemon, form, *words, stderr=subprocess.PIPE):
    """Start `sayso` as a shell does by this form."""
    return subprocess.Popen(
        ["bash", "-c", form, "bash", SAYSO, *words],
        env=daemon.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        cwd=daemon.root,
    )


def said(process):
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def give(daemon, text):
    """Put a configuration in the place of the one that is there, as editors do."""
    (daemon.root / "new").write_text(text)
    (daemon.root / "new").replace(daemon.root / "given")


@pytest.fixture
def started(make_daemon):
    def start(form):
        daemon = make_daemon()
        give(daemon, DENIES % "uname")
        with daemon.log.open("w") as log:
            daemon.process = by(daemon, form, "up", *daemon.configs, "--port", "0", stderr=log)
        assert daemon.process.stdout.readline().startswith("ready ")
        return daemon

    return start


def denied(daemon, program):
    answer = daemon.json("exec", "--no-wait", "--", program, status=None)
    return answer["status"] == "denied" and "deny rule" in answer["reason"]


@pytest.mark.parametrize("how", OF_FILES)
def test_of_a_file_a_reload_reads_what_has_its_name_by_then(started, how):
    _, form = OF_FILES[how]
    daemon = started(form)
    assert (denied(daemon, "uname"), denied(daemon, "date")) == (True, False)
    status = daemon.json("status")
    assert (status["configuration"][-1], status["piped"]) == (str(daemon.root / "given"), [])
    assert daemon.json("reload")["atOnce"] == []
    give(daemon, DENIES % "date")
    assert [change["key"] for change in daemon.json("reload")["atOnce"]] == ["tools.exec.deny"]
    assert (denied(daemon, "uname"), denied(daemon, "date")) == (False, True)


@pytest.mark.parametrize("how", OF_PIPES)
def test_what_came_by_a_pipe_holds_until_the_end_and_a_reload_says_so(started, how):
    given, form = OF_PIPES[how]
    daemon = started(form)
    assert (denied(daemon, "uname"), denied(daemon, "date")) == (True, False)
    status = daemon.json("status")
    assert (len(status["configuration"]), status["piped"]) == (3, [given])
    assert f"{given} (by a pipe)" in daemon.sayso("status").stdout
    give(daemon, DENIES % "date")
    (problem,) = daemon.json("reload", status=78)["problems"]
    assert problem.startswith(
        f"{given}: this part of the configuration came by a pipe and cannot be read again"
    )
    assert (denied(daemon, "uname"), denied(daemon, "date")) == (True, False)


def test_a_pipe_in_the_place_of_a_file_stops_a_reload_with_words_and_none_after_it(make_daemon):
    daemon = make_daemon().start()
    text = daemon.config.read_text()
    daemon.config.unlink()
    os.mkfifo(daemon.config, 0o600)
    (problem,) = daemon.json("reload", status=78)["problems"]
    assert problem == f"{daemon.config}: cannot be read: it is no regular file"
    daemon.config.unlink()
    daemon.config.write_text(text)
    assert daemon.sayso("reload").returncode == 0
    assert daemon.stop() == 0


def test_the_doctor_says_what_it_could_not_look_at(started):
    piped = started(OF_PIPES["a fifo"][1])
    told = piped.sayso("doctor", "--json", status=None)
    assert json.loads(told.stdout)
    assert "pipe came by a pipe and cannot be read again: this looks at the rest, " in told.stderr
    piped.kill()
    of_file = started(OF_FILES["standard input from a file"][1])
    told = of_file.sayso("doctor", "--json", status=None)
    assert "this looks at what the daemon runs with, " in told.stderr
    assert f"{of_file.root}/given" in told.stderr


@pytest.mark.parametrize("how", {**OF_FILES, **OF_PIPES})
def test_a_check_reads_it_too_and_names_the_fault_in_it(make_daemon, how):
    given, form = {**OF_FILES, **OF_PIPES}[how]
    daemon = make_daemon()
    give(daemon, DENIES % "date")
    assert said(by(daemon, form, "config", "check"))[:2] == (0, "the configuration is valid\n")
    (daemon.root / "pipe").unlink(missing_ok=True)
    give(daemon, "tools: {exec: {sekurity: full}}\n")
    status, out, err = said(by(daemon, form, "config", "check"))
    assert (status, out) == (78, "")
    assert err == f"sayso: {given}:1: tools.exec.sekurity: is no known key; did you mean security?\n"


@pytest.mark.parametrize("how", NOWHERE)
@pytest.mark.parametrize("words", [("up", "--port", "0"), ("config", "check")], ids=" ".join)
def test_what_is_not_there_is_named(make_daemon, how, words):
    given, form = NOWHERE[how]
    daemon = make_daemon()
    give(daemon, "")
    status, out, err = said(by(daemon, form, *words))
    assert (status, out) == (78, "")
    assert f"{given}: there is no such file" in err
    assert len(err.strip().splitlines()) == 1
