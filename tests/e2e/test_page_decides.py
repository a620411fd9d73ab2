"""The page decides: a real daemon, real agents' calls, and presses in a real browser."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

pytestmark = [pytest.mark.browser, pytest.mark.daemon]

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A press shortly after the cards have moved does not count: it was meant for what stood there before.
SETTLE_MS = 700
LATE_MS = 15_000


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def problems():
    return []


@pytest.fixture
def sign_in(browser, problems):
    """Make a window that went through `sayso web link`, and has everything that waits on it."""
    contexts = []

    def make(daemon):
        context = browser.new_context()
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(daemon.json("web", "link")["url"])
        page.get_by_role("button", name="Sign in").click()
        live(page)
        return page

    yield make
    for context in contexts:
        context.close()


def live(page):
    expect(page.locator("[data-link]")).to_have_class("link-state live", timeout=LATE_MS)


def card_of(page, text):
    """Find the card whose command holds the text, and wait until a press on it counts."""
    card = page.locator(".card").filter(has=page.locator(".command", has_text=text))
    expect(card).to_be_visible()
    page.wait_for_timeout(SETTLE_MS)
    return card


def press(card, name):
    card.get_by_role("button", name=name).click()


def no_buttons(card):
    expect(card.get_by_role("button", name=re.compile("Allow|Deny"))).to_have_count(0)


def ask_and_see(daemon, page, *argv):
    asking = daemon.ask("--", *argv)
    return asking, card_of(page, " ".join(argv))


def test_the_card_says_all_that_a_person_needs_before_deciding(daemon, sign_in, finish):
    page = sign_in(daemon)
    expect(page.get_by_text("Nothing waits")).to_be_visible()
    asking, card = ask_and_see(daemon, page, "rm", "-rf", "build")
    expect(page.get_by_text("Nothing waits")).to_be_hidden()
    (request,) = daemon.pending()
    for words in (
        "main asks to run",
        "/usr/bin/rm -rf build",
        request["cwd"],
        "in the sandbox",
        "exec.allowlist-miss",
        f"without asking again: exactly `rm -rf build` in {request['cwd']}, in the sandbox",
    ):
        expect(card).to_contain_text(words)
    # The rule, and where it is written: file and line.
    expect(card).to_contain_text(re.compile(r"config\.example\.yaml(:|, line )\d+"))
    expect(card.locator("[data-left]")).to_have_text(re.compile(r"1 min \d+ s left"))
    daemon.sayso("deny", request["id"])
    assert finish(asking)[0] == 77


def test_allow_once_runs_the_command_and_tells_every_tab_what_came_of_it(daemon, sign_in, problems, finish):
    page = sign_in(daemon)
    other = page.context.new_page()
    other.goto(daemon.page)
    live(other)
    asking, card = ask_and_see(daemon, page, "rm", "-rf", "build")
    press(card, "Allow once")
    status, _, err = finish(asking)
    assert status == 0, err
    for tab in (page, other):
        decided = tab.locator(".card")
        expect(decided).to_contain_text("Allowed once by operator (web:operator)")
        expect(decided.locator("time")).to_have_text(re.compile(r"\d{1,2}:\d\d"))
        expect(decided).to_contain_text("finished with status 0")
        no_buttons(decided)
    assert problems == []


def test_allowed_for_a_time_it_runs_again_until_it_is_revoked_on_the_page(daemon, sign_in, problems, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "for-a-time")
    card.get_by_text("More answers").click()
    card.get_by_label(re.compile("Reason, optional")).fill("release day")
    press(card, "Allow for 15 min")
    assert finish(asking)[0] == 0
    expect(card).to_contain_text(re.compile(r"Allowed for a time by operator .* until .* UTC: release day"))
    again = daemon.json("exec", "--", "touch", "for-a-time")
    assert again["approval"]["decision"] == "allowed-by-permission"
    page.get_by_role("link", name="Permissions").click()
    row = page.locator(".standing")
    for words in ("Allowed for a time", "/usr/bin/touch for-a-time", "operator (web:operator)", "14 min"):
        expect(row).to_contain_text(words)
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Nothing stands.")).to_be_visible()
    asking = daemon.ask("--", "touch", "for-a-time")
    (request,) = daemon.pending()
    daemon.sayso("deny", request["id"])
    assert finish(asking)[0] == 77
    assert problems == []


def test_denied_always_on_the_page_is_denied_at_once_from_then_on(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "never")
    card.get_by_text("More answers").click()
    press(card, "Deny always")
    assert finish(asking)[0] == 77
    expect(card).to_contain_text("Denied always by operator (web:operator)")
    again = daemon.sayso("exec", "--", "touch", "never", status=77)
    assert "operator (web:operator) denied exactly this always" in again.stderr
    assert daemon.json("pending") == []


def test_an_answer_slower_than_the_run_does_not_put_the_card_back(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "quick")

    def held_back(route):
        answer = route.fetch()
        finish(asking)
        time.sleep(0.5)
        route.fulfill(response=answer)

    page.route("**/decide", held_back)
    press(card, "Allow once")
    expect(page.locator("[data-said]")).to_contain_text("Allowed once")
    page.wait_for_timeout(200)
    expect(card).to_contain_text("finished with status 0", timeout=1_000)


@pytest.mark.parametrize("reached", [True, False])
def test_a_reply_that_is_lost_is_not_told_as_an_answer_that_did_not_count(daemon, sign_in, finish, reached):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "lost")

    def lost(route):
        if reached:
            route.fetch()
            finish(asking)
            time.sleep(0.5)
        route.abort()

    page.route("**/decide", lost)
    press(card, "Allow once")
    said = page.locator("[data-said]")
    expect(said).to_contain_text("it was decided" if reached else "may have counted all the same")
    assert (daemon.root / "lost").exists() is False or reached
    if not reached:
        page.unroute("**/decide")
        page.wait_for_timeout(SETTLE_MS)
        press(card, "Deny")
        assert finish(asking)[0] == 77


def test_what_a_run_printed_and_its_status_stand_on_the_card(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "ls", "/there-is-no-such-file")
    press(card, "Allow once")
    assert finish(asking)[0] == 2
    expect(card).to_contain_text("Exit 2")
    expect(card.locator(".output")).to_contain_text("No such file")


def test_deny_with_a_reason_reaches_the_agent_and_nothing_runs(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "made-although-denied")
    (request,) = daemon.pending()
    card.get_by_label(re.compile("Reason, optional")).fill("the build is still needed")
    press(card, "Deny")
    status, _, err = finish(asking)
    assert status == 77
    assert "the build is still needed" in err
    expect(card).to_contain_text("Denied by operator (web:operator): the build is still needed")
    no_buttons(card)
    events = [event["kind"] for event in daemon.json("show", request["id"])["record"]]
    assert "run.started" not in events


def test_always_is_remembered_as_said_and_only_that(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "git", "log", "--version")
    expect(card).to_contain_text(re.compile("exactly `git log --version` in /[^ ]+, in the sandbox"))
    press(card, "Always allow")
    finish(asking)
    expect(card).to_contain_text("Allowed always by operator")
    # Now it runs unasked; other arguments still wait.
    again = daemon.json("exec", "--", "git", "log", "--version", status=None)
    assert again["approval"]["decision"] == "allowed-by-policy"
    other, _ = ask_and_see(daemon, page, "git", "log", "--oneline")
    daemon.sayso("deny", daemon.pending()[0]["id"])
    assert finish(other)[0] == 77


def test_always_is_not_offered_where_nothing_may_be_remembered(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "sudo", "true")
    expect(card.get_by_role("button", name="Always allow")).to_have_count(0)
    expect(card).to_contain_text("not offered")
    press(card, "Deny")
    assert finish(asking)[0] == 77


def test_an_answer_given_on_the_command_line_changes_the_open_page(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "by-the-command-line")
    daemon.sayso("approve", daemon.pending()[0]["id"])
    assert finish(asking)[0] == 0
    expect(card).to_contain_text(re.compile(r"Allowed once by .+ \(cli:\d+\)"))
    expect(card).to_contain_text("finished with status 0")
    no_buttons(card)


def test_a_press_that_comes_too_late_is_told_what_stands(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "decided-elsewhere")
    # This tab hears nothing any more, as a laptop that slept: its card still shows buttons.
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    daemon.sayso("deny", daemon.pending()[0]["id"], "--reason", "too risky")
    assert finish(asking)[0] == 77
    press(card, "Allow once")
    said = page.locator("[data-said]")
    expect(said).to_contain_text("Denied by")
    expect(said).to_contain_text("too risky")
    expect(said).to_have_class(re.compile("refused"))
    no_buttons(card)
    (past,) = daemon.json("history")
    assert past["state"] == "denied"


def test_without_javascript_a_press_that_comes_too_late_is_told_what_stands(daemon, browser, finish):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(daemon.json("web", "link")["url"])
    page.get_by_role("button", name="Sign in").click()
    asking = daemon.ask("--", "touch", "decided-elsewhere")
    (request,) = daemon.pending()
    page.reload()
    daemon.sayso("deny", request["id"], "--reason", "too risky")
    assert finish(asking)[0] == 77
    page.get_by_role("button", name="Allow once").click()
    expect(page.get_by_role("status")).to_contain_text("too risky")
    expect(page.get_by_role("status")).to_have_class("said refused")
    context.close()


def test_a_question_that_runs_out_of_time_says_so_and_takes_no_press(make_daemon, sign_in, finish):
    daemon = make_daemon("approvals: {exec: {timeout: 2500}}").start()
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "nobody-answered")
    expect(card.locator("[data-left]")).to_have_class(re.compile("soon"))
    assert finish(asking)[0] == 75
    expect(card).to_contain_text("Expired: nobody answered in time")
    no_buttons(card)


def test_two_questions_are_two_cards_and_each_press_decides_its_own(daemon, sign_in, finish):
    page = sign_in(daemon)
    first, keep = ask_and_see(daemon, page, "mkdir", "keep")
    second, drop = ask_and_see(daemon, page, "mkdir", "drop")
    expect(page).to_have_title("(2) Sayso")
    press(drop, "Deny")
    assert finish(second)[0] == 77
    expect(keep.get_by_role("button", name="Allow once")).to_be_visible()
    expect(page).to_have_title("(1) Sayso")
    page.wait_for_timeout(SETTLE_MS)
    press(keep, "Allow once")
    assert finish(first)[0] == 0
    expect(page).to_have_title("Sayso")


def test_kill_9_is_told_then_the_page_comes_back_and_its_press_reaches_wait(daemon, sign_in, finish):
    page = sign_in(daemon)
    port = str(urlsplit(daemon.page).port)
    asking, card = ask_and_see(daemon, page, "touch", "after-the-kill")
    (request,) = daemon.pending()
    daemon.kill()
    assert finish(asking)[0] == 69
    expect(page.get_by_role("alert")).to_contain_text("Connection lost")
    page.wait_for_timeout(SETTLE_MS)
    press(card, "Allow once")
    expect(page.locator("[data-said]")).to_contain_text("No reply from Sayso")

    daemon.start("--port", port)
    live(page)
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page).to_have_title("(1) Sayso")
    page.wait_for_timeout(SETTLE_MS)
    press(card, "Allow once")
    expect(card).to_contain_text("Allowed once by operator")
    done = daemon.sayso("wait", "--json", request["id"])
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert (outcome["status"], outcome["exitCode"]) == ("finished", 0)
    expect(card).to_contain_text("finished with status 0")


def test_a_login_outlives_the_daemon_and_a_link_counts_once(daemon, browser):
    url = daemon.json("web", "link")["url"]
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    page.get_by_role("button", name="Sign in").click()
    live(page)
    port = str(urlsplit(daemon.page).port)
    daemon.kill()
    daemon.start("--port", port)
    page.reload()
    expect(page.get_by_text("Nothing waits")).to_be_visible()
    context.close()

    stranger = browser.new_context()
    page = stranger.new_page()
    page.goto(url)
    expect(page.get_by_text("sayso web link")).to_be_visible()
    expect(page.get_by_role("button", name="Sign in")).to_have_count(0)
    page.goto(daemon.page)
    expect(page.get_by_text("You are not signed in")).to_be_visible()
    stranger.close()


def test_a_decided_card_leaves_the_waiting_list_although_it_was_pressed_last(daemon, sign_in, finish):
    page = sign_in(daemon)
    asking, card = ask_and_see(daemon, page, "touch", "pressed-last")
    press(card, "Deny")
    page.mouse.move(0, 0)
    assert finish(asking)[0] == 77
    expect(page.locator("[data-decided] .card")).to_contain_text("pressed-last", timeout=LATE_MS)
    expect(page.get_by_text("Nothing waits")).to_be_visible()


@pytest.fixture
def elevating(make_daemon):
    return make_daemon("tools: {elevated: {enabled: true, allowFrom: ['web:operator']}}\n").start()


def change(page, session="agent:main:main"):
    """Open what can be set for a session, and return it."""
    page.get_by_role("link", name="Sessions", exact=True).click()
    card = page.locator(".session").filter(has=page.get_by_text(session, exact=True))
    card.get_by_text("Change", exact=True).click()
    return card


def set_full(card):
    card.locator("form.full").get_by_label("Reason").fill("the disk is full")
    card.get_by_role("button", name="Set full").click()


def test_full_set_on_the_page_runs_on_the_host_without_asking_until_it_is_switched_off(
    elevating, sign_in, problems, finish
):
    elevating.sayso("exec", "--", "git", "--version")
    page = sign_in(elevating)
    set_full(change(page))
    expect(page.locator("[data-said]")).to_contain_text("agent:main:main: elevated full until")
    (row,) = elevating.json("sessions")
    assert (row["elevated"], row["setBy"]) == ("full", "operator (web:operator)")
    outcome = elevating.json("exec", "--cwd", "/", "--", "true", "by-elevation")
    assert (outcome["placement"], outcome["approval"]["decision"]) == ("host", "allowed-by-elevation")
    page.get_by_role("link", name="All requests").click()
    expect(page.locator(".card").filter(has_text="true by-elevation")).to_contain_text("ELEVATED")
    expect(page.locator("[data-alarm]")).to_contain_text("Elevated full, nobody is asked: agent:main:main")
    page.get_by_role("link", name="See sessions").click()
    page.get_by_role("button", name="Switch off").click()
    expect(page.locator("[data-alarm]")).to_be_hidden()
    asking = elevating.ask("--", "touch", "after-it")
    (request,) = elevating.pending()
    assert request["placement"] == "sandbox"
    elevating.sayso("deny", request["id"])
    assert finish(asking)[0] == 77
    assert problems == []


def test_a_page_that_allow_from_does_not_name_sets_nothing_and_says_where_to_write_it(make_daemon, sign_in):
    config = "tools: {elevated: {enabled: true, allowFrom: ['telegram:1', 'web:name:web']}}\n"
    daemon = make_daemon(config).start()
    daemon.sayso("exec", "--", "git", "--version")
    page = sign_in(daemon)
    set_full(change(page))
    expect(page.locator(".said.refused")).to_contain_text(
        "web:operator is not in tools.elevated.allowFrom; add it there and run sayso reload"
    )
    assert [row["elevated"] for row in daemon.json("sessions")] == ["off"]


def test_where_elevated_mode_is_off_the_page_says_so(daemon, sign_in):
    daemon.sayso("exec", "--", "git", "--version")
    page = sign_in(daemon)
    set_full(change(page))
    expect(page.locator(".said.refused")).to_contain_text(
        "elevated mode is off: tools.elevated.enabled is false"
    )
