"""What every exchange with the page must keep: known Host, own Origin, strict headers, terse errors."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from adapters.channels.web import render
from core.config import WebSettings
from core.errors import RequestError, SaysoError

logger = logging.getLogger("sayso.web")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - recognised, not bound
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
    " img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # `no-referrer` would make browsers send "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Robots-Tag": "noindex, nofollow",
    "Server": "sayso",
}


def bracketed(host: str) -> str:
    """Write an address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


class Guard:
    """Knows the names under which the page may be addressed."""

    def __init__(self, settings: WebSettings, port: int) -> None:
        own = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        if settings.host not in _WILDCARDS:
            own.add(f"{bracketed(settings.host)}:{port}")
        if port == 80:  # noqa: PLR2004 - browsers leave the standard port out
            own |= {name.rsplit(":", 1)[0] for name in own}
        configured = {name.lower() for name in settings.hosts}
        self._configured = configured | {f"{name}:{port}" for name in configured if ":" not in name}
        self._own = own

    def host_of(self, request: web.Request) -> str | None:
        """Return the Host header where it is one of ours; a page elsewhere can make a name point here."""
        given = request.headers.getall("Host", [])
        host = given[0].lower() if len(given) == 1 else ""
        return host if host in self._own or host in self._configured else None

    def same_origin(self, request: web.Request) -> bool:
        """Tell whether a browser says that our own page sent this."""
        host = self.host_of(request)
        if host is None:
            return False
        schemes = ("http", "https") if host in self._configured else ("http",)
        ours = {f"{scheme}://{host}" for scheme in schemes}
        origins = request.headers.getall("Origin", [])
        if origins:
            return len(origins) == 1 and origins[0].lower() in ours
        referer = request.headers.get("Referer")
        if referer is not None:
            return _origin_of(referer) in ours
        return request.headers.get("Sec-Fetch-Site") == "same-origin"

    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse foreign names and foreign forms before anything else looks at the request."""
        if self.host_of(request) is None:
            return web.Response(status=421, text="Not served under this name.\n")
        if request.method not in ("GET", "HEAD") and not self.same_origin(request):
            return web.Response(status=403, text="Refused: this did not come from the page itself.\n")
        return await handler(request)


@web.middleware
async def tell_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn what went wrong into a short page; details go to the log only."""
    try:
        return await handler(request)
    except web.HTTPRedirection:
        raise
    except web.HTTPException as error:
        return _error_page(error.status, error.text if error.status < 500 else None)  # noqa: PLR2004 - the 5xx
    except RequestError as error:
        return _error_page(404, str(error))
    except SaysoError:
        logger.exception("the page could not answer %s %s", request.method, request.path)
        return _error_page(503, "Sayso cannot answer right now. Its log says why.")
    except Exception:  # the boundary to the browser: told in the log, answered with a plain 500
        logger.exception("the page failed at %s", request.method)
        return _error_page(500, None)


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Put the security headers on every response, streams and errors too."""
    response.headers.update(_HEADERS)


def _error_page(status: int, text: str | None) -> web.Response:
    titles = {404: "Not here", 429: "Too many tries", 400: "That did not work"}
    said = text or "Something went wrong. Sayso's log has the details."
    page = render.message_html(titles.get(status, "Sorry"), said)
    return web.Response(status=status, text=page, content_type="text/html")


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
