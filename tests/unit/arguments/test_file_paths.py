"""Paths of file tools: what they really are decides, and for each admission a near miss is refused."""

from __future__ import annotations

import os
import socket
import unicodedata
from typing import Any

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.arguments.files import judge_files

ALLOWED, DENIED, MISSED = "tool.path-allowed", "tool.path-denied", "tool.path-not-allowed"
UNCLEAR, OWN, SPECIAL = "tool.path-unclear", "tool.path-own-state", "tool.path-special"
OUTSIDE, LARGE, ASK = "tool.path-outside-workspace", "tool.path-too-large", "tool.ask-path"


def test_without_rules_a_read_is_let_through_with_its_terms(yard):
    path = yard.file("work/a.txt")
    judgement = yard.judge("Read", {"file_path": "a.txt", "offset": 3})
    assert judgement.decisions == ()
    assert [each.to_json() for each in judgement.constraints] == [
        {"kind": "real-path", "path": "a.txt", "realPath": path},
        {"kind": "max-size-bytes", "path": "a.txt", "bytes": 10 * 1024 * 1024},
    ]


def test_tools_that_are_no_file_tools_are_none_of_its_business(yard):
    assert yard.rule("web_fetch", {"path": "/etc/shadow"}, {"read": {"deny": ["**"]}}) == "none"


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("{root}/a/f", "a/f", True),
        ("{root}/a/f", "a/F", False),
        ("{root}/a/*", "a/f", True),
        ("{root}/a/*", "a/b/f", False),
        ("{root}/a/**", "a/b/f", True),
        ("{root}/a/**", "a2/f", False),
        ("{root}/a/**", "a", False),
        ("{root}/a/", "a", True),
        ("{root}/a/", "a/b/f", True),
        ("{root}/a/", "ab", False),
        ("{root}/a?f", "a/f", False),
        ("{root}/a/?", "a/f", True),
        ("{root}/a/**/f", "a/f", True),
        ("{root}/a/**/f", "a/b/c/f", True),
        ("{root}/a/**/f", "a/b/cf", False),
        ("{root}/a/[f]", "a/f", False),
        ("{root}/a/f.", "a/fx", False),
        ("{root}/a", "a/f", False),
        ("{root}//a/./f", "a/f", True),
        ("{root}/a/../a/f", "a/f", False),
        ("~/x", "home/x", True),
        ("~/x", "home/xy", False),
        ("~other/**", "home/x", False),
        ("**/f", "a/b/f", True),
        ("**/f", "a/b/ff", False),
        ("src/*", "work/src/f", True),
        ("src/*", "a/src/f", False),
        ("./src/*", "work/src/f", True),
    ],
)
def test_an_allow_list_admits_what_its_glob_means_and_nothing_near_it(
    yard,
    pattern,
    path,
    matches,
):
    full = yard.file(path)
    assert yard.read(full, allow=[pattern.format(root=yard.root)]) == (ALLOWED if matches else MISSED)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("{root}/etc/**", "etc/f", True),
        ("{root}/etc/**", "etc2/f", False),
        ("{root}/etc/**", "etc", False),
        ("{root}/etc/", "etc", True),
        ("{root}/etc", "etc", True),
        ("{root}/etc", "etc/deep/f", True),
        ("{root}/etc", "etc2/f", False),
        ("{root}/etc/*", "etc/deep/f", False),
        (".env", "a/b/.env", True),
        (".env", "a/b/.envrc", False),
        ("secrets/", "a/secrets/b/c", True),
        ("*.pem", "a/b/x.pem", True),
        ("*.pem", "a/b/x.pem.txt", False),
        ("**/.ssh", "home/.ssh/id", True),
        ("~/.ssh/**", "home/.ssh/id", True),
        ("~/.ssh/**", "home/.ssh2/id", False),
        ("./x", "work/x", True),
        ("./x", "a/x", False),
    ],
)
def test_a_deny_list_keeps_what_users_mean_by_it(yard, pattern, path, matches):
    full = yard.file(path)
    assert yard.read(full, deny=[pattern.format(root=yard.root)]) == (DENIED if matches else "none")


def test_a_deny_pattern_that_means_no_path_denies_all_rather_than_nothing(yard):
    assert yard.read(yard.file("a"), deny=["~bob/**"]) == DENIED


