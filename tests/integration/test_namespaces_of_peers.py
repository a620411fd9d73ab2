"""Which user namespace a peer of the socket lives in: real processes, seen by root and their own user."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UID = 65534
# Listens, starts a peer that connects, and prints what the daemon would say of it.
LISTENS = """
import json, os, socket, subprocess, sys
from adapters.ingress.namespaces import refusal_of
from core.model.principal import PeerCredentials

uid, path, peer = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
os.setgroups(())
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
listening = socket.socket(socket.AF_UNIX)
listening.bind(path)
listening.listen()
listening.settimeout(10)
process = subprocess.Popen([*peer, path], stdin=subprocess.PIPE)
sock, _ = listening.accept()
raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
pid, uid, gid = (int.from_bytes(raw[at : at + 4], sys.byteorder) for at in (0, 4, 8))
sock.recv(1)
try:
    os.readlink(f"/proc/{pid}/ns/user")
    seen = True
except OSError:
    seen = False
print(json.dumps([seen, refusal_of(sock, PeerCredentials(pid, uid, gid))]))
process.stdin.close()
process.wait(10)
"""
# Connects and waits; with `leave` a child holds the connection alone. Perl: every account can reach it.
CONNECTS = """
use Socket;
socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
connect($s, pack_sockaddr_un($ARGV[1])) or die "$!";
exit 0 if $ARGV[0] eq "leave" and fork;
select(undef, undef, undef, 0.2);
syswrite($s, "x");
<STDIN>;
"""
PERL = "/usr/bin/perl"
APART = ("bwrap", "--unshare-user", "--dev-bind", "/", "/")
BESIDE = ()


@pytest.fixture
def place():
    path = Path(tempfile.mkdtemp(prefix="sayso-ns-", dir="/tmp"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def judged(place):
    def judge(uid, where, *, closed=False, leaves=False):
        program = Path(PERL)
        if closed:  # a program that cannot be read makes a process that cannot be looked into
            program = Path(shutil.copyfile(PERL, place / f"perl{len(where)}"))
            program.chmod(0o111)
        (place / "s").unlink(missing_ok=True)
        words = [*where, program, "-e", CONNECTS, "leave" if leaves else "stay"]
        done = subprocess.run(
            [sys.executable, "-c", LISTENS, str(uid), place / "s", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return judge


@pytest.mark.parametrize("uid", [0, UID])
@pytest.mark.parametrize("closed", [False, True])
def test_a_peer_in_another_user_namespace_is_told_from_one_beside_the_daemon(judged, uid, closed):
    seen, why = judged(uid, APART, closed=closed)
    assert "another user namespace" in why
    assert seen or (closed and uid)
    assert judged(uid, BESIDE, closed=closed)[1] is None


def test_a_connection_whose_process_has_ended_is_nobodys(judged):
    assert "has ended" in judged(0, BESIDE, leaves=True)[1]
