"""The options of the safe bins, each with what it takes; what is not here is not safe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Operand(Enum):
    """What a positional argument is."""

    FILE = "file"
    TEXT = "text"
    FILTER = "filter"
    WORD = "word"  # a text that cannot be taken for a path


@dataclass(frozen=True, slots=True)
class SafeBin:
    """`flags` and `valued` hold option names; `arity` counts the values of those that take other than one."""

    flags: frozenset[str]
    valued: frozenset[str]
    operands: int = 0
    kind: Operand = Operand.FILE
    numeric: bool = False  # `head -5`
    required: frozenset[str] = frozenset()  # one of these must be there
    arity: tuple[tuple[str, int], ...] = ()
    optional: frozenset[str] = frozenset()  # long options whose value is optional and joined by `=`
    others: frozenset[str] = frozenset()  # unsafe long options: abbreviations resolve truly
    abbreviates: bool = True
    stdin_dash: bool = True

    def values(self, option: str) -> int:
        """Tell how many values an option takes."""
        return dict(self.arity).get(option, 1) if option in self.valued else 0


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


SAFE_BINS: Final[dict[str, SafeBin]] = {
    "cut": SafeBin(
        _options("-n -s -z --complement --only-delimited --zero-terminated"),
        _options("-b -c -f -d --bytes --characters --fields --delimiter --output-delimiter"),
    ),
    "uniq": SafeBin(
        _options("-c -d -D -i -u -z --count --repeated --ignore-case --unique --zero-terminated"),
        _options("-f -s -w --skip-fields --skip-chars --check-chars"),
        optional=_options("--all-repeated --group"),
    ),
    "head": SafeBin(
        _options("-q -v -z --quiet --silent --verbose --zero-terminated"),
        _options("-n -c --lines --bytes"),
        numeric=True,
        others=_options("--presume-input-pipe"),
    ),
    "tail": SafeBin(
        _options("-q -v -z --quiet --silent --verbose --zero-terminated"),
        _options("-n -c --lines --bytes"),
        numeric=True,
        others=_options("--follow --pid --retry --sleep-interval --max-unchanged-stats"),
    ),
    "tr": SafeBin(
        _options("-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1"),
        frozenset(),
        operands=2,
        kind=Operand.TEXT,
        stdin_dash=False,
    ),
    "wc": SafeBin(
        _options("-l -w -c -m -L --lines --words --bytes --chars --max-line-length"),
        _options("--total"),
        others=_options("--files0-from --debug"),
    ),
    "grep": SafeBin(
        _options(
            """
            -i -v -c -n -o -w -x -E -F -G -h -H -s -q -l -L -z -a -b --ignore-case --invert-match --count
            --line-number --only-matching --word-regexp --line-regexp --extended-regexp --fixed-strings
            --basic-regexp --no-filename --with-filename --no-messages --quiet --silent --null-data --text
            --byte-offset --line-buffered --no-ignore-case
            """
        ),
        _options(
            """
            -e -m -A -B -C --regexp --max-count --after-context --before-context --context --include --exclude
            --label
            """
        ),
        numeric=True,
        required=_options("-e --regexp"),
        optional=_options("--color --colour"),
        others=_options(
            """
            --file --files-with-matches --files-without-match --recursive --dereference-recursive
            --directories --devices --exclude-from --exclude-dir --perl-regexp --binary
            --binary-files --null --initial-tab --unix-byte-offsets --group-separator
            --no-group-separator
            """
        ),
    ),
    "sort": SafeBin(
        _options(
            """
            -n -r -u -b -d -f -g -i -M -h -V -s -z --numeric-sort --reverse --unique --ignore-leading-blanks
            --dictionary-order --ignore-case --general-numeric-sort --ignore-nonprinting --month-sort
            --human-numeric-sort --version-sort --stable --zero-terminated
            """
        ),
        _options("-k -t --key --field-separator"),
        others=_options(
            """
            --random-sort --random-source --output --compress-program --files0-from --merge --check --parallel
            --buffer-size --temporary-directory --batch-size --debug --sort
            """
        ),
    ),
    "jq": SafeBin(
        _options(
            """
            -r -c -n -s -S -e -j -a -C -M -R --raw-output --compact-output --null-input --slurp --sort-keys
            --exit-status --join-output --ascii-output --color-output --monochrome-output --raw-input --tab
            --seq --stream
            """
        ),
        _options("--arg --argjson --argstr --indent"),
        operands=1,
        kind=Operand.FILTER,
        arity=(("--arg", 2), ("--argjson", 2), ("--argstr", 2)),
        abbreviates=False,
        stdin_dash=False,
    ),
}
