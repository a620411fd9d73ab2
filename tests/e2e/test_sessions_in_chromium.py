"""The page of sessions in a real browser: set, seen on every page, and photographed."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest
from playwright.async_api import async_playwright, expect

from adapters.channels.web.adapter import WebChannel
from adapters.neighbours import Neighbours
from core.config import WebSettings
from core.model.card import Mark
from core.model.elevation import Level
from core.model.principal import Sender
from core.model.request import State
from core.model.session import SessionKey
from tests.e2e.test_page_in_chromium import ARGS, OUTSIDE, SHOTS, SIZES, WallClock, live
from tests.session_desk import BUILDER, MAIN

pytestmark = pytest.mark.browser

FULL_CARD = ".session.is-full"


@pytest.fixture
def clock():
    return WallClock()


@pytest.fixture
async def channel(clock, logins, desk, permissions, sessions):
    channel = WebChannel(WebSettings(port=0), logins, permissions, clock, Neighbours({os.geteuid()}))
    channel.show_sessions(sessions.desk)
    await channel.open(desk)
    await sessions.seen(MAIN, BUILDER)
    yield channel
    await channel.close()


@pytest.fixture
async def open_page(channel):
    """Open a window that is signed in; options are the context's."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGS)

        async def make(**options):
            context = await browser.new_context(**({"viewport": SIZES["desktop"]} | options))
            page = await context.new_page()
            page.problems = []
            page.on("pageerror", lambda error: page.problems.append(str(error)))
            page.on(
                "console",
                lambda message: page.problems.append(message.text) if message.type == "error" else None,
            )
            await page.goto(channel.link()[0])
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_role("link", name="Permissions")).to_be_visible()
            return page

        yield make
        await browser.close()


def of(page, session):
    return page.locator(".session").filter(has=page.get_by_text(str(session), exact=True))


async def set_full(page, session, reason):
    card = of(page, session)
    await card.get_by_text("Change", exact=True).click()
    form = card.locator("form.full")
    if reason:
        await form.get_by_label("Reason").fill(reason)
    await form.get_by_role("button", name="Set full").click()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
async def test_on_is_set_for_a_time_seen_on_every_page_and_switched_off(open_page, channel, sessions, script):
    page = await open_page(java_script_enabled=script)
    await expect(page.locator("[data-alarm]")).to_be_hidden()
    await page.get_by_role("link", name="Sessions").click()
    card = of(page, MAIN)
    await card.get_by_text("Change", exact=True).click()
    form = card.locator("form.level").first
    await form.get_by_label("For").select_option("1 h")
    await form.get_by_label("Reason").fill("the deploy")
    await form.get_by_role("button", name="On", exact=True).click()
    await expect(page.locator("[data-said]")).to_contain_text("agent:main:main: elevated on")
    await expect(of(page, MAIN)).to_contain_text("the deploy")
    assert sessions.level(MAIN) is Level.ON
    kept = sessions.elevations.standing_of(str(MAIN))
    assert (kept.until - kept.set_at, kept.by) == (3_600_000, "operator (web:operator)")
    await page.goto(channel.address)
    await expect(page.locator("[data-alarm]")).to_contain_text("Elevated on: agent:main:main until ")
    await page.locator("[data-alarm]").get_by_role("link").click()
    await of(page, MAIN).get_by_role("button", name="Switch off").click()
    await expect(page.locator("[data-alarm]")).to_be_hidden()
    assert sessions.level(MAIN) is Level.OFF
    assert page.problems == []


async def test_full_takes_a_reason_and_enter_in_a_field_sets_nothing(open_page, sessions):
    page = await open_page()
    await page.get_by_role("link", name="Sessions").click()
    await set_full(page, MAIN, "")
    await expect(of(page, MAIN).locator("form.full").get_by_label("Reason")).to_be_focused()
    for number in range(2):
        field = of(page, MAIN).get_by_label("Reason").nth(number)
        await field.fill("in a hurry")
        await field.press("Enter")
    await page.wait_for_timeout(300)
    assert sessions.elevations.all() == ()
    await of(page, MAIN).get_by_role("button", name="Set full").click()
    await expect(page.locator(FULL_CARD)).to_contain_text("nobody is asked")
    assert (sessions.level(MAIN), sessions.level(BUILDER)) == (Level.FULL, Level.OFF)
    await expect(page.locator("[data-alarm]")).to_have_class("alarm full")
    assert page.problems == []


