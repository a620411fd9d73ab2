"""Letting people in through Telegram: `sayso pair` at a terminal, a daemon, and a Bot API on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import termios
import threading

import pytest

pytestmark = pytest.mark.daemon

CODE = re.compile(r"/pair ([0-9a-f]{16})\b")


class Terminal:
    """A command of the operator at a terminal: all it printed, and a way to type."""

    def __init__(self, daemon, *args):
        self._fd, inner = pty.openpty()
        termios.tcsetwinsize(inner, (40, 100))
        self._screen = bytearray()
        self.process = subprocess.Popen(
            [daemon.program, *args],
            env=daemon.env,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=daemon.root,
            start_new_session=True,
        )
        os.close(inner)
        self._reader = threading.Thread(target=self._read, name="screen")
        self._reader.start()

    def _read(self):
        # EIO is how a terminal ends whose last program has gone.
        while True:
            try:
                data = os.read(self._fd, 4096)
            except OSError:
                return
            self._screen += data

    @property
    def text(self):
        return self._screen.decode(errors="replace").replace("\r\n", "\n")

    async def see(self, part, seconds=15):
        async with asyncio.timeout(seconds):
            while part not in self.text:
                assert self.process.poll() is None or part in self.text, self.text
                await asyncio.sleep(0.02)
        return self.text

    async def code(self):
        await self.see("waiting, ")
        return CODE.search(self.text)[1]

    def type(self, line):
        os.write(self._fd, f"{line}\n".encode())

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    async def end(self):
        status = await asyncio.to_thread(self.process.wait, 20)
        self._reader.join(10)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self._reader.join(10)
        os.close(self._fd)


class Front:
    """A daemon that nobody may answer yet, and people who write to its bot."""

    def __init__(self, api, make_daemon):
        self.api = api
        self.ann = api.new_user("Ann", username="ann")
        self.bob = api.new_user("Ann", username="ann_")
        self.group = api.new_group("Servers", self.ann, self.bob)
        self.chat, self.bobs = api.private_chat(self.ann), api.private_chat(self.bob)
        self.terminals = []
        self.daemon = make_daemon(
            f"""
channels:
  telegram: {{token: '{api.token}', apiUrl: 'http://127.0.0.1:{api.port}'}}
approvals:
  exec:
    mode: both
    targets: [{{channel: telegram, to: 'channel:{self.group.id}'}}]
