"""Path globs of `tools.read`, `tools.write` and `tools.ask.paths`.

`*` and `?` stop at `/`, `**` crosses (`a/**/b` is also `a/b`), `dir/**` is all below a directory, and the
directory where it is one, `dir/` is whatever has its name too; everything else stands for itself, letters'
case too. `~` is the home directory, `./x` lies in the workspace. Another relative pattern means the safe
thing: `x` in a list that admits lies in the workspace, in one that denies or asks it lies anywhere, and
there a pattern whose last part holds no wildcard covers what is below it too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import re2

from core.shell.characters import forbidden_character

_CACHE = 4096
_WILD = frozenset("*?")
_BELOW = "/**"


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A pattern, absolute: the directory (or whole path) before its first wildcard, and the rest.

    `itself` is whether one that means all below something means that as well, be it a directory or a file.
    """

    prefix: str
    tail: str = ""
    itself: bool = False

    def matches(self, path: str, *, directory: bool = False) -> bool:
        """Tell whether the whole path is meant, letter by letter: a directory also by all that lies in it."""
        expression = _compiled(self.prefix, self.tail, itself=self.itself)
        if expression is None:
            return False
        below = f"{path.rstrip('/')}/-" if directory and self.covers_below else path
        return any(expression.fullmatch(each) is not None for each in (path, below))

    def catches(self, path: str, *, directory: bool = False) -> bool:
        """Tell whether the path is meant under any way to write its accents, as lists that deny must.

        A pattern too large to be compiled means every path.
        """
        too_large = _compiled(self.prefix, self.tail, itself=self.itself) is None
        if too_large or self.matches(path, directory=directory):
            return True
        composed = unicodedata.normalize("NFC", path)
        return not path.isascii() and _composed(self).matches(composed, directory=directory)

    @property
    def covers_below(self) -> bool:
        """Whether all that lies below a path it matches is meant too."""
        return self.tail.endswith(_BELOW)

    def reaches_below(self, directory: str) -> bool:
        """Tell whether something below a directory may be meant; a doubt is a yes."""
        if not is_below(self.prefix or "/", directory) and not is_below(directory, self.prefix or "/"):
            return False
        whole = self.prefix + self.tail
        return "**" in self.tail or whole.count("/") > directory.rstrip("/").count("/")

    def at(self, prefix: str) -> PathGlob:
        """Return the same pattern in another directory."""
        return replace(self, prefix=prefix.rstrip("/"))


def admitting(text: str, *, home: str, workspace: str) -> PathGlob | None:
    """Read a pattern of a list that admits; None where it means no path."""
    return _read(text, home, workspace, workspace)


def catching(text: str, *, home: str, workspace: str) -> PathGlob | None:
    """Read a pattern of a list that denies or asks; None where it means no path."""
    glob = _read(text, home, workspace, "/**")
    if glob is None or glob.covers_below:
        return glob
    last = glob.tail.rpartition("/")[2]
    return glob if _WILD & set(last) else replace(glob, tail=glob.tail + _BELOW, itself=True)


def is_below(path: str, directory: str) -> bool:
    """Tell whether a path is the directory or lies in it; both are absolute and without `..`."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def fault(text: str) -> str | None:
    """Tell why a pattern can mean no path, or None."""
    if forbidden_character(text) or "\n" in text or "\t" in text:
        return "it holds a control or invisible character"
    if text.startswith("~") and text != "~" and not text.startswith("~/"):
        return "only ~/ is expanded; write another account's home as an absolute path"
    if ".." in text.split("/"):
        return "a path that was judged never holds `..`; write where it leads"
    return None


@lru_cache(maxsize=_CACHE)
def _read(text: str, home: str, workspace: str, base: str) -> PathGlob | None:
    whole = None if fault(text) else _anchored(text, home, workspace, base)
    if whole is None or not whole.startswith("/"):
        return None
    parts = [part for part in whole.split("/") if part not in {"", "."}]
    parts += ["**"] if text.endswith("/") else []
    wild = next((index for index, part in enumerate(parts) if _WILD & set(part)), len(parts))
    return PathGlob(_joined(parts[:wild]), _joined(parts[wild:]), text.endswith("/"))


def _anchored(text: str, home: str, workspace: str, base: str) -> str | None:
    if text.startswith("~"):
        return home + text[1:] if home else None
    if text.startswith("/"):
        return text
    if text.startswith("**"):
        return f"/{text}"
    return f"{workspace if text.startswith('./') else base}/{text}"


def _joined(parts: list[str]) -> str:
    return "".join(f"/{part}" for part in parts)


@lru_cache(maxsize=_CACHE)
def _composed(glob: PathGlob) -> PathGlob:
    prefix, tail = (unicodedata.normalize("NFC", text) for text in (glob.prefix, glob.tail))
    return PathGlob(prefix, tail, glob.itself)


@lru_cache(maxsize=_CACHE)
def _compiled(prefix: str, tail: str, *, itself: bool) -> Any:  # noqa: ANN401 - re2 is untyped
    options = re2.Options()
    options.dot_nl, options.log_errors = True, False
    try:
        return re2.compile(re2.escape(prefix) + "".join(_translated(tail, itself=itself)), options)
    except re2.error:
        return None


def _translated(tail: str, *, itself: bool) -> Iterator[str]:
    parts = tail.split("/")[1:]
    for index, part in enumerate(parts):
        if part != "**":
            yield "/" + "".join(_piece(part))
        elif index < len(parts) - 1:
            yield "(?:/[^/]+)*"
        else:
            yield "(?:/.*)?" if itself else "/.+"


def _piece(part: str) -> Iterator[str]:
    for index, run in enumerate(part.split("**")):
        yield ".*" if index else ""
        yield from ({"*": "[^/]*", "?": "[^/]"}.get(char) or re2.escape(char) for char in run)
