"""What the server does not let pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.platforms.telegram import description, faults
from tests.platforms.telegram.errors import ApiError
from tests.platforms.telegram.markup import parse
from tests.platforms.telegram.text import clean, linked, part, units

ROOT = Path(__file__).parents[3]


def button(**fields):
    return {"inline_keyboard": [[{"text": "Allow", "callback_data": "a", **fields}]]}


def entity(offset, length, kind="pre", **more):
    return [{"type": kind, "offset": offset, "length": length, **more}]


@pytest.fixture
def chat(telegram_api):
    return telegram_api.private_chat(telegram_api.new_user("Ada"))


BROKEN = {
    "unknown method": ("sendMesage", {}, "method not found"),
    "method left out": ("sendDice", {}, "does not implement sendDice"),
    "unknown parameter": ("sendMessage", {"text": "x", "colour": "red"}, "colour: no such parameter"),
    "missing parameter": ("sendMessage", {}, "text: required, and missing"),
    "wrong type": ("sendMessage", {"text": 7}, "text: must be String"),
    "wrong type inside": (
        "sendMessage",
        {"text": "x", "reply_markup": button(text=7)},
        "[0][0].text: must be String",
    ),
    "unknown field inside": ("sendMessage", {"text": "x", "reply_markup": button(size=7)}, "no such field"),
    "empty text": ("sendMessage", {"text": " \n "}, "text is empty"),
    "long text": ("sendMessage", {"text": "x" * 4097}, "too long"),
    "text long in UTF-16": ("sendMessage", {"text": "😀" * 2049}, "too long"),
    "no data": ("sendMessage", {"text": "x", "reply_markup": button(callback_data="")}, "1 to 64 bytes"),
    "long data": (
        "sendMessage",
        {"text": "x", "reply_markup": button(callback_data="é" * 33)},
        "1 to 64 bytes",
    ),
    "two kinds": (
        "sendMessage",
        {"text": "x", "reply_markup": button(url="https://x.org")},
        "exactly one kind",
    ),
    "empty label": ("sendMessage", {"text": "x", "reply_markup": button(text="")}, "must be non-empty"),
    "unknown style": ("sendMessage", {"text": "x", "reply_markup": button(style="red")}, "style 'red'"),
    "entity outside": ("sendMessage", {"text": "abc", "entities": entity(1, 3)}, "not inside the text of 3"),
    "entity before": ("sendMessage", {"text": "abc", "entities": entity(-1, 2)}, "not inside the text"),
    "split pair": ("sendMessage", {"text": "a😀b", "entities": entity(0, 2)}, "splits a surrogate pair"),
    "unknown entity": (
        "sendMessage",
        {"text": "abc", "entities": entity(0, 1, "loud")},
        "unsupported entity",
    ),
    "link to nowhere": ("sendMessage", {"text": "abc", "entities": entity(0, 1, "text_link")}, "needs url"),
    "both kinds of markup": (
        "sendMessage",
        {"text": "abc", "parse_mode": "HTML", "entities": entity(0, 1)},
        "exclude each other",
    ),
    "broken HTML": ("sendMessage", {"text": "a <b>c", "parse_mode": "HTML"}, "Can't find end tag"),
    "broken MarkdownV2": ("sendMessage", {"text": "a.b", "parse_mode": "MarkdownV2"}, "'.' is reserved"),
    "long toast": ("answerCallbackQuery", {"callback_query_id": "1", "text": "x" * 201}, "at most 200"),
    "command name": (
        "setMyCommands",
        {"commands": [{"command": "Go", "description": "x"}]},
        "BOT_COMMAND_INVALID",
    ),
    "scope": ("setMyCommands", {"commands": [], "scope": {"type": "moon"}}, "scope.type: must be"),
    "scope of no chat": (
        "setMyCommands",
        {"commands": [], "scope": {"type": "chat"}},
        "scope.type: must be",
    ),
    "force reply": (
        "sendMessage",
        {"text": "x", "reply_markup": {"force_reply": False}},
        "force_reply is always true",
    ),
    "force reply without saying so": (
        "sendMessage",
        {"text": "x", "reply_markup": {"selective": True}},
        "required",
    ),
    "long placeholder": (
        "sendMessage",
        {"text": "x", "reply_markup": {"force_reply": True, "input_field_placeholder": "x" * 65}},
        "1 to 64 characters",
    ),
    "edit to a force reply": (
        "editMessageText",
        {"message_id": 1, "text": "x", "reply_markup": {"force_reply": True}},
        "inline_keyboard: required",
    ),
    "mention of nobody": (
        "sendMessage",
        {"text": "abc", "entities": entity(0, 1, "text_mention")},
        "needs user",
    ),
    "no message named": ("editMessageText", {"text": "x", "chat_id": 1}, "identifier is not specified"),
    "chat action": ("sendChatAction", {"action": "dance"}, "wrong parameter action"),
    "document by name": ("sendDocument", {"document": "file.txt"}, "wrong file identifier"),
    "secret": ("setWebhook", {"url": "http://127.0.0.1:1/", "secret_token": "ä"}, "unallowed characters"),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_request_that_breaks_the_description_is_refused_and_kept(telegram_api, ask, chat, case):
    method, values, why = BROKEN[case]
    if "chat_id" in description.METHODS.get(method, {"fields": {}})["fields"]:
        values = {"chat_id": chat.id, **values}
    status, body = await ask(method, **values)
    assert status in {400, 404}
    assert body["ok"] is False
    assert why in body["description"]
    (violation,) = telegram_api.violations
    assert why in violation
    assert telegram_api.messages(chat) == []
    with pytest.raises(AssertionError, match="broke the Bot API"):
        telegram_api.assert_clean()
    telegram_api.violations.clear()


NEAR = {
    "longest text": {"text": "x" * 4096},
    "longest text in UTF-16": {"text": "😀" * 2048},
    "longest data": {"text": "x", "reply_markup": button(callback_data="é" * 32)},
    "entity to the end": {"text": "a😀b", "entities": entity(0, 4, language="bash")},
    "whole pair": {"text": "a😀b", "entities": entity(1, 2)},
    "longest placeholder": {
        "text": "x",
        "reply_markup": {"force_reply": True, "input_field_placeholder": "x" * 64},
    },
    "escaped HTML": {"text": "a &lt;b&gt;c &amp;&amp; <code>d</code>", "parse_mode": "HTML"},
}


@pytest.mark.parametrize("case", NEAR)
async def test_a_request_just_within_the_limits_is_taken(telegram_api, ask, chat, case):
    status, body = await ask("sendMessage", chat_id=chat.id, **NEAR[case])
    assert (status, body["ok"]) == (200, True)
    assert len(telegram_api.messages(chat)) == 1


async def test_a_wrong_or_revoked_token_is_unauthorized(telegram_api, ask):
    assert (await ask("getMe"))[0] == 200
    telegram_api.revoked = True
    assert await ask("getMe") == (401, {"ok": False, "error_code": 401, "description": "Unauthorized"})


async def test_what_breaks_inside_the_server_fails_the_test_too(telegram_api, ask):
    telegram_api.methods.table["getMe"] = lambda _values: {"id": "seven"}
    assert (await ask("getMe"))[0] == 500
    telegram_api.methods.table["getMe"] = lambda _values: 1 // 0
    assert (await ask("getMe"))[0] == 500
    wrong, broken = telegram_api.violations
    assert "the test server made a wrong answer" in wrong
    assert "the test server failed: ZeroDivisionError" in broken
    telegram_api.violations.clear()


async def test_waiting_for_what_never_comes_fails_and_tells_what_is_there(telegram_api, ask, chat):
    await ask("sendMessage", chat_id=chat.id, text="hello")
    with pytest.raises(AssertionError, match=r"not seen within 0\.05 s; messages: .*hello"):
        await telegram_api.message_when(lambda message: message.text == "bye", seconds=0.05)


def test_the_plugin_fails_a_test_whose_bot_breaks_the_api(tmp_path):
    (tmp_path / "test_breaks.py").write_text(
        "import aiohttp\n"
        "async def test_breaks(telegram_api):\n"
        "    async with aiohttp.ClientSession(trust_env=False) as session:\n"
        "        await session.post(telegram_api.base_url + telegram_api.token + '/sendMesage')\n"
    )
    plugins = [
        "-p",
        "tests.platforms.telegram.plugin",
        "-p",
        "pytest_asyncio.plugin",
        "-p",
        "no:cacheprovider",
    ]
    options = ["-q", "-o", "asyncio_mode=auto", f"--rootdir={tmp_path}"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "1 passed, 1 error" in ran.stdout
    assert "sendMesage: 404 Not Found: method not found" in ran.stdout


async def test_a_webhook_gets_each_update_with_the_secret_until_it_takes_it(telegram_api, ask, chat):
    got = []

    async def receive(request):
        got.append((request.headers.get("X-Telegram-Bot-Api-Secret-Token"), await request.json()))
        return web.Response(status=500 if len(got) == 1 else 200)

    app = web.Application()
    app.router.add_post("/hook", receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    await ask("setWebhook", url=url, secret_token="s3cret")

    assert (await ask("getUpdates"))[0] == 409
    telegram_api.misbehave("webhook", faults.duplicate())
    telegram_api.say(chat, chat.user, "hello")
    await telegram_api.updates_taken()
    assert [(secret, update["message"]["text"]) for secret, update in got] == [("s3cret", "hello")] * 2
    assert [status for _, status in telegram_api.updates.deliveries] == [500, 200]

    telegram_api.misbehave("webhook", faults.reorder())
    telegram_api.say(chat, chat.user, "one")
    telegram_api.say(chat, chat.user, "two")
    await telegram_api.updates_taken()
    assert [update["message"]["text"] for _, update in got[2:]] == ["two", "one"]
    await runner.cleanup()


async def test_only_wanted_kinds_of_updates_are_kept(telegram_api, ask, chat):
    await ask("getUpdates", allowed_updates=["callback_query"])
    telegram_api.say(chat, chat.user, "hello")
    assert telegram_api.updates.pending == []
    await ask("getUpdates", allowed_updates=[])
    telegram_api.say(chat, chat.user, "hello")
    assert len(telegram_api.updates.pending) == 1


@pytest.mark.parametrize(
    ("mode", "source", "text", "kinds"),
    [
        ("HTML", '<pre><code class="language-sh">a &lt; b</code></pre>', "a < b", [("pre", "a < b", "sh")]),
        (
            "HTML",
            "<b>x</b> <i>y<u>z</u></i>",
            "x yz",
            [("bold", "x", None), ("italic", "yz", None), ("underline", "z", None)],
        ),
        ("MarkdownV2", "*x* `a\\`b` \\.", "x a`b .", [("bold", "x", None), ("code", "a`b", None)]),
        ("MarkdownV2", "```sh\nrm -rf\n```", "rm -rf\n", [("pre", "rm -rf\n", "sh")]),
        (
            "MarkdownV2",
            "[a](https://x.org/\\)) ||s||",
            "a s",
            [("text_link", "a", None), ("spoiler", "s", None)],
        ),
    ],
)
def test_markup_becomes_text_and_entities(mode, source, text, kinds):
    parsed, entities = parse(source, mode)
    assert parsed == text
    assert [(e["type"], part(parsed, e), e.get("language")) for e in entities] == kinds


@pytest.mark.parametrize(
    ("mode", "source"),
    [
        ("HTML", "a < b"),
        ("HTML", "<script>x</script>"),
        ("HTML", "<b>x</i>"),
        ("HTML", "x</b>"),
        ("MarkdownV2", "*x"),
        ("MarkdownV2", "`x"),
        ("MarkdownV2", "a-b"),
        ("Markdown", "x"),
    ],
)
def test_broken_markup_is_a_violation(mode, source):
    with pytest.raises(ApiError) as caught:
        parse(source, mode)
    assert (caught.value.code, caught.value.violation) == (400, True)


def test_the_platform_takes_control_characters_out_and_moves_the_entities():
    text, entities = clean("  a\u202eb\r\tc", entity(2, 3))
    assert text == "ab c"
    assert [part(text, e) for e in entities] == ["ab"]


@given(st.text(), st.data())
def test_cleaning_never_leaves_an_entity_outside_the_text(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    given_entity = entity(units(text[:start]), units(text[start:end]))
    cleaned, entities = clean(text, given_entity)
    assert all(e["offset"] >= 0 and e["offset"] + e["length"] <= units(cleaned) for e in entities)


def test_what_the_platform_links_by_itself_is_known_and_code_is_not_linked():
    text = "see https://x.org or /approve for @ada_lovelace #now in /usr/bin/rm"
    assert [(e["type"], part(text, e)) for e in linked(text, [])] == [
        ("url", "https://x.org"),
        ("mention", "@ada_lovelace"),
        ("bot_command", "/approve"),
        ("hashtag", "#now"),
    ]
    assert linked(text, entity(0, units(text))) == []
