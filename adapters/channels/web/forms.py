"""What the forms of the page say: read, proven to be ours, and turned into answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web

from adapters.channels.web.identity import csrf_matches
from core.approvals import commands
from core.model.elevation import Level
from core.model.principal import Reviewer
from core.model.request import Answer, Review

LONGEST_REASON = 500
LONGEST_SESSION = 1_000

# A button of a form says one thing only, so the time stands behind the answer.
_FOR = re.compile(r"allow-for:([0-9]{1,12})")
_ALONE = frozenset(Answer) - {Answer.ALLOW_FOR}


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants a session's level to be."""

    session: str
    level: str
    for_ms: int | None
    reason: str | None


async def read(request: web.Request) -> dict[str, str]:
    """Read the fields of a form."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType(text="Only forms of this page are taken.")
    return {key: value for key, value in (await request.post()).items() if isinstance(value, str)}


def require_csrf(token: str, form: Mapping[str, str]) -> None:
    """Refuse a form that was not made for this login."""
    if not csrf_matches(token, form.get("csrf", "")):
        raise web.HTTPForbidden(text="This page is out of date. Load it again, then answer.")


def review(request_id: str, form: Mapping[str, str], reviewer: Reviewer) -> Review:
    """Read a person's answer to a card; whether it is offered there is for the desk to say."""
    answer, for_ms = _answer(form.get("answer", ""))
    return Review(request_id, answer, reviewer, _reason(form.get("reason", "")), for_ms)


def wish(form: Mapping[str, str]) -> Wish:
    """Read which level a session is to have, for how long and why; who may set it is for the desk to say."""
    level = form.get("level", "")
    if level not in list(Level):
        raise web.HTTPBadRequest(text=f"level must be one of {', '.join(Level)}.")
    return Wish(session(form), level, _time(form.get("for", "")), _reason(form.get("reason", "")))


def session(form: Mapping[str, str]) -> str:
    """Read which session is meant."""
    given = form.get("session", "")
    if not given or len(given) > LONGEST_SESSION:
        raise web.HTTPBadRequest(text="session must name a session as this page shows it.")
    return given


def _time(text: str) -> int | None:
    try:
        return commands.duration_ms(text.strip()) if text.strip() else None
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"{error} Nothing was changed.") from None


def _answer(text: str) -> tuple[Answer, int | None]:
    timed = _FOR.fullmatch(text)
    if timed:
        return Answer.ALLOW_FOR, int(timed[1])
    if text in _ALONE:
        return Answer(text), None
    known = ", ".join(sorted(_ALONE))
    raise web.HTTPBadRequest(text=f"answer must be one of {known}, or allow-for:MS with milliseconds.")


def _reason(text: str) -> str | None:
    text = text.strip()
    if len(text) > LONGEST_REASON:
        raise web.HTTPBadRequest(text=f"reason is longer than {LONGEST_REASON} characters; shorten it.")
    return commands.reason(text)
