"""Which files the words of a command may name: whole, behind an option, or in a line that is one word."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from core.model.command import Segment
from core.shell.names import names
from core.shell.program_file import PYTHON, module
from core.shell.word_list import word_list

# The kernel takes no longer path, its ending zero included.
LONGEST_PATH: Final = 4096
_JAVASCRIPT: Final = word_list("node nodejs bun deno ts-node tsx")
# What an interpreter tries behind the name that it is given.
_TRIED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(PYTHON, ("/__main__.py", "/__init__.py", ".py")),
    **dict.fromkeys(
        _JAVASCRIPT,
        (
            *(
                f"{index}{end}"
                for index in ("", "/index")
                for end in (".js", ".json", ".node", ".ts", ".tsx")
            ),
            *(".mjs", ".cjs", ".mts", ".cts", ".jsx", "/package.json"),
        ),
    ),
    **dict.fromkeys(("ruby", "jruby"), (".rb", ".so")),
    "java": (".class",),
}
# What Python may load for a module beside its source, or before it.
_LOADED: Final = (
    *("/__main__.py", "/__init__.py", ".py", "/__main__.pyc", "/__init__.pyc", ".pyc"),
    *(f"{init}{end}" for init in ("", "/__init__") for end in (".so", ".abi3.so")),
    *(
        f".cpython-3{minor}-{machine}-linux-gnu.so"
        for minor in range(6, 20)
        for machine in ("x86_64", "aarch64")
    ),
)
# Between the words of a line that is one word (`bash p.sh; ls`), and, inside each of these, around a path.
_WORD: Final = re.compile(r"[^\s;|&<>()'\"`]+")
_INSIDE: Final = re.compile(r"[^=,:!{}\[\]]+")
_SIGNS: Final = re.compile(r"[\s;|&<>()'\"`=,:!{}\[\]]")
# What make and others put before a command.
_MARKS: Final = "@+-%\\"
_PART_OF_PATH: Final = re.compile(r"[./]")
_LETTERS: Final = re.compile(r"-[A-Za-z0-9]+")


def paths(segment: Segment) -> Iterator[str]:
    """Give every path that a word may name, wherever the command may run; relative ones need a directory."""
    tried = endings(segment)
    for word in segment.words[1:]:
        if word.literal and word.value:
            yield from paths_in(segment, word.value, tried)


def paths_in(segment: Segment, text: str, tried: tuple[str, ...]) -> Iterator[str]:
    """Give every path that one word may name, with what is tried behind it."""
    for named in _named(text):
        for place in at(segment, named):
            yield place
            for end in tried:
                yield f"{place}{end}"
    if _SIGNS.search(text):
        for piece in pieces(text):
            if piece != text and _PART_OF_PATH.search(piece):
                yield from at(segment, piece)


def endings(segment: Segment) -> tuple[str, ...]:
    """Give what the segment's program tries behind the name of a file."""
    return tuple(end for name in names(segment) for end in _TRIED.get(name, ()))


def pieces(text: str) -> Iterator[str]:
    """Give what may be a word inside a word: `bash p.sh; ls`, `exec=./x`, `!./x -9`, `a.jar:b.jar`."""
    for match in _WORD.finditer(text):
        word = match[0]
        yield word
        for inside in _INSIDE.finditer(word):
            yield from _unmarked(inside[0])


def _unmarked(piece: str) -> Iterator[str]:
    """Give a piece also without what stands before it: `@./x` in a recipe, `-I./x`, `file:` of `file:///x`."""
    yield f"/{piece.lstrip('/')}" if piece.startswith("//") else piece
    if piece[0] in _MARKS:
        yield piece.lstrip(_MARKS)
        if path := _PART_OF_PATH.search(piece):
            yield piece[path.start() :]


def at(segment: Segment, text: str) -> Iterator[str]:
    """Give where a path leads in each directory that the segment may run in."""
    if len(text) >= LONGEST_PATH:
        return
    if text.startswith("/"):
        yield text
    elif text:
        for place in segment.places:
            yield posixpath.join(place, text)


def module_files(segment: Segment) -> Iterator[str]:
    """Give what Python would look for, to run the module that `-m` names."""
    given = module(segment)
    parts = given.split(".") if given and len(given) < LONGEST_PATH else []
    for length in range(1, len(parts) + 1):
        for place in at(segment, "/".join(parts[:length])):
            for end in _LOADED:
                yield f"{place}{end}"


def _named(text: str) -> Iterator[str]:
    """Give what a word may name: itself, `--option=PATH`, and of `-abPATH` all behind each letter."""
    if not text.startswith("-"):
        yield text
    elif letters := _LETTERS.match(text):
        first = max(len("-o"), len(text) - LONGEST_PATH)
        yield from (text[begin:] for begin in range(first, letters.end() + 1))
    elif not text.startswith("--"):
        yield text[len("-o") :]
    if "=" in text:
        yield text.partition("=")[2]
    if text[:1] == "@":
        yield text[1:]
