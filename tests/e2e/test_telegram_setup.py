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


class Initialising:
    """`sayso init` at work: what it says line by line, and answers to give it."""

    def __init__(self, process):
        self.process = process
        self.said = ""

    async def until(self, words):
        async with asyncio.timeout(20):
            while words not in self.said:
                piece = await self.process.stdout.read(4096)
                assert piece, f"{words!r} was not said: {self.said}"
                self.said += piece.decode()

    def answer(self, text):
        self.process.stdin.write(f"{text}\n".encode())

    async def code(self):
        await self.until("Waiting for that message")
        return self.said.split("?start=")[1].split()[0]

    async def end(self):
        out, err = await asyncio.wait_for(self.process.communicate(), 30)
        self.said += out.decode()
        return self.process.returncode, err.decode()


@pytest.fixture
def init(setting):
    async def start(*flags):
        url = f"http://127.0.0.1:{setting.api.port}"
        return Initialising(await setting.begin("init", "--api-url", url, *flags))

    return start


async def test_init_leads_from_a_token_to_the_first_approval(setting, init):
    work = await init()
    for answer in ("slack", "", "nonsense", setting.api.token):
        work.answer(answer)
    code = await work.code()
    mallory = setting.api.new_user("Ann", username="mallory")
    setting.api.say(setting.api.private_chat(mallory), mallory, "/start")
    setting.api.say(setting.chat, setting.ann, f"/start {code}", forwarded=True)
    setting.api.say(setting.chat, setting.ann, f"/start {code}")
    await work.until("Is that you?")
    assert f"@ann, id {setting.ann.id}) in a direct message" in work.said
    work.answer("y")
    status, err = await work.end()
    assert status == 0, err
    assert "slack comes in a later version" in work.said
    assert "copy it again from @BotFather" in err
    assert setting.api.token not in work.said + err
    assert work.said.index("sayso up --config") < work.said.index("sayso pair telegram")

    config, token = setting.daemon.root / "sayso.yaml", setting.daemon.root / "telegram.token"
    assert {path.stat().st_mode & 0o777 for path in (config, token)} == {0o600}
    assert setting.api.token not in config.read_text()
    setting.daemon.config.write_text(f"sandboxing: {{workspaceRoot: {setting.daemon.root}/workspaces}}\n")
    await asyncio.to_thread(setting.daemon.start, "--config", str(config))
    asking = await setting.begin("exec", "--", "touch", "first")
    card = await setting.api.message_when(
        lambda message: "touch first" in message.text, chat=setting.chat, seconds=15
    )
    setting.api.press(card, "Allow once", setting.ann)
    assert (await ended(asking))[0] == 0


async def test_init_takes_a_topic_of_a_group(setting, init):
    group = setting.api.new_supergroup("Servers", setting.ann, topics=("Alerts",))
    (topic,) = group.topics
    work = await init("--config", "mine.yaml")
    work.answer("telegram")
    work.answer(setting.api.token)
    code = await work.code()
    setting.api.say(group, setting.ann, f"/start@sayso_test_bot {code}", thread=topic)
    await work.until("Is that you?")
    work.answer("yes")
    status, err = await work.end()
    assert status == 0, err
    assert f'to: "thread:{group.id}/{topic}"' in (setting.daemon.root / "mine.yaml").read_text()


async def test_init_writes_nothing_for_somebody_else(setting, init):
    work = await init()
    work.answer("telegram")
    work.answer(setting.api.token)
    setting.api.say(setting.chat, setting.ann, f"/start {await work.code()}")
    await work.until("Is that you?")
    work.answer("")
    assert (await work.end())[0] == 75
    assert not (setting.daemon.root / "sayso.yaml").exists()
    assert not (setting.daemon.root / "telegram.token").exists()


async def test_init_gives_up_when_no_code_comes(setting, init):
    work = await init("--wait", "2")
    work.answer("telegram")
    work.answer(setting.api.token)
    await work.code()
    setting.api.say(setting.chat, setting.ann, "/start 0000000000000000")
    status, err = await work.end()
    assert status == 75
    assert "nothing was written" in err
    assert not (setting.daemon.root / "sayso.yaml").exists()


async def test_init_can_leave_it_to_pairing_who_decides(setting, init):
    work = await init("--later")
    work.answer("telegram")
    work.answer(setting.api.token)
    status, err = await work.end()
    assert status == 0, err
    assert "Waiting for that message" not in work.said
    assert work.said.index("Nobody can decide yet.") < work.said.index("sayso up --config")
    assert "sayso pair telegram" in work.said
    config = setting.daemon.root / "sayso.yaml"
    assert "approvers" not in config.read_text()
    setting.daemon.config.write_text(f"sandboxing: {{workspaceRoot: {setting.daemon.root}/workspaces}}\n")
    await asyncio.to_thread(setting.daemon.start, "--config", str(config))
    assert "telegram: nobody can decide there; sayso pair telegram" in (await setting.sayso("status")).stdout
    checked = await setting.sayso("doctor", "--json", "--config", str(config), status=None)
    (check,) = [check for check in json.loads(checked.stdout) if check["name"] == "people in telegram"]
    assert check["status"] == "warn"
    assert "sayso pair telegram" in check["mend"]


async def test_init_overwrites_nothing_unasked(setting, init):
    (setting.daemon.root / "sayso.yaml").write_text("mine\n")
    status, err = await (await init()).end()
    assert status == 64
    assert "--force" in err
    assert (setting.daemon.root / "sayso.yaml").read_text() == "mine\n"


async def test_init_says_in_plain_words_that_there_is_no_network(setting):
    work = Initialising(await setting.begin("init", "--api-url", "http://127.0.0.1:1"))
    for answer in ("telegram", *[setting.api.token] * 3):
        work.answer(answer)
    status, err = await work.end()
    assert status == 74
    assert "cannot be reached" in err
    assert "Traceback" not in err
    assert setting.api.token not in err
