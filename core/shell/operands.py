"""Which words of ordinary programs are texts: patterns, counts, separators, and never a path."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from core.model.command import Segment
from core.shell.names import names
from core.shell.word_list import word_list


class _Known(Struct, frozen=True):
    """Options as getopt writes them: `n` is a flag, `n:` takes a value, `n::` what is joined to it.

    Long ones that take a value end in `=`, those that may in `[=]`. The first operand is a text where
    `first_is_text`, unless an option of `instead` is there. Values of `paths` are no texts.
    """

    short: str
    long: frozenset[str] = frozenset()
    first_is_text: bool = False
    instead: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    permutes: bool = True
    numeric: bool = False  # `-5`


_GREP: Final = _Known(
    "ivcnowxEFGPHhsqlLzabrRUTyZA:B:C:m:e:f:d:D:",
    word_list(
        """
        ignore-case no-ignore-case invert-match count line-number only-matching word-regexp line-regexp
        extended-regexp fixed-strings basic-regexp perl-regexp with-filename no-filename no-messages quiet
        silent files-with-matches files-without-match recursive dereference-recursive text line-buffered
        regexp= file= max-count= after-context= before-context= context= include= exclude= exclude-dir=
        color[=] colour[=]
        """
    ),
    first_is_text=True,
    instead=word_list("e f regexp file"),
    paths=word_list("f file"),
    numeric=True,
)
_RG: Final = _Known(
    "inFwxvclLouqsSUPNahHIp0.A:B:C:m:e:f:g:t:T:j:M:E:r:d:",
    word_list(
        """
        ignore-case smart-case case-sensitive line-number no-line-number fixed-strings word-regexp
        line-regexp invert-match count count-matches files-with-matches files-without-match only-matching
        hidden no-ignore no-ignore-vcs unrestricted multiline pcre2 text with-filename no-filename heading
        no-heading column vimgrep json stats trim quiet null follow pretty files type-list
        regexp= file= glob= iglob= type= type-not= max-count= max-depth= maxdepth= max-columns=
        after-context= before-context= context= color= colors= sort= sortr= threads= replace= encoding=
        """
    ),
    first_is_text=True,
    instead=word_list("e f regexp file files type-list"),
    paths=word_list("f file"),
)
_AWK: Final = _Known(
    "F:v:f:", first_is_text=True, instead=word_list("f"), paths=word_list("f"), permutes=False
)
_SED: Final = _Known(
    "nErsuzi::e:f:l:",
    word_list("quiet silent regexp-extended null-data separate in-place[=] expression= file= line-length="),
    first_is_text=True,
    instead=word_list("e f expression file"),
    paths=word_list("f file"),
)
_JQ: Final = _Known(
    "rcnsSejaCMR",
    word_list(
        """
        raw-output compact-output null-input slurp sort-keys exit-status join-output ascii-output
        color-output monochrome-output raw-input tab seq stream indent=
        """
    ),
    first_is_text=True,
)
_HEAD: Final = _Known(
    "qvzn:c:", word_list("quiet silent verbose zero-terminated lines= bytes="), numeric=True
)
_TAIL: Final = _Known(
    "qvzfFn:c:s:",
    word_list("quiet silent verbose zero-terminated follow[=] retry lines= bytes= pid="),
    numeric=True,
)
_KNOWN: Final[dict[str, _Known]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), _AWK),
    **dict.fromkeys(("sed", "gsed"), _SED),
    "rg": _RG,
    "jq": _JQ,
    "head": _HEAD,
    "tail": _TAIL,
    "sort": _Known("nrubdfgiMhVszcCmRk:t:S:o:T:", paths=word_list("o T")),
    "cut": _Known(
        "nszb:c:f:d:", word_list("complement only-delimited bytes= characters= fields= delimiter=")
    ),
    "uniq": _Known("cdDiuzf:s:w:", word_list("count repeated ignore-case unique")),
}
_FIND: Final = frozenset(("find",))
_FIND_TEXTS: Final = word_list(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -perm
    -maxdepth -mindepth -mtime -mmin -ctime -cmin -atime -amin -user -group -links -printf
    """
)
_NUMBER: Final = re.compile(r"-\d+")
_NOTHING: Final[frozenset[int]] = frozenset()


def texts(segment: Segment) -> frozenset[int]:
    """Give the positions of words that name no file, whatever is there; none where an option is not known."""
    executable = segment.executable
    if segment.builtin or executable is None or not executable.trusted:
        return _NOTHING
    found = names(segment)
    arguments = segment.argv[1:]
    if found == _FIND:
        behind = (at for at, word in enumerate(arguments, 1) if word in _FIND_TEXTS)
        return frozenset(at + 1 for at in behind)
    tables = {id(table): table for table in map(_KNOWN.get, found)}
    known = next(iter(tables.values())) if len(tables) == 1 else None
    read = _read(arguments, known) if known is not None else ()
    return frozenset(at + 1 for at in read)


def _read(arguments: tuple[str, ...], known: _Known) -> list[int]:
    found: list[int] = []
    operands: list[int] = []
    given: set[str] = set()
    at = 0
    while at < len(arguments) and (known.permutes or not operands):
        word = arguments[at]
        if word == "--":
            operands += range(at + 1, len(arguments))
            break
        if word == "-" or word[:1] != "-":
            operands.append(at)
        else:
            options = _options(word, known)
            if options is None:
                return []
            given |= options.names
            if known.paths.isdisjoint(options.names):
                found += (at, at + 1) if options.takes_next else (at,)
            at += options.takes_next
        at += 1
    if known.first_is_text and known.instead.isdisjoint(given):
        found += operands[:1]
    return found


class _Options(Struct, frozen=True):
    """The options in one word, and whether the next word is the value of the last of them."""

    names: frozenset[str]
    takes_next: bool = False


def _options(word: str, known: _Known) -> _Options | None:
    """Read one word; None where it is not known, and abbreviated names are not."""
    if known.numeric and _NUMBER.fullmatch(word):
        return _Options(frozenset())
    if word.startswith("--"):
        name, joined, _ = word[len("--") :].partition("=")
        if f"{name}=" in known.long or (joined and f"{name}[=]" in known.long):
            return _Options(frozenset((name,)), takes_next=not joined)
        flag = not joined and (name in known.long or f"{name}[=]" in known.long)
        return _Options(frozenset((name,))) if flag else None
    for index, letter in enumerate(word[1:], 1):
        if letter == ":" or letter not in known.short:
            return None
        if f"{letter}:" in known.short:
            takes_next = index == len(word) - 1 and f"{letter}::" not in known.short
            return _Options(frozenset(word[1 : index + 1]), takes_next=takes_next)
    return _Options(frozenset(word[1:]))
