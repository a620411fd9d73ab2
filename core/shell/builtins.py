"""What bash does itself, by name."""

from __future__ import annotations

import re
from typing import Final

from core.model.command import Segment
from core.shell.word_list import word_list

BUILTINS: Final = word_list(
    """
    . : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare
    dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill
    let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt
    source suspend test times trap true type typeset ulimit umask unalias unset wait
    """
)

HARMLESS: Final = frozenset((":", "[", "cd", "echo", "false", "printf", "pwd", "test", "true"))

# Run what is among their arguments; `builtin` and `command` reach every other one.
CARRYING: Final = word_list(
    """
    . alias bind builtin command compgen complete enable eval exec fc hash mapfile readarray source
    trap
    """
)

_COMPOUND: Final = word_list("if then elif else fi for while until do done case esac select in")

# First words that are grammar, not commands; all are refused where they are written unquoted.
RESERVED: Final[dict[str, str]] = {
    **dict.fromkeys(_COMPOUND, "compound-command"),
    "{": "group",
    "}": "group",
    "!": "negation",
    "time": "time-keyword",
    "coproc": "coprocess",
    "function": "function",
    "[[": "conditional",
    "]]": "conditional",
}

_ASSIGNING_FORMAT = re.compile(r"%[^%A-Za-z]*[hjlLtzq]*n")


def harmless(segment: Segment) -> bool:
    """Tell whether this builtin, with these arguments, neither runs nor changes anything."""
    if not segment.words:  # assignments alone change the shell
        return False
    name, arguments = segment.words[0].value, segment.argv[1:]
    if name not in HARMLESS:
        return False
    if name in {"test", "["}:  # these evaluate subscripts, which may hold commands
        return not {"-v", "-R"} & set(arguments)
    if name == "printf":
        return not any(a.startswith("-v") or _ASSIGNING_FORMAT.search(a) for a in arguments)
    return True
