"""The whole way through Telegram: a daemon as a process, the real library, a Bot API on loopback."""

from __future__ import annotations

import asyncio
import json

import pytest

pytestmark = pytest.mark.daemon


class Team:
    """A group with an approver and a stranger, and the daemon that asks there."""

    def __init__(self, api, make_daemon):
        self.api = api
        self.ann = api.new_user("Ann", username="ann")
        self.stranger = api.new_user("Ann", username="mallory")
        self.group = api.new_group("Servers", self.ann, self.stranger)
        self.daemon = make_daemon(
            f"""
channels:
  telegram: {{token: '{api.token}', apiUrl: 'http://127.0.0.1:{api.port}'}}
approvals:
  exec:
    mode: both
    approvers: ['telegram:{self.ann.id}']
    targets: [{{channel: telegram, to: 'channel:{self.group.id}'}}]
"""
        )

    async def start(self):
        await asyncio.to_thread(self.daemon.start)

    async def ask(self, *argv, session="agent:main:main"):
        """Start `sayso exec --json` in the background."""
        return await asyncio.create_subprocess_exec(
            self.daemon.program,
            "exec",
            "--json",
            "--session",
            session,
            "--",
            *argv,
            env=self.daemon.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.daemon.root,
        )

    async def card(self, command):
        return await self.api.message_when(
            lambda message: command in message.text, chat=self.group, seconds=15
        )

    async def more(self, card):
        assert (await self.api.answer_to(self.api.press(card, "More", self.ann))).text == ""

    async def sayso(self, *args, **options):
        return await asyncio.to_thread(self.daemon.json, *args, **options)


async def outcome_of(process):
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert out, err.decode()
    return json.loads(out.decode().strip().splitlines()[-1])


@pytest.fixture
async def team(telegram_api, make_daemon):
    made = Team(telegram_api, make_daemon)
    await made.start()
    yield made
    if made.daemon.process is not None:
        await asyncio.to_thread(made.daemon.stop)


async def test_an_outsider_is_refused_and_the_approver_lets_it_run(team):
    asking = await team.ask("touch", "made-from-telegram")
    card = await team.card("/usr/bin/touch made-from-telegram")

    outsider = team.api.press(card, "Allow once", team.stranger)
    answer = await team.api.answer_to(outsider)
    assert "not among the people" in answer.text
    assert asking.returncode is None

    approver = team.api.press(card, "Allow once", team.ann)
    assert "Allowed once by Ann" in (await team.api.answer_to(approver)).text
    outcome = await outcome_of(asking)
    assert (outcome["status"], outcome["exitCode"]) == ("finished", 0)
    assert outcome["approval"]["by"] == f"Ann (telegram:{team.ann.id})"

    edited = await team.api.message_when(
        lambda message: message.id == card.id and "finished with status 0" in message.text, chat=team.group
    )
    assert "Ann" in edited.text
    assert not edited.buttons
    record = [event["kind"] for event in (await team.sayso("show", outcome["id"]))["record"]]
    assert "security.outsider" in record


async def test_a_denial_reaches_the_agent(team):
    asking = await team.ask("touch", "never-made")
    card = await team.card("never-made")
    team.api.press(card, "Deny", team.ann)
    outcome = await outcome_of(asking)
    assert outcome["status"] == "denied"
    assert "Ann" in outcome["approval"]["by"]


async def test_what_is_allowed_for_a_time_runs_again_without_asking_and_only_that(team):
    asking = await team.ask("touch", "again-and-again")
    card = await team.card("touch again-and-again")
    await team.more(card)
    press = team.api.press(card, "Allow 15 min", team.ann)
    assert "Allowed for a time by Ann" in (await team.api.answer_to(press)).text
    assert (await outcome_of(asking))["status"] == "finished"

    again = await outcome_of(await team.ask("touch", "again-and-again"))
    assert (again["status"], again["exitCode"]) == ("finished", 0)
    assert len(team.api.sent(team.group)) == 1

    other = await team.ask("touch", "again-and-again", "and-more")
    await team.card("again-and-again and-more")
    (waiting,) = await team.sayso("pending")
    await team.sayso("deny", waiting["id"])
    assert (await outcome_of(other))["status"] == "denied"


async def test_an_outsider_opens_nothing_and_a_forged_time_allows_nothing(team):
    asking = await team.ask("touch", "not-for-long")
    card = await team.card("touch not-for-long")
    before = card.buttons
    more = team.api.press(card, "More", team.stranger)
    assert "not among the people" in (await team.api.answer_to(more)).text
    assert card.buttons == before
    nonce = card.button("Deny")["callback_data"].removeprefix("d:")
    for data in (f"f:{nonce}:2592000001", f"f:{nonce}", f"f:{nonce}:1"):
        assert "none of Sayso's" in (await team.api.answer_to(team.api.press_raw(card, data, team.ann))).text
    for data in (f"f:{nonce}:900000", f"r:{nonce}", f"n:{nonce}"):
        forged = team.api.press_raw(card, data, team.stranger)
        assert "not among the people" in (await team.api.answer_to(forged)).text
    assert len(await team.sayso("pending")) == 1
    assert len(team.api.sent(team.group)) == 1
    team.api.press(card, "Deny", team.ann)
    assert (await outcome_of(asking))["status"] == "denied"


