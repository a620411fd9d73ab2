"""parse_mode: HTML and MarkdownV2 into text and entities."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

from tests.platforms.telegram.errors import ApiError, bad_request
from tests.platforms.telegram.text import Entity, units

_TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "a": "text_link",
}
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#[0-9]+|#x[0-9a-fA-F]+);")
_BARE = re.compile(r"<(?![A-Za-z/])")
_RESERVED = "_*[]()~`>#+-=|{}.!"
_MARKS = {"||": "spoiler", "__": "underline", "*": "bold", "_": "italic", "~": "strikethrough"}


def _cannot(why: str) -> ApiError:
    return bad_request(f"can't parse entities: {why}", violation=True)


def parse(text: str, mode: str) -> tuple[str, list[Entity]]:
    """Parse marked text as the platform would; wrong markup is a 400."""
    if mode.lower() == "html":
        return _parse_html(text)
    if mode.lower() == "markdownv2":
        return _MarkdownV2(text).parse()
    raise bad_request(
        f"unsupported parse_mode {mode!r} (the test server knows HTML and MarkdownV2)", violation=True
    )


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.text = ""
        self.open: list[tuple[str, Entity]] = []
        self.entities: list[Entity] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        kind = "spoiler" if tag == "span" and given.get("class") == "tg-spoiler" else _TAGS.get(tag)
        if kind is None:
            raise _cannot(f'Unsupported start tag "{tag}" at byte offset {len(self.text.encode())}')
        entity: Entity = {"type": kind, "offset": units(self.text)}
        if kind == "text_link":
            entity["url"] = given.get("href") or ""
        language = (given.get("class") or "").removeprefix("language-")
        if tag == "code" and language and self.open and self.open[-1][0] == "pre":
            self.open[-1][1]["language"] = language
        self.open.append((tag, entity))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1][0] != tag:
            raise _cannot(f'Unmatched end tag "{tag}" at byte offset {len(self.text.encode())}')
        _, entity = self.open.pop()
        entity["length"] = units(self.text) - entity["offset"]
        in_pre = tag == "code" and self.open and self.open[-1][0] == "pre"
        if entity["length"] and not in_pre:
            self.entities.append(entity)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_entityref(self, name: str) -> None:
        whole = f"&{name};"
        self.text += html.unescape(whole) if _ENTITY.fullmatch(whole) else whole

    def handle_charref(self, name: str) -> None:
        self.text += html.unescape(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        raise _cannot(f'Unsupported start tag "!--{data[:10]}"')


def _parse_html(text: str) -> tuple[str, list[Entity]]:
    if bare := _BARE.search(text):
        raise _cannot(f"Unexpected character after < at byte offset {len(text[: bare.start()].encode())}")
    parser = _Html()
    parser.feed(text)
    parser.close()
    if parser.open:
        raise _cannot(f'Can\'t find end tag corresponding to start tag "{parser.open[-1][0]}"')
    return parser.text, sorted(parser.entities, key=lambda entity: (entity["offset"], -entity["length"]))


class _MarkdownV2:
    """A parser of the part that bots use: emphasis, code, pre, links, escapes, quotations."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.text = ""
        self.open: list[tuple[str, Entity]] = []
        self.entities: list[Entity] = []

    def parse(self) -> tuple[str, list[Entity]]:
        while self.at < len(self.source):
            self._step()
        if self.open:
            mark, entity = self.open[-1]
            raise _cannot(f"Can't find end of {_name(mark)} entity at byte offset {entity['offset']}")
        return self.text, sorted(self.entities, key=lambda entity: (entity["offset"], -entity["length"]))

    def _step(self) -> None:
        rest = self.source[self.at :]
        if rest[0] == "\\" and len(rest) > 1 and 0 < ord(rest[1]) < 127:
            self._take(rest[1], 2)
        elif rest.startswith("```"):
            self._verbatim("```", "pre")
        elif rest[0] == "`":
            self._verbatim("`", "code")
        elif mark := next((mark for mark in _MARKS if rest.startswith(mark)), None):
            self._mark(mark)
        elif rest[0] == "[":
            self._start("[", "text_link")
        elif rest[0] == "]" and self.open and self.open[-1][0] == "[":
            self._link()
        elif rest[0] == ">" and self.source[self.at - 1 : self.at] in {"", "\n"}:
            self.at += 1
        elif rest[0] in _RESERVED:
            raise _cannot(f"Character '{rest[0]}' is reserved and must be escaped with the preceding '\\'")
        else:
            self._take(rest[0], 1)

    def _take(self, text: str, width: int) -> None:
        self.text += text
        self.at += width

    def _start(self, mark: str, kind: str) -> None:
        self.open.append((mark, {"type": kind, "offset": units(self.text)}))
        self.at += len(mark)

    def _end(self, width: int, **more: str) -> None:
        _, entity = self.open.pop()
        entity = {**entity, "length": units(self.text) - entity["offset"], **more}
        self.entities += [entity] if entity["length"] else []
        self.at += width

    def _mark(self, mark: str) -> None:
        if self.open and self.open[-1][0] == mark:
            self._end(len(mark))
        else:
            self._start(mark, _MARKS[mark])

    def _verbatim(self, mark: str, kind: str) -> None:
        self._start(mark, kind)
        match = re.compile(r"((?:\\.|[^\\`])*?)" + mark, re.DOTALL).match(self.source, self.at)
        if match is None:
            raise _cannot(f"Can't find end of {_name(mark)} entity at byte offset {len(self.text.encode())}")
        language, inner = _language(match[1]) if kind == "pre" else ("", match[1])
        self._take(re.sub(r"\\(.)", r"\1", inner), match.end() - self.at)
        self._end(0, **({"language": language} if language else {}))

    def _link(self) -> None:
        match = re.compile(r"\]\(((?:\\.|[^\\)])*)\)").match(self.source, self.at)
        if match is None:
            raise _cannot("Character ']' is reserved and must be escaped with the preceding '\\'")
        self._end(len(match[0]), url=re.sub(r"\\(.)", r"\1", match[1]))


def _language(inner: str) -> tuple[str, str]:
    match = re.match(r"([^\s`]*)\n", inner)
    return (match[1], inner[match.end() :]) if match else ("", inner)


def _name(mark: str) -> str:
    return {**_MARKS, "`": "code", "```": "pre", "[": "text_link"}[mark].capitalize()
