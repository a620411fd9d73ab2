"""What the YAML parser refuses, in words that say what to mend; never with a value, which may be a secret."""

from __future__ import annotations

import re

import yaml

_OPENED = {
    "while parsing a flow mapping": "the {",
    "while parsing a flow sequence": "the [",
    "while scanning a quoted scalar": "the quote",
}
_BLOCKS = ("while parsing a block mapping", "while parsing a block collection")


def words_of(problem: yaml.MarkedYAMLError, text: str) -> str:
    """Say what is wrong, as far as the parser knows."""
    return _of_tab(problem, text) or _of_what_began(problem) or _without_quotes(problem)


def _of_tab(problem: yaml.MarkedYAMLError, text: str) -> str:
    if problem.problem_mark is None:
        return ""
    number = problem.problem_mark.line
    line = text.removeprefix("\ufeff").splitlines()[number : number + 1]
    if not line or "\t" not in line[0][: len(line[0]) - len(line[0].lstrip())]:
        return ""
    return f"line {number + 1} begins with a tab; indent with blanks"


def _of_what_began(problem: yaml.MarkedYAMLError) -> str:
    if problem.context_mark is None or problem.problem_mark is None:
        return ""
    began, at = problem.context_mark.line + 1, problem.problem_mark.line + 1
    at_the_end = str(problem.problem).endswith(("'<stream end>'", "end of stream"))
    if opened := _OPENED.get(problem.context or ""):
        comma = "" if at_the_end else f", or a comma is missing before what line {at} goes on with"
        return f"{opened} of line {began} is not closed{comma}"
    if at_the_end:
        return f"it ends in line {at} before a {{ or [ is closed"
    if problem.context in _BLOCKS:
        return f"line {at} is indented otherwise than what begins in line {began}, or lacks a key or a dash"
    return ""


def _without_quotes(problem: yaml.MarkedYAMLError) -> str:
    # the parser quotes what it read
    text = problem.problem or problem.context or "it cannot be parsed"
    return re.sub(r"(['\"]).{2,}\1", "…", text)