def test_deny_wins_over_allow(yard):
    full = yard.file("work/x/f")
    assert yard.read(full, allow=[full], deny=[f"{yard.work}/**"]) == DENIED


def test_the_reason_names_the_path_the_rule_and_where_it_is_written(yard):
    yard.file("home/.ssh/id")
    yard.link("work/key", "home/.ssh/id")
    (decision,) = yard.judge("read", {"path": "key"}, {"read": {"deny": ["/x", "~/.ssh/**"]}}).decisions
    assert decision.source == "tools.read.deny[1]"
    expected = f"key ({yard.root}/home/.ssh/id) cannot be read: tools.read.deny[1] is `~/.ssh/**`"
    assert decision.reason == expected


def test_a_link_in_an_allowed_tree_that_leads_out_is_out(yard, below):
    yard.file("out/secret")
    yard.link("work/in", "out")
    yard.link("work/chain", "work/in")
    rules = [f"{yard.work}/**"]
    assert yard.read(below("work/in/secret"), allow=rules) == MISSED
    assert yard.read(below("work/chain/secret"), allow=rules) == MISSED
    assert yard.read(below("work/in/not-there-yet"), allow=rules) == MISSED
    assert yard.read(yard.file("work/own"), allow=rules) == ALLOWED


def test_a_pattern_below_a_link_means_where_the_link_leads(yard, below):
    yard.file("real/f")
    yard.link("alias", "real")
    for path in ("alias/f", "real/f"):
        assert yard.read(below(path), allow=[below("alias/**")]) == ALLOWED
        assert yard.read(below(path), deny=[below("alias/**")]) == DENIED
    assert yard.read(yard.file("real2/f"), allow=[below("alias/**")]) == MISSED


def test_a_pattern_inside_the_workspace_is_not_led_out_by_a_link_that_the_agent_can_make(yard, below):
    yard.file("out/secret")
    yard.link("work/sub", "out")
    yard.file("work/real/f")
    yard.link("work/alias", "work/real")
    assert yard.read(below("work/sub/secret"), allow=[below("work/sub/**")]) == MISSED
    assert yard.read(below("work/alias/f"), allow=[below("work/alias/**")]) == ALLOWED


def test_the_name_of_a_denied_link_is_denied_by_every_way_to_it(yard, below):
    yard.file("data/f")
    yard.link("work/link1", "data/f")
    yard.link("way", "work")
    for pattern in (below("work/link1"), below("work/link?")):
        assert yard.read(below("work/link1"), deny=[pattern]) == DENIED
        assert yard.read(below("way/link1"), deny=[pattern]) == DENIED
    assert yard.read(below("work/link1"), deny=[below("work/link2")]) == "none"
    assert yard.read(below("way/other"), deny=[below("w?y/*")]) == DENIED
    assert yard.read(below("work/other"), deny=[below("w?y/*")]) == "none"


def test_dots_lead_where_they_lead(yard, below):
    yard.file("etc/f")
    yard.file("work/sub/f")
    assert yard.read("../etc/f", allow=["./**"]) == MISSED
    assert yard.read(below("work/../etc/f"), deny=[below("etc/**")]) == DENIED
    assert yard.read("sub/../sub/./f", allow=["./**"]) == ALLOWED
    assert yard.read("/" * 3 + below("etc/f")[1:], deny=[below("etc/**")]) == DENIED
    assert yard.read("//" + below("etc/f")[1:], deny=[below("etc/**")]) == DENIED


def test_dots_behind_a_link_mean_two_things_and_are_refused(yard, below):
    yard.file("far/f")
    (yard.root / "far/deep").mkdir()
    yard.link("work/jump", "far/deep")
    yard.file("work/f")
    assert yard.read("jump/../f", allow=[below("**")]) == UNCLEAR


def test_links_in_circles_are_refused(yard):
    yard.link("work/a", "work/b")
    yard.link("work/b", "work/a")
    assert yard.read("a") == UNCLEAR
    assert yard.read("a/x") == UNCLEAR


