"""The fast path: lines of which there is one reading only, split without the grammar.

It knows words of harmless characters, quotes that hide nothing, the operators and the redirections to
nowhere. Whatever else stands in a line makes it give up, and the scanner and the grammar read it.
"""

from __future__ import annotations

import re
from typing import Final

from core.model.command import Expansion, Word
from core.shell.scan import Kind, Token

MAX_PLAIN: Final = 4096

_TOKEN: Final = re.compile(
    r"""
    [ \t]*+
    (?:
      (?P<bare> [A-Za-z0-9_./:@%+,=^*?-]++ (?=[ \t\n|&;]|\Z) )
    | (?P<redirection> (?:2>&1|1?>&2|&>/dev/null|[12]?>/dev/null|</dev/null) (?=[ \t\n|&;]|\Z) )
    | (?P<operator> &&|\|\||\|(?!&)|;(?![;&])|&(?!>)|\n )
    | (?P<quoted> (?: '[^']*+' | "[^"$`\\]*+" ) (?=[ \t\n|&;]|\Z) )
    | (?P<word>
        (?: [A-Za-z0-9_./:@%+,=^*?-]++ | '[^']*+' | "[^"$`\\]*+" | (?<=[A-Za-z0-9^])~ | \{\} )++
        (?=[ \t\n|&;]|\Z)
      )
    | (?P<end> \Z )
    | (?P<other> . )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED: Final = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_WORD, _OPERATOR, _REDIRECTION = Kind.WORD, Kind.OPERATOR, Kind.REDIRECTION
_NOTHING: Final[frozenset[Expansion]] = frozenset()
_GLOB: Final = frozenset((Expansion.GLOB,))
_REDIRECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "2>&1": ("2>&1",),
    ">&2": (">&2",),
    "1>&2": (">&2",),
    "&>/dev/null": (">/dev/null", "2>&1"),
    ">/dev/null": (">/dev/null",),
    "1>/dev/null": (">/dev/null",),
    "2>/dev/null": ("2>/dev/null",),
    "</dev/null": ("</dev/null",),
}


def plain_tokens(text: str) -> tuple[Token, ...] | None:
    """Split a plain line exactly as the scanner would; None where it is not plain."""
    if len(text) > MAX_PLAIN:
        return None
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        source, end = match[kind], match.end()
        start = end - len(source)
        if kind == "bare":
            glob = _GLOB if "*" in source or "?" in source else _NOTHING
            tokens.append(Token(_WORD, start, end, (), Word(source, source, glob), "=" in source))
        elif kind == "quoted":
            tokens.append(Token(_WORD, start, end, (), Word(source[1:-1], source)))
        elif kind == "word":
            tokens.append(_mixed(source, start, end))
        elif kind == "operator":
            tokens.append(Token(_OPERATOR, start, end, (source,)))
        elif kind == "redirection":
            tokens.append(Token(_REDIRECTION, start, end, _REDIRECTIONS[source]))
        elif kind == "other":
            return None
    return tuple(tokens)


def _mixed(source: str, start: int, end: int) -> Token:
    value, bare = _QUOTED.sub(r"\1\2", source), _QUOTED.sub("", source)
    expansions = _GLOB if "*" in bare or "?" in bare else _NOTHING
    return Token(_WORD, start, end, (), Word(value, source, expansions), "=" in bare)
