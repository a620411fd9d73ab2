"""Setting Telegram up, and looking after it: what the command line says of a real daemon."""

from __future__ import annotations

import asyncio
import json

import pytest

pytestmark = pytest.mark.daemon


class Setting:
    """A person who sets a bot up, the platform, and a daemon that is not started yet."""

    def __init__(self, api, make_daemon):
        self.api = api
        self.ann = api.new_user("Ann", username="ann")
        self.chat = api.private_chat(self.ann)
        self.daemon = make_daemon(
            f"""
channels:
  telegram: {{token: '{api.token}', apiUrl: 'http://127.0.0.1:{api.port}'}}
approvals:
  exec:
    mode: targets
    timeout: 15000
    approvers: ['telegram:{self.ann.id}']
    targets: [{{channel: telegram, to: 'user:{self.ann.id}'}}]
    agentFilter: [builder]
"""
        )

    async def start(self):
        await asyncio.to_thread(self.daemon.start)

    async def sayso(self, *args, **options):
        return await asyncio.to_thread(self.daemon.sayso, *args, **options)

    async def begin(self, *args, env=None):
        """Start a command whose questions are answered while it runs."""
        return await asyncio.create_subprocess_exec(
            self.daemon.program,
            *args,
            env={**self.daemon.env, **(env or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.daemon.root,
        )


@pytest.fixture
async def setting(telegram_api, make_daemon):
    made = Setting(telegram_api, make_daemon)
    yield made
    if made.daemon.process is not None:
        await asyncio.to_thread(made.daemon.stop)


async def ended(process):
    out, err = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode, out.decode(), err.decode()


async def row_when(setting, state):
    async with asyncio.timeout(15):
        while True:
            status = json.loads((await setting.sayso("status", "--json")).stdout)
            (row,) = [row for row in status["health"] if row["channel"] == "telegram"]
            if row["state"] == state:
                return row
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("button", ["Allow once", "Deny"])
async def test_a_press_ends_the_test_question_and_nothing_runs(setting, button):
    await setting.start()
    testing = await setting.begin("channels", "test")
    card = await setting.api.message_when(
        lambda message: "nothing will run" in message.text, chat=setting.chat, seconds=15
    )
    setting.api.press(card, button, setting.ann)
    status, out, err = await ended(testing)
    assert status == 0, err
    assert f"Ann (telegram:{setting.ann.id}) answered" in out
    assert "nothing ran" in out
    assert f"posted: telegram {setting.ann.id}" in err
    events = (await setting.sayso("audit", "tail", "--json")).stdout
    assert "run.started" not in events


async def test_where_nobody_presses_it_says_so(setting):
    await setting.start()
    done = await setting.sayso("channels", "test", "telegram", status=75)
    assert "nobody answered" in done.stdout


async def test_where_no_chat_is_asked_it_says_what_is_missing(make_daemon):
    daemon = await asyncio.to_thread(make_daemon().start)
    done = await asyncio.to_thread(daemon.sayso, "channels", "test", status=64)
    assert "approvals.exec.targets" in done.stderr


async def test_the_state_of_a_channel_is_told_everywhere(setting):
    await setting.start()
    await row_when(setting, "ok")
    assert "ok        telegram: connected" in (await setting.sayso("status")).stdout
    setting.api.revoked = True
    setting.api.say(setting.chat, setting.ann, "hello")  # ends the long poll that is under way
    row = await row_when(setting, "down")
    assert "revoked" in row["words"]
    config = str(setting.daemon.config)
    checks = json.loads((await setting.sayso("doctor", "--json", "--config", config, status=None)).stdout)
    (check,) = [check for check in checks if check["name"] == "channel telegram"]
    assert check["status"] == "fail"
    assert check["mend"]


async def test_a_chat_that_could_not_be_opened_is_down_with_its_reason(setting):
    setting.api.revoked = True
    await setting.start()
    row = await row_when(setting, "down")
    assert row["words"].startswith("not opened: channels.telegram.token")