def test_what_is_not_there_yet_is_judged_by_where_it_would_be(yard, below):
    yard.link("work/new", "etc/new")
    assert yard.rule("write", {"path": "new"}, {"write": {"deny": [below("etc/**")]}}) == DENIED
    assert yard.rule("write", {"path": "x/y/z"}, {"write": {"allow": ["./**"]}}) == ALLOWED
    assert yard.rule("write", {"path": "x/../../y"}, {"write": {"allow": ["./**"]}}) == MISSED


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_denied_name_is_denied_however_its_accents_are_written(yard, form):
    full = yard.file("work/" + unicodedata.normalize(form, "caf\u00e9/f"))
    assert yard.read(full, deny=["caf\u00e9/"]) == DENIED
    assert yard.read(full, deny=["cafe\u0301/"]) == DENIED
    assert yard.read(full, allow=["caf\u00e9/"]) == (ALLOWED if form == "NFC" else MISSED)
    assert yard.read(full, deny=["cafe/"]) == "none"


@pytest.mark.parametrize("name", ["f.", "f..", "F", "f\\", "...", "f "])
def test_names_that_are_nearly_another_are_another(yard, name):
    yard.file("work/f")
    assert yard.read(f"{yard.work}/{name}", allow=[f"{yard.work}/f"]) in {MISSED, UNCLEAR}


@pytest.mark.parametrize(
    "path",
    [
        "",
        " ",
        " a",
        "a ",
        "a\0b",
        "a\nb",
        "a\tb",
        "a\u202eb",
        "a\u00a0b",
        "\ud800",
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "https://example.com/a",
        "~root/x",
        "@/etc/passwd",
        "$HOME/x",
        "/proc/self/environ",
        "/proc/1/root/etc/shadow",
        "/dev/fd/3",
        "/dev/stdin",
        "/dev/../dev/fd/0",
        "x" * 256,
        "/x" * 2048,
        "\u00e9" * 128,
    ],
)
def test_paths_that_programs_may_read_differently_are_refused(yard, path):
    assert yard.read(path) == UNCLEAR


@pytest.mark.parametrize(
    "path", ["a b", "a@b", "a$b", "a~b", "x" * 255, "/x" * 2047, "é" * 127, "a:b", "-rf"]
)
def test_odd_names_that_all_programs_read_alike_are_judged(yard, path):
    assert yard.read(path) == "none"
    assert yard.read(path, allow=["/elsewhere/**"]) == MISSED


def test_a_tilde_is_the_home_and_without_one_it_is_refused(yard):
    yard.file("home/f")
    assert yard.read("~/f", allow=["~/**"]) == ALLOWED
    assert yard.rule("read", {"path": "~/f"}, home="") == UNCLEAR


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"content": "x"},
        {"path": None},
        {"path": 7},
        {"path": ["a"]},
        {"path": {"a": 1}},
        {"path": "a", "file_path": "b"},
        {"path": "a", "target": "/etc/shadow"},
        {"path": "a", "paths": ["/etc/shadow"]},
        {"path": "a", "edits": [{"file_path": "/etc/shadow"}]},
        {"path": "a", "edits": {"path": "b"}},
        {"path": "a", "content": {"path": "b"}},
        {"path": "a", "indentation": {"from": ["b"]}},
        {"path": "a", "Path": "b"},
        {"path": "a", "operation": {"path": "/etc/x"}},
        {"path": "a", "operation": "/etc/x"},
        {"path": "a", "content": [{"path": "/etc/x"}]},
        {"path": "a", "content": ["/etc/x"]},
        {"path": "a", "description": [{"path": "/etc/x"}]},
    ],
)
@pytest.mark.parametrize("tool", ["read", "write", "edit"])
def test_a_file_that_is_not_named_plainly_once_is_refused(yard, tool, args):
    assert yard.rule(tool, args) == UNCLEAR


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("Read", {"file_path": "{x}", "offset": 1, "limit": 2, "pages": "1-2"}),
        ("Write", {"file_path": "{x}", "content": "/etc/shadow"}),
        ("Edit", {"file_path": "{x}", "old_string": "a", "new_string": "b", "replace_all": False}),
        ("MultiEdit", {"file_path": "{x}", "edits": [{"old_string": "a", "new_string": "b"}]}),
        ("NotebookEdit", {"notebook_path": "{x}", "new_source": "x", "cell_id": "1", "edit_mode": "insert"}),
        ("read", {"path": "{x}", "file_path": "{x}", "filePath": None}),
        ("edit", {"path": "{x}", "oldText": "a", "newText": "b"}),
        ("read_file", {"absolute_path": "{x}"}),
        ("read_file", {"file_path": "{x}", "mode": "slice", "indentation": {"max_levels": 2}}),
        ("view_image", {"path": "{x}", "detail": "original"}),
        ("image", {"image": "{x}", "prompt": "what is this?"}),
        ("image", {"images": ["{x}"], "prompt": "what is this?"}),
        ("apply_patch", {"command": "*** Begin Patch\n*** Delete File: {x}\n*** End Patch"}),
        ("apply_patch", {"command": ["apply_patch", "*** Begin Patch\n*** Delete File: {x}\n*** End Patch"]}),
        ("apply_patch_call", {"call_id": "1", "operation": {"type": "delete_file", "path": "{x}"}}),
        (
            "apply_patch_call",
            {"operation": {"type": "update_file", "path": "{x}", "diff": "@@\n-a\n+b\n"}},
        ),
    ],
)
def test_what_real_clients_send_is_understood(yard, tool, args):
    yard.file("work/f")

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        return value.replace("{x}", f"{yard.work}/f") if isinstance(value, str) else value

    both = {"allow": ["./f"]}
    assert yard.rule(tool, filled(args), {"read": both, "write": both}) == ALLOWED
    other = {"allow": ["./g"]}
    assert yard.rule(tool, filled(args), {"read": other, "write": other}) == MISSED


