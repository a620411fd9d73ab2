"""Pages and cards as HTML: pure functions over templates.

Two things hold for every value a template shows: `core.display.safe` makes it visible, then autoescape
makes it text. Both are properties of the environment, so no template can forget them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from core.display import Elided, elide, moment, safe, span, time_left
from core.model.card import Card
from core.model.request import State

_HEAD, _TAIL = 600, 240
_HEAD_LINES, _TAIL_LINES = 12, 5
_OUTPUT_HEAD, _OUTPUT_TAIL = 2_000, 2_000

_STATES = {
    State.WAITING: "Waiting",
    State.APPROVED: "Allowed",
    State.RUNNING: "Running",
    State.FINISHED: "Ran",
    State.FAILED: "Failed",
    State.DENIED: "Denied",
    State.EXPIRED: "Expired",
    State.WITHDRAWN: "Withdrawn",
    State.INTERRUPTED: "Interrupted",
    State.USED: "Allowed",
}

_TEMPLATES = Path(__file__).parent / "templates"

# A request only ever moves forward; a page that hears two stages out of order keeps the later one.
_STAGES = {State.WAITING: 0, State.APPROVED: 1, State.RUNNING: 2}
_ENDED = 3


@dataclass(frozen=True, slots=True)
class Said:
    """What became of a press."""

    text: str
    accepted: bool


@dataclass(frozen=True, slots=True)
class Alarm:
    """What stands on every page while sessions are elevated; `full` where nobody is asked in one of them."""

    text: str = ""
    full: bool = False


NO_ALARM = Alarm()


@dataclass(frozen=True, slots=True)
class Page:
    """What a page for someone signed in needs beside its cards; `said` is the answer to their last press."""

    now: int
    csrf: str
    said: Said | None = None
    troubles: str = ""
    alarm: Alarm = NO_ALARM
    has_sessions: bool = False


def card_html(card: Card, now: int, csrf: str) -> str:
    """Render one card, with buttons while it waits."""
    return _render("card.html", card=card, now=now, csrf=csrf, **_parts(card, now))


def home_html(waiting: Sequence[Card], decided: Sequence[Card], page: Page) -> str:
    """Render all that waits and what was decided lately."""
    return _render(
        "home.html",
        waiting=[Markup(card_html(card, page.now, page.csrf)) for card in waiting],  # noqa: S704 - made by autoescape
        decided=[Markup(card_html(card, page.now, page.csrf)) for card in decided],  # noqa: S704 - as above
        page=page,
    )


def request_html(card: Card, page: Page) -> str:
    """Render the page of one request."""
    body = Markup(card_html(card, page.now, page.csrf))  # noqa: S704 - made by autoescape
    return _render("request.html", card=card, body=body, page=page)


def permissions_html(rows: Sequence[Mapping[str, Any]], page: Page) -> str:
    """Render what answers left standing, newest first, each with a button that revokes it."""
    return _render("permissions.html", rows=[_standing(row, page.now) for row in reversed(rows)], page=page)


def page_html(template: str, page: Page, **values: object) -> str:
    """Render a page for someone signed in."""
    return _render(template, page=page, **values)


def login_html(host: str, code: str) -> str:
    """Render the page behind a login link: one button."""
    return _render("login.html", host=host, code=code)


def signed_out_html() -> str:
    """Render what someone sees who is not signed in."""
    return _render("signed_out.html")


def message_html(title: str, text: str) -> str:
    """Render an error or a short word."""
    return _render("message.html", title=title, text=text)


def spoken(card: Card) -> str:
    """Say in one sentence what a card shows, for those who listen."""
    if card.waits:
        marks = "".join(f", {mark.word}" for mark in card.marks)
        return safe(f"{card.agent} asks to run {elide(card.command, head=120, tail=40).text}{marks}")
    return safe(f"Request {card.short_id}: {card.decided or _STATES[card.state]}")


def cut(text: str) -> Elided:
    """Shorten a very long command, by characters and by lines, to a head, a counted gap and a tail."""
    lines = text.split("\n")
    head, tail = _HEAD, _TAIL
    if len(lines) > _HEAD_LINES + _TAIL_LINES:
        head = min(head, len("\n".join(lines[:_HEAD_LINES])))
        tail = min(tail, len("\n".join(lines[-_TAIL_LINES:])))
    elif len(text) <= 2 * _HEAD:
        return Elided(text)
    return elide(text, head=head, tail=tail)


def _parts(card: Card, now: int) -> dict[str, Any]:
    outcome = card.outcome
    return {
        "stage": _STAGES.get(card.state, _ENDED),
        "state_word": f"Exit {outcome.exit_code}" if outcome and outcome.exit_code else _STATES[card.state],
        "command": cut(safe(card.command, multiline=True)),
        "left_ms": max(card.deadline - now, 0),
        "window_ms": max(card.deadline - card.created_at, 1),
        "failed": bool(outcome and outcome.exit_code),
        "streams": [
            (name, elide(text, head=_OUTPUT_HEAD, tail=_OUTPUT_TAIL))
            for name, text in (("Output", outcome.stdout), ("Errors", outcome.stderr))
            if text
        ]
        if outcome
        else [],
    }


def _standing(row: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Word one row of `PermissionDesk.standing` for the page."""
    expires_at, most = row["expiresAt"], row["maxUses"]
    return {
        "id": row["id"],
        "short_id": row["id"][:8],
        "effect": row["effect"],
        "title": "Allowed for a time" if row["effect"] == "allow" else "Denied always",
        "agent": row["agent"],
        "session": row["session"],
        "command": cut(safe(row["command"], multiline=True)),
        "by": row["by"],
        "reason": row["reason"],
        "given_at": row["givenAt"],
        "expires_at": expires_at,
        "left_ms": max(expires_at - now, 0) if expires_at else 0,
        "window_ms": max(expires_at - row["givenAt"], 1) if expires_at else 1,
        "uses": f"{row['uses']} of {most}" if most else row["uses"],
    }


def _shown(value: object) -> object:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return safe(value, multiline=True)


def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader({path.name: path.read_text() for path in _TEMPLATES.glob("*.html")}),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["time_left"] = time_left
    environment.filters["span"] = span
    environment.filters["moment"] = moment
    environment.filters["count"] = lambda number: f"{number:,}"
    return environment


_ENVIRONMENT = _environment()


def _render(template: str, **values: object) -> str:
    return _ENVIRONMENT.get_template(template).render(**values)
