"""Notices and clean-up through Telegram: a daemon as a process, the real library, a Bot API on loopback."""

from __future__ import annotations

import asyncio

import pytest

pytestmark = pytest.mark.daemon


class Team:
    """A group that is asked, another that is told, and a stranger in the first."""

    def __init__(self, api, make_daemon):
        self.api = api
        self.ann = api.new_user("Ann", username="ann")
        self.stranger = api.new_user("Mal", username="mallory")
        self.group = api.new_group("Servers", self.ann, self.stranger)
        self.watchers = api.new_group("Watchers", self.ann)
        self.daemon = make_daemon(
            f"""
channels:
  telegram: {{token: '{api.token}', apiUrl: 'http://127.0.0.1:{api.port}'}}
tools:
  exec: {{security: allowlist, ask: on-miss}}
approvals:
  exec:
    mode: targets
    approvers: ['telegram:{self.ann.id}']
    targets: [{{channel: telegram, to: 'channel:{self.group.id}'}}]
    cleanupAfterResolve: true
  notices:
    targets: [{{channel: telegram, to: 'channel:{self.watchers.id}'}}]
"""
        )

    async def told(self, words):
        return await self.api.message_when(
            lambda message: words in message.text, chat=self.watchers, seconds=15
        )


@pytest.fixture
async def team(telegram_api, make_daemon):
    made = Team(telegram_api, make_daemon)
    await asyncio.to_thread(made.daemon.start)
    yield made
    if made.daemon.process is not None:
        await asyncio.to_thread(made.daemon.stop)


async def test_an_outsider_and_a_denial_are_told_to_the_watchers_and_the_question_is_deleted(team):
    asking = await asyncio.create_subprocess_exec(
        team.daemon.program,
        "exec",
        "--json",
        "--",
        "touch",
        "unwanted",
        env=team.daemon.env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=team.daemon.root,
    )
    card = await team.api.message_when(
        lambda message: "/usr/bin/touch unwanted" in message.text, chat=team.group, seconds=15
    )

    team.api.press(card, "Allow once", team.stranger)
    security = await team.told("security.outsider")
    assert f"Mal (person:telegram:{team.stranger.id})" in security.text
    assert security.buttons == []

    team.api.press(card, "Deny", team.ann)
    denial = await team.told("Denied by Ann")
    assert "Command: /usr/bin/touch unwanted" in denial.text
    await asyncio.wait_for(asking.communicate(), 30)
    async with asyncio.timeout(15):
        while team.api.messages(team.group):  # noqa: ASYNC110 - deletions are no events of the server
            await asyncio.sleep(0.02)
    assert len(team.api.messages(team.group, deleted=True)) == 1