@pytest.mark.parametrize("tool", ["image"])
def test_a_picture_with_an_address_is_no_file(yard, tool):
    assert yard.rule(tool, {"image": "https://example.com/x.png"}, {"read": {"deny": ["**"]}}) == "none"
    assert yard.rule(tool, {"image": "httpx/x.png"}, {"read": {"deny": ["**"]}}) == DENIED
    assert yard.rule(tool, {"prompt": "x"}) == UNCLEAR


def test_write_rules_govern_writing_and_editing_and_read_rules_reading(yard):
    yard.file("work/f")
    denied = {"deny": ["./f"]}
    for tool, args in (("write", {"path": "f", "content": ""}), ("edit", {"path": "f"})):
        assert yard.rule(tool, args, {"write": denied}) == DENIED
    assert yard.rule("read", {"path": "f"}, {"write": denied}) == "none"
    assert yard.rule("write", {"path": "f"}, {"read": denied}) == "none"


def test_what_may_not_be_read_may_not_be_edited(yard):
    yard.file("work/f")
    rules = {"read": {"deny": ["./f"]}, "write": {"allow": ["./**"]}}
    assert yard.rule("edit", {"path": "f"}, rules) == DENIED
    update = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch"
    assert yard.rule("apply_patch", {"input": update}, rules) == DENIED
    remove = "*** Begin Patch\n*** Delete File: f\n*** End Patch"
    assert yard.rule("apply_patch", {"input": remove}, rules) == ALLOWED


def test_what_an_edit_or_a_move_reads_must_be_admitted_by_the_whole_read_rule(yard, below):
    yard.file("etc/passwd", "x" * 11)
    yard.file("work/f", "x" * 11)
    update = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch"
    moving = "*** Begin Patch\n*** Update File: {}\n*** Move to: taken\n@@\n-a\n+b\n*** End Patch"
    renaming = "diff --git a/{0} b/taken\nrename from {0}\nrename to taken"
    calls = [("edit", {"path": "{}", "oldText": "a", "newText": "b"})]
    calls += [("apply_patch", {"input": text}) for text in (update, moving)]
    for tool, args in calls:
        near, far = (
            {name: text.replace("{}", path) for name, text in args.items()}
            for path in ("f", below("etc/passwd"))
        )
        rules = {"read": {"allow": ["./**"]}}
        assert yard.rule(tool, far, rules) == MISSED
        assert yard.rule(tool, near, rules) == "none"
        assert yard.rule(tool, far, rules | {"write": {"allow": ["/**"]}}) == MISSED
        assert yard.rule(tool, near, rules | {"write": {"allow": ["/**"]}}) == ALLOWED
        assert yard.rule(tool, near, {"read": {"maxSizeBytes": 10}}) == LARGE
        assert yard.rule(tool, near, {"read": {"maxSizeBytes": 11}}) == "none"
    assert yard.rule("apply_patch", {"input": renaming.format("f")}, {"read": {"allow": ["./g"]}}) == MISSED
    new = {"path": below("etc/new"), "content": "x"}
    assert yard.rule("write", new, {"read": {"allow": ["./**"]}}) == "none"


