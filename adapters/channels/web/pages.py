"""The page's addresses: what each answers, to whom."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from adapters.channels.web import forms, render
from adapters.channels.web.callers import Callers
from adapters.channels.web.crowd import Crowd, peer_of
from adapters.channels.web.events import Client, Hub
from adapters.channels.web.identity import FailureLimit, LoginLinks, Logins, csrf_of, digest
from adapters.channels.web.sessions import alarm, sessions_html
from core.desks import PermissionDesk, SessionDesk
from core.display import safe
from core.errors import RequestError, UnknownRequest
from core.model.card import Card
from core.model.principal import Reviewer
from core.ports import Clock, ReviewDesk

COOKIE = "sayso_login"
OPERATOR = Reviewer("web", "operator", "operator")

_BEAT_S = 10.0
_WRITE_S = 10.0
_DECIDED = 20
_STATIC = {"sayso.css": "text/css", "sayso.js": "text/javascript", "icon.svg": "image/svg+xml"}

SignedIn = Callable[["Pages", web.Request, str], Awaitable[web.StreamResponse]]
Handler = Callable[["Pages", web.Request], Awaitable[web.StreamResponse]]


def signed_in(handler: SignedIn) -> Handler:
    """Let a handler answer only for a live login of who may show one, and hand it the login's token."""

    async def guarded(pages: Pages, request: web.Request) -> web.StreamResponse:
        token = request.cookies.get(COOKIE, "")
        if not await pages.logins.valid(token):
            return web.Response(status=401, text=render.signed_out_html(), content_type="text/html")
        await pages.callers.admit(request)
        pages.crowd.sign_in(request.transport)
        return await handler(pages, request, token)

    return guarded


@dataclass(frozen=True, slots=True)
class Desks:
    """Where answers go, and where what they left standing is."""

    reviews: ReviewDesk
    permissions: PermissionDesk
    sessions: SessionDesk | None = None


@dataclass(frozen=True, slots=True)
class Visitors:
    """Who is signed in, by which links one gets there, which connections may, and how many there are."""

    logins: Logins
    links: LoginLinks
    callers: Callers
    crowd: Crowd


