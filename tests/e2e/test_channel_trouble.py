"""A channel in trouble, told of in the others: a daemon at a terminal, and a Bot API on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import termios
from pathlib import Path

import aiohttp
import pytest

from tests.platforms.telegram import faults

pytestmark = pytest.mark.daemon

EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
FAILED = "Telegram does not work since"


class Station:
    """A daemon whose output is a terminal, and a person whom it asks in Telegram alone."""

    def __init__(self, api, make_daemon):
        self.api = api
        self.ann = api.new_user("Ann")
        self.chat = api.private_chat(self.ann)
        self.daemon = make_daemon(
            f"""
channels:
  telegram: {{token: '{api.token}', apiUrl: 'http://127.0.0.1:{api.port}'}}
approvals:
  exec:
    mode: targets
    approvers: ['telegram:{self.ann.id}']
    targets: [{{channel: telegram, to: 'user:{self.ann.id}'}}]
  notices:
    targets: [{{channel: telegram, to: 'user:{self.ann.id}'}}]
"""
        )
        self.screen = b""

    async def start(self):
        self._fd, inner = pty.openpty()
        termios.tcsetwinsize(inner, (40, 200))
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        self.daemon.process = await asyncio.to_thread(self._started, inner)
        os.close(inner)
        await self.see("ready socket=")

    def _started(self, terminal):
        command = [self.daemon.program, "up", "--config", EXAMPLE, "--config", self.daemon.config]
        with self.daemon.log.open("a") as log:
            return subprocess.Popen(
                [*command, "--port", "0"],
                env=self.daemon.env,
                stdin=terminal,
                stdout=terminal,
                stderr=log,
                cwd=self.daemon.root,
                start_new_session=True,
            )

    def _read(self):
        try:
            self.screen += os.read(self._fd, 4096)
        except OSError:  # how a terminal ends whose last program has gone
            asyncio.get_running_loop().remove_reader(self._fd)

    @property
    def text(self):
        return self.screen.decode(errors="replace").replace("\r\n", "\n")

    async def see(self, words):
        async with asyncio.timeout(20):
            while words not in self.text:  # noqa: ASYNC110 - a screen, not an event
                await asyncio.sleep(0.02)

    async def state(self, state):
        """Wait until the status says so of Telegram, and return its words."""
        async with asyncio.timeout(20):
            while True:
                rows = json.loads((await self.sayso("status", "--json")).stdout)["health"]
                (row,) = [row for row in rows if row["channel"] == "telegram"]
                if row["state"] == state:
                    return row["words"]
                await asyncio.sleep(0.1)

    async def sayso(self, *args, **options):
        return await asyncio.to_thread(self.daemon.sayso, *args, **options)

    async def recorded(self):
        """List what the record has about channels, as (kind, actor)."""
        lines = (await self.sayso("audit", "tail", "--json", "--limit", "100")).stdout.splitlines()
        pairs = [(event["kind"], event["actor"]) for event in map(json.loads, lines)]
        return [pair for pair in pairs if pair[0].startswith("channel.")]

    async def page(self):
        """Sign in as a browser does, and return the page."""
        code = json.loads((await self.sayso("web", "link", "--json")).stdout)["url"]
        origin, code = code.rsplit("/login/", 1)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            await http.post(f"{origin}/login", data={"code": code}, headers={"Origin": origin})
            async with http.get(origin) as response:
                return await response.text()

    async def stop(self):
        self.daemon.process.terminate()
        status = await asyncio.to_thread(self.daemon.process.wait, 25)
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)
        self.daemon.process = None
        return status


@pytest.fixture
async def station(telegram_api, make_daemon):
    made = Station(telegram_api, make_daemon)
    yield made
    if made.daemon.process is not None:
        await made.stop()


async def test_a_token_revoked_while_it_runs_is_told_once_in_the_other_channels(station):
    await station.start()
    await station.state("ok")
    station.api.revoked = True
    station.api.say(station.chat, station.ann, "hello")  # ends the long poll that is under way
    await station.see(FAILED)
    await station.see("get a new one from @BotFather")
    await asyncio.sleep(2.5)  # two more looks of the watch
    assert station.text.count(FAILED) == 1
    assert await station.recorded() == [("channel.failed", "channel:telegram")]

    assert "revoked" in await station.state("down")
    assert "telegram is down: revoked" in await station.page()
    config = ("--config", str(station.daemon.config))
    doctor = await station.sayso("doctor", "--json", *config, status=None)
    (check,) = [one for one in json.loads(doctor.stdout) if one["name"] == "channel telegram"]
    assert check["status"] == "fail"
    done = await station.sayso("exec", "--", "git", "--version")
    assert done.stdout.startswith("git version")
    assert station.api.token not in station.text + station.daemon.log.read_text()
    assert await station.stop() == 0


async def test_a_channel_that_cannot_be_opened_is_told_of_once_the_others_are_open(station):
    station.api.revoked = True
    await station.start()
    await station.see(FAILED)
    await station.see("Why: not opened: channels.telegram.token: Telegram does not accept it")
    assert await station.recorded() == [("channel.failed", "channel:telegram")]


async def test_a_short_outage_tells_nobody_anything(station):
    await station.start()
    await station.state("ok")
    station.api.misbehave("getUpdates", faults.server_error(), times=3)
    station.api.say(station.chat, station.ann, "hello")
    await station.state("degraded")
    await asyncio.sleep(2.5)  # looks of the watch that see it
    station.api.say(station.chat, station.ann, "hello again")
    await station.state("ok")
    await asyncio.sleep(1.5)
    assert "Telegram" not in station.text.split("ready socket=")[1]
    assert await station.recorded() == []
    assert station.api.sent(station.chat) == []


async def test_where_it_is_switched_off_it_is_recorded_and_not_told(station):
    text = station.daemon.config.read_text()
    station.daemon.config.write_text(text.replace("  notices:\n", "  notices:\n    channel: false\n"))
    station.api.revoked = True
    await station.start()
    async with asyncio.timeout(15):
        while not await station.recorded():  # noqa: ASYNC110 - a record, not an event
            await asyncio.sleep(0.1)
    assert FAILED not in station.text