def test_an_edit_keeps_to_the_smaller_of_both_sizes(yard):
    yard.file("work/f")
    sizes = {"read": {"maxSizeBytes": 7}, "write": {"maxSizeBytes": 9}}
    for tool, most in (("edit", 7), ("write", 9), ("read", 7)):
        terms = {each.kind: each.to_json() for each in yard.judge(tool, {"path": "f"}, sizes).constraints}
        assert terms["max-size-bytes"]["bytes"] == most


def test_every_path_of_a_patch_must_be_admitted_both_ends_of_a_move_too(yard):
    move = "*** Update File: a\n*** Move to: {to}\n@@\n-a\n+b\n"
    text = f"*** Begin Patch\n{move}*** Add File: c\n+x\n*** End Patch"
    rules = {"write": {"allow": ["./**"], "deny": ["**/key"]}}
    judgement = yard.judge("apply_patch", {"input": text.format(to="b")}, rules)
    assert {decision.rule for decision in judgement.decisions} == {ALLOWED}
    real = [each.to_json()["realPath"] for each in judgement.constraints if each.kind == "real-path"]
    assert real == [f"{yard.work}/{name}" for name in "abc"]
    for to, rule in (("key", DENIED), ("../b", MISSED), ("/etc/b", MISSED)):
        judgement = yard.judge("apply_patch", {"input": text.format(to=to)}, rules)
        assert rule in {decision.rule for decision in judgement.decisions}
        assert judgement.constraints == ()


def test_sizes_are_checked_where_they_are_known(yard):
    path = yard.file("work/f", "x" * 11)
    assert yard.read(path, maxSizeBytes=10) == LARGE
    assert yard.read(path, maxSizeBytes=11) == "none"
    assert yard.rule("write", {"path": "n", "content": "é" * 5}, {"write": {"maxSizeBytes": 9}}) == LARGE
    assert yard.rule("write", {"path": "n", "content": "é" * 5}, {"write": {"maxSizeBytes": 10}}) == "none"
    assert yard.rule("edit", {"path": "f"}, {"write": {"maxSizeBytes": 10}}) == LARGE
    assert yard.rule("write", {"path": "f", "content": "x"}, {"write": {"maxSizeBytes": 10}}) == "none"


@pytest.mark.parametrize(
    ("tool", "args", "size"),
    [
        ("edit", {"path": "f", "old_string": "x", "new_string": "y" * 40}, 40),
        ("edit", {"path": "f", "edits": [{"newText": "y" * 30}, {"newText": "é" * 5}]}, 40),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: n\n+123456789\n+\n*** End Patch"}, 11),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: f\n@@\n-x\n+é\n*** End Patch"}, 3),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: f\n*** Move to: n\n@@\n-x\n+é\n*** End Patch"},
            3,
        ),
        ("apply_patch", {"input": "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n x\n+12\n@@ -5 +6 @@\n-a\n+b"}, 5),
    ],
)
def test_what_an_edit_or_a_patch_brings_counts_as_size(yard, tool, args, size):
    yard.file("work/f", "x")
    assert yard.rule(tool, args, {"write": {"maxSizeBytes": size - 1}}) == LARGE
    assert yard.rule(tool, args, {"write": {"maxSizeBytes": size}}) == "none"
    judgement = yard.judge(tool, args, {"write": {"maxSizeBytes": size - 1}})
    assert f"the call brings {size} bytes" in judgement.decisions[-1].reason


@pytest.mark.parametrize("edits", [5, [5], {"a": 5}, [None]])
def test_edits_without_any_text_bring_nothing(yard, edits):
    yard.file("work/f", "x")
    assert yard.rule("edit", {"path": "f", "edits": edits}, {"write": {"maxSizeBytes": 1}}) in {
        "none",
        UNCLEAR,
    }


