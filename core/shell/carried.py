"""Which words of a command that runs its words may be what runs, and which are only worked on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from core.model.command import Executable, Segment, Word
from core.shell.builtins import CARRYING as CARRYING_BUILTINS
from core.shell.carrying import carrying_option, carrying_options
from core.shell.named_files import module_files
from core.shell.names import loads_nothing, names
from core.shell.piped import only_filters
from core.shell.program_file import RUNS_OPERAND, module, operands
from core.shell.programs import CARRIERS, PACKAGE_RUNNERS, PRIVILEGE_CHANGERS, SHELLS
from core.shell.word_list import word_list

Find = Callable[[str], Executable | None]

RUN_WORDS: Final = CARRIERS | PRIVILEGE_CHANGERS | PACKAGE_RUNNERS
_EXECUTING: Final = word_list("-exec -execdir -ok -okdir")
_ENDS: Final = frozenset((";", "+"))
_COMMANDS: Final = re.compile(r"[;|&\n]+")
_SUBSTITUTES: Final = re.compile(r"[$`<>(]")
# Options without a value, by program: the word behind one is what is run. All others may take it for theirs.
_FLAGS: Final = {
    "sudo": word_list("-n -E -H -S -k -b -A -B -P -i -s"),
    "xargs": word_list("-0 -r -t -p -x -o --null --no-run-if-empty --verbose"),
    "setsid": word_list("-w -f -c --wait --fork --ctty"),
}


def words_that_run(segment: Segment, find: Find) -> Iterator[str]:
    """Give each word, or part of one, that may be a program or a script that it runs.

    What follows a program of the system that runs nothing else, `rm` or `sed`, is none.
    """
    found = names(segment)
    if segment.builtin:
        if segment.words[0].value in CARRYING_BUILTINS:
            yield from _commands(segment, _literal(segment.words[1:]), find)
    elif found & RUN_WORDS:
        yield from _commands(segment, _literal(segment.words[1:]), find)
    else:
        yield from _behind_options(segment, found, find)


def _behind_options(segment: Segment, found: frozenset[str], find: Find) -> Iterator[str]:
    for at in carrying_options(segment, found):
        option, rest = segment.words[at].value, _literal(segment.words[at + 1 :])
        if option in _EXECUTING:
            ends = (index for index, word in enumerate(rest) if word in _ENDS)
            yield from _commands(segment, rest[: next(ends, len(rest))], find)
        else:
            yield from (option,) if "=" in option else (option, *rest[:1])


def _literal(words: Sequence[Word]) -> list[str]:
    return [word.value for word in words if word.literal]


def _commands(segment: Segment, words: Sequence[str], find: Find) -> Iterator[str]:
    flags = frozenset[str]().union(*(_FLAGS[name] for name in names(segment) if name in _FLAGS))
    may_be_value = False
    for index, word in enumerate(words):
        if re.search(r"\s", word):
            yield word
            yield from _in_line(segment, word, find)
        elif word.startswith("-"):
            yield word
            may_be_value = word not in flags and word != "--"
            continue
        else:
            inner = None if may_be_value else _known(segment, words[index:], find)
            if inner is not None:
                yield from _given(inner)
                return
            yield word
        may_be_value = False


def _in_line(segment: Segment, text: str, find: Find) -> Iterator[str]:
    for line in _COMMANDS.split(text):
        words = line.split()
        yield from words if _SUBSTITUTES.search(line) else _commands(segment, words, find)


def _known(segment: Segment, words: Sequence[str], find: Find) -> Segment | None:
    """Give the words as a command, where it is known which of them a program of the system runs."""
    program = find(words[0])
    if program is None or not program.trusted:
        return None
    given = tuple(Word(word, word) for word in words)
    inner = replace(
        segment, words=given, executable=program, builtin=False, wrappers=(), assignments=(), scripts=()
    )
    found = names(inner)
    data = loads_nothing(inner) or only_filters(inner)
    if data and carrying_option(inner, found) is None:
        return inner
    reads_operand = found & RUNS_OPERAND and not found & SHELLS and (module(inner) or any(operands(inner)))
    return inner if reads_operand else None


def _given(command: Segment) -> Iterator[str]:
    yield command.words[0].value
    yield from operands(command)
    yield from module_files(command)
