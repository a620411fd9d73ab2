"""Who may look and who may press: for each check of the page, what passes and what nearly does."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets

import aiohttp
import pytest

from adapters.channels.web.adapter import WebChannel
from adapters.channels.web.events import _QUEUE, Hub
from adapters.channels.web.identity import csrf_of
from adapters.neighbours import Neighbours
from core.config import WebSettings
from core.errors import StartError, StoreError
from core.model.request import Answer, State


class Visitor:
    """A client that can say anything a browser could, and anything it could not."""

    def __init__(self, channel):
        self.channel = channel
        self.origin = channel.address.rstrip("/")
        self.http = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self.token = None

    async def get(self, path, **headers):
        url = self.origin + path
        async with self.http.get(url, headers=headers, allow_redirects=False) as response:
            return response, await response.text()

    async def post(self, path, data, headers=None):
        headers = {"Origin": self.origin} if headers is None else headers
        url = self.origin + path
        async with self.http.post(url, data=data, headers=headers, allow_redirects=False) as response:
            return response, await response.text()

    async def sign_in(self):
        code = self.channel.link()[0].rsplit("/", 1)[1]
        response, _ = await self.post("/login", {"code": code})
        assert response.status == 303
        self.token = response.cookies["sayso_login"].value
        return response

    def form(self, answer="deny", **more):
        return {"answer": answer, "csrf": csrf_of(self.token), **more}


@pytest.fixture
async def channel(clock, logins, desk, permissions):
    channel = WebChannel(
        WebSettings(port=0, hosts=("sayso.example.org",)),
        logins,
        permissions,
        clock,
        Neighbours({os.geteuid()}),
    )
    await channel.open(desk)
    yield channel
    await channel.close()


@pytest.fixture
async def stranger(channel):
    visitor = Visitor(channel)
    yield visitor
    await visitor.http.close()


@pytest.fixture
async def visitor(channel):
    visitor = Visitor(channel)
    await visitor.sign_in()
    yield visitor
    await visitor.http.close()


@pytest.fixture
def card(desk, make_card):
    return desk.ask(make_card())


def decide(card):
    return f"/request/{card.request_id}/decide"


# Host


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}", "[::1]:{}", "sayso.example.org"]
)
async def test_the_page_answers_under_its_own_names(visitor, host) -> None:
    port = visitor.origin.rsplit(":", 1)[1]
    response, _ = await visitor.get("/session", Host=host.format(port), Cookie=f"sayso_login={visitor.token}")
    assert response.status == 204


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        "localhost.:{}",
        "localhost.evil.example:{}",
        "127.0.0.1.nip.io:{}",
        "127.0.0.1:{}@evil.example",
        "0.0.0.0:{}",
        "127.1:{}",
        "[::ffff:127.0.0.1]:{}",
        "sayso.example.org:1",
        "sayso.example.org.evil.example",
        "",
    ],
)
async def test_a_foreign_name_that_points_here_is_refused(visitor, host) -> None:
    port = visitor.origin.rsplit(":", 1)[1]
    response, text = await visitor.get(
        "/session", Host=host.format(port), Cookie=f"sayso_login={visitor.token}"
    )
    assert response.status in (400, 421)
    assert "Sayso" not in text


# Origin


async def test_our_own_form_is_taken(visitor, desk, card) -> None:
    response, _ = await visitor.post(decide(card), visitor.form("allow-once"))
    assert response.status == 303
    assert desk.reviews[0].answer is Answer.ALLOW_ONCE


async def test_referer_or_fetch_metadata_stand_in_for_a_missing_origin(visitor, desk, card) -> None:
    await visitor.post(decide(card), visitor.form(), {"Referer": visitor.origin + "/"})
    await visitor.post(decide(card), visitor.form(), {"Sec-Fetch-Site": "same-origin"})
    assert len(desk.reviews) == 2


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "http://127.0.0.1:{port}.evil.example"},
        {"Origin": "http://evil.example", "Referer": "http://127.0.0.1:{port}/"},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
        {"Origin": ""},
        {"Referer": "http://evil.example/http://127.0.0.1:{port}/"},
        {"Referer": "http://127.0.0.1:{port}@evil.example/"},
        {"Referer": "http://evil.example/", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
async def test_a_form_that_is_not_surely_ours_decides_nothing(visitor, desk, card, headers) -> None:
    port = visitor.origin.rsplit(":", 1)[1]
    sent = {name: value.format(port=port) for name, value in headers.items()}
    response, _ = await visitor.post(decide(card), visitor.form("allow-once"), sent)
    assert response.status == 403
    assert desk.reviews == []


async def test_a_login_from_elsewhere_is_refused_and_uses_nothing_up(stranger, channel) -> None:
    code = channel.link()[0].rsplit("/", 1)[1]
    response, _ = await stranger.post("/login", {"code": code}, {"Origin": "http://evil.example"})
    assert response.status == 403
    response, _ = await stranger.post("/login", {"code": code})
    assert response.status == 303


# CSRF


async def test_the_proof_of_another_login_is_refused(visitor, channel, desk, card) -> None:
    other = Visitor(channel)
    await other.sign_in()
    await other.http.close()
    response, _ = await visitor.post(decide(card), {"answer": "allow-once", "csrf": csrf_of(other.token)})
    assert response.status == 403
    assert desk.reviews == []


@pytest.mark.parametrize("wrong", [None, "", "0" * 64, "é" * 64, "a" * 5000, "short"])
async def test_a_wrong_proof_is_refused(visitor, desk, card, wrong) -> None:
    form = {"answer": "allow-once"} | ({} if wrong is None else {"csrf": wrong})
    response, _ = await visitor.post(decide(card), form)
    assert response.status == 403
    assert desk.reviews == []


async def test_nobody_can_be_signed_out_by_a_forged_form(visitor) -> None:
    response, _ = await visitor.post("/sign-out", {"csrf": "0" * 64})
    assert response.status == 403
    assert (await visitor.get("/session"))[0].status == 204


# Links


async def test_looking_at_a_link_uses_nothing_up_and_the_press_does(stranger, channel) -> None:
    url, expires_at = channel.link()
    code = url.rsplit("/", 1)[1]
    for _ in range(3):
        response, text = await stranger.get(f"/login/{code}")
        assert response.status == 200
        assert "Sign in to Sayso on 127.0.0.1" in text
        assert "Set-Cookie" not in response.headers
    assert (await stranger.post("/login", {"code": code}))[0].status == 303
    assert (await stranger.post("/login", {"code": code}))[0].status == 403
    assert (await stranger.get(f"/login/{code}"))[0].status == 403
    assert expires_at == channel._clock.now() + 300_000


async def test_a_link_works_until_its_last_moment_and_not_after(stranger, channel, clock) -> None:
    code = channel.link()[0].rsplit("/", 1)[1]
    clock.advance(299_999)
    assert (await stranger.get(f"/login/{code}"))[0].status == 200
    clock.advance(1)
    assert (await stranger.get(f"/login/{code}"))[0].status == 403
    response, text = await stranger.post("/login", {"code": code})
    assert response.status == 403
    assert "sayso web link" in text


async def test_guessing_codes_is_slowed_down_and_keeps_nobody_out_who_has_one(
    stranger, channel, clock
) -> None:
    statuses = [
        (await stranger.post("/login", {"code": secrets.token_urlsafe(24)}))[0].status for _ in range(12)
    ]
    assert statuses == [403] * 9 + [429] * 3 or statuses == [403] * 10 + [429] * 2
    code = channel.link()[0].rsplit("/", 1)[1]
    assert (await stranger.get(f"/login/{code}"))[0].status == 200
    assert (await stranger.post("/login", {"code": code}))[0].status == 303
    assert (await stranger.post("/login", {"code": code}))[0].status == 429
    clock.advance(60_000)
    assert (await stranger.post("/login", {"code": code}))[0].status == 403


async def test_old_links_give_way_to_new_ones(stranger, channel) -> None:
    first = channel.link()[0].rsplit("/", 1)[1]
    codes = [channel.link()[0].rsplit("/", 1)[1] for _ in range(20)]
    assert (await stranger.get(f"/login/{first}"))[0].status == 403
    assert (await stranger.get(f"/login/{codes[-1]}"))[0].status == 200


# Logins


async def test_the_cookie_is_kept_from_scripts_and_other_sites(channel, clock, logins) -> None:
    visitor = Visitor(channel)
    response = await visitor.sign_in()
    await visitor.http.close()
    cookie = response.headers["Set-Cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"):
        assert part in cookie
    assert "Domain" not in cookie
    assert len(visitor.token) == 43
    assert visitor.token not in str(logins.kept)
    assert list(logins.kept.values()) == [clock.now() + 604_800_000]


async def test_behind_tls_the_cookie_is_secure(stranger, channel) -> None:
    code = channel.link()[0].rsplit("/", 1)[1]
    headers = {"Host": "sayso.example.org", "Origin": "https://sayso.example.org"}
    response, _ = await stranger.post("/login", {"code": code}, headers)
    assert "Secure" in response.headers["Set-Cookie"]


@pytest.mark.parametrize(
    "path", ["/", "/request/3f2b9c1d5e6f7a8b9c0d1e2f3a4b5c6d", "/permissions", "/events", "/session"]
)
@pytest.mark.parametrize("cookie", [None, "", "guess", "x" * 4000, "é", "0" * 43])
async def test_without_a_live_login_nothing_is_shown(stranger, card, path, cookie) -> None:
    headers = {} if cookie is None else {"Cookie": f"sayso_login={cookie}"}
    response, text = await stranger.get(path, **headers)
    assert response.status == 401
    assert "sayso web link" in text
    assert card.command not in text


async def test_without_a_live_login_nothing_is_decided(stranger, desk, card) -> None:
    stranger.token = secrets.token_urlsafe(32)
    response, _ = await stranger.post(decide(card), stranger.form("allow-once"))
    assert response.status == 401
    assert desk.reviews == []


async def test_a_login_survives_a_restart_and_ends_with_its_time(
    channel, visitor, clock, logins, desk, permissions
) -> None:
    await channel.close()
    again = WebChannel(WebSettings(port=0), logins, permissions, clock, Neighbours({os.geteuid()}))
    await again.open(desk)
    try:
        visitor.origin = again.address.rstrip("/")
        assert (await visitor.get("/session"))[0].status == 204
        clock.advance(604_800_000 - 1)
        assert (await visitor.get("/session"))[0].status == 204
        clock.advance(1)
        assert (await visitor.get("/session"))[0].status == 401
    finally:
        await again.close()


async def test_signing_out_ends_the_login_itself_not_only_the_cookie(visitor) -> None:
    token = visitor.token
    response, _ = await visitor.post("/sign-out", {"csrf": csrf_of(token)})
    assert response.status == 303
    assert (await visitor.get("/session", Cookie=f"sayso_login={token}"))[0].status == 401


# What is sent


@pytest.mark.parametrize("path", ["/", "/static/sayso.js", "/nowhere", "/login/wrong", "/events"])
async def test_every_response_carries_the_strict_headers(stranger, path) -> None:
    response, _ = await stranger.get(path)
    headers = response.headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self'" in policy
    assert "base-uri 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Server"] == "sayso"


async def test_no_page_loads_anything_from_elsewhere(visitor, card) -> None:
    for path in ("/", f"/request/{card.request_id}", "/permissions"):
        _, html = await visitor.get(path)
        links = re.findall(r'(?:src|href|action)="([^"]*)"', html)
        assert links
        assert all(link.startswith("/") and not link.startswith("//") for link in links)
        assert "<style" not in html
        assert " style=" not in html
        assert re.findall(r"<script[^>]*>([^<]*)", html) == [""]


@pytest.mark.parametrize("name", ["../adapter.py", "..%2fadapter.py", "%2e%2e/adapter.py", "card.html", ""])
async def test_only_the_few_static_files_are_served(stranger, name) -> None:
    response, text = await stranger.get(f"/static/{name}")
    assert response.status == 404
    assert "import" not in text


# What is asked


@pytest.mark.parametrize("length", [20_000, 900_000])
async def test_a_form_that_is_too_large_is_refused(visitor, desk, card, length) -> None:
    response, _ = await visitor.post(decide(card), visitor.form(reason="x" * length))
    assert response.status == 413
    assert desk.reviews == []


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "allow",
        "ALLOW-ONCE",
        "allow-once ",
        "yes",
        "allow-for",
        "allow-for:",
        "allow-for:soon",
        "allow-for:-900000",
        "allow-for:9e5",
        "allow-for:900000 ",
        "allow-for:900000\n",
        "allow-for:\u0669\u0660",
        "allow-for:" + "9" * 13,
        "allow-for:900000:1",
        "allow-once:900000",
        "deny-always:900000",
        "Deny-Always",
    ],
)
async def test_an_answer_that_is_none_is_refused_by_name(visitor, desk, card, answer) -> None:
    response, text = await visitor.post(decide(card), visitor.form(answer))
    assert response.status == 400
    assert "answer must be" in text
    assert desk.reviews == []


@pytest.mark.parametrize(
    ("sent", "answer", "for_ms"),
    [
        ("allow-once", Answer.ALLOW_ONCE, None),
        ("allow-for:900000", Answer.ALLOW_FOR, 900_000),
        ("allow-always", Answer.ALLOW_ALWAYS, None),
        ("allow-always-any", Answer.ALLOW_ALWAYS_ANY, None),
        ("deny-always", Answer.DENY_ALWAYS, None),
    ],
)
async def test_a_reason_goes_with_any_answer_and_cannot_disguise_itself(
    visitor, desk, card, sent, answer, for_ms
) -> None:
    await visitor.post(decide(card), visitor.form(sent, reason="fine\u202e \x1b[2J\r\n by ann"))
    assert [(r.answer, r.for_ms, r.max_uses) for r in desk.reviews] == [(answer, for_ms, None)]
    assert desk.reviews[0].reason == "fine\\u{202e} \N{SYMBOL FOR ESCAPE}[2J by ann"


@pytest.mark.parametrize("sent", ["allow-for:900000", "deny-always"])
async def test_what_would_stand_needs_the_proof_of_the_login_too(visitor, desk, card, sent) -> None:
    response, _ = await visitor.post(decide(card), {"answer": sent})
    assert response.status == 403
    response, _ = await visitor.post(decide(card), visitor.form(sent), {"Origin": "http://evil.example"})
    assert response.status == 403
    assert desk.reviews == []


# What stands


def revoke(row):
    return f"/permissions/{row['id']}/revoke"


async def test_what_stands_is_listed_as_text_with_a_button_for_each(visitor, permissions) -> None:
    evil = "<script>alert(1)</script>\u202e"
    allowed = permissions.stand(command=evil)
    denied = permissions.forbid(agent=evil, by=evil, reason=evil, command=evil)
    response, html = await visitor.get("/permissions")
    assert response.status == 200
    assert html.index("Denied always") < html.index("Allowed for a time")  # the newest first
    for part in (revoke(allowed), revoke(denied), "2 of 5", "until revoked", "ann (telegram:1234)"):
        assert part in html, part
    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert html.count(csrf_of(visitor.token)) == 3  # one of them signs out


async def test_a_page_on_which_nothing_stands_says_so(visitor) -> None:
    assert "Nothing stands." in (await visitor.get("/permissions"))[1]


async def test_revoking_is_told_once_and_names_the_operator(visitor, permissions) -> None:
    row = permissions.stand()
    response, _ = await visitor.post(revoke(row), {"csrf": csrf_of(visitor.token)})
    assert (response.status, response.headers["Location"]) == (303, "/permissions")
    assert permissions.rows == []
    assert [str(who) for _, who in permissions.revoked] == ["operator (web:operator)"]
    assert "Revoked: the same" in (await visitor.get("/permissions"))[1]
    assert "Revoked: the same" not in (await visitor.get("/permissions"))[1]


async def test_revoking_what_has_ended_is_no_fault(visitor, permissions) -> None:
    row = permissions.stand()
    permissions.rows.clear()
    response, _ = await visitor.post(revoke(row), {"csrf": csrf_of(visitor.token)})
    assert response.status == 303
    page = (await visitor.get("/permissions"))[1]
    assert 'class="said refused"' in page
    assert "does not stand any more" in page


@pytest.mark.parametrize(
    ("form", "headers", "status"),
    [
        ({}, None, 403),
        ({"csrf": "0" * 64}, None, 403),
        (None, {"Origin": "http://evil.example"}, 403),
        (None, {}, 403),
    ],
)
async def test_a_forged_form_revokes_nothing(visitor, permissions, form, headers, status) -> None:
    row = permissions.stand()
    sent = {"csrf": csrf_of(visitor.token)} if form is None else form
    response, _ = await visitor.post(revoke(row), sent, headers)
    assert response.status == status
    assert permissions.rows == [row]


async def test_a_get_revokes_nothing(visitor, permissions) -> None:
    row = permissions.stand()
    response, _ = await visitor.get(f"{revoke(row)}?csrf={csrf_of(visitor.token)}")
    assert response.status == 405
    assert permissions.rows == [row]


async def test_without_a_live_login_nothing_is_revoked(stranger, permissions) -> None:
    row = permissions.stand()
    stranger.token = secrets.token_urlsafe(32)
    response, _ = await stranger.post(revoke(row), {"csrf": csrf_of(stranger.token)})
    assert response.status == 401
    assert permissions.rows == [row]


async def test_a_reason_reaches_the_desk_and_has_a_length(visitor, desk, card) -> None:
    response, text = await visitor.post(decide(card), visitor.form(reason="x" * 501))
    assert response.status == 400
    assert "reason is longer than 500 characters" in text
    await visitor.post(decide(card), visitor.form(reason="  not on a Friday "))
    assert [review.reason for review in desk.reviews] == ["not on a Friday"]


@pytest.mark.parametrize(
    "path", ["/request/ffff", "/request/..%2f..%2fetc", "/request/" + "a" * 65, "/nowhere"]
)
async def test_an_unknown_address_is_a_plain_404(visitor, path) -> None:
    assert (await visitor.get(path))[0].status == 404


async def test_deciding_an_unknown_request_is_a_404(visitor) -> None:
    response, text = await visitor.post("/request/ffff/decide", visitor.form())
    assert response.status == 404
    assert "no request has the id ffff" in text


async def test_a_json_body_is_no_form(visitor, desk, card) -> None:
    body = json.dumps(visitor.form("allow-once"))
    headers = {"Origin": visitor.origin, "Content-Type": "application/json"}
    assert (await visitor.post(decide(card), body, headers))[0].status == 415
    assert desk.reviews == []


async def test_a_get_decides_nothing(visitor, desk, card) -> None:
    response, _ = await visitor.get(decide(card) + "?answer=allow-once")
    assert response.status == 405
    assert desk.reviews == []


async def test_the_answer_is_told_once_after_a_plain_form(visitor, card) -> None:
    await visitor.post(decide(card), visitor.form())
    assert f"You denied {card.short_id}." in (await visitor.get("/"))[1]
    assert f"You denied {card.short_id}." not in (await visitor.get("/"))[1]


async def test_a_store_that_fails_lets_nobody_in_and_tells_strangers_nothing(
    clock, desk, logins, permissions, card
) -> None:
    async def broken(_digest, _now):
        raise StoreError("disk I/O error in /srv/secret/place")

    logins.login_valid = broken
    channel = WebChannel(WebSettings(port=0), logins, permissions, clock, Neighbours({os.geteuid()}))
    await channel.open(desk)
    visitor = Visitor(channel)
    try:
        response, text = await visitor.get("/", Cookie="sayso_login=guess")
    finally:
        await visitor.http.close()
        await channel.close()
    assert response.status == 503
    assert "secret" not in text
    assert card.command not in text


# Starting and stopping


async def test_a_taken_port_is_a_start_error_that_says_what_to_do(
    channel, clock, logins, desk, permissions
) -> None:
    port = int(channel.address.rstrip("/").rsplit(":", 1)[1])
    second = WebChannel(WebSettings(port=port), logins, permissions, clock, Neighbours({os.geteuid()}))
    with pytest.raises(StartError, match=rf"channels\.web\.port {port} is taken by another program: set"):
        await second.open(desk)
    await second.close()


async def test_an_address_of_another_machine_is_a_start_error(clock, logins, desk, permissions) -> None:
    channel = WebChannel(
        WebSettings(host="192.0.2.1", port=0), logins, permissions, clock, Neighbours({os.geteuid()})
    )
    with pytest.raises(StartError, match=r"channels\.web\.host '192\.0\.2\.1' cannot be listened on"):
        await channel.open(desk)


def test_a_page_that_is_not_open_makes_no_links(clock, logins, permissions) -> None:
    with pytest.raises(StartError, match="not open"):
        WebChannel(WebSettings(), logins, permissions, clock, Neighbours({os.geteuid()})).link()


# Events


async def next_event(response):
    event = {}
    async with asyncio.timeout(5):
        async for line in response.content:
            text = line.decode().rstrip("\n")
            if not text:
                return event
            name, _, value = text.partition(": ")
            event[name] = value
    return None


async def test_events_begin_with_all_that_is_and_go_on_with_what_changes(
    visitor, channel, desk, card
) -> None:
    async with visitor.http.get(visitor.origin + "/events") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        first = await next_event(response)
        assert first["event"] == "state"
        assert [one["id"] for one in json.loads(first["data"])["waiting"]] == [card.request_id]
        await channel.update(
            desk.settle(card.request_id, State.DENIED, "denied by ann"), "", card.request_id, ""
        )
        second = await next_event(response)
        data = json.loads(second["data"])
        assert (second["event"], data["waits"]) == ("card", False)
        assert "denied by ann" in data["html"]


async def test_forms_sent_by_events_carry_the_proof_of_their_own_reader(visitor, card) -> None:
    async with visitor.http.get(visitor.origin + "/events") as response:
        state = json.loads((await next_event(response))["data"])
    assert csrf_of(visitor.token) in state["waiting"][0]["html"]
    assert card.request_id in state["waiting"][0]["html"]


async def test_signing_out_ends_the_stream(visitor) -> None:
    async with visitor.http.get(visitor.origin + "/events") as response:
        await next_event(response)
        await visitor.post("/sign-out", visitor.form())
        assert await next_event(response) is None


async def test_closing_ends_the_streams_at_once(visitor, channel) -> None:
    async with visitor.http.get(visitor.origin + "/events") as response:
        await next_event(response)
        async with asyncio.timeout(1.5):
            await channel.close()
        assert await next_event(response) is None


async def test_a_page_that_does_not_keep_up_is_dropped_and_delays_nobody(make_card) -> None:
    hub = Hub()
    slow, quick = hub.join("a"), hub.join("b")
    for _ in range(_QUEUE + 1):
        hub.publish(make_card())
        quick.queue.get_nowait()
    assert slow.dropped
    assert not quick.dropped
    assert slow.queue.get_nowait() is None


async def test_no_more_pages_than_the_limit_join() -> None:
    hub = Hub()
    clients = [hub.join("a") for _ in range(64)]
    assert all(clients)
    assert hub.join("a") is None
    hub.leave(clients[0])
    assert hub.join("a") is not None
    hub.close()
    hub.leave(clients[1])
    assert hub.join("a") is None