def test_devices_pipes_sockets_and_directories_are_no_files(yard, below):
    os.mkfifo(below("work/pipe"))
    directory = os.open(yard.work, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{directory}/sock")  # the whole path would be too long for a socket
    os.close(directory)
    for path in ("pipe", "sock", "/dev/null", "/dev/zero"):
        assert yard.read(path) == SPECIAL
        assert yard.rule("write", {"path": path}) == SPECIAL
    assert yard.rule("write", {"path": "."}) == SPECIAL
    remove = "*** Begin Patch\n*** Delete File: .\n*** End Patch"
    assert yard.rule("apply_patch", {"input": remove}) == SPECIAL


def test_reading_a_directory_is_looking_through_it(yard):
    yard.file("work/src/f")
    assert yard.read("src") == "none"
    assert yard.read("src", allow=["./**"]) == ALLOWED
    assert yard.read("src", allow=["./src"]) == MISSED
    assert yard.read("src", allow=["./src/**"]) == ALLOWED
    assert yard.read("src", allow=["./src/*/**"]) == MISSED
    assert yard.read("src", deny=["./src/**"]) == DENIED
    assert yard.read("src", deny=["./srcs/**"]) == "none"
    assert yard.read("src", deny=["./src/f"]) == DENIED
    assert yard.read("..") == OWN


@pytest.mark.parametrize(
    "settings",
    [{"tools": {"fs": {"workspaceOnly": True}}}, {"sandboxing": {"workspaceAccess": "none"}}],
)
def test_confined_file_tools_stay_in_the_workspace(yard, below, settings):
    yard.file("out/f")
    yard.file("work/f")
    yard.file("work2/f")
    yard.link("work/leak", "out")
    yard.link("ws", "work")
    source = "tools.fs.workspaceOnly" if "tools" in settings else "sandboxing.workspaceAccess"
    for workspace in (below("work"), below("ws")):
        around = yard.around(settings, workspace=workspace)
        for path in ("../out/f", "leak/f", below("work2/f"), "/etc/hostname"):
            (decision,) = _judged("read", path, around)
            assert (decision.rule, decision.source) == (OUTSIDE, source)
        assert _judged("read", "f", around) == ()
        assert _judged("write", below("ws/new"), around) == ()
    free = yard.around({"tools": {"fs": {"workspaceOnly": False}}, "sandboxing": {"workspaceAccess": "ro"}})
    assert _judged("read", below("out/f"), free) == ()


def test_an_agents_own_access_to_its_workspace_counts_before_the_general_one(yard):
    config = {"agents": {"byId": {"main": {"sandbox": {"workspaceAccess": "none"}}}}}
    assert yard.around(config).confined_by == "agents.main.sandbox.workspaceAccess"
    config["sandboxing"] = {"workspaceAccess": "none"}
    config["agents"]["byId"]["main"]["sandbox"] = {"workspaceAccess": "rw"}
    assert yard.around(config).confined_by is None


def _judged(tool: str, path: str, around: Any) -> tuple[Any, ...]:
    return judge_files(tool, {"path": path}, around, FilesystemResolver()).decisions


def test_its_own_state_is_out_of_reach_whatever_the_rules_say(yard, below):
    yard.file("state/sayso.db")
    yard.file("state2/f")
    yard.link("work/link", "state/sayso.db")
    everything = {"allow": ["/**"]}
    for path in ("link", "../state/sayso.db", below("state/new"), below("work/../state/x")):
        for tool in ("read", "write", "edit"):
            assert yard.rule(tool, {"path": path}, {"read": everything, "write": everything}) == OWN
    assert yard.read(below("state2/f"), **everything) == ALLOWED


def test_a_search_needs_all_that_is_below_it(yard, below):
    yard.file("work/src/f")
    grep = {"pattern": "x", "path": "src", "-n": True, "output_mode": "content"}
    for tool in ("Grep", "Glob", "LS", "read"):
        assert yard.rule(tool, grep) == "none"
        assert yard.rule(tool, grep, {"read": {"allow": ["./**"]}}) == ALLOWED
        assert yard.rule(tool, grep, {"read": {"allow": ["./src"]}}) == MISSED
        assert yard.rule(tool, grep, {"read": {"allow": ["./src/*"]}}) == MISSED
        assert yard.rule(tool, grep, {"read": {"deny": ["~/.ssh/**", below("work/other/**")]}}) == "none"
        for inner in ("./src/secret", ".env", "./*/secret", "./**", below("work/src/f")):
            assert yard.rule(tool, grep, {"read": {"deny": [inner]}}) == DENIED
        assert yard.rule(tool, grep | {"path": ".."}) == OWN
        assert yard.rule(tool, {"pattern": "x"}, {"read": {"allow": ["./src/**"]}}) == MISSED
        assert yard.rule(tool, grep, {"ask": {"paths": ["./src/secret"]}}) == ASK
    assert yard.rule("Grep", {"pattern": "x", "path": "src/f"}, {"read": {"allow": ["./src/*"]}}) == ALLOWED


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("image", {"image": "f", "prompt": ["/etc/shadow"]}),
        ("image", {"image": "f", "images": [{"path": "/etc/shadow"}]}),
        ("image", {"image": "f", "operation": {"path": "/etc/shadow"}}),
        ("Grep", {"pattern": "x", "glob": [{"path": "/etc/shadow"}]}),
        ("Grep", {"pattern": ["x", "/etc/shadow"]}),
        ("Grep", {"pattern": "x", "operation": {"path": "/etc/shadow"}}),
        ("apply_patch", {"operation": {"type": "delete_file", "path": "f"}, "description": ["/etc/shadow"]}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: f\n*** End Patch", "type": ["/etc/x"]}),
    ],
)
def test_words_are_text_or_they_could_hold_paths(yard, tool, args):
    yard.file("work/f")
    assert yard.rule(tool, args) == UNCLEAR