"""
        )

    async def start(self):
        await asyncio.to_thread(self.daemon.start)

    async def sayso(self, *args, **options):
        return await asyncio.to_thread(self.daemon.sayso, *args, **options)

    async def json(self, *args, **options):
        return await asyncio.to_thread(self.daemon.json, *args, **options)

    def pair(self, *args):
        self.terminals.append(Terminal(self.daemon, "pair", "telegram", *args))
        return self.terminals[-1]

    def say(self, code, who=None, chat=None):
        who = who or self.ann
        return self.api.say(chat or self.api.private_chat(who), who, f"/pair {code}")

    async def told(self, words, chat=None, seconds=10):
        return await self.api.message_when(
            lambda message: words in message.text, chat=chat or self.chat, seconds=seconds
        )

    async def let_in(self, *args, who=None):
        pairing = self.pair(*args)
        self.say(await pairing.code(), who)
        await pairing.see("[y/N] ")
        pairing.type("y")
        assert await pairing.end() == 0, pairing.text

    async def ask(self, *argv):
        return await asyncio.create_subprocess_exec(
            self.daemon.program,
            "exec",
            "--json",
            "--",
            *argv,
            env=self.daemon.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.daemon.root,
        )

    async def kinds(self):
        lines = (await self.sayso("audit", "tail", "--json", "--limit", "200")).stdout.splitlines()
        return [json.loads(line)["kind"] for line in lines]


async def outcome_of(process):
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert out, err.decode()
    return json.loads(out.decode().strip().splitlines()[-1])


@pytest.fixture
async def front(telegram_api, make_daemon):
    made = Front(telegram_api, make_daemon)
    await made.start()
    yield made
    for terminal in made.terminals:
        terminal.close()
    if made.daemon.process is not None:
        await asyncio.to_thread(made.daemon.stop)


async def test_from_a_code_to_the_first_answer_and_back_out(front):
    assert "telegram: nobody can decide there; sayso pair telegram" in (await front.sayso("status")).stdout
    pairing = front.pair()
    code = await pairing.code()
    assert "min left" in pairing.text
    assert f"sends this to @{front.api.world.bot.username} in telegram" in pairing.text
    front.say("0" * 16, front.bob)
    await front.told("no code that counts", front.bobs)
    front.say(code)
    await front.told("The operator is asked now")
    screen = await pairing.see("Let this person in? [y/N] ")
    assert f"The code came from Ann (@ann, id {front.ann.id}) in telegram." in screen
    assert await front.json("people", "list") == []
    pairing.type("y")
    assert await pairing.end() == 0
    assert "Ann may decide now." in pairing.text
    await front.told("The operator let you in")
    (person,) = await front.json("people", "list")
    assert (person["channel"], person["id"], person["route"]) == ("telegram", str(front.ann.id), "")
    assert "nobody can decide" not in (await front.sayso("status")).stdout

    asking = await front.ask("touch", "let-in")
    card = await front.told("touch let-in", seconds=15)
    assert (
        "not among the people"
        in (await front.api.answer_to(front.api.press(card, "Allow once", front.bob))).text
    )
    assert (
        "Allowed once by Ann"
        in (await front.api.answer_to(front.api.press(card, "Allow once", front.ann))).text
    )
    outcome = await outcome_of(asking)
    assert (outcome["status"], outcome["exitCode"]) == ("finished", 0)
    assert outcome["approval"]["by"] == f"Ann (telegram:{front.ann.id})"

    asking = await front.ask("touch", "put-out")
    card = await front.told("touch put-out", seconds=15)
    removed = await front.sayso("people", "remove", "telegram", str(front.ann.id))
    assert "Ann may not decide there any more." in removed.stdout
    press = front.api.press(card, "Allow once", front.ann)
    assert "not among the people" in (await front.api.answer_to(press)).text
    assert asking.returncode is None
    (waiting,) = await front.json("pending")
    await front.sayso("deny", waiting["id"])
    assert (await outcome_of(asking))["status"] == "denied"

    kinds = await front.kinds()
    assert [kind for kind in kinds if kind.startswith("person.")] == ["person.paired", "person.unpaired"]
    assert "security.wrong-code" in kinds
    kept = (
        front.daemon.log.read_text() + (await front.sayso("audit", "tail", "--json", "--limit", "200")).stdout
    )
    assert code not in kept
    for path in front.daemon.home.rglob("*"):
        if path.is_file():
            assert code.encode() not in path.read_bytes(), path


async def test_a_code_shown_in_a_group_or_sent_by_two_lets_nobody_in(front):
    pairing = front.pair()
    code = await pairing.code()
    front.say(code, chat=front.group)
    assert await pairing.end() == 75
    assert "others know the code" in pairing.text
    front.say(code)
    await front.told("no code that counts")

    pairing = front.pair()
    code = await pairing.code()
    front.say(code)
    await pairing.see("[y/N] ")
    front.say(code, front.bob)
    await front.told("Somebody else sent the same code", front.bobs)
    await front.told("Somebody else sent the same code")
    pairing.type("y")
    assert await pairing.end() == 75
    assert "others know the code" in pairing.text
    assert await front.json("people", "list") == []


async def test_no_enter_and_what_was_typed_before_let_nobody_in(front):
    for answer in ("n", "", "yess"):
        pairing = front.pair()
        code = await pairing.code()
        pairing.type("y")
        front.say(code)
        await pairing.see("[y/N] ")
        pairing.type(answer)
        assert await pairing.end() == 75
        assert "Turned away" in pairing.text
    await front.told("did not let you in")
    assert await front.json("people", "list") == []


async def test_ctrl_c_withdraws_the_code(front):
    pairing = front.pair()
    code = await pairing.code()
    pairing.interrupt()
    assert await pairing.end() == 130
    assert "withdrawn; the code no longer counts" in pairing.text
    assert "Traceback" not in pairing.text
    front.say(code)
    await front.told("no code that counts")

    pairing = front.pair()
    front.say(await pairing.code())
    await pairing.see("[y/N] ")
    pairing.interrupt()
    assert await pairing.end() == 130
    await front.told("did not let you in")
    assert await front.json("people", "list") == []


async def test_who_was_let_in_stays_so_after_kill_9(front):
    await front.let_in()
    await asyncio.to_thread(front.daemon.kill)
    await front.start()
    asking = await front.ask("touch", "after-the-restart")
    card = await front.told("touch after-the-restart", seconds=15)
    press = front.api.press(card, "Allow once", front.ann)
    assert "Allowed once by Ann" in (await front.api.answer_to(press, seconds=15)).text
    assert (await outcome_of(asking))["status"] == "finished"


async def test_kill_9_while_the_operator_looks_lets_nobody_in(front):
    pairing = front.pair()
    code = await pairing.code()
    front.say(code)
    await pairing.see("[y/N] ")
    await asyncio.to_thread(front.daemon.kill)
    pairing.type("y")
    assert await pairing.end() == 69
    await front.start()
    front.say(code, front.bob)
    await front.told("no code that counts", front.bobs)
    assert await front.json("people", "list") == []


async def test_with_a_route_a_person_decides_in_the_group_alone(front):
    route = f"channel:{front.group.id}"
    await front.let_in("--route", route)
    asking = await front.ask("touch", "in-the-group")
    card = await front.told("touch in-the-group", front.group, seconds=15)
    assert (
        "not among the people"
        in (await front.api.answer_to(front.api.press(card, "Allow once", front.bob))).text
    )
    front.api.press(card, "Allow once", front.ann)
    assert (await outcome_of(asking))["status"] == "finished"
    assert not [message for message in front.api.sent(front.chat) if "in-the-group" in message.text]
    listed = (await front.sayso("people", "list")).stdout
    assert str(front.group.id) in listed
    await front.sayso("people", "remove", "telegram", str(front.ann.id), status=64)
    await front.sayso("people", "remove", "telegram", str(front.ann.id), "--route", route)
    assert await front.json("people", "list") == []


async def test_json_tells_the_code_and_how_it_ended(front):
    pairing = front.pair("--json")
    front.say(await pairing.code())
    await pairing.see("[y/N] ")
    pairing.type("y")
    assert await pairing.end() == 0
    found = [json.loads(line) for line in re.findall(r"\{.*\}", pairing.text)]
    made, ended = found
    assert set(made) == {"id", "code", "expiresAt"}
    assert (ended["id"], ended["accepted"], ended["person"]["id"]) == (made["id"], True, str(front.ann.id))


async def test_what_cannot_be_paired_is_told_in_one_line(front):
    done = await front.sayso("pair", "telegram", status=64)
    assert "run it in a terminal" in done.stderr
    for args, told in (
        (("web",), "needs no pairing"),
        (("slack",), "not open"),
        (
            ("telegram", "--route", "channel:-5"),
            f"no target of telegram in approvals.exec.targets (there: channel:{front.group.id})",
        ),
    ):
        front.terminals.append(Terminal(front.daemon, "pair", *args))
        assert await front.terminals[-1].end() == 64
        assert told in front.terminals[-1].text.replace("\n", "")
    assert (await front.json("people", "list")) == []


async def test_no_agent_can_let_anybody_in(front):
    for verb in ("pair telegram", "people list"):
        done = await front.sayso("exec", "--json", "-c", f"sayso {verb}", status=77)
        assert "operator-verb" in done.stdout