async def test_what_a_chat_sets_reaches_an_open_page_with_the_next_card(
    open_page, channel, sessions, desk, make_card
):
    page = await open_page()
    await live(page)
    await sessions.set(BUILDER, Level.FULL, 900_000, "why")
    await channel.post(desk.ask(make_card()), "", "")
    await expect(page.locator("[data-alarm]")).to_contain_text("Elevated full, nobody is asked")
    await expect(page.locator("[data-alarm]")).to_have_class("alarm full")
    await sessions.set(BUILDER, Level.OFF)
    await channel.post(desk.ask(make_card(request_id="e" * 32)), "", "")
    await expect(page.locator("[data-alarm]")).to_be_hidden()
    await page.wait_for_timeout(700)
    await page.get_by_role("button", name="Deny", exact=True).first.click()
    await expect(page.locator("[data-said]")).to_contain_text("You denied")


async def test_a_press_does_not_count_right_after_the_alarm_moved_the_page(
    open_page, channel, sessions, desk, make_card
):
    page = await open_page()
    await live(page)
    card = desk.ask(make_card())
    await channel.post(card, "", "")
    await page.wait_for_timeout(700)
    await sessions.set(MAIN, Level.ON)
    await page.evaluate(
        """new MutationObserver((_, seen) => {
             seen.disconnect(); document.querySelector('.yes').click();
           }).observe(document.querySelector('[data-alarm]'), {attributes: true})"""
    )
    await channel.post(card, "", "")
    await expect(page.locator("[data-said]")).to_contain_text("did not count")
    assert desk.reviews == []


async def test_hostile_reasons_stay_text(open_page, sessions):
    evil = "<img src=x onerror=\"document.title='owned'\">"
    await sessions.set(MAIN, Level.ON, 900_000, evil, Sender("telegram", "1", evil))
    page = await open_page()
    await page.goto(page.url + "sessions")
    await live(page)
    await expect(of(page, MAIN)).to_contain_text(evil)
    assert await page.locator(".session img, .alarm img").count() == 0
    assert await page.title() == "Sessions · Sayso"
    assert page.problems == []


class TestNotInAllowFrom:
    @pytest.fixture
    def allow_from(self):
        return ["telegram:1"]

    async def test_the_refusal_is_shown_in_words(self, open_page, sessions):
        page = await open_page()
        await page.get_by_role("link", name="Sessions").click()
        await set_full(page, MAIN, "the deploy")
        await expect(page.locator(".said.refused")).to_contain_text(
            "web:operator is not in tools.elevated.allowFrom"
        )
        assert sessions.elevations.all() == ()


def cards(make_card):
    by_ann = (
        "it runs on the host: elevated on (set by Ann (telegram:5000000001) at 2026-11-21 14:05:09 UTC "
        "until 2026-11-21 14:35:09 UTC)"
    )
    host = make_card(
        on_host=True, marks=(Mark("ELEVATED", by_ann),), always=(), always_why="elevated counts once"
    )
    wants = "the agent asks for elevated full: only a person in tools.elevated.allowFrom may allow it"
    asks = replace(host, request_id="b" * 32, marks=(host.marks[0], Mark("ELEVATED", wants)))
    ran = replace(host, request_id="c" * 32, state=State.DENIED, decided="Denied by operator (web:operator)")
    return [host, asks, ran]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
async def test_every_state_fits_and_is_photographed(
    open_page, channel, sessions, desk, make_card, size, scheme
):
    SHOTS.mkdir(parents=True, exist_ok=True)
    page = await open_page(viewport=SIZES[size], color_scheme=scheme, reduced_motion="reduce")

    async def shoot(name):
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{name} is {wide} px wider than the screen"
        assert await page.evaluate(OUTSIDE) == [], name
        await page.screenshot(path=SHOTS / f"{name}-{size}-{scheme}.png", full_page=True)

    async def go(path, name):
        await page.goto(channel.address + path)
        await live(page)
        await shoot(name)

    await go("sessions", "sessions-off")
    deep = SessionKey("main", "telegram", "-1004001000000", ("a" * 60, "b" * 100))
    cli = Sender("cli", "0", "root")
    await sessions.set(MAIN, Level.ON, 1_800_000)
    await sessions.set(
        BUILDER, Level.FULL, 900_000, "the disk is full and the chats are down", cli, break_glass=True
    )
    await sessions.set(deep, Level.ASK, reason="x y" * 160)
    await sessions.bind(BUILDER, "telegram", "-1004001000000")
    await sessions.seen(SessionKey("main", "discord", "42"))
    await go("sessions", "sessions")
    for summary in await page.get_by_text("Change", exact=True).all():
        await summary.click()
    await page.evaluate("scrollTo(0, 0)")
    await shoot("sessions-change")
    for card in cards(make_card):
        desk.ask(card)
    await go("", "waiting-elevated")
    await sessions.set(BUILDER, Level.OFF)
    await go("", "waiting-elevated-on")
    assert re.search("Elevated", await page.locator("[data-alarm]").inner_text())
