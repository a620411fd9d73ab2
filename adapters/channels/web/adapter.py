"""The web page as a channel: cards at an address of this machine, decided by whoever is signed in."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence

from aiohttp import web

from adapters.channels.web.callers import Callers
from adapters.channels.web.crowd import Crowd, Handlers
from adapters.channels.web.events import Hub
from adapters.channels.web.guard import Guard, Handler, add_headers, bracketed, tell_errors
from adapters.channels.web.identity import LoginLinks, Logins
from adapters.channels.web.pages import Desks, Pages, Visitors
from adapters.neighbours import Neighbours
from core.config import WebSettings
from core.desks import PermissionDesk, SessionDesk
from core.errors import StartError
from core.model.card import Card
from core.model.notice import Notice
from core.ports import ChatDesk, Clock
from core.store_ports import CredentialStore

_LARGEST_FORM = 16 * 1024
_SHUTDOWN_S = 2.0
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to reach them, not what to bind


class WebChannel:
    """Serves the page from `open` to `close`; implements `core.ports.Channel`."""

    name = "web"
    keeps_copies = False

    def __init__(
        self,
        settings: WebSettings,
        logins: CredentialStore,
        permissions: PermissionDesk,
        clock: Clock,
        neighbours: Neighbours,
    ) -> None:
        self._settings = settings
        self._permissions = permissions
        self._clock = clock
        self._links = LoginLinks(clock)
        logs_in = Logins(logins, clock, settings.login_hours)
        self._visitors = Visitors(logs_in, self._links, Callers(neighbours, clock), Crowd(clock))
        self._hub = Hub()
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._port: int | None = None
        self._guard: Guard | None = None
        self._troubles: Callable[[], Sequence[str]] = tuple
        self._sessions: SessionDesk | None = None

    def show_troubles(self, troubles: Callable[[], Sequence[str]]) -> None:
        """Show on every page, in a line each, what is wrong with other channels; call it before `open`."""
        self._troubles = troubles

    def show_sessions(self, desk: SessionDesk) -> None:
        """Show sessions on a page of their own, and on every page which are elevated; before `open` too."""
        self._sessions = desk

    @property
    def address(self) -> str:
        """The page's address, with the port really bound; only while open."""
        if self._port is None:
            raise StartError("the web page is not open, so it has no address")
        host = _WILDCARDS.get(self._settings.host, self._settings.host)
        return f"http://{bracketed(host)}:{self._port}/"

    def link(self) -> tuple[str, int]:
        """Make a one-time login link and tell when it expires (epoch ms)."""
        base = self.address
        code, expires_at = self._links.make()
        return f"{base}login/{code}", expires_at

    async def open(self, desk: ChatDesk) -> None:
        """Bind the port and serve; raises StartError where it cannot."""
        self._hub = Hub()
        app = web.Application(client_max_size=_LARGEST_FORM)
        desks = Desks(desk, self._permissions, self._sessions)
        pages = Pages(desks, self._hub, self._visitors, self._clock, self._troubles)
        app.add_routes(pages.routes())
        app.on_response_prepare.append(add_headers)
        app.middlewares.extend([tell_errors, self._check])
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        self._visitors.crowd.hands_to(_handlers_of(runner))
        try:
            server = await asyncio.get_running_loop().create_server(
                self._visitors.crowd.door, self._settings.host, self._settings.port
            )
        except OSError as error:
            await runner.cleanup()
            raise StartError(self._why_not(error)) from error
        self._runner, self._server = runner, server
        self._port = int(server.sockets[0].getsockname()[1])
        self._guard = Guard(self._settings, self._port)

    async def post(self, card: Card, place: str, nonce: str) -> str:  # noqa: ARG002 - there is one page
        """Show a card on every open page."""
        self._hub.publish(card)
        return card.request_id

    async def update(self, card: Card, place: str, ref: str, nonce: str) -> None:  # noqa: ARG002 - one place, or the reference has it
        """Show on every open page what the card says now."""
        self._hub.publish(card)

    async def remove(self, place: str, ref: str) -> None:
        """Do nothing: the page keeps what was decided."""

    async def notify(self, notice: Notice, place: str) -> None:
        """Tell nothing: the page shows what was decided by itself."""

    async def close(self) -> None:
        """End the streams and stop serving."""
        self._hub.close()
        if self._server is not None:
            self._server.close()
            self._server = None
        runner, self._runner, self._port, self._guard = self._runner, None, None, None
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # Which names are ours is known only once the port is bound; before that nobody is answered.
        if self._guard is None:
            return web.Response(status=503)
        return await self._guard.check(request, handler)

    def _why_not(self, error: OSError) -> str:
        host, port = self._settings.host, self._settings.port
        if error.errno == errno.EADDRINUSE:
            return (
                f"channels.web.port {port} is taken by another program: "
                "set channels.web.port to a free one, or end what listens there"
            )
        if error.errno in (errno.EACCES, errno.EPERM):
            return f"channels.web.port {port} is not for this user to open: set it to 1024 or more"
        why = error.strerror or str(error)
        return f"channels.web.host {host!r} cannot be listened on: {why}; set it to 127.0.0.1"


def _handlers_of(runner: web.AppRunner) -> Handlers:
    if runner.server is None:
        raise RuntimeError("the page's application is not set up")
    return runner.server