async def test_a_reason_given_by_a_reply_reaches_the_agent(team):
    asking = await team.ask("touch", "with-a-reason")
    card = await team.card("touch with-a-reason")
    await team.more(card)
    press = team.api.press(card, "Deny with a reason", team.ann)
    assert (await team.api.answer_to(press)).text == ""
    why = await team.api.message_when(lambda message: message.begins_reply, chat=team.group)
    team.api.say(team.group, team.stranger, "I say so", reply_to=why)
    team.api.say(team.group, team.ann, "use the cache\nalways", reply_to=why)
    outcome = await outcome_of(asking)
    assert (outcome["status"], outcome["approval"]["decision"]) == ("denied", "deny")
    assert outcome["approval"]["reason"] == "use the cache always"
    assert outcome["approval"]["by"] == f"Ann (telegram:{team.ann.id})"


async def test_what_is_too_long_is_viewed_whole_before_it_can_be_allowed(team):
    private = team.api.private_chat(team.ann)
    asking = await team.ask("printf", "%s", "x" * 3_000 + "THE-END")
    card = await team.card("THE-END")
    assert card.buttons == [["View all"], ["Deny"]]
    await team.api.answer_to(team.api.press(card, "View all", team.ann))
    (document,) = team.api.documents(private)
    assert "x" * 3_000 + "THE-END" in document.content.decode()
    assert card.buttons[-1] == ["Deny", "More"]
    team.api.press(card, "Allow once", team.ann)
    outcome = await outcome_of(asking)
    assert (outcome["status"], outcome["stdout"][-7:]) == ("finished", "THE-END")


async def test_long_output_follows_as_a_file(team):
    asking = await team.ask("seq", "1", "2000")
    card = await team.card("seq 1 2000")
    team.api.press(card, "Allow once", team.ann)
    assert (await outcome_of(asking))["status"] == "finished"
    (file,) = await team.api.until(lambda: team.api.documents(team.group), 15)
    assert "\n1000\n" in file.content.decode()
    assert (await team.card("finished with status 0")).id == card.id


async def test_a_typed_answer_counts_like_a_press(team):
    asking = await team.ask("touch", "typed")
    await team.card("touch typed")
    (waiting,) = await team.sayso("pending")
    team.api.say(team.group, team.stranger, f"/approve {waiting['id'][:8]}")
    team.api.say(team.group, team.ann, f"/deny {waiting['id'][:8]} use the cache")
    outcome = await outcome_of(asking)
    assert outcome["approval"]["reason"] == "use the cache"
    assert outcome["approval"]["by"] == f"Ann (telegram:{team.ann.id})"


async def test_the_button_of_an_old_message_works_after_kill_9(team):
    asking = await team.ask("touch", "after-the-restart")
    card = await team.card("after-the-restart")
    (waiting,) = await team.sayso("pending")
    await asyncio.to_thread(team.daemon.kill)
    await asyncio.wait_for(asking.communicate(), 30)
    await team.start()
    press = team.api.press(card, "Allow once", team.ann)
    assert "Allowed once" in (await team.api.answer_to(press, seconds=15)).text
    outcome = await team.sayso("wait", waiting["id"])
    assert (outcome["status"], outcome["exitCode"]) == ("finished", 0)
    await team.api.message_when(
        lambda message: message.id == card.id and "finished with status 0" in message.text, chat=team.group
    )


async def test_what_was_decided_on_the_command_line_is_edited_in_the_chat(team):
    asking = await team.ask("touch", "elsewhere")
    card = await team.card("touch elsewhere")
    allow = card.button("Allow once")["callback_data"]
    (waiting,) = await team.sayso("pending")
    await team.sayso("deny", waiting["id"])
    assert (await outcome_of(asking))["status"] == "denied"
    edited = await team.api.message_when(
        lambda message: message.id == card.id and "Denied" in message.text, chat=team.group
    )
    assert not edited.buttons
    late = team.api.press_raw(card, allow, team.ann)
    assert "Too late: Denied" in (await team.api.answer_to(late)).text


async def test_a_revoked_token_does_not_keep_the_daemon_from_serving(telegram_api, make_daemon):
    telegram_api.revoked = True
    team = Team(telegram_api, make_daemon)
    await team.start()
    done = await asyncio.to_thread(team.daemon.sayso, "exec", "--", "git", "--version")
    assert done.stdout.startswith("git version")
    log = team.daemon.log.read_text()
    assert log.count("telegram is not used") == 1
    assert telegram_api.token not in log
    await asyncio.to_thread(team.daemon.stop)


async def test_a_session_cannot_make_sayso_speak_in_a_chat_that_the_operator_did_not_name(team):
    other = team.api.new_group("Family", team.ann)
    asking = await team.ask("touch", "elsewhere", session=f"agent:main:telegram:{other.id}")
    await team.card("touch elsewhere")
    (waiting,) = await team.sayso("pending")
    await team.sayso("deny", waiting["id"])
    await outcome_of(asking)
    assert team.api.sent(other) == []
