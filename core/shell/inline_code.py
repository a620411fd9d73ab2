"""Code that is given to an interpreter in the command line or on its standard input."""

from __future__ import annotations

import posixpath
import re
from itertools import takewhile
from typing import Final

from core.model.command import Segment
from core.shell.names import names
from core.shell.programs import INTERPRETERS, SHELLS
from core.shell.word_list import word_list

# Standard input as a file, or any other descriptor: what is behind it is not in the command line.
_STDIN: Final = re.compile(r"-|/dev/(?:stdin|tty)|/(?:dev|proc/[^/]+)/fd/\d+|/proc/[^/]+/task/[^/]+/fd/\d+")
# Filters whose first argument is their program; they ask as programs that run anything, not as inline code.
_PROGRAM_FIRST: Final = word_list("awk gawk mawk nawk original-awk sed gsed dc bc m4 ed red")
_EVALUATING: Final = INTERPRETERS - _PROGRAM_FIRST
_GIVEN_CODE: Final = _EVALUATING | SHELLS

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
_WITHOUT_CODE: Final = frozenset(("java",))  # `-cp` is its class path
_LONG: Final = word_list(
    "--eval --print --command --execute --init-command --rcfile --init-file --run --expr"
)
# Single letters that take no value; the word behind every other option is taken for its value.
_FLAGS: Final[dict[str, str]] = {
    **dict.fromkeys(("python", "pypy", "ipython", "micropython"), "bBdEiIOPqsSuvx"),
    **dict.fromkeys(SHELLS, "abefhikmnptuvxBCEHPTlr"),
    **dict.fromkeys(("perl", "ruby", "jruby"), "acflnpsStTuUvwW"),
    **dict.fromkeys(("lua", "luajit"), "ivEW"),
    **dict.fromkeys(("node", "nodejs"), "i"),
    **dict.fromkeys(("php", "php-cgi"), "aCehHimnqsvw"),
}
_LONG_FLAGS: Final = word_list(
    """
    --norc --noprofile --login --posix --restricted --verbose --watch --test --inspect --inspect-brk
    --no-warnings --trace-warnings --trace-deprecation --trace-uncaught --expose-gc
    --enable-source-maps --preserve-symlinks --experimental-strip-types --experimental-vm-modules
    """
)
# Options whose value is the program: a module, a file, a directory that is served.
_NAMES_PROGRAM: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("python", "pypy"), word_list("-m")),
    **dict.fromkeys(("php", "php-cgi"), word_list("-f -F -S")),
    "java": word_list("-jar -m"),
    **dict.fromkeys(("node", "nodejs"), word_list("--run")),
}
_NOTHING: Final[frozenset[str]] = frozenset()
_ASKS_ONLY: Final = frozenset(("--version", "-V", "-v", "--help", "-h"))
_EVAL_WORDS: Final = frozenset(("eval", "repl"))  # deno eval, bun repl


def inline_code(segment: Segment) -> bool:
    """Tell whether an interpreter or shell would run code that is in no file."""
    found = names(segment) & _GIVEN_CODE
    return bool(found) and (_evaluates(segment, found) or reads_program_from_stdin(segment))


def reads_program_from_stdin(segment: Segment) -> bool:
    """Tell whether an interpreter or shell takes its program from a pipe or a terminal."""
    found = names(segment) & _GIVEN_CODE
    if not found:
        return False
    arguments = segment.argv[1:]
    if arguments and set(arguments) <= _ASKS_ONLY:
        return False
    if found & SHELLS and _short_cluster(_options(arguments), "s"):
        return True
    if _evaluates(segment, found):
        return False
    return not _is_given_program(arguments, found) or any(_is_stdin(argument) for argument in arguments)


def evaluates_here(option: str, found: frozenset[str]) -> bool:
    """Tell whether this option of such an interpreter brings the code itself."""
    letters = "".join(_SHORT.get(name, _OTHERS) for name in (found & _GIVEN_CODE) - _WITHOUT_CODE)
    return _short_cluster((option,), letters) or (option[:2] == "--" and _is_long(option))


def is_flag(option: str, found: frozenset[str]) -> bool:
    """Tell whether this option surely takes no value from the next word."""
    return _stands_alone(option, frozenset("".join(_FLAGS.get(name, "") for name in found)))


def _options(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Give what stands before the first operand."""
    return tuple(takewhile(lambda argument: argument[:1] in {"-", "+"} and argument != "-", arguments))


def _is_stdin(argument: str) -> bool:
    path = posixpath.normpath(argument).replace("//", "/") if "/" in argument else argument
    return _STDIN.fullmatch(path) is not None


def _is_given_program(arguments: tuple[str, ...], found: frozenset[str]) -> bool:
    """Tell whether some word is surely the program, and not the value of an option before it."""
    flags = frozenset("".join(_FLAGS.get(name, "") for name in found))
    naming = _NOTHING.union(*[_NAMES_PROGRAM[name] for name in found if name in _NAMES_PROGRAM])
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--" or argument in naming:
            return bool(rest)
        if argument[:1] not in {"-", "+"} or argument == "-":
            return True
        if not _stands_alone(argument, flags):
            del rest[:1]
    return False


def _stands_alone(option: str, flags: frozenset[str]) -> bool:
    return "=" in option or option in _LONG_FLAGS or (option[:2] != "--" and set(option[1:]) <= flags)


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
