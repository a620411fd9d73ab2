"""Options by which an ordinary program runs, or loads, something else, or reads what is named elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.model.command import Segment
from core.shell.programs import CARRYING_OPTIONS, LISTING_OPTIONS

_NOTHING: frozenset[str] = frozenset()


def carrying_option(segment: Segment, found: frozenset[str]) -> str | None:
    """Find the first such option among the arguments; `found` are the names that the program goes by."""
    return _first(segment, found, CARRYING_OPTIONS)


def listing_option(segment: Segment, found: frozenset[str]) -> str | None:
    """Find the first option by which it takes the names of files from a file, or from its input."""
    return _first(segment, found, LISTING_OPTIONS)


def carrying_options(segment: Segment, found: frozenset[str]) -> Iterator[int]:
    """Give where among the words such options stand."""
    return _all(segment, found, CARRYING_OPTIONS)


def _first(segment: Segment, found: frozenset[str], table: Mapping[str, frozenset[str]]) -> str | None:
    return next((segment.words[at].value for at in _all(segment, found, table)), None)


def _all(segment: Segment, found: frozenset[str], table: Mapping[str, frozenset[str]]) -> Iterator[int]:
    listed = _NOTHING.union(*[table[each] for each in found if each in table])
    for at, argument in enumerate(segment.argv[1:] if listed else (), 1):
        if argument[:1] == "-" and any(_is_option(argument, option) for option in listed):
            yield at


def _is_option(argument: str, option: str) -> bool:
    """Tell whether an argument is this option: as it is, abbreviated, with a value, or in a cluster."""
    if not option.startswith("--"):
        single_letter = len(option) == len("-x")
        joined = single_letter and argument[:1] == "-" and argument[:2] != "--" and option[1] in argument[1:]
        return argument == option or joined
    given = argument.partition("=")[0]
    return option.startswith(given) and len(given) > len("--")
