"""The page in a real browser: pressed, watched from a second tab, and photographed."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from adapters.channels.web.adapter import WebChannel
from adapters.neighbours import Neighbours
from core.config import WebSettings
from core.model.card import CardOutcome, Mark
from core.model.request import Answer, State

pytestmark = pytest.mark.browser

SHOTS = Path(__file__).parents[2] / "build" / "screenshots"
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"phone": {"width": 360, "height": 740}, "desktop": {"width": 1200, "height": 800}}

OUTSIDE = """[...document.querySelectorAll('.card')].flatMap(card => [...card.querySelectorAll('*')]
  .filter(part => part.getBoundingClientRect().right > card.getBoundingClientRect().right)
  .map(part => part.outerHTML))"""


class WallClock:
    """Real time: the browser has a clock of its own."""

    def now(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000) + 1_800_000_000_000

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@pytest.fixture
def clock():
    return WallClock()


@pytest.fixture
async def channel(clock, logins, desk, permissions):
    channel = WebChannel(WebSettings(port=0), logins, permissions, clock, Neighbours({os.geteuid()}))
    await channel.open(desk)
    desk.changed = channel._hub.publish
    yield channel
    await channel.close()


@pytest.fixture
async def browser():
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGS)
        yield browser
        await browser.close()


@pytest.fixture
def problems():
    return []


@pytest.fixture
async def signed_in(browser, channel, problems):
    """A browser window that went through the login page."""
    context = await browser.new_context(viewport=SIZES["desktop"])
    page = await context.new_page()
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    url, _ = channel.link()
    await page.goto(url)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("Nothing waits")).to_be_visible()
    yield page
    await context.close()


async def live(page):
    await expect(page.locator("[data-link]")).to_have_class("link-state live")


async def show(channel, desk, card):
    await channel.post(desk.ask(card), "", "")


async def settle():
    """Let the guard against presses on a page that just moved run out."""
    await asyncio.sleep(0.7)


async def test_allow_pressed_here_changes_the_card_in_a_second_tab(
    signed_in, channel, desk, make_card, problems
) -> None:
    other = await signed_in.context.new_page()
    await other.goto(channel.address)
    await live(other)
    await live(signed_in)
    await show(channel, desk, make_card())
    await expect(other.get_by_role("button", name="Allow once")).to_be_visible()
    assert await other.title() == "(1) Sayso"
    await settle()
    await signed_in.get_by_role("button", name="Allow once").click()
    await expect(signed_in.locator("[data-said]")).to_contain_text("You allowed 3f2b9c1d.")
    await expect(other.locator(".card")).to_contain_text("allowed by operator")
    await expect(other.get_by_role("button", name="Allow once")).to_have_count(0)
    await expect(signed_in.get_by_role("button", name="Allow once")).to_have_count(0)
    await expect(other).to_have_title("Sayso")
    assert [review.answer for review in desk.reviews] == [Answer.ALLOW_ONCE]
    assert problems == []


async def test_deny_with_a_reason_works_by_keyboard_and_enter_never_allows(
    signed_in, channel, desk, make_card
) -> None:
    await live(signed_in)
    await show(channel, desk, make_card())
    await settle()
    await signed_in.keyboard.press("j")
    for _ in range(3):
        await signed_in.keyboard.press("Tab")
    await expect(signed_in.get_by_label(re.compile("Reason, optional"))).to_be_focused()
    await signed_in.keyboard.type("not today, j k ?")
    await signed_in.keyboard.press("Enter")
    await expect(signed_in.locator("[data-said]")).to_contain_text("You denied")
    assert [(review.answer, review.reason) for review in desk.reviews] == [(Answer.DENY, "not today, j k ?")]


@pytest.mark.parametrize(
    ("button", "answer", "for_ms"),
    [
        ("Allow once", Answer.ALLOW_ONCE, None),
        ("Allow for 15 min", Answer.ALLOW_FOR, 900_000),
        ("Allow for 1 h", Answer.ALLOW_FOR, 3_600_000),
        ("Always, any arguments", Answer.ALLOW_ALWAYS_ANY, None),
        ("Deny always", Answer.DENY_ALWAYS, None),
    ],
)
@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
async def test_more_answers_open_and_a_reason_goes_with_each(
    browser, channel, desk, make_card, button, answer, for_ms, script
) -> None:
    context = await browser.new_context(java_script_enabled=script)
    page = await context.new_page()
    desk.ask(make_card(always_any=("any `ls` command in the sandbox",)))
    await page.goto(channel.link()[0])
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_timeout(700)
    await expect(page.get_by_role("button", name="Deny always")).to_be_hidden()
    await page.get_by_text("More answers").click()
    await page.get_by_label(re.compile("Reason, optional")).fill("  for the release ")
    await page.get_by_role("button", name=button, exact=True).click()
    await expect(page.locator("[data-said]")).to_contain_text("3f2b9c1d.")
    assert [(r.answer, r.for_ms, r.reason) for r in desk.reviews] == [(answer, for_ms, "for the release")]
    await context.close()


async def test_enter_in_the_reason_denies_also_without_a_script_and_with_all_answers_open(
    browser, channel, desk, make_card
) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    desk.ask(make_card())
    await page.goto(channel.link()[0])
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_text("More answers").click()
    await page.get_by_label(re.compile("Reason, optional")).press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("You denied")
    assert [review.answer for review in desk.reviews] == [Answer.DENY]
    await context.close()


async def test_a_new_text_of_a_card_keeps_its_other_answers_open(signed_in, channel, desk, make_card) -> None:
    await live(signed_in)
    await show(channel, desk, make_card())
    await signed_in.get_by_text("More answers").click()
    await show(channel, desk, make_card(reason="the reason has changed"))
    await expect(signed_in.locator(".card")).to_contain_text("the reason has changed")
    await expect(signed_in.get_by_role("button", name="Deny always")).to_be_visible()


async def test_what_stands_is_shown_and_revoked(signed_in, permissions, problems) -> None:
    kept, gone = permissions.stand(), permissions.forbid(reason="not on a Friday")
    await signed_in.get_by_role("link", name="Permissions").click()
    await live(signed_in)
    rows = signed_in.locator(".standing")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("not on a Friday")
    await rows.first.get_by_role("button", name="Revoke").click()
    await expect(signed_in.locator("[data-said]")).to_contain_text("Revoked")
    await expect(rows).to_have_count(1)
    assert ([one for one, _ in permissions.revoked], permissions.rows) == ([gone["id"]], [kept])
    assert problems == []


async def test_no_single_key_decides(signed_in, channel, desk, make_card) -> None:
    await live(signed_in)
    await show(channel, desk, make_card())
    await settle()
    await signed_in.keyboard.press("j")
    await expect(signed_in.locator(".card")).to_be_focused()
    for key in [*"aAyYdDnNoOxX1", "Enter", "Space", "Delete"]:
        await signed_in.keyboard.press(key)
    await asyncio.sleep(0.2)
    assert desk.reviews == []


async def test_keys_move_between_cards_and_the_question_mark_helps(
    signed_in, channel, desk, make_card
) -> None:
    await live(signed_in)
    for number in range(3):
        await show(channel, desk, make_card(request_id=f"{number}" * 32))
    cards = signed_in.locator(".card")
    await expect(cards).to_have_count(3)
    await signed_in.keyboard.press("j")
    await signed_in.keyboard.press("j")
    await expect(cards.nth(1)).to_be_focused()
    await signed_in.keyboard.press("k")
    await expect(cards.nth(0)).to_be_focused()
    await signed_in.keyboard.press("?")
    await expect(signed_in.get_by_role("dialog")).to_be_visible()
    await signed_in.keyboard.press("Escape")
    await expect(signed_in.get_by_role("dialog")).to_be_hidden()


async def test_an_update_keeps_what_is_typed_and_where_the_cursor_is(
    signed_in, channel, desk, make_card
) -> None:
    await live(signed_in)
    await show(channel, desk, make_card())
    field = signed_in.get_by_label(re.compile("Reason, optional"))
    await field.fill("half a sen")
    await show(channel, desk, make_card(reason="the reason has changed"))
    await expect(signed_in.locator(".card")).to_contain_text("the reason has changed")
    await expect(field).to_be_focused()
    await expect(field).to_have_value("half a sen")


async def test_a_press_on_a_page_that_has_just_moved_does_not_count(
    signed_in, channel, desk, make_card
) -> None:
    await live(signed_in)
    first, second = make_card(), make_card(request_id="e" * 32, command="/usr/bin/true")
    await show(channel, desk, first)
    await show(channel, desk, second)
    await settle()
    lower = signed_in.locator(f"#r-{second.request_id}").get_by_role("button", name="Allow once")
    gone = desk.settle(first.request_id, State.DENIED, "denied by ann at 12:01")
    await signed_in.evaluate("document.querySelector('.card .decided') === null")
    await channel.update(gone, "", first.request_id, "")
    await signed_in.locator(".card .decided").wait_for()
    await lower.evaluate("button => button.click()")
    await expect(signed_in.locator("[data-said]")).to_contain_text("did not count")
    assert desk.reviews == []
    await settle()
    await lower.click()
    await expect(signed_in.locator("[data-said]")).to_contain_text("You allowed eeeeeeee.")


async def test_allow_appears_only_after_a_long_command_was_viewed(
    signed_in, channel, desk, make_card
) -> None:
    await live(signed_in)
    await show(channel, desk, make_card(command="/usr/bin/echo " + "word " * 1000 + "END"))
    allow = signed_in.get_by_role("button", name="Allow once")
    await expect(allow).to_be_hidden()
    await expect(signed_in.get_by_role("button", name="Deny")).to_be_visible()
    await signed_in.get_by_text("More answers").click()
    await expect(signed_in.get_by_role("button", name="Deny always")).to_be_visible()
    for_a_time = signed_in.get_by_role("button", name="Allow for 1 h")
    await expect(for_a_time).to_be_hidden()
    await signed_in.get_by_text("View all", exact=True).first.click()
    await expect(allow).to_be_visible()
    await expect(for_a_time).to_be_visible()


async def test_the_page_works_without_javascript(browser, channel, desk, make_card) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    desk.ask(make_card())
    await page.goto(channel.link()[0])
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("button", name="Always allow").click()
    await expect(page.get_by_role("status")).to_contain_text("You allowed 3f2b9c1d.")
    await expect(page.get_by_text("allowed by operator")).to_be_visible()
    assert [review.answer for review in desk.reviews] == [Answer.ALLOW_ALWAYS]
    await context.close()


async def test_a_lost_connection_is_told_and_mends_itself(
    signed_in, channel, clock, logins, desk, permissions, make_card
) -> None:
    await live(signed_in)
    port = int(channel.address.rstrip("/").rsplit(":", 1)[1])
    await channel.close()
    await expect(signed_in.get_by_role("alert")).to_contain_text("Connection lost")
    desk.ask(make_card(command="/usr/bin/after-the-restart"))
    again = WebChannel(WebSettings(port=port), logins, permissions, clock, Neighbours({os.geteuid()}))
    await again.open(desk)
    try:
        await expect(signed_in.locator(".card")).to_contain_text("after-the-restart", timeout=15_000)
        await expect(signed_in.get_by_role("alert")).to_be_hidden()
    finally:
        await again.close()


async def test_signing_out_closes_every_tab(signed_in, channel) -> None:
    other = await signed_in.context.new_page()
    await other.goto(channel.address)
    await live(other)
    await signed_in.get_by_role("button", name="Sign out").click()
    await expect(signed_in.get_by_text("You are not signed in")).to_be_visible()
    await expect(other.get_by_text("You are not signed in")).to_be_visible(timeout=10_000)


async def test_hostile_text_that_arrives_live_stays_text(
    signed_in, channel, desk, make_card, problems
) -> None:
    await live(signed_in)
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    await show(channel, desk, make_card(command=evil, agent=evil, reason=evil))
    await expect(signed_in.locator(".card .command")).to_have_text(evil)
    assert await signed_in.locator(".card img, .card script").count() == 0
    assert await signed_in.title() == "(1) Sayso"
    assert problems == []


async def test_the_time_left_counts_down(signed_in, channel, clock, desk, make_card) -> None:
    await live(signed_in)
    await show(channel, desk, make_card(deadline=clock.now() + 12_000))
    left = signed_in.locator("[data-left]")
    await expect(left).to_have_text("10 s left", timeout=5_000)
    await expect(left).to_have_class("left soon")


async def test_a_card_whose_time_is_over_offers_no_answer(signed_in, channel, clock, desk, make_card) -> None:
    await live(signed_in)
    await show(channel, desk, make_card(deadline=clock.now() + 3_000))
    allow = signed_in.get_by_role("button", name="Allow once")
    await expect(allow).to_be_visible()
    await expect(signed_in.locator("[data-left]")).to_have_text("no time left", timeout=10_000)
    await expect(allow).to_be_hidden()
    await expect(signed_in.locator(".deny .no")).to_be_hidden()


async def test_a_lost_connection_is_seen_wherever_one_has_scrolled_to(
    signed_in, channel, desk, make_card
) -> None:
    for number in range(8):
        desk.ask(make_card(request_id=f"{number:032x}"))
    await signed_in.set_viewport_size(SIZES["phone"])
    await signed_in.goto(channel.address)
    await live(signed_in)
    await signed_in.locator(".card").last.scroll_into_view_if_needed()
    await channel.close()
    await expect(signed_in.get_by_role("alert")).to_be_in_viewport(ratio=1)


async def test_an_answer_says_for_which_command_it_was(signed_in, channel, desk, make_card) -> None:
    await live(signed_in)
    await show(channel, desk, make_card(command="/usr/bin/touch " + "x" * 200))
    await settle()
    await signed_in.locator(".deny .no").click()
    await expect(signed_in.locator("[data-said]")).to_contain_text("/usr/bin/touch x")


def states(make_card, clock):
    long = "/usr/bin/python3 -c " + repr("\n".join(f"print('step {n}', compute({n}))" for n in range(400)))
    one = make_card()
    host = make_card(
        request_id="a" * 32,
        agent="builder",
        session="agent:builder:discord:42",
        command="/usr/bin/systemctl restart nginx && /usr/bin/curl -fsS https://example.org/health",
        on_host=True,
        account="alice",
        env=(("GIT_SSH_COMMAND", "ssh -i /tmp/key"), ("CI", "true")),
    )
    never = make_card(
        request_id="b" * 32,
        command="/usr/bin/sudo /usr/bin/apt-get install -y jq",
        always=(),
        always_why="sudo changes who runs, so it is asked every time",
        reason="sudo changes who runs the command",
        rule="exec.wrapper.user",
        deadline=clock.now() + 15_000,
    )
    reading = make_card(
        request_id="4" * 32,
        command="/usr/bin/grep -rn TODO src && /usr/bin/wc -l src/main.c",
        always=(
            "exactly `grep -rn TODO src` in any directory, in the sandbox",
            "exactly `wc -l src/main.c` in any directory, in the sandbox",
        ),
        always_any=("any `grep` command in the sandbox", "any `wc` command in the sandbox"),
    )
    ran = replace(
        make_card(request_id="c" * 32, command="/usr/bin/git push origin main"),
        state=State.FINISHED,
        decided="allowed once by operator (web:operator) at 12:01:07",
        outcome=CardOutcome("exited with 0", 0, 1840, "Everything up-to-date\n", ""),
    )
    failed = replace(
        make_card(request_id="d" * 32, command="/usr/bin/make test"),
        state=State.FINISHED,
        decided="always allowed by ann (telegram:1234) at 11:48:30",
        outcome=CardOutcome(
            "exited with 2",
            2,
            64_000,
            "\n".join(f"test {n} passed" for n in range(600)),
            "make: *** [Makefile:12: test] Error 2\n",
        ),
    )
    denied = replace(
        host, request_id="e" * 32, state=State.DENIED, decided="denied by operator: not on a Friday"
    )
    running = replace(
        one, request_id="f" * 32, state=State.RUNNING, decided="allowed once by operator at 12:02"
    )
    client = replace(
        make_card(request_id="1" * 32, command="/usr/bin/npm install left-pad", account=""),
        placement="HOST, by the agent's own program",
        on_host=True,
        marks=(Mark("HOST", "the agent's own program runs it: Sayso neither holds it back nor can end it"),),
    )
    unheld = (
        "nothing keeps this run from Sayso's own keys, so it could answer questions in your name: "
        "`/usr/bin/sudo` takes rights that its caller has not (setuid, setgid or file capabilities); "
        "a yes to it counts once"
    )
    unprotected = replace(
        host, request_id="2" * 32, reason=unheld, marks=(*host.marks, Mark("UNPROTECTED", unheld))
    )
    over = make_card(request_id="3" * 32, deadline=clock.now() - 1_000)
    return {
        "empty": [],
        "waiting-unprotected": [unprotected, client, over],
        "waiting-one": [one],
        "waiting-several": [one, never, host],
        "waiting-host": [host],
        "waiting-reading": [reading],
        "waiting-never": [never],
        "waiting-long": [make_card(command=long)],
        "decided": [running, denied, failed, ran],
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
async def test_every_state_fits_and_is_photographed(
    browser, channel, clock, desk, permissions, make_card, size, scheme
) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    context = await browser.new_context(
        viewport=SIZES[size], color_scheme=scheme, reduced_motion="reduce", device_scale_factor=1
    )
    page = await context.new_page()

    async def shoot(name: str) -> None:
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{name} is {wide} px wider than the screen"
        assert await page.evaluate(OUTSIDE) == [], name
        await page.screenshot(path=SHOTS / f"{name}-{size}-{scheme}.png", full_page=True)

    await page.goto(channel.address)
    await shoot("signed-out")
    await page.goto(channel.link()[0])
    await shoot("login")
    await page.get_by_role("button", name="Sign in").click()
    for name, cards in states(make_card, clock).items():
        desk.cards = {card.request_id: card for card in cards}
        await page.goto(channel.address)
        await live(page)
        await shoot(name)
    for name, state in (("more-answers", "waiting-host"), ("more-answers-reading", "waiting-reading")):
        desk.cards = {card.request_id: card for card in states(make_card, clock)[state]}
        await page.goto(channel.address)
        await live(page)
        await page.get_by_text("More answers").click()
        await page.evaluate("scrollTo(0, 0)")
        await shoot(name)
    await page.goto(channel.address + "permissions")
    await shoot("permissions-none")
    now = clock.now()
    permissions.stand(givenAt=now - 1_000_000, expiresAt=now + 800_000)
    permissions.stand(id="7" * 32, maxUses=None, uses=0, givenAt=now, expiresAt=now + 3_600_000)
    permissions.forbid(
        givenAt=now, command="/usr/bin/curl " + "https://example.org/x" * 90, reason="x y" * 90
    )
    await page.goto(channel.address + "permissions")
    await live(page)
    await shoot("permissions")
    await page.keyboard.press("?")
    await shoot("help")
    await page.keyboard.press("Escape")
    desk.cards = {"0" * 32: make_card(request_id="0" * 32)}
    await page.goto(channel.address)
    await live(page)
    await channel.close()
    await expect(page.get_by_role("alert")).to_be_visible()
    await shoot("lost")
    await context.close()
