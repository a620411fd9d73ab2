"""A run that has the operator's login decides nothing on the page: a real daemon and real runs, by rule."""

from __future__ import annotations

import http.client
import os
import subprocess
from urllib.parse import urlencode, urlsplit

import pytest

from adapters.channels.web.identity import csrf_of

pytestmark = pytest.mark.daemon

CONFIG = """\
tools: {{exec: {{host: {host}}}}}
agents:
  main: {{exec: {{security: full, ask: 'off'}}}}
  other: {{exec: {{security: allowlist, ask: on-miss}}}}
"""
# Says to the page what it is given in hexadecimal, and prints the status that comes back.
ASKS = (
    "use Socket; my ($host, $port, $said) = @ARGV;"
    "socket(my $page, AF_INET, SOCK_STREAM, 0) or die;"
    "connect($page, pack_sockaddr_in($port, inet_aton($host))) or die $!;"
    'syswrite($page, pack("H*", $said)); print "status ", (split " ", <$page>)[1], "\\n"'
)
# Switches the check off, for the control.
UNCHECKED = "from adapters.neighbours import Neighbours\nNeighbours.refusal_of = lambda *_: None\n"


class Theft:
    """A request of one agent waits, and the runs of another have the login of the page."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.page = urlsplit(daemon.page)
        self.token = self._signed_in(daemon.json("web", "link")["url"])
        guest = {"SAYSO_TOKEN": daemon.json("agent", "add", "other")["token"]}
        self.asking = subprocess.Popen(
            [daemon.program, "exec", "--", "uname"],
            env={**daemon.env, **guest},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=daemon.root,
        )
        (self.request,) = daemon.pending()

    def _signed_in(self, link):
        page = http.client.HTTPConnection(self.page.hostname, self.page.port, timeout=20)
        page.request("POST", "/login", urlencode({"code": link.rsplit("/", 1)[1]}), self._headers)
        answer = page.getresponse()
        assert answer.status == 303
        return answer.headers["Set-Cookie"].split(";")[0].split("=", 1)[1]

    @property
    def _headers(self):
        return {
            "Origin": self.daemon.page.rstrip("/"),
            "Content-Type": "application/x-www-form-urlencoded",
            "Connection": "close",
        }

    @property
    def words(self):
        """Give the program that allows the request, with all that it needs."""
        form = urlencode({"answer": "allow-once", "csrf": csrf_of(self.token)})
        head = {
            "Host": self.page.netloc,
            "Cookie": f"sayso_login={self.token}",
            "Content-Length": len(form),
            **self._headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        said = f"POST /request/{self.request['id']}/decide HTTP/1.1\r\n{lines}\r\n{form}"
        return "perl", "-e", ASKS, self.page.hostname, str(self.page.port), said.encode().hex()

    def by_a_run(self):
        """Let a run try, and return what came of it."""
        outcome = self.daemon.json("exec", "--cwd", "/", "--", *self.words, status=None)
        assert outcome["approval"]["decision"] == "allowed-by-policy", outcome
        return outcome

    def from_outside(self):
        """Try as the account that runs have, beside the daemon."""
        user = {"user": 65534, "group": 65534, "extra_groups": ()} if os.geteuid() == 0 else {}
        return subprocess.run(self.words, capture_output=True, text=True, timeout=60, cwd="/", **user).stdout


@pytest.fixture
def theft(make_daemon, monkeypatch):
    def make(host, before=""):
        daemon = make_daemon(CONFIG.format(host=host))
        user = "tools: {exec: {hostUser: nobody}}\n" if os.geteuid() == 0 else ""
        daemon.account.write_text(f"{user}sandboxing: {{network: true}}\n")
        monkeypatch.setenv("PYTHONPATH", str(daemon.root))
        (daemon.root / "sitecustomize.py").write_text(before)
        return Theft(daemon.start())

    return make


PLACES = pytest.mark.parametrize(("host", "placement"), [("gateway", "host"), ("sandbox", "sandbox")])


@PLACES
def test_a_run_with_the_login_is_refused_and_the_same_from_outside_counts(theft, host, placement, finish):
    theft = theft(host)
    outcome = theft.by_a_run()
    assert (outcome["placement"], outcome["stdout"]) == (placement, "status 403\n")
    assert [waiting["id"] for waiting in theft.daemon.pending()] == [theft.request["id"]]
    assert theft.daemon.log.read_text().count("another user namespace") == 1
    assert theft.from_outside() == "status 303\n"
    assert finish(theft.asking)[0] == 0


@PLACES
def test_without_the_look_at_who_calls_a_run_would_be_the_operator(theft, host, placement, finish):
    theft = theft(host, UNCHECKED)
    outcome = theft.by_a_run()
    assert (outcome["placement"], outcome["stdout"]) == (placement, "status 303\n")
    assert finish(theft.asking)[0] == 0
