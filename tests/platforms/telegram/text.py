"""Text as the platform sees it: UTF-16 units, what it takes out, what it links by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.platforms.telegram.errors import bad_request

Entity = dict[str, Any]

KINDS = frozenset(
    [
        "mention",
        "hashtag",
        "cashtag",
        "bot_command",
        "url",
        "email",
        "phone_number",
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
        "text_link",
        "text_mention",
        "custom_emoji",
        "date_time",
    ]
)
_FOUND = {
    "url": r"(?:https?://|www\.)[^\s<>]+|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|io|dev|me|ru|sh|py)\b(?:/\S*)?",
    "mention": r"(?<![\w/])@[A-Za-z]\w{3,31}\b",
    "bot_command": r"(?<![\w/<>])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z]\w{2,31})?(?![\w/])",
    "hashtag": r"(?<!\w)#\w*[^\W\d]\w*",
    "email": r"\b[\w.+-]+@[\w-]+\.[a-z]{2,}\b",
}
_NOT_LINKED = frozenset({"code", "pre", "text_link", "text_mention"})


def units(text: str) -> int:
    """Count the UTF-16 units of a text."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def part(text: str, entity: Entity) -> str:
    """Cut the text that an entity covers."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return raw[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2].decode(
        "utf-16-le", "replace"
    )


def _boundaries(text: str) -> set[int]:
    found, at = {0}, 0
    for character in text:
        at += units(character)
        found.add(at)
    return found


def check_entities(text: str, entities: list[Entity]) -> None:
    """Refuse entities outside the text or inside a character; both are errors of whoever sent them."""
    whole, good = units(text), _boundaries(text)
    for entity in entities:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        if entity["type"] not in KINDS:
            raise bad_request(f'unsupported entity type "{entity["type"]}"', violation=True)
        where = f"from UTF-16 offset {start} to {end}"
        if start < 0 or entity["length"] <= 0 or end > whole:
            raise bad_request(
                f"entity {entity['type']} {where} is not inside the text of {whole} units",
                violation=True,
            )
        if start not in good or end not in good:
            raise bad_request(f"entity {entity['type']} {where} splits a surrogate pair", violation=True)
        for kind, field in (
            ("text_link", "url"),
            ("text_mention", "user"),
            ("custom_emoji", "custom_emoji_id"),
        ):
            if entity["type"] == kind and not entity.get(field):
                raise bad_request(f"entity {kind} needs {field}", violation=True)


def _cleaned(character: str) -> str:
    """Mimic what the platform does to a character: no control characters, no bidi embeddings."""
    if character == "\r" or "\u2028" <= character <= "\u202e":
        return ""
    return " " if character < " " and character != "\n" else character


def clean(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Take out and trim what the platform takes out and trims, and move the entities accordingly."""
    kept = [_cleaned(character) for character in text]
    whole = "".join(kept)
    result = whole.strip(" \n")
    lead, size = units(whole) - units(whole.lstrip(" \n")), units(result)
    moved, old, new = {0: 0}, 0, 0
    for character, instead in zip(text, kept, strict=True):
        old, new = old + units(character), new + units(instead)
        moved[old] = min(max(new - lead, 0), size)
    return result, [
        entity for entity in (_moved(entity, moved) for entity in entities) if entity["length"] > 0
    ]


def _moved(entity: Entity, moved: dict[int, int]) -> Entity:
    start, end = moved[entity["offset"]], moved[entity["offset"] + entity["length"]]
    return {**entity, "offset": start, "length": end - start}


def linked(text: str, entities: list[Entity]) -> list[Entity]:
    """Find what a client shows as a link although nobody asked for it."""
    closed = [(e["offset"], e["offset"] + e["length"]) for e in entities if e["type"] in _NOT_LINKED]
    found: list[Entity] = []
    for entity in _matches(text):
        taken = closed + [(e["offset"], e["offset"] + e["length"]) for e in found]
        if not any(
            entity["offset"] < end and start < entity["offset"] + entity["length"] for start, end in taken
        ):
            found.append(entity)
    return found


def _matches(text: str) -> Iterator[Entity]:
    for kind, pattern in _FOUND.items():
        for match in re.finditer(pattern, text):
            yield {"type": kind, "offset": units(text[: match.start()]), "length": units(match[0])}
