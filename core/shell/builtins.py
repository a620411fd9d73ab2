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
AT_ONCE: Final = HARMLESS - {"printf"}  # which writes as much as it is told, to whoever reads slowly

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

# What each kind of them does, as said to people.
RESERVED_MEANS: Final[dict[str, str]] = {
    "compound-command": "belongs to a compound command, which is not judged; ask for its commands one by one",
    "group": "belongs to a group of commands, which is not judged; write them without the braces",
    "negation": "only turns the status of the command around, which is not judged; leave it out",
    "time-keyword": "is a word of bash that measures what stands behind it, and is not judged; leave it out",
    "coprocess": "starts a command beside the line, which is not judged",
    "function": "gives a name another meaning, which is not judged",
    "conditional": "belongs to a conditional expression, which is not judged; `test` is",
}

# What builtins do that neither run something nor change the shell: all the others change it.
_DOES: Final[dict[str, str]] = {
    "kill": "sends a signal to processes",
    "history": "reads or changes the history of the shell",
    **dict.fromkeys(
        ("wait", "jobs", "bg", "fg", "disown"), "deals with what the shell runs in the background"
    ),
    **dict.fromkeys(("type", "help", "times", "caller"), "tells about the shell"),
    **dict.fromkeys(("test", "["), "may evaluate what stands behind -v or -R, and run a command in it"),
    **dict.fromkeys(("exit", "return", "logout", "break", "continue"), "ends what the shell was doing"),
}


def does(segment: Segment) -> str:
    """Say what a builtin does that is not harmless."""
    name = segment.words[0].value
    return "can run other commands" if name in CARRYING else _DOES.get(name, "changes the shell it runs in")


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
