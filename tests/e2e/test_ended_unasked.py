"""A daemon that was killed says so once, with what ended with it; one that was stopped has nothing to say."""

from __future__ import annotations

import asyncio
import time
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar

import pytest

from tests.e2e.conftest import wait_for

pytestmark = pytest.mark.daemon

CONFIG = "agents: {main: {exec: {allowlist: [{pattern: /usr/bin/sleep, args: ['600']}]}}}\n"
WORDS = "Sayso ended without being asked to"


def at_work(daemon, finish, end):
    """Have one run and one question under way when the daemon ends; returns their ids."""
    running = daemon.ask("--", "sleep", "600")
    waiting = daemon.ask("--", "ls", "-l")
    (question,) = daemon.pending()
    run = wait_for(lambda: [row for row in daemon.json("history") if row["state"] == "running"] or None)[0]
    end()
    for asker in (running, waiting):
        finish(asker)
    return run["id"], question["id"]


def page_of(daemon):
    """Sign in and read the page."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    link = daemon.json("web", "link")["url"]
    origin, code = link.split("/login/")
    form = urllib.parse.urlencode({"code": code}).encode()
    request = urllib.request.Request(f"{origin}/login", form, {"Origin": origin})  # noqa: S310 - the page's own
    with opener.open(request) as response:
        return response.read().decode()


def told(daemon):
    return daemon.json("status")["cutOff"]


def recorded(daemon):
    events = [line for line in daemon.sayso("audit", "tail").stdout.splitlines() if "daemon.cut-off" in line]
    return len(events)


def test_after_a_kill_status_log_and_record_tell_what_ended_with_it_once(make_daemon, finish):
    daemon = make_daemon(CONFIG).start()
    assert told(daemon) is None
    run, question = at_work(daemon, finish, daemon.kill)
    daemon.start()
    text = told(daemon)
    assert text.startswith(WORDS)
    assert "When: after 20" in text
    assert f"Runs that ended with it, and are not repeated: {run[:8]} (/usr/bin/sleep 600)" in text
    assert f"Questions that still wait: {question[:8]}\n" in text
    assert WORDS in daemon.sayso("status").stdout
    assert daemon.log.read_text().count(WORDS) == 1
    assert recorded(daemon) == 1
    assert daemon.stop() == 0
    daemon.start()
    assert told(daemon) is None
    assert (daemon.log.read_text().count(WORDS), recorded(daemon)) == (1, 1)


def test_the_page_tells_of_it_until_a_start_that_was_asked_for(make_daemon):
    daemon = make_daemon(CONFIG).start()
    assert WORDS not in page_of(daemon)
    daemon.kill()
    daemon.start()
    assert WORDS in page_of(daemon)
    assert daemon.stop() == 0
    daemon.start()
    assert WORDS not in page_of(daemon)


def test_a_question_whose_time_ran_out_meanwhile_is_named(make_daemon, finish):
    daemon = make_daemon(f"approvals: {{exec: {{timeout: 1000}}}}\n{CONFIG}").start()
    _, question = at_work(daemon, finish, daemon.kill)
    time.sleep(1.2)
    daemon.start()
    assert f"Questions whose time ran out meanwhile: {question[:8]}" in told(daemon)
    assert "Questions that still wait: none" in told(daemon)


def test_after_a_stop_nothing_is_told_though_a_run_and_a_question_were_under_way(make_daemon, finish):
    daemon = make_daemon(CONFIG).start()
    at_work(daemon, finish, daemon.stop)
    daemon.start()
    assert told(daemon) is None
    assert (daemon.log.read_text().count(WORDS), recorded(daemon)) == (0, 0)


def test_a_start_that_fails_in_between_neither_hides_it_nor_is_told_of(make_daemon):
    daemon = make_daemon(CONFIG).start()
    daemon.kill()
    bad = daemon.root / "bad.yaml"
    bad.write_text("approvals: {exec: {mode: both, targets: [{channel: telegram, to: 'user:x'}]}}\n")
    flags = ("up", "--port", "0", *daemon.configs, "--config", str(bad))
    daemon.sayso(*flags, status=78)
    daemon.start()
    assert told(daemon).startswith(WORDS)
    daemon.stop()
    daemon.sayso(*flags, status=78)
    (daemon.home / "sayso.sock").unlink(missing_ok=True)
    (daemon.home / "sayso.sock").mkdir()  # found out last, long after the other was told
    daemon.sayso("up", "--port", "0", *daemon.configs, status=78)
    (daemon.home / "sayso.sock").rmdir()
    daemon.start()
    assert told(daemon) is None


@pytest.fixture
async def chat(telegram_api, make_daemon):
    """A daemon that asks one person on Telegram, whom no notice is addressed to."""
    ann = telegram_api.new_user("Ann", username="ann")
    group = telegram_api.new_group("Servers", ann)
    daemon = make_daemon(
        f"""
channels:
  telegram: {{token: '{telegram_api.token}', apiUrl: 'http://127.0.0.1:{telegram_api.port}'}}
approvals:
  exec:
    mode: targets
    approvers: ['telegram:{ann.id}']
    targets: [{{channel: telegram, to: 'channel:{group.id}'}}]
"""
    )
    await asyncio.to_thread(daemon.start)
    yield daemon, telegram_api, group
    if daemon.process is not None:
        await asyncio.to_thread(daemon.stop)


async def test_it_is_told_where_people_are_asked_and_a_stop_is_not(chat):
    daemon, api, group = chat
    await asyncio.to_thread(daemon.stop)
    await asyncio.to_thread(daemon.start)
    await asyncio.to_thread(daemon.kill)
    await asyncio.to_thread(daemon.start)
    message = await api.message_when(lambda message: WORDS in message.text, chat=group, seconds=15)
    assert message.buttons == []
    await asyncio.to_thread(daemon.stop)
    await asyncio.to_thread(daemon.start)
    await asyncio.sleep(1)
    assert len([message for message in api.messages(group) if WORDS in message.text]) == 1
