"""Paths and addresses that other tools of the catalog carry, and what may be asked of running commands."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.arguments.judge import judge_arguments
from core.model.call import ToolCall
from core.model.decision import Effect, strictest
from core.model.session import SessionKey

DENIED, MISSED, OWN = "tool.path-denied", "tool.path-not-allowed", "tool.path-own-state"
UNCLEAR, LARGE, INPUT = "tool.path-unclear", "tool.path-too-large", "process.input"


class OneName:
    """A NameResolver that knows one public host."""

    def addresses(self, host: str) -> tuple[str, ...]:
        return ("93.184.216.34",) if host == "example.com" else ()


def ruled(yard: Any, tool: str, args: dict[str, Any], tools: dict[str, Any] | None = None) -> str:
    call = ToolCall(tool, SessionKey.main("main"), args=args)
    around = yard.around({"tools": tools or {}})
    judgement = judge_arguments(call, around, FilesystemResolver(), OneName())
    if not judgement.decisions:
        return "none"
    decision = strictest(judgement.decisions)
    return decision.rule if decision.effect is not Effect.ALLOW else "none"


CARRYING = [
    ("image_generate", {"prompt": "/etc/passwd", "image": "{}"}),
    ("image_generate", {"images": ["/srv/none", "{}"]}),
    ("image_generate", {"reference": [{"source": "{}"}]}),
    ("image_generate", {"image": {"{}": 1}}),
    ("message", {"action": "send", "to": "alice", "text": "look", "filePath": "{}"}),
    ("message", {"attachments": [{"name": "a.png", "path": "{}"}]}),
    ("message", {"content": [{"type": "image", "image": "{}"}]}),
    ("message", {"mediaUrl": "{}"}),
    ("message", {"media": "{}"}),
    ("Message", {"something_new": "{}"}),
    ("browser", {"action": "upload", "paths": ["/srv/none", "{}"]}),
    ("browser", {"action": "act", "request": {"kind": "upload", "files": "{}"}}),
    ("memory_get", {"path": "{}", "lines": 3}),
    ("tts", {"text": "hello", "voiceFile": "{}"}),
]


def filled(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {name.replace("{}", path): filled(each, path) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, path) for each in value]
    return value.replace("{}", path) if isinstance(value, str) else value


@pytest.mark.parametrize(("tool", "args"), CARRYING)
def test_a_file_that_a_tool_carries_is_judged_as_it_would_be_by_read(yard, below, tool, args):
    key, other = yard.file("etc/ssh/key"), yard.file("etc/other")
    yard.link("work/link", "etc/ssh/key")
    denying = {"read": {"deny": [below("etc/ssh/**")]}}
    assert ruled(yard, tool, filled(args, key), denying) == DENIED
    assert ruled(yard, tool, filled(args, below("work/link")), denying) == DENIED
    assert ruled(yard, tool, filled(args, other), denying) == "none"
    assert ruled(yard, tool, filled(args, other), {"read": {"allow": ["./**", "/srv/**"]}}) == MISSED
    assert ruled(yard, tool, filled(args, other), {"read": {"allow": [below("etc/**"), "/srv/**"]}}) == "none"
    assert ruled(yard, tool, filled(args, other), {"ask": {"paths": [other]}}) == "tool.ask-path"
    assert ruled(yard, tool, filled(args, other), {"read": {"maxSizeBytes": 0}}) == LARGE
    assert ruled(yard, tool, filled(args, below("state/sayso.db"))) == OWN


def test_a_relative_path_counts_under_any_name_where_a_rule_exists(yard):
    yard.file("work/secret/key")
    denying = {"read": {"deny": ["./secret/**"]}}
    for args in ({"file": "secret/key"}, {"new": "secret/key"}, {"new": ["a/../secret/key"]}):
        assert ruled(yard, "message", args, denying) == DENIED
        assert ruled(yard, "message", args) == "none"
    assert ruled(yard, "message", {"file": "../state/x"}) == OWN
    assert ruled(yard, "message", {"new": "a\n/b"}, denying) == UNCLEAR
    assert ruled(yard, "message", {"new": "a\n/b"}) == "none"
    assert ruled(yard, "message", {"file": "file:///etc/passwd"}) != "none"


def test_words_and_ids_are_no_paths(yard):
    rules = {"read": {"allow": ["/nowhere/**"]}, "web_fetch": {"allowedDomains": ["nowhere.example"]}}
    words = {
        "action": "send",
        "to": "/room",
        "text": "/etc/passwd, and see https://example.com/",
        "model": "acme/large",
        "mimeType": "image/png",
        "buffer": "data:image/png;base64,iVBO//8/",
        "silent": True,
        "retries": 3,
        "replyTo": None,
    }
    assert ruled(yard, "message", words, rules) == "none"
    assert ruled(yard, "sessions_spawn", {"task": "read /etc/passwd", "model": "a/b"}, rules) == "none"
    assert ruled(yard, "web_search", {"query": "site:https://example.com/ x"}, rules) == "none"
    assert ruled(yard, "browser", {"action": "click", "selector": "//a/b"}, rules) == "none"


def test_what_a_tool_writes_is_judged_by_the_rules_of_writing(yard):
    rules = {"write": {"deny": ["./.git/**"]}}
    assert ruled(yard, "image_generate", {"outputPath": ".git/hooks/x"}, rules) == DENIED
    assert ruled(yard, "image_generate", {"outputPath": "pictures/x"}, rules) == "none"


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("image_generate", {"image": "{}"}),
        ("image_generate", {"images": ["https://example.com/", "{}"]}),
        ("message", {"media": "{}"}),
        ("message", {"mediaUrl": "{}", "text": "x"}),
        ("message", {"attachments": [{"url": "{}"}]}),
        ("message", {"something_new": "{}"}),
        ("cron", {"payload": {"webhookUrl": "{}"}}),
    ],
)
def test_an_address_that_a_tool_carries_is_judged_as_it_would_be_by_web_fetch(yard, tool, args):
    inside = filled(args, "http://169.254.169.254/")
    assert ruled(yard, tool, inside) == "web_fetch.blocked-address"
    outside = filled(args, "https://example.com/")
    assert ruled(yard, tool, outside) == "none"
    assert ruled(yard, tool, outside, {"read": {"deny": ["**"]}}) == "none"
    assert ruled(yard, tool, outside, {"web_fetch": {"deniedDomains": ["example.com"]}}) == "web_fetch.denied"
    assert ruled(yard, tool, outside, {"web_fetch": {"enabled": False}}) == "web_fetch.disabled"
    assert ruled(yard, tool, filled(args, "HTTP://169.254.169.254/")) != "none"
    assert ruled(yard, tool, filled(args, "//169.254.169.254/")) != "none"


def test_an_address_without_a_scheme_is_no_address(yard):
    assert ruled(yard, "message", {"mediaUrl": "169.254.169.254/latest"}) == UNCLEAR
    assert ruled(yard, "browser", {"action": "upload", "paths": ["http://169.254.169.254/"]}) == UNCLEAR


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("process", {"action": "list"}),
        ("process", {"action": "poll", "sessionId": "a1", "timeout": 5}),
        ("process", {"action": "log", "sessionId": "a1", "offset": 1, "limit": 9}),
        ("process", {"action": "kill", "sessionId": "a1"}),
        ("process", {"action": "remove", "sessionId": "a1", "data": None}),
        ("BashOutput", {"bash_id": "a1", "filter": "error"}),
        ("TaskOutput", {"task_id": "a1", "block": True, "timeout": 100}),
        ("KillShell", {"shell_id": "a1"}),
    ],
)
def test_running_commands_can_be_looked_at_and_ended(yard, tool, args):
    assert ruled(yard, tool, args) == "none"


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        *(
            ("process", {"action": name, "sessionId": "a1"})
            for name in ("write", "submit", "paste", "send-keys")
        ),
        *(("process", {"action": name}) for name in ("new", "Submit", "LIST ", "", 7, None, ["list"])),
        ("process", {}),
        ("process", {"sessionId": "a1"}),
        ("process", {"action": "poll", "data": "rm -rf /"}),
        ("process", {"action": "poll", "keys": ["Enter"]}),
        ("process", {"action": "poll", "Action": "submit"}),
        ("process", {"action": "kill", "sessionId": ["a1", "rm"]}),
        ("BashOutput", {"bash_id": "a1", "action": "submit"}),
        ("BashOutput", {"bash_id": "a1", "input": "rm -rf /"}),
    ],
)
def test_nothing_is_typed_into_a_running_command(yard, tool, args):
    assert ruled(yard, tool, args) == INPUT


def test_the_refusal_to_type_says_what_to_do_instead(yard):
    call = ToolCall("process", SessionKey.main("main"), args={"action": "submit", "data": "rm -rf /"})
    (decision,) = judge_arguments(call, yard.around(), FilesystemResolver(), OneName()).decisions
    assert "'submit'" in decision.reason
    assert decision.reason.endswith("so run it by a call of exec of its own")
