"""Paths and addresses that tools beside those of files and the web carry: pictures, attachments, uploads.

What they are called differs from client to client, so values are told by their names and by how they look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from core.arguments.addressed import looks_like_address, squashed
from core.arguments.fields import FILE_TOOLS, Target, Use
from core.arguments.judgement import ArgumentJudgement
from core.arguments.places import check_readable, shown
from core.arguments.unclear import UnclearArgumentError
from core.arguments.web import WEB_TOOLS, WebRules, judge_web
from core.policy.catalog import TOOLS
from core.policy.names import normalise
from core.ports import NameResolver
from core.shell.word_list import word_list

# All names below are squashed: without case and separators.
_PATHS = word_list(
    """
    path paths file files filename filenames dir directory folder image images picture pictures photo video
    audio media mask attachment attachments upload uploads document
    """
)
_PATH_ENDINGS = ("path", "paths", "file", "files", "image", "images", "filename")
_WRITTEN = ("out", "save", "dest", "download")
_ADDRESSES = ("url", "urls", "uri", "uris")
# Words, names and ids: no client opens a file or an address because it stands here.
_WORDS = word_list(
    """
    action kind type message messages text content contents body caption title subject prompt
    negativeprompt query question answer task goal note notes reason description summary instructions
    html markdown raw patch card buffer base64 data model provider mimetype contenttype format size
    aspectratio quality style voice language to target targets channel channelid thread threadid topic
    replyto messageid chatid groupid guildid userid accountid user recipient sender session sessionkey
    sessionid agent agentid node nodeid subagenttype label labels name emoji selector ref inputref
    element xpath fn script javascript expression value values key keys fields pattern filter regex
    schedule cron expr tz timezone cwd workdir command args isolation thinking options profile
    """
)
_INLINE = "data:"
_BEGINNINGS = ("/", "~", "./", "../")

CARRIERS = TOOLS - FILE_TOOLS - {"exec", "process", "web_fetch"}


class _Name(Enum):
    PATH = "path"
    ADDRESS = "address"
    WORDS = "words"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A text among the arguments, where it stands, and what the names above it make of it."""

    where: str
    text: str
    name: _Name
    use: Use


def carried_paths(tool: str, args: Mapping[str, Any], *, ruled: bool) -> tuple[Target, ...]:
    """Return what a call may open as files; raises UnclearArgumentError.

    `ruled`: rules about paths exist, so that a value under an unknown name counts where it could be a path.
    """
    web = normalise(tool) in WEB_TOOLS
    return tuple(_targets(_leaves(args), web=web, ruled=ruled))


def judge_carried_addresses(
    tool: str, args: Mapping[str, Any], rules: WebRules, names: NameResolver | None
) -> ArgumentJudgement:
    """Judge addresses that a call carries like pictures by address: whoever takes them fetches them."""
    name = normalise(tool)
    if name not in CARRIERS or name in WEB_TOOLS:
        return ArgumentJudgement()
    found = {leaf.where: leaf.text for leaf in _leaves(args) if _is_fetched(leaf)}
    return judge_web("image", found, rules, names) if found else ArgumentJudgement()


def _targets(leaves: Iterator[_Leaf], *, web: bool, ruled: bool) -> Iterator[Target]:
    for leaf in leaves:
        # The addresses of a browser are judged by its own rules, whatever their names.
        skipped = leaf.name is _Name.ADDRESS if web else _is_fetched(leaf)
        if skipped or leaf.text.casefold().startswith(_INLINE) or not _may_be_path(leaf, ruled=ruled):
            continue
        if leaf.name is _Name.ADDRESS and not leaf.text.startswith(_BEGINNINGS):
            raise UnclearArgumentError(
                f"argument {shown(leaf.where)}: {shown(leaf.text)!r} is neither an absolute address nor "
                "a path that begins with /, ~/ or ./"
            )
        if leaf.name is _Name.UNKNOWN and (not ruled or web) and looks_like_address(leaf.text):
            continue
        try:
            check_readable(leaf.text)
        except UnclearArgumentError as unclear:
            if leaf.name is not _Name.UNKNOWN or ruled:
                raise UnclearArgumentError(f"argument {shown(leaf.where)}: {unclear}") from unclear
            continue
        yield Target(leaf.text, leaf.use)


def _may_be_path(leaf: _Leaf, *, ruled: bool) -> bool:
    if leaf.name is _Name.WORDS or not leaf.text:
        return False
    if leaf.name is _Name.UNKNOWN:
        return leaf.text.startswith(_BEGINNINGS) or (ruled and "/" in leaf.text)
    return True


def _is_fetched(leaf: _Leaf) -> bool:
    inline = leaf.text.casefold().startswith(_INLINE)
    return leaf.name is not _Name.WORDS and not inline and looks_like_address(leaf.text)


def _leaves(args: Mapping[str, Any]) -> Iterator[_Leaf]:
    """Give every text, however deep; a name holds for all below it that has no telling name of its own."""
    waiting: list[tuple[_Leaf, Any]] = [(_Leaf("", "", _Name.UNKNOWN, Use.READ), dict(args))]
    while waiting:
        above, value = waiting.pop()
        if isinstance(value, str):
            yield _Leaf(above.where, value, above.name, above.use)
        else:
            waiting += _below(above, value)


def _below(above: _Leaf, value: Any) -> Iterator[tuple[_Leaf, Any]]:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield _named(str(key), above), below
            if "/" in str(key):  # some shapes say path: name
                yield _Leaf(above.where, "", above.name, above.use), str(key)
    elif isinstance(value, (list, tuple)):
        for index, below in enumerate(value):
            yield _Leaf(f"{above.where}[{index}]", "", above.name, above.use), below


def _named(key: str, above: _Leaf) -> _Leaf:
    kind = _kind(squashed(key))
    name = above.name if kind is _Name.UNKNOWN and above.name is not _Name.WORDS else kind
    use = Use.WRITE if squashed(key).startswith(_WRITTEN) else above.use
    return _Leaf(f"{above.where}.{key}" if above.where else key, "", name, use)


def _kind(name: str) -> _Name:
    if name in _WORDS:
        return _Name.WORDS
    if name in _PATHS or name.endswith(_PATH_ENDINGS):
        return _Name.PATH
    return _Name.ADDRESS if name.endswith(_ADDRESSES) else _Name.UNKNOWN
