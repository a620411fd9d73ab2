"""The operator's AllowlistDesk over a real store: list, add, remove, and the document exec-approvals.json."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest

from core.approvals.entries import AllowlistEntries, Surroundings
from core.errors import RequestError, StoreError, UnknownRequest
from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.decision import Effect
from core.model.outcome import Status
from core.model.request import Answer, Review
from tests.core_system import ALICE, CONFIG, MAIN, Noting, exec_call

LS = exec_call("ls", "-l")
OLD = {
    "version": 1,
    "socket": {"path": "~/elsewhere.sock", "token": "c2VjcmV0"},
    "defaults": {"security": "allowlist", "ask": "on-miss", "askFallback": "deny", "autoAllowSkills": False},
    "agents": {
        "main": {
            "security": "allowlist",
            "ask": "on-miss",
            "allowlist": [
                {
                    "id": "3a3a3a3a-1111-4222-8333-444455556666",
                    "pattern": "/usr/bin/l?",
                    "lastUsedAt": 1737150000000,
                    "lastUsedCommand": "ls -l",
                    "lastResolvedPath": "/usr/bin/ls",
                }
            ],
        }
    },
}


@pytest.fixture
def desk(system):
    around = Surroundings(
        lambda: system.judge.config, lambda path: f"c.yaml:{len(path)}", "/run/s.sock", ("hunter22",)
    )
    return AllowlistEntries(system.store, system.clock, around)


async def effect(system, call):
    _, verdict = await system.gate.consider(call)
    return verdict.effect


async def always(system, call, answer=Answer.ALLOW_ALWAYS):
    asked = await system.gate.ask(call, None)
    assert asked.status is Status.PENDING, asked.reason
    reviewed = await system.console.resolve(Review(asked.request_id, answer, ALICE))
    assert reviewed["accepted"], reviewed["text"]
    return asked.request_id


async def run(system, call):
    return await asyncio.wait_for(system.gate.run(call, None, Noting()), 5)


async def kinds(system):
    return [link.event.kind async for link in system.store.events()]


async def kept(desk):
    return [row for row in (await desk.entries())["entries"] if row["id"]]


async def test_the_list_tells_where_written_entries_are_and_who_left_the_others(system, desk):
    request = await always(system, LS)
    written, learned = (await desk.entries())["entries"]
    assert (written["id"], written["pattern"]) == (None, "/usr/bin/git")
    assert written["source"] == "agents.main.exec.allowlist[0]"
    assert written["where"].startswith("c.yaml:")
    assert written["words"] == "exactly --version"
    assert (learned["source"], learned["by"], learned["request"]) == ("learned", "alice (cli:0)", request)
    assert (learned["agent"], learned["placement"], learned["words"]) == ("main", "sandbox", "exactly -l")
    assert (learned["directory"], learned["admitsNothing"]) == (None, None)  # `ls` reads, wherever it is
    assert learned["lastUsedAt"] is None


async def test_a_use_is_noted_with_its_command_and_the_file_that_ran(system, desk):
    await always(system, LS)
    assert (await run(system, exec_call(line="git --version && ls -l"))).status is Status.FINISHED
    (row,) = await kept(desk)
    assert row["lastUsedAt"] == system.clock.now()
    assert row["lastUsedCommand"] == "ls -l"
    assert row["lastResolvedPath"].endswith("/ls")


async def test_looking_and_being_refused_are_no_uses(system, desk):
    await always(system, LS)
    await effect(system, LS)
    assert (await run(system, exec_call(line="ls > /tmp/x"))).status is Status.DENIED
    (row,) = await kept(desk)
    assert row["lastUsedAt"] is None


async def test_a_use_that_cannot_be_noted_hinders_nothing(make_system, meddled):
    async def full(*_args):
        raise StoreError("the disk is full")

    meddled.before["record_uses"] = full
    system = make_system(through=meddled)
    await always(system, LS)
    assert (await run(system, LS)).status is Status.FINISHED


async def test_an_added_entry_admits_until_it_is_removed(system, desk):
    assert await effect(system, LS) is Effect.ASK
    added = await desk.add(AllowlistEntry("/usr/bin/ls", ("-l",), agent="main"), ALICE)
    assert await effect(system, LS) is Effect.ALLOW
    assert await effect(system, exec_call("ls", "-a")) is Effect.ASK
    (row,) = await kept(desk)
    assert (row["source"], row["by"], row["words"]) == ("added", "alice (cli:0)", "exactly -l")
    removed = await desk.remove(added["id"][:8], ALICE)
    assert removed["id"] == added["id"]
    assert await effect(system, LS) is Effect.ASK
    assert {"allowlist.added", "allowlist.removed"} <= set(await kinds(system))


async def test_a_learned_entry_can_be_taken_back(system, desk):
    await always(system, LS)
    assert await effect(system, LS) is Effect.ALLOW
    (row,) = await kept(desk)
    await desk.remove(row["id"], ALICE)
    assert await effect(system, LS) is Effect.ASK
    await always(system, LS)
    assert await effect(system, LS) is Effect.ALLOW


async def test_an_entry_counts_for_its_agent_and_its_placement_alone(system, desk):
    await desk.add(AllowlistEntry("/usr/bin/ls", agent="other"), ALICE)
    await desk.add(AllowlistEntry("/usr/bin/ls", placement=Placement.HOST), ALICE)
    assert await effect(system, LS) is Effect.ASK
    rows = (await desk.entries("main"))["entries"]
    assert [(row["agent"], row["placement"]) for row in rows] == [("main", "sandbox"), (None, "host")]


@pytest.mark.parametrize(
    ("entry", "field", "words"),
    [
        (AllowlistEntry("bin/ls"), "pattern", "relative path"),
        (AllowlistEntry("./ls"), "pattern", "relative path"),
        (AllowlistEntry(""), "pattern", "empty"),
        (AllowlistEntry("/usr/bin/l\u202es"), "pattern", "character"),
        (AllowlistEntry("/usr/bin/ls", arg_pattern="("), "argPattern", "RE2"),
        (AllowlistEntry("/usr/bin/ls", arg_pattern=r"(a)\1"), "argPattern", "RE2"),
        (AllowlistEntry("/usr/bin/ls", (), "x"), "argPattern", "exclude"),
    ],
)
async def test_an_entry_that_could_not_count_is_refused_by_field(system, desk, entry, field, words):
    before = await kinds(system)
    with pytest.raises(RequestError, match=words) as refused:
        await desk.add(entry, ALICE)
    assert refused.value.field == field
    assert await kept(desk) == []
    assert await kinds(system) == before


async def test_the_same_entry_twice_names_the_one_that_is_there(desk):
    added = await desk.add(AllowlistEntry("/usr/bin/ls"), ALICE)
    with pytest.raises(RequestError, match=added["id"][:8]):
        await desk.add(AllowlistEntry("/usr/bin/ls"), ALICE)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (AllowlistEntry("/usr/bin/python3.11"), "can run anything"),
        (AllowlistEntry("/usr/bin/sudo"), "asked about each time"),
        (AllowlistEntry("/usr/bin/ls", agent="nobody-yet"), "no agent 'nobody-yet'"),
    ],
)
async def test_what_an_operator_may_not_expect_is_said(desk, entry, words):
    (note,) = (await desk.add(entry, ALICE))["notes"]
    assert words in note


async def test_removing_needs_an_id_that_names_one_kept_entry(desk):
    for given, words in (("abc", "too short"), ("0" * 8, "no kept entry"), ("x" * 300, "no kept entry")):
        with pytest.raises(UnknownRequest, match=words):
            await desk.remove(given, ALICE)


async def test_what_is_written_in_the_file_is_ended_there(desk):
    with pytest.raises(RequestError, match=r"take it out at c\.yaml:\d+, then run sayso reload"):
        await desk.remove("agents.main.exec.allowlist[0]", ALICE)


# The document


async def test_an_existing_file_can_be_brought_along(system, desk):
    told = await desk.bring(OLD, ALICE)
    assert ([row["pattern"] for row in told["added"]], told["removed"]) == (["/usr/bin/l?"], [])
    assert await effect(system, LS) is Effect.ALLOW
    (row,) = await kept(desk)
    assert (row["id"], row["source"], row["by"]) == (
        OLD["agents"]["main"]["allowlist"][0]["id"],
        "exec-approvals",
        "alice (cli:0)",
    )
    assert (row["lastUsedAt"], row["lastUsedCommand"]) == (1737150000000, "ls -l")
    again = await desk.bring(OLD, ALICE)
    assert (again["added"], again["unchanged"]) == ([], 1)


async def test_no_token_leaves_the_daemon_and_configured_secrets_are_masked(desk):
    secretive = copy.deepcopy(OLD)
    secretive["agents"]["main"]["allowlist"][0]["lastUsedCommand"] = "ls hunter22"
    await desk.bring(secretive, ALICE)
    document = (await desk.document())["document"]
    assert document["socket"] == {"path": "/run/s.sock", "token": "(redacted)"}
    told = json.dumps([document, await desk.entries()])
    assert "c2VjcmV0" not in told
    assert "hunter22" not in told


async def test_what_is_exported_comes_back_exactly_so_elsewhere(system, desk):
    await always(system, LS)
    await always(system, exec_call("git", "push", "origin", "main"))
    await always(system, exec_call("cat", "a"), Answer.ALLOW_ALWAYS_ANY)
    await desk.add(AllowlistEntry("~/bin/**", arg_pattern="-[a-z]", placement=Placement.HOST), ALICE)
    await desk.bring(OLD, ALICE)
    exported = json.loads(json.dumps((await desk.document())["document"]))
    before = {entry.entry.id: entry.entry for entry in (await system.store.exec_approvals()).entries}
    for row in await kept(desk):
        await desk.remove(row["id"], ALICE)
    await desk.bring(exported, ALICE)
    after = {entry.entry.id: entry.entry for entry in (await system.store.exec_approvals()).entries}
    assert after.keys() == before.keys()
    for entry_id, entry in after.items():
        said = before[entry_id]
        assert (entry.pattern, entry.args, entry.arg_pattern, entry.placement) == (
            said.pattern,
            said.args,
            said.arg_pattern,
            said.placement,
        )
        assert (entry.real_path, entry.sha256, entry.agent) == (said.real_path, said.sha256, said.agent)
        assert (entry.directory, entry.any_arguments) == (said.directory, said.any_arguments)
    assert len([entry for entry in after.values() if entry.directory]) == 1
    assert len([entry for entry in after.values() if entry.any_arguments]) == 1
    assert await effect(system, exec_call("git", "push", "origin", "main")) is Effect.ALLOW
    assert await effect(system, exec_call("git", "push", "origin", "other")) is Effect.ASK


async def test_set_counts_only_on_the_document_that_was_read(system, desk):
    read = await desk.document()
    await always(system, LS)
    with pytest.raises(RequestError, match="changed since it was read") as stale:
        await desk.replace_document(read["document"], read["hash"], ALICE)
    assert stale.value.field == "baseHash"
    assert len(await kept(desk)) == 1
    fresh = await desk.document()
    await run(system, LS)  # a use changes nothing that a person could mean to change
    told = await desk.replace_document(fresh["document"], fresh["hash"], ALICE)
    assert (told["added"], told["removed"], told["unchanged"]) == ([], [], 1)
    assert told["hash"] == fresh["hash"]


async def test_of_two_who_set_at_once_one_is_told_to_read_again(desk):
    read = await desk.document()
    changed = [{**OLD, "defaults": {"ask": ask}} for ask in ("always", "off")]
    answers = await asyncio.gather(
        *(desk.replace_document(each, read["hash"], ALICE) for each in changed), return_exceptions=True
    )
    assert sorted(isinstance(answer, RequestError) for answer in answers) == [False, True]


async def test_set_keeps_who_left_what_it_does_not_change_and_drops_what_it_lacks(system, desk):
    await always(system, LS)
    await desk.add(AllowlistEntry("/usr/bin/rg"), ALICE)
    read = await desk.document()
    document = read["document"]
    del document["agents"]["*"]
    document["agents"]["main"]["allowlist"].append({"pattern": "/usr/bin/rg", "args": ["x"]})
    told = await desk.replace_document(document, read["hash"], ALICE)
    assert (len(told["added"]), len(told["removed"]), told["unchanged"]) == (1, 1, 1)
    learned, new = await kept(desk)
    assert (learned["source"], learned["request"] is not None) == ("learned", True)
    assert (new["source"], new["args"], new["agent"]) == ("exec-approvals", ["x"], "main")


async def test_an_entry_that_set_changes_is_the_operators_from_then_on(system, desk):
    await always(system, LS)
    read = await desk.document()
    (row,) = read["document"]["agents"]["main"]["allowlist"]
    row["args"] = ["-a"]
    await desk.replace_document(read["document"], read["hash"], ALICE)
    (changed,) = await kept(desk)
    assert (changed["id"], changed["source"], changed["args"]) == (row["id"], "exec-approvals", ["-a"])
    assert await effect(system, LS) is Effect.ASK
    assert await effect(system, exec_call("ls", "-a")) is Effect.ALLOW


def malformed(path, value):
    document = copy.deepcopy(OLD)
    *way, last = path
    at = document
    for step in way:
        at = at[step]
    at[last] = value
    return document


ENTRY = ("agents", "main", "allowlist", 0)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (malformed(("version",), 2), "version"),
        (malformed(("version",), "1"), "version"),
        ({"agents": {}}, "version"),
        ("text", "document"),
        ([], "document"),
        (malformed(("extra",), 1), "extra"),
        (malformed(("defaults",), []), "defaults"),
        (malformed(("defaults", "security"), "none"), "defaults.security"),
        (malformed(("defaults", "security"), True), "defaults.security"),
        (malformed(("defaults", "ask"), "never"), "defaults.ask"),
        (malformed(("defaults", "askFallback"), "full"), "defaults.askFallback"),
        (malformed(("defaults", "autoAllowSkills"), "yes"), "defaults.autoAllowSkills"),
        (malformed(("defaults", "ask_fallback"), "deny"), "defaults.ask_fallback"),
        (malformed(("socket", "mode"), 1), "socket.mode"),
        (malformed(("agents",), []), "agents"),
        (malformed(("agents", "main"), None), "agents.main"),
        (malformed(("agents", "main", "allowlist"), {}), "agents.main.allowlist"),
        (malformed((*ENTRY, "patern"), "x"), "agents.main.allowlist.0.patern"),
        (malformed((*ENTRY, "pattern"), "bin/x"), "agents.main.allowlist.0.pattern"),
        (malformed((*ENTRY, "pattern"), 7), "agents.main.allowlist.0.pattern"),
        (malformed((*ENTRY, "id"), "x y"), "agents.main.allowlist.0.id"),
        (malformed((*ENTRY, "argPattern"), "("), "agents.main.allowlist.0.argPattern"),
        (malformed((*ENTRY, "placement"), "moon"), "agents.main.allowlist.0.placement"),
        (malformed((*ENTRY, "args"), "x"), "agents.main.allowlist.0.args"),
        (malformed((*ENTRY, "lastUsedAt"), -1), "agents.main.allowlist.0.lastUsedAt"),
        (malformed((*ENTRY, "lastUsedAt"), "now"), "agents.main.allowlist.0.lastUsedAt"),
        (malformed((*ENTRY, "sha256"), "abc"), "agents.main.allowlist.0.sha256"),
        (malformed((*ENTRY, "realPath"), "x"), "agents.main.allowlist.0.realPath"),
        (malformed(("agents", "other"), OLD["agents"]["main"]), "document"),
    ],
)
async def test_a_malformed_document_changes_nothing_and_names_the_field(system, desk, document, field):
    await always(system, LS)
    before, told = await desk.document(), await kinds(system)
    for change in (desk.bring(document, ALICE), desk.replace_document(document, before["hash"], ALICE)):
        with pytest.raises(RequestError) as refused:
            await change
        assert refused.value.field == field
        assert field in str(refused.value) or field == "document"
    assert await desk.document() == before
    assert await kinds(system) == told


# Where the document and the configuration differ, the stricter holds


def stated(agent=None, **defaults):
    return {"version": 1, "defaults": defaults, "agents": {"main": agent} if agent else {}}


@pytest.mark.parametrize(
    ("document", "listed", "missed"),
    [
        (stated(), "allow", "ask"),
        (stated(security="full", ask="off"), "allow", "deny"),
        (stated(security="full"), "allow", "ask"),
        (stated(ask="off"), "allow", "deny"),
        (stated(ask="always"), "ask", "ask"),
        (stated(security="deny"), "deny", "deny"),
        (stated({"security": "allowlist"}, security="deny"), "allow", "ask"),
        (stated({"ask": "always"}, ask="on-miss"), "ask", "ask"),
    ],
)
async def test_the_documents_settings_only_tighten(system, desk, document, listed, missed):
    await desk.replace_document(document, None, ALICE)
    assert str(await effect(system, exec_call("git", "--version"))) == listed
    assert str(await effect(system, LS)) == missed


async def test_a_denial_by_the_document_says_where_it_is_stated(system, desk):
    await desk.replace_document(stated({"security": "deny"}), None, ALICE)
    outcome = await run(system, LS)
    assert outcome.decision["source"] == "exec-approvals.json agents.main.security"
    await desk.replace_document(stated(), None, ALICE)
    assert await effect(system, LS) is Effect.ASK


async def test_the_documents_fallback_only_tightens(make_system):
    lenient = copy.deepcopy(CONFIG)
    lenient["tools"]["exec"]["askFallback"] = "allowlist"
    system = make_system(lenient)
    desk = AllowlistEntries(
        system.store, system.clock, Surroundings(lambda: system.judge.config, lambda _path: None)
    )
    asked = await system.gate.ask(LS, None)
    await desk.add(AllowlistEntry("/usr/bin/ls"), ALICE)
    request = await system.store.request(asked.request_id)
    assert await system.gate.fallback(request)
    await desk.replace_document({**OLD, "defaults": {"askFallback": "deny"}}, None, ALICE)
    assert not await system.gate.fallback(request)


@pytest.mark.parametrize(
    ("stricter", "listed", "missed"),
    [
        ({}, "allow", "ask"),
        ({"security": "full", "ask": "off"}, "allow", "deny"),
        ({"security": "deny"}, "deny", "deny"),
        ({"ask": "always"}, "ask", "ask"),
        ({"ask": "off"}, "allow", "deny"),
    ],
)
async def test_a_request_may_make_it_stricter_for_itself(system, stricter, listed, missed):
    for argv, expected in ((("git", "--version"), listed), (("ls",), missed)):
        call = ToolCall("exec", MAIN, command=CommandText(argv=argv), **stricter)
        assert str(await effect(system, call)) == expected


async def test_what_a_request_asked_for_still_holds_after_a_restart(system):
    call = ToolCall("exec", MAIN, command=CommandText(argv=("ls",)), ask="always")
    asked = await system.gate.ask(call, None)
    assert (await system.store.request(asked.request_id)).call == call


async def test_an_entry_for_every_agent_counts_for_everybody_from_the_start_and_says_so(system, desk):
    added = await desk.add(AllowlistEntry("/usr/bin/id", agent="*"), ALICE)
    own = await desk.add(AllowlistEntry("/usr/bin/ls", agent="other"), ALICE)
    assert (added["entry"]["agent"], own["entry"]["agent"]) == (None, "other")
    assert await effect(system, exec_call("/usr/bin/id")) is Effect.ALLOW
    assert await effect(system, exec_call("/usr/bin/ls")) is Effect.ASK


async def test_setting_what_was_got_changes_nothing_about_whom_it_counts_for(system, desk):
    await desk.add(AllowlistEntry("/usr/bin/id", agent="*"), ALICE)
    before = [kept.entry for kept in (await system.store.exec_approvals()).entries]
    read = await desk.document()
    await desk.replace_document(read["document"], read["hash"], ALICE)
    assert [kept.entry for kept in (await system.store.exec_approvals()).entries] == before
