"""What a program makes of its input, and of files given to it: data, or a program."""

from __future__ import annotations

import re
from typing import Final

from core.model.command import Segment
from core.shell.names import loads_nothing, names
from core.shell.programs import RUNS_ANYTHING
from core.shell.word_list import word_list

_AWK: Final = word_list("awk gawk mawk nawk original-awk")
_SED: Final = word_list("sed gsed")
_WRITERS: Final = word_list("tee")
# By first argument: options after which the next word is the whole program.
_IN_WORDS: Final[dict[str, re.Pattern[str]]] = {
    **dict.fromkeys(("python", "pypy"), re.compile("-c")),
    **dict.fromkeys(("node", "nodejs"), re.compile("-(?:e|p|pe)|--eval|--print")),
    **dict.fromkeys(("perl", "ruby"), re.compile("-[nplaw]*e")),
    "php": re.compile("-r"),
}
# Or writes: `print > $1` to a file that the data names.
_AWK_RUNS: Final = re.compile(r"system|getline|@|fflush|close|(?<!\|)\|(?!\|)")
_AWK_PRINTS: Final = re.compile(r"printf?\b")
_AWK_OPTION: Final = re.compile(r"-F.+|-v[A-Za-z_]\w*=.*", re.ASCII | re.DOTALL)
_AWK_VALUED: Final = ("-F", "-v")
_SED_FLAGS: Final = re.compile(r"-[nErsuz]+|-[nErsuz]*i(?:\.\w+)?|--in-place", re.ASCII)
# In brackets sed takes what would end the pattern for a letter: `s/[/]/;s/e` runs what it reads.
_IN_PATTERN: Final = r"(?:[^{d}\\\n\[]|\\[^\n]|\[(?!\^\])(?:\[:[a-z]+:\]|[^{d}\\\n\[\]])+\])*"
_IN_TEXT: Final = r"(?:[^{d}\\\n]|\\[^\n])*"
_ADDRESS: Final = rf"(?:[0-9]+|\$|/{_IN_PATTERN.replace('{d}', '/')}/)"
_SUBSTITUTION: Final = "|".join(
    f"s{d}{_IN_PATTERN.replace('{d}', d)}{d}{_IN_TEXT.replace('{d}', d)}{d}[gpI0-9]*"
    for d in map(re.escape, "/|#,")
)
_SED_COMMAND: Final = rf"(?:{_ADDRESS}(?:,{_ADDRESS})?!?)?(?:[pdqD=]|{_SUBSTITUTION})"
_SED_SCRIPT: Final = re.compile(rf"{_SED_COMMAND}(?:[ ]*;[ ]*{_SED_COMMAND})*;?")


def takes_program_from_pipe(segment: Segment) -> bool:
    """Tell whether what comes through the pipe may be, or steer, what runs; if in doubt it may."""
    if not segment.piped or loads_nothing(segment):
        return False
    executable = segment.executable
    if executable is not None and not executable.trusted:
        return True
    return not _takes_data(names(segment) & RUNS_ANYTHING, segment.argv[1:])


def only_filters(segment: Segment) -> bool:
    """Tell whether it is awk or sed with its whole program in its words, one that runs nothing.

    What its other words name it takes for data, whatever stands in there.
    """
    found = names(segment) & RUNS_ANYTHING
    return bool(found) and (found <= _AWK or found <= _SED) and _takes_data(found, segment.argv[1:])


def _takes_data(found: frozenset[str], arguments: tuple[str, ...]) -> bool:
    if not found:
        return False  # of a program that no table names nobody knows
    if found <= _WRITERS:
        return True
    if found <= _AWK:
        return _is_awk_filter(arguments)
    if found <= _SED:
        return _is_sed_filter(arguments)
    return all(name in _IN_WORDS and _is_in_words(_IN_WORDS[name], arguments) for name in found)


def _is_in_words(option: re.Pattern[str], arguments: tuple[str, ...]) -> bool:
    """Tell whether the words hold the whole program, and nothing behind it is one more option."""
    given = len(arguments) > 1 and option.fullmatch(arguments[0]) is not None
    return given and not any(argument.startswith("-") for argument in arguments[2:])


def _is_awk_filter(arguments: tuple[str, ...]) -> bool:
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        valued = rest.pop(0)
        if valued in _AWK_VALUED:
            del rest[:1]
        elif not _AWK_OPTION.fullmatch(valued):
            return False
    options_behind = any(argument[:1] == "-" and argument != "-" for argument in rest[1:])
    return bool(rest) and not options_behind and not _runs_or_writes(rest[0])


def _runs_or_writes(program: str) -> bool:
    prints = _AWK_PRINTS.search(program)
    return _AWK_RUNS.search(program) is not None or (prints is not None and ">" in program[prints.end() :])


def _is_sed_filter(arguments: tuple[str, ...]) -> bool:
    rest, scripts, files = list(arguments), list[str](), list[str]()
    while rest:
        argument = rest.pop(0)
        if argument == "-e" and rest:
            scripts.append(rest.pop(0))
        elif argument[:1] != "-":
            files.append(argument)
        elif not _SED_FLAGS.fullmatch(argument):
            return False
    scripts = scripts or files[:1]
    return bool(scripts) and all(map(_SED_SCRIPT.fullmatch, scripts))