class Pages:
    """Answers requests from the desks, the hub and the logins."""

    def __init__(
        self,
        desks: Desks,
        hub: Hub,
        visitors: Visitors,
        clock: Clock,
        troubles: Callable[[], Sequence[str]],
    ) -> None:
        self.logins = visitors.logins
        self.callers = visitors.callers
        self.crowd = visitors.crowd
        self._desk = desks.reviews
        self._permissions = desks.permissions
        self._sessions = desks.sessions
        self._hub = hub
        self._links = visitors.links
        self._clock = clock
        self._troubles = troubles
        self._failures = FailureLimit(clock)
        self._said: dict[str, render.Said] = {}
        folder = Path(__file__).parent / "static"
        self._static = {name: (folder / name).read_text() for name in _STATIC}

    def routes(self) -> list[web.AbstractRouteDef]:
        """List every address of the page."""
        one = r"/request/{id:[A-Za-z0-9_-]{1,64}}"
        return [
            web.get("/", self.home),
            web.get(one, self.request),
            web.post(one + "/decide", self.decide),
            web.get("/permissions", self.permissions),
            web.post(r"/permissions/{id:[A-Za-z0-9_-]{1,64}}/revoke", self.revoke),
            web.get("/sessions", self.sessions),
            web.post("/sessions/level", self.elevate),
            web.post("/sessions/end", self.end_session),
            web.get("/events", self.events, allow_head=False),
            web.get("/session", self.session),
            web.get(r"/login/{code:[A-Za-z0-9_-]{1,64}}", self.login_page),
            web.post("/login", self.login),
            web.post("/sign-out", self.sign_out),
            web.get("/static/{name}", self.static),
        ]

    @signed_in
    async def home(self, _request: web.Request, token: str) -> web.StreamResponse:
        """Show all cards."""
        waiting = await self._desk.waiting()
        decided = await self._desk.decided(_DECIDED)
        return _html(render.home_html(waiting, decided, self._page(token)))

    @signed_in
    async def request(self, request: web.Request, token: str) -> web.StreamResponse:
        """Show one card."""
        card = await self._desk.card(request.match_info["id"])
        if card is None:
            raise web.HTTPNotFound(text="Sayso keeps no request with this id.")
        return _html(render.request_html(card, self._page(token)))

    @signed_in
    async def decide(self, request: web.Request, token: str) -> web.StreamResponse:
        """Take a person's answer."""
        form = await forms.read(request)
        forms.require_csrf(token, form)
        review = forms.review(request.match_info["id"], form, OPERATOR)
        answer = await self._desk.review(review)
        if "application/json" in request.headers.get("Accept", ""):
            card = self._event(answer.card, token) if answer.card else None
            return web.json_response({"accepted": answer.accepted, "text": answer.text, "card": card})
        self._said[digest(token)] = render.Said(answer.text, answer.accepted)
        raise web.HTTPSeeOther("/")

    @signed_in
    async def permissions(self, _request: web.Request, token: str) -> web.StreamResponse:
        """Show what answers left standing."""
        return _html(render.permissions_html(await self._permissions.standing(), self._page(token)))

    @signed_in
    async def revoke(self, request: web.Request, token: str) -> web.StreamResponse:
        """End a permission or a deny rule."""
        forms.require_csrf(token, await forms.read(request))
        try:
            answer = await self._permissions.revoke(request.match_info["id"], OPERATOR)
        except UnknownRequest:
            said = render.Said("This does not stand any more: there is nothing to revoke.", accepted=False)
        else:
            said = render.Said(answer["text"], accepted=True)
        self._said[digest(token)] = said
        raise web.HTTPSeeOther("/permissions")

    @signed_in
    async def sessions(self, _request: web.Request, token: str) -> web.StreamResponse:
        """Show the sessions, and what is set for each."""
        rows = await self._session_desk().sessions()
        return _html(sessions_html(rows, self._page(token)))

    @signed_in
    async def elevate(self, request: web.Request, token: str) -> web.StreamResponse:
        """Set the level of a session, as far as the desk lets the operator of the page."""
        form = await forms.read(request)
        forms.require_csrf(token, form)
        wish = forms.wish(form)
        raise await self._done(
            token, self._session_desk().elevate(wish.session, wish.level, wish.for_ms, wish.reason, OPERATOR)
        )

    @signed_in
    async def end_session(self, request: web.Request, token: str) -> web.StreamResponse:
        """End a session."""
        form = await forms.read(request)
        forms.require_csrf(token, form)
        raise await self._done(token, self._session_desk().end(forms.session(form), OPERATOR))

    @signed_in
    async def session(self, _request: web.Request, _token: str) -> web.StreamResponse:
        """Tell a page that lost its connection whether it is still signed in."""
        return web.Response(status=204)

    @signed_in
    async def events(self, request: web.Request, token: str) -> web.StreamResponse:
        """Stream cards as they change."""
        client = self._hub.join(digest(token))
        if client is None:
            raise web.HTTPServiceUnavailable
        try:
            return await self._stream(request, client, token)
        finally:
            self._hub.leave(client)

    async def login_page(self, request: web.Request) -> web.StreamResponse:
        """Show the button behind a link; looking uses nothing up."""
        code = request.match_info["code"]
        if self._links.alive(code):
            await self.callers.admit(request)
            return _html(render.login_html(request.host, code))
        raise self._refusal(request)

    async def login(self, request: web.Request) -> web.StreamResponse:
        """Use a code up and start a login; who has one is let in, however many guess beside them."""
        code = (await forms.read(request)).get("code", "")
        if not self._links.alive(code):
            raise self._refusal(request)
        await self.callers.admit(request)
        if not self._links.consume(code):
            raise self._refusal(request)
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(
            COOKIE,
            await self.logins.begin(),
            max_age=self.logins.seconds,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=request.headers.get("Origin", "").startswith("https://"),
        )
        return response

    @signed_in
    async def sign_out(self, request: web.Request, token: str) -> web.StreamResponse:
        """End the login here and in every tab."""
        forms.require_csrf(token, await forms.read(request))
        await self.logins.end(token)
        self._said.pop(digest(token), None)
        self._hub.end_login(digest(token))
        response = web.Response(status=303, headers={"Location": "/"})
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")
        return response

    async def static(self, request: web.Request) -> web.StreamResponse:
        """Serve one of the page's own few files."""
        name = request.match_info["name"]
        if name not in self._static:
            raise web.HTTPNotFound(text="No such file.")
        return web.Response(text=self._static[name], content_type=_STATIC[name])

    async def _stream(self, request: web.Request, client: Client, token: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await _send(response, "state", await self._state(token))
            looked_at = self._clock.monotonic()
            while not client.dropped and await self._forward(response, client, token):
                # Between cards that come without pause, too.
                if self._clock.monotonic() - looked_at >= _BEAT_S:
                    looked_at = self._clock.monotonic()
                    if not await self.logins.valid(token):
                        break
        except (TimeoutError, ConnectionError):
            # The reader is gone or too slow; a browser that is still there connects again.
            if request.transport is not None:
                request.transport.abort()
        return response

    async def _forward(self, response: web.StreamResponse, client: Client, token: str) -> bool:
        try:
            card = await asyncio.wait_for(client.queue.get(), _BEAT_S)
        except TimeoutError:
            await _send(response, "beat", {"now": self._clock.now(), **self._tidings()})
            return True
        if card is None:
            return False
        await _send(response, "card", {**self._event(card, token), **self._tidings()})
        return True

    async def _state(self, token: str) -> dict[str, Any]:
        waiting = await self._desk.waiting()
        decided = await self._desk.decided(_DECIDED)
        return {
            "now": self._clock.now(),
            **self._tidings(),
            "waiting": [self._event(card, token) for card in waiting],
            "decided": [self._event(card, token) for card in decided],
        }

    def _event(self, card: Card, token: str) -> dict[str, Any]:
        now = self._clock.now()
        return {
            "id": card.request_id,
            "waits": card.waits,
            "says": render.spoken(card),
            "html": render.card_html(card, now, csrf_of(token)),
            "now": now,
        }

    def _page(self, token: str) -> render.Page:
        said = self._said.pop(digest(token), None)
        return render.Page(
            self._clock.now(),
            csrf_of(token),
            said,
            self._trouble_text(),
            self._alarm(),
            has_sessions=self._sessions is not None,
        )

    def _tidings(self) -> dict[str, Any]:
        """Give what stands at the top of every page, beside the cards."""
        return {"troubles": self._trouble_text(), "alarm": asdict(self._alarm())}

    def _trouble_text(self) -> str:
        return safe("\n".join(self._troubles()), multiline=True)

    def _session_desk(self) -> SessionDesk:
        if self._sessions is None:
            raise web.HTTPNotFound(text="There is no such page here.")
        return self._sessions

    async def _done(self, token: str, work: Awaitable[Mapping[str, Any]]) -> web.HTTPException:
        """Say on the page of sessions what became of a form of it."""
        try:
            said = render.Said(str((await work)["text"]), accepted=True)
        except RequestError as error:
            said = render.Said(f"Nothing was changed: {error}.", accepted=False)
        self._said[digest(token)] = said
        return web.HTTPSeeOther("/sessions")

    def _alarm(self) -> render.Alarm:
        return alarm(self._sessions.elevated() if self._sessions else ())

    def _refusal(self, request: web.Request) -> web.HTTPException:
        peer = peer_of(request.transport) if request.transport else "nobody"
        if self._failures.reached(peer):
            return web.HTTPTooManyRequests(text="Wait a minute, then open a fresh link.")
        self._failures.note(peer)
        return web.HTTPForbidden(
            text="This link was used, has expired or is not complete. Run `sayso web link` for a new one."
        )


def _html(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")


async def _send(response: web.StreamResponse, event: str, data: dict[str, Any]) -> None:
    await asyncio.wait_for(response.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()), _WRITE_S)
