"""The operator's role counts beside the daemon alone, not in another user namespace: real sandboxes."""

from __future__ import annotations

import subprocess

import pytest

from tests.e2e.conftest import SAYSO

pytestmark = pytest.mark.daemon

APART = ("bwrap", "--unshare-user", "--dev-bind", "/", "/")
BESIDE = ("bwrap", "--dev-bind", "/", "/")


def run(daemon, finish, *words):
    return finish(
        subprocess.Popen(
            words, env=daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=daemon.root
        )
    )


def test_the_operator_is_refused_in_another_user_namespace_and_answered_beside_the_daemon(daemon, finish):
    for where in ((), BESIDE):
        status, told, _ = run(daemon, finish, *where, SAYSO, "status")
        assert status == 0
        assert "version" in told
    status, _, told = run(daemon, finish, *APART, SAYSO, "status")
    assert status == 77
    assert "another user namespace than the daemon's" in told


def test_an_agent_may_ask_from_there(daemon, finish):
    status, told, error = run(daemon, finish, *APART, SAYSO, "exec", "--", "git", "--version")
    assert (status, error) == (0, "")
    assert told.startswith("git version")
