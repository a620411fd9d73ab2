"""Code that is given to an interpreter in the command line or on its standard input."""

from __future__ import annotations

from typing import Final

from core.model.command import Segment
from core.shell.names import names
from core.shell.programs import INTERPRETERS, SHELLS
from core.shell.word_list import word_list

_STDIN: Final = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
# Filters whose first argument is their program; they ask as programs that run anything, not as inline code.
_PROGRAM_FIRST: Final = word_list("awk gawk mawk nawk original-awk sed gsed dc bc m4 ed red")
_EVALUATING: Final = INTERPRETERS - _PROGRAM_FIRST

_SHORT: Final[dict[str, str]] = {
    **dict.fromkeys(("python", "pypy", "ipython", "micropython"), "c"),
    **dict.fromkeys(("perl", "raku", "rakudo", "perl6"), "eE"),
    **dict.fromkeys(
        ("ruby", "jruby", "lua", "luajit", "rscript", "julia", "elixir", "clojure", "groovy"), "eE"
    ),
    **dict.fromkeys(("node", "nodejs", "bun", "deno", "ts-node", "tsx"), "ep"),
    **dict.fromkeys(("php", "php-cgi"), "rBRE"),
    **dict.fromkeys(SHELLS, "cs"),
    **dict.fromkeys(("pwsh", "powershell", "guile", "tclsh", "expect", "gjs", "osascript"), "ce"),
}
_OTHERS: Final = "ceE"
_LONG: Final = word_list(
    "--eval --print --command --execute --init-command --rcfile --init-file --run --expr"
)
_EVAL_WORDS: Final = frozenset(("eval", "repl"))  # deno eval, bun repl


def inline_code(segment: Segment) -> bool:
    """Tell whether an interpreter or shell would run code that is in no file."""
    found = names(segment) & (_EVALUATING | SHELLS)
    return bool(found) and (_evaluates(segment, found) or reads_program_from_stdin(segment))


def reads_program_from_stdin(segment: Segment) -> bool:
    """Tell whether an interpreter or shell takes its program from a pipe or a terminal."""
    found = names(segment) & (_EVALUATING | SHELLS)
    if not found:
        return False
    arguments = segment.argv[1:]
    operands = [argument for argument in arguments if not argument.startswith("-")]
    asks_only = bool(arguments) and set(arguments) <= {"--version", "-V", "-v", "--help", "-h"}
    evaluates = _evaluates(segment, found) and not (found & SHELLS and _short_cluster(arguments, "s"))
    return not asks_only and not evaluates and (not operands or bool(_STDIN & set(arguments)))


def _evaluates(segment: Segment, found: frozenset[str]) -> bool:
    letters = "".join(_SHORT.get(name, _OTHERS) for name in found)
    arguments = segment.argv[1:]
    return (
        _short_cluster(arguments, letters)
        or any(argument.startswith("--") and _is_long(argument) for argument in arguments)
        or bool(arguments and arguments[0] in _EVAL_WORDS)
    )


def _short_cluster(arguments: tuple[str, ...], letters: str) -> bool:
    return any(
        argument[:1] in {"-", "+"} and argument[:2] != "--" and bool(set(argument[1:]) & set(letters))
        for argument in arguments
    )


def _is_long(argument: str) -> bool:
    name = argument.partition("=")[0]
    return any(option.startswith(name) for option in _LONG) and len(name) > len("--x")
