"""Elevated mode by Telegram: a daemon as a process, two agents in one group, and those who may not."""

from __future__ import annotations

import asyncio
import json

import pytest

pytestmark = pytest.mark.daemon

GIT = ("git", "--version")


class Town:
    """A group with somebody who may elevate and her namesake, and a daemon with two agents who work there."""

    def __init__(self, api, make_daemon):
        self.api = api
        self.ann = api.new_user("Ann", username="ann")
        self.namesake = api.new_user("Ann", username="Ann")
        self.group = api.new_group("Servers", self.ann, self.namesake)
        self.private = api.private_chat(self.ann)
        self.theirs = api.private_chat(self.namesake)
        self.daemon = make_daemon(
            f"""
tools:
  elevated: {{enabled: true, allowFrom: ['telegram:{self.ann.id}']}}
channels:
  telegram: {{token: '{api.token}', apiUrl: 'http://127.0.0.1:{api.port}'}}
approvals:
  exec:
    mode: both
    approvers: ['telegram:{self.ann.id}']
    targets: [{{channel: telegram, to: 'channel:{self.group.id}'}}]
agents:
  builder:
    exec:
      allowlist: [{{pattern: /usr/bin/git, args: ['--version']}}]
"""
        )

    async def start(self):
        await asyncio.to_thread(self.daemon.start)
        await asyncio.to_thread(self.daemon.sayso, "agent", "add", "builder", "--save")

    def session(self, agent):
        return f"agent:{agent}:telegram:{self.group.id}"

    def asking(self, agent, *argv):
        """Start a command of an agent in its session of the group; a task with its outcome."""
        return asyncio.create_task(self._outcome(agent, argv))

    async def _outcome(self, agent, argv):
        session = self.session(agent)
        return await asyncio.to_thread(
            self._run, "exec", "--agent", agent, "--json", "--session", session, "--", *argv
        )

    def _run(self, *words):
        done = self.daemon.sayso(*words, status=None)
        return json.loads(done.stdout.strip().splitlines()[-1])

    async def both_work(self):
        for agent in ("main", "builder"):
            outcome = await self.asking(agent, *GIT)
            assert outcome["status"] == "finished", outcome

    async def pressed(self, message, label, user):
        return (await self.api.answer_to(self.api.press(message, label, user), seconds=15)).text

    async def told(self, chat, *words):
        return await self.api.message_when(
            lambda message: message.by_bot and all(word in message.text for word in words),
            chat=chat,
            seconds=15,
        )

    async def states(self):
        """Ask in the group how things stand; the answer comes in private."""

        def answers():
            return [message for message in self.api.sent(self.private) if message.text.startswith("agent:")]

        before = len(answers())
        self.api.say(self.group, self.ann, "/elevated")
        await self.api.until(lambda: len(answers()) > before, 15)
        return dict(line.split(": ", 1) for line in answers()[-1].text.splitlines())


@pytest.fixture
async def town(telegram_api, make_daemon):
    made = Town(telegram_api, make_daemon)
    await made.start()
    await made.both_work()
    yield made
    if made.daemon.process is not None:
        await asyncio.to_thread(made.daemon.stop)


async def test_of_two_sessions_the_one_that_is_pressed_is_elevated_and_runs_on_the_host(town):
    town.api.say(town.group, town.ann, "/elevated on for 30m")
    asked = await town.told(town.private, "Elevated on for which one?")
    labels = [row[0] for row in asked.buttons]
    assert sorted(label.split(" · ")[1].split(":")[0] for label in labels) == ["builder", "main"]
    chosen = next(label for label in labels if "builder" in label)
    data = asked.button(chosen)["callback_data"]

    theirs = town.api.press_raw(asked, data, town.namesake)
    assert "for the one who typed" in (await town.api.answer_to(theirs, seconds=15)).text
    assert [row[0] for row in asked.buttons] == labels

    assert "elevated on until" in await town.pressed(asked, chosen, town.ann)
    assert (asked.buttons, "elevated on until" in asked.text) == ([], True)
    told = await town.told(town.group, "elevated on until", "the host")
    assert town.session("builder") in told.text
    await town.told(town.group, "⚡ Elevated", "By: Ann")
    states = await town.states()
    assert states[town.session("builder")].startswith("elevated on, set by Ann")
    assert states[town.session("main")].startswith("elevated off")

    again = await town.api.answer_to(town.api.press_raw(asked, data, town.ann), seconds=15)
    assert "none of Sayso's" in again.text
    outcome = town.asking("builder", "touch", "on-the-host")
    card = await town.told(town.group, "touch on-the-host")
    assert "🟥 HOST" in card.text
    assert "⚡ ELEVATED it runs on the host: elevated on (set by Ann" in card.text
    await town.pressed(card, "Deny", town.ann)
    assert (await outcome)["status"] == "denied"


