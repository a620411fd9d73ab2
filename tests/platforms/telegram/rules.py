"""Limits that the description states in words."""

from __future__ import annotations

import re
from typing import Any

from tests.platforms.telegram.description import TYPES, Upload
from tests.platforms.telegram.errors import ApiError, bad_request
from tests.platforms.telegram.markup import parse
from tests.platforms.telegram.text import Entity, check_entities, clean, units

TEXT_UNITS = 4096
CAPTION_UNITS = 1024
ANSWER_CHARACTERS = 200
BUTTONS, BUTTONS_IN_ROW = 100, 8
PLACEHOLDER_CHARACTERS = 64
FILE_BYTES = 50 * 1024 * 1024

_NOT_KINDS = {"text", "icon_custom_emoji_id", "style"}
_KINDS = frozenset(TYPES["InlineKeyboardButton"]["fields"]) - _NOT_KINDS
ACTIONS = frozenset(
    [
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    ]
)


def wrong(text: str) -> ApiError:
    """Refuse what the description forbids."""
    return bad_request(text, violation=True)


def text_of(values: dict[str, Any], field: str = "text") -> tuple[str, list[Entity]]:
    """Read a text or caption with its entities, as the platform would store it."""
    text = values.get(field, "")
    entities = values.get("entities" if field == "text" else "caption_entities")
    if values.get("parse_mode") and entities:
        raise wrong("parse_mode and entities exclude each other")
    if values.get("parse_mode"):
        text, entities = parse(text, values["parse_mode"])
    check_entities(text, entities or [])
    text, entities = clean(text, entities or [])
    if field == "text" and not text:
        raise wrong("message text is empty")
    if units(text) > (TEXT_UNITS if field == "text" else CAPTION_UNITS):
        raise wrong("message is too long" if field == "text" else "message caption is too long")
    return text, entities


def keyboard(markup: dict[str, Any] | None) -> dict[str, Any] | None:
    """Check an inline keyboard, of which one without buttons is none, or a forced reply."""
    if markup is None or "inline_keyboard" not in markup:
        _check_force_reply(markup or {})
        return markup
    rows = [row for row in markup["inline_keyboard"] if row]
    if sum(map(len, rows)) > BUTTONS or any(len(row) > BUTTONS_IN_ROW for row in rows):
        raise wrong(f"reply markup is too long (at most {BUTTONS} buttons, {BUTTONS_IN_ROW} in a row)")
    for button in (button for row in rows for button in row):
        _check_button(button)
    return {"inline_keyboard": rows} if rows else None


def _check_force_reply(markup: dict[str, Any]) -> None:
    if markup.get("force_reply") is False:
        raise wrong("force_reply is always true")
    if not 1 <= len(markup.get("input_field_placeholder", "x")) <= PLACEHOLDER_CHARACTERS:
        raise wrong(f"the placeholder of an input field has 1 to {PLACEHOLDER_CHARACTERS} characters")


def _check_button(button: dict[str, Any]) -> None:
    if not button["text"].strip():
        raise wrong("inline keyboard button text must be non-empty")
    if len(_KINDS & set(button)) != 1:
        kinds = sorted(_KINDS & set(button))
        raise wrong(f"button {button['text']!r} must have exactly one kind, has {kinds}")
    if "callback_data" in button and not 1 <= len(button["callback_data"].encode()) <= 64:
        raise wrong("BUTTON_DATA_INVALID: callback_data must be 1 to 64 bytes")
    if button.get("style", "primary") not in {"danger", "success", "primary"}:
        raise wrong(f"button style {button['style']!r} is none of danger, success, primary")


def commands(given: list[dict[str, str]]) -> None:
    """Check the commands of a menu."""
    if len(given) > 100:
        raise wrong("BOT_COMMANDS_TOO_MUCH")
    for command in given:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]):
            raise wrong(f"BOT_COMMAND_INVALID: {command['command']!r} is not 1 to 32 of a-z, 0-9 and _")
        if not 1 <= len(command["description"]) <= 256:
            raise wrong(f"BOT_COMMAND_DESCRIPTION_INVALID: {command['command']!r} needs 1 to 256 characters")


def upload(document: object) -> Upload:
    """Check an uploaded file."""
    if not isinstance(document, Upload):
        raise wrong("wrong file identifier/HTTP URL specified")
    if not document.name:
        raise wrong("a file needs a name")
    if not document.content:
        raise wrong("file must be non-empty")
    if len(document.content) > FILE_BYTES:
        raise ApiError(413, "Request Entity Too Large", violation=True)
    return document


def secret_token(token: str | None) -> None:
    if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", token):
        raise wrong("secret token contains unallowed characters")
