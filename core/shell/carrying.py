"""Options by which an ordinary program runs, or loads, something else."""

from __future__ import annotations

from core.model.command import Segment
from core.shell.programs import CARRYING_OPTIONS

_NOTHING: frozenset[str] = frozenset()


def carrying_option(segment: Segment, found: frozenset[str]) -> str | None:
    """Find the first such option among the arguments; `found` are the names that the program goes by."""
    listed = _NOTHING.union(*[CARRYING_OPTIONS[each] for each in found if each in CARRYING_OPTIONS])
    options = (argument for argument in segment.argv[1:] if argument[:1] == "-") if listed else ()
    carrying = (argument for argument in options if any(_is_option(argument, option) for option in listed))
    return next(carrying, None)


def _is_option(argument: str, option: str) -> bool:
    """Tell whether an argument is this option: as it is, abbreviated, with a value, or in a cluster."""
    if not option.startswith("--"):
        single_letter = len(option) == len("-x")
        joined = single_letter and argument[:1] == "-" and argument[:2] != "--" and option[1] in argument[1:]
        return argument == option or joined
    given = argument.partition("=")[0]
    return option.startswith(given) and len(given) > len("--")