async def test_a_namesake_is_refused_in_private_and_nothing_changes(town):
    before = len(town.api.sent(town.group))
    for words in ("/elevated full", f"/elevated on {town.session('main')}", "/elev ask", "/elevated"):
        seen = len(town.api.sent(town.theirs))
        town.api.say(town.group, town.namesake, words)
        await town.api.until(lambda seen=seen: len(town.api.sent(town.theirs)) > seen, 15)
        assert "not among the people who may elevate" in town.api.sent(town.theirs)[-1].text
        assert town.api.sent(town.theirs)[-1].buttons == []
    assert len(town.api.sent(town.group)) == before
    assert {state.split(" (")[0] for state in (await town.states()).values()} == {"elevated off"}


async def test_in_another_chat_no_session_is_meant(town):
    other = town.api.new_group("Family", town.ann)
    town.api.say(other, town.ann, "/elevated on")
    await town.told(town.private, "No session belongs to this chat")
    assert town.api.sent(other) == []
    assert {state.split(" (")[0] for state in (await town.states()).values()} == {"elevated off"}


async def test_a_chat_that_was_bound_means_its_session_alone(town):
    town.api.say(town.group, town.namesake, f"/sayso bind {town.session('main')}")
    await town.told(town.theirs, "not among the people who may elevate")
    town.api.say(town.group, town.ann, f"/sayso bind {town.session('main')}")
    await town.told(town.group, "This chat means", town.session("main"))
    town.api.say(town.group, town.ann, "/elev ask")
    told = await town.told(town.group, "elevated ask", "every one is asked about")
    assert told.buttons == []
    outcome = town.asking("main", *GIT)
    card = await town.told(town.group, "git --version", "⚡ ELEVATED")
    assert [label for row in card.buttons for label in row] == ["Allow once", "Deny", "More"]
    assert "Allowed once by Ann" in await town.pressed(card, "Allow once", town.ann)
    assert (await outcome)["status"] == "finished"


async def test_a_message_around_it_counts_for_the_next_command_alone(town):
    town.api.say(town.group, town.ann, "/sayso bind " + town.session("builder"))
    await town.told(town.group, "This chat means")
    town.api.say(town.group, town.ann, "/elevated on please restart it")
    await town.told(town.group, "for its next command alone")
    other = town.asking("main", "touch", "of-the-other-session")
    card = await town.told(town.group, "touch of-the-other-session")
    assert "⚡ ELEVATED" not in card.text
    first = town.asking("builder", "touch", "the-next-command")
    await town.told(town.group, "the-next-command", "🟥 HOST", "⚡ ELEVATED", "for this command, by Ann")
    second = town.asking("builder", "touch", "the-one-after")
    card = await town.told(town.group, "touch the-one-after")
    assert ("HOST" in card.text, "⚡ ELEVATED" in card.text) == (False, False)
    for waiting in await asyncio.to_thread(town.daemon.pending, 3):
        await asyncio.to_thread(town.daemon.sayso, "deny", waiting["id"])
    ends = await asyncio.gather(other, first, second)
    assert {outcome["status"] for outcome in ends} == {"denied"}


async def test_what_was_open_when_the_daemon_ended_is_too_late(town):
    town.api.say(town.group, town.ann, "/elevated on")
    asked = await town.told(town.private, "for which one?")
    await asyncio.to_thread(town.daemon.kill)
    await asyncio.to_thread(town.daemon.start)
    assert "no longer open" in await town.pressed(asked, asked.buttons[0][0], town.ann)
    await town.api.until(lambda: not asked.buttons, 15)
    assert {state.split(" (")[0] for state in (await town.states()).values()} == {"elevated off"}


async def test_who_is_asked_finds_all_commands_in_the_menu(town):
    outcome = town.asking("main", "touch", "for-the-menu")
    card = await town.told(town.group, "touch for-the-menu")
    menu = await town.api.until(lambda: town.api.menu_of(town.group), 15)
    assert set(menu) >= {"elevated", "elev", "sayso"}
    assert "bind SESSION" in menu["sayso"]
    assert set(town.api.menu()) == {"pair", "sayso"}
    await town.pressed(card, "Deny", town.ann)
    await outcome
