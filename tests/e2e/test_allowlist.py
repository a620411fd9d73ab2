"""The allowlist on the command line of a real daemon: learned, listed, added, removed, brought along."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.daemon

TOUCH = ("--", "touch", "here")


def runs_unasked(daemon, *asked):
    return daemon.json("exec", *asked)["approval"]["decision"] == "allowed-by-policy"


def test_always_is_learned_used_listed_and_taken_back(daemon, finish):
    asking = daemon.ask(*TOUCH)
    (request,) = daemon.pending()
    daemon.sayso("approve", request["id"], "always")
    assert finish(asking)[0] == 0
    assert runs_unasked(daemon, *TOUCH)
    other = daemon.ask("--", "touch", "there")
    daemon.sayso("deny", daemon.pending()[0]["id"])
    assert finish(other)[0] == 77
    row = next(row for row in daemon.json("allowlist", "list")["entries"] if row["source"] == "learned")
    assert (row["pattern"], row["agent"], row["request"]) == ("/usr/bin/touch", "main", request["id"])
    assert row["lastUsedCommand"] == "touch here"
    assert row["directory"] == request["cwd"]
    assert row["lastResolvedPath"].endswith("/touch")
    told = daemon.sayso("allowlist", "list").stdout
    for words in (
        row["id"][:8],
        "/usr/bin/touch",
        f"(exactly here, in {request['cwd']})",
        "learned from an Always by",
        "touch here",
    ):
        assert words in told
    daemon.sayso("allowlist", "remove", row["id"][:8])
    asking = daemon.ask(*TOUCH)
    (request,) = daemon.pending()
    daemon.sayso("deny", request["id"])
    assert finish(asking)[0] == 77


def test_any_arguments_are_learned_where_a_program_only_reads(daemon, finish):
    asking = daemon.ask("--", "ls", "-l")
    (request,) = daemon.pending()
    assert "any `ls` command" in request["alwaysAny"][0]
    assert "any `ls` command" in daemon.sayso("show", request["id"]).stdout
    told = daemon.sayso("approve", request["id"], "always", "any").stdout
    assert "Allowed always, with any arguments" in told
    assert finish(asking)[0] == 0
    assert runs_unasked(daemon, "--", "ls", "-la", "/etc")
    asking = daemon.ask(*TOUCH)
    (request,) = daemon.pending()
    assert request["alwaysAny"] == []
    refused = daemon.sayso("approve", request["id"], "always", "any", status=None)
    assert refused.returncode != 0
    assert "only programs that just read" in refused.stdout + refused.stderr
    daemon.sayso("deny", request["id"])
    assert finish(asking)[0] == 77


def test_what_an_older_version_exported_is_told_to_admit_nothing_wherever_it_is_listed(
    daemon, finish, tmp_path
):
    old = {"pattern": "/usr/bin/touch", "realPath": "/usr/bin/touch"}
    file = tmp_path / "exec-approvals.json"
    file.write_text(json.dumps({"version": 1, "agents": {"main": {"allowlist": [old]}}}))
    told = daemon.sayso("allowlist", "import", str(file))
    assert "`/usr/bin/touch`: it admits nothing" in told.stdout + told.stderr
    assert "  it admits nothing: Always left it before" in daemon.sayso("allowlist", "list").stdout
    (row,) = [row for row in daemon.json("allowlist", "list")["entries"] if row["admitsNothing"]]
    asking = daemon.ask(*TOUCH)
    daemon.sayso("deny", daemon.pending()[0]["id"])
    assert finish(asking)[0] == 77
    checks = daemon.sayso("doctor", status=None).stdout
    assert f"1 learned entry admits nothing ({row['id'][:8]})" in checks
    daemon.sayso("allowlist", "remove", row["id"][:8])
    assert "admits nothing" not in daemon.sayso("doctor", status=None).stdout


def test_entries_are_added_and_outlive_a_restart(daemon):
    told = daemon.sayso("allowlist", "add", "/usr/bin/touch", "--args", "'a b' c", "--agent", "main").stdout
    assert "exactly 'a b' c" in told
    daemon.stop()
    daemon.start()
    assert runs_unasked(daemon, "--", "touch", "a b", "c")


def test_an_existing_file_is_brought_along_and_given_back(daemon):
    document = {
        "version": 1,
        "socket": {"path": "~/x.sock", "token": "t0ken"},
        "defaults": {
            "security": "allowlist",
            "ask": "always",
            "askFallback": "deny",
            "autoAllowSkills": False,
        },
        "agents": {"main": {"ask": "on-miss", "allowlist": [{"pattern": "/usr/bin/touch"}]}},
    }
    path = daemon.root / "exec-approvals.json"
    path.write_text(json.dumps(document))
    told = daemon.sayso("allowlist", "import", str(path)).stdout
    assert "1 added, 0 removed" in told
    assert runs_unasked(daemon, *TOUCH)
    assert "defaults.ask: always" in daemon.sayso("allowlist", "list").stdout
    exported = json.loads(daemon.sayso("allowlist", "export").stdout)
    assert exported["agents"]["main"]["allowlist"][0]["pattern"] == "/usr/bin/touch"
    assert "t0ken" not in json.dumps(exported)
    daemon.sayso("allowlist", "export", "new.json")
    assert json.loads((daemon.root / "new.json").read_text()) == exported
    assert (daemon.root / "new.json").stat().st_mode & 0o777 == 0o600
    assert "is there already" in daemon.sayso("allowlist", "export", "new.json", status=64).stderr
    document["agents"]["main"]["allowlist"][0]["oops"] = 1
    path.write_text(json.dumps(document))
    refused = daemon.sayso("allowlist", "import", str(path), "--replace", status=64)
    assert "agents.main.allowlist.0.oops" in refused.stderr
    path.write_text('{"version": 1, "version": 1}')
    assert "'version' is there twice" in daemon.sayso("allowlist", "import", str(path), status=64).stderr
    assert json.loads(daemon.sayso("allowlist", "export").stdout) == exported


def test_what_the_configuration_holds_is_shown_with_its_place_and_ended_there(make_daemon):
    daemon = make_daemon("agents: {main: {exec: {allowlist: [{pattern: /usr/bin/touch}]}}}").start()
    (row,) = daemon.json("allowlist", "list")["entries"]
    assert row["id"] is None
    assert row["where"].endswith("overlay.yaml:2")
    refused = daemon.sayso("allowlist", "remove", row["source"], status=64)
    assert "overlay.yaml:2" in refused.stderr


def test_a_request_may_ask_to_be_judged_more_strictly(daemon):
    daemon.sayso("allowlist", "add", "/usr/bin/touch")
    assert daemon.json("exec", "--security", "deny", *TOUCH, status=77)["decision"]["source"] == "the request"
    assert runs_unasked(daemon, "--security", "full", *TOUCH)