def test_a_search_takes_its_globs_as_text_or_as_texts(yard):
    yard.file("work/f")
    for globs in ("*.py", ["*.py", "*.md"]):
        assert yard.rule("Grep", {"pattern": "x", "glob": globs, "ignore": globs}) == "none"


@pytest.mark.parametrize(
    ("rule", "denied"), [("**/x", True), ("*.pem", True), ("{root}/out/**", False), ("{root}/out/x", False)]
)
def test_a_rule_that_names_no_directory_refuses_searches_and_says_how_out(yard, rule, denied):
    yard.file("work/src/f")
    rules = {"read": {"deny": [rule.format(root=yard.root)]}}
    judgement = yard.judge("Grep", {"pattern": "a", "path": "src"}, rules)
    assert [decision.rule for decision in judgement.decisions] == ([DENIED] if denied else [])
    assert all("search a narrower path" in decision.reason for decision in judgement.decisions)
    assert all("let the rule name its directories" in decision.reason for decision in judgement.decisions)
    assert yard.rule("Grep", {"pattern": "a", "path": "src/f"}, rules) == "none"


@pytest.mark.parametrize(
    "pattern", ["**/*.py", "*.{ts,tsx}", "src/{a-b,c_d}/*", ".github/**", ".*rc", "*/[ab]*", "a.?", "{a}"]
)
def test_a_glob_that_stays_in_its_directory_is_taken(yard, pattern):
    yard.file("work/f")
    for rules in ({}, {"read": {"deny": ["/etc/ssh/**"], "allow": ["./**"]}}):
        assert yard.rule("Glob", {"pattern": pattern}, rules) == (ALLOWED if rules else "none")


@pytest.mark.parametrize(
    "pattern",
    [
        *("../*", "/etc/*", "~/*", "a/{..,b}/*", None),
        *(
            ".{.,}/ssh/*",
            "{/etc/a,x}",
            "{~,x}/a",
            ".{a,.}/x",
            "{a..c}",
            "{a,{.,}.}/x",
            "{a,}/x",
            "}{",
            "{,a}",
        ),
        *("@(.).", "+(.)/x", "!(a)/x", "?(.)./x", "*(.)/x", "a/@(..|b)/x", "\\.\\./x", ".\\./x"),
        *(".*/x", ".?/x", "a/.[.]/x", "[.][.]/x", "[.]./x", "[!a][!a]/x"),
    ],
)
def test_a_glob_that_leads_out_of_its_directory_is_refused(yard, pattern):
    assert yard.rule("Glob", {"pattern": pattern}) == UNCLEAR
    assert yard.rule("read", {"pattern": pattern}) == UNCLEAR
    assert yard.rule("Grep", {"pattern": pattern}) == "none"


def test_paths_are_put_to_a_person(yard, below):
    yard.file("home/Documents/f")
    yard.link("work/doc", "home/Documents/f")
    rules = {"ask": {"paths": ["/x", "~/Documents/**"]}, "read": {"deny": ["**/never"]}}
    (decision,) = yard.judge("read", {"path": "doc"}, rules).decisions
    assert (decision.rule, decision.source, str(decision.effect)) == (ASK, "tools.ask.paths[1]", "ask")
    assert yard.rule("read", {"path": "~/Documents2/f"}, rules) == "none"
    assert yard.rule("read", {"path": "~/Documents/never"}, rules) == DENIED
    assert yard.rule("write", {"path": below("home/Documents/new")}, rules) == ASK
