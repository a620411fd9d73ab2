"""How far programs reach: into the directories that they are given, into the one they run in, past links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from core.model.command import Segment
from core.shell.builtins import harmless
from core.shell.names import names
from core.shell.word_list import word_list

# Of a directory that they are given, or run in, these tell at most its name, its times or what is listed
# there. `base` is `base64` without what looks like a version.
_NEVER_DESCENDS: Final = word_list(
    """
    b2sum base base32 base64 basename cat cksum cmp column comm cut date df dir dirname echo expand
    expr factor false file fmt fold free getconf grep egrep fgrep groups hd head hexdump hostname id
    join jq kill ls md5sum mkdir mktemp nl nproc od paste pgrep pidof pkill printenv printf ps pwd
    readlink realpath rev rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep
    sort stat strings sum tac tail test touch tr true tsort tty uname unexpand uniq uptime vdir wc
    whereis which who whoami xxd yes [
    """
)
# These work on nothing but what they are given, wherever they run.
_ONLY_OPERANDS: Final = _NEVER_DESCENDS | word_list(
    """
    chgrp chmod chown cp diff install link ln mv rm shred split csplit sync tee truncate unlink
    """
)
_MAKES_NO_LINKS: Final = (_ONLY_OPERANDS - {"cp", "ln", "link", "mv"}) | word_list(
    """
    bzip2 dd du find gunzip gzip iconv mkfifo rg tree xz zcat zstd
    """
)
_LINKS_BY_NAME: Final = word_list("cp link ln mv")
_COPY: Final = frozenset(("cp",))
_OPENS_NOTHING: Final = word_list(
    """
    basename date dirname echo expr factor false getconf groups hostname id kill nproc pgrep pidof
    pkill printenv printf ps pwd seq sleep test tr true tty uname uptime which who whoami yes [
    """
)
# With any other option `cp` may copy links, or make some.
_COPIES_FILES: Final = re.compile(
    r"-[bfinpuvtT]+|--(?:force|interactive|no-clobber|verbose|parents|update)|--(?:target-directory|backup)=.*",
    re.DOTALL,
)
# Options, or clusters of them, by which one of these descends after all.
_DESCENDING: Final = {
    **dict.fromkeys(("ls", "dir", "vdir"), re.compile(r"-(?!-)\S*R|--r", re.DOTALL)),
    **dict.fromkeys(("grep", "egrep", "fgrep"), re.compile(r"-(?!-)\S*[rRd]|--(?:r|de|di)", re.DOTALL)),
}
# Options, or clusters of them, by which one goes through the links that it comes upon below a directory.
_FOLLOWING: Final = {
    "cp": re.compile(r"-(?!-)\S*[LH]|--der", re.DOTALL),
    "diff": re.compile(r"-(?!-)\S*r|--rec", re.DOTALL),
    "du": re.compile(r"-(?!-)\S*[LDH]|--der", re.DOTALL),
    "find": re.compile(r"-(?:[LH]+|follow)\Z"),
    "rg": re.compile(r"-(?!-)\S*L|--follow", re.DOTALL),
    **dict.fromkeys(("grep", "egrep", "fgrep"), re.compile(r"-(?!-)\S*[Rd]|--(?:der|di)", re.DOTALL)),
}


def descends(segment: Segment) -> bool:
    """Tell whether it may read or change what lies below a directory that it is given."""
    return not _is_only(segment, _NEVER_DESCENDS) or _is_told_to(segment)


def looks_around(segment: Segment) -> bool:
    """Tell whether it may read or change what lies below the directory in which it runs, unnamed."""
    return not _is_only(segment, _ONLY_OPERANDS) or _is_told_to(segment)


def opens_nothing(segment: Segment) -> bool:
    """Tell whether no word of it is a path that it would open; `cd` enters one."""
    return segment.argv[:1] != ("cd",) and _is_only(segment, _OPENS_NOTHING)


def makes_no_links(segment: Segment) -> bool:
    """Tell whether it surely leaves no link behind where none was."""
    if _is_only(segment, _MAKES_NO_LINKS):
        return True
    options = (word for word in segment.argv[1:] if word[:1] == "-" and word != "-")
    return _is_only(segment, _COPY) and all(map(_COPIES_FILES.fullmatch, options))


def links_by_name(segment: Segment) -> bool:
    """Tell whether the links that it may leave lie at, or below, names among its words."""
    return _is_only(segment, _LINKS_BY_NAME)


def _is_only(segment: Segment, table: frozenset[str]) -> bool:
    if segment.builtin or not segment.words:
        return not segment.words or harmless(segment)
    return segment.executable is not None and segment.executable.trusted and names(segment) <= table


def following(segment: Segment) -> str | None:
    """Find the option by which it goes through links that none of its words names."""
    return _option(segment, _FOLLOWING)


def _is_told_to(segment: Segment) -> bool:
    return _option(segment, _DESCENDING) is not None


def _option(segment: Segment, table: Mapping[str, re.Pattern[str]]) -> str | None:
    found = names(segment)
    patterns = [pattern for name, pattern in table.items() if name in found]
    return next((word for word in segment.argv[1:] for pattern in patterns if pattern.match(word)), None)
