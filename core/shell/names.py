"""By which names a program is looked up in the tables."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from core.model.command import Segment
from core.shell.programs import LOADS_NOTHING, MULTI_CALL, READS

_LONGEST: Final = 255  # bytes; no file system knows a longer name
_KEPT: Final = 2048
_VERSION = re.compile(r"[-_.]?\d+(?:\.\d+)*[a-z]?$")
_TRIPLET = re.compile(r"^[a-z0-9_]+-(?:[a-z0-9]+-)?linux-(?:gnu|musl)[a-z0-9]*-")
# Whoever a compiler compiles for: `avr-gcc`, `x86_64-w64-mingw32-g++`, `arm-none-eabi-ld.bfd`.
_TARGET = re.compile(
    r"^(?:[a-z0-9_]+-){1,4}"
    r"(?=(?:gcc|g\+\+|c\+\+|cc|cpp|clang|clang\+\+|gfortran|gnat|gdb|ld|as|ar|nm|ranlib|strip|obj(?:copy|dump))"
    r"(?:[-.][\w.]+)?$)"
)
_BIN: Final = ("/bin", "/usr/bin", "/usr/local/bin")
_BEHIND: Final = LOADS_NOTHING | MULTI_CALL  # the latter do as the name says that they are started by
_LOADER = re.compile(r"^ld(?:-linux[-a-z0-9_]*|-musl[-a-z0-9_]*|-[\d.]+)?\.so(?:\.\d+)*$")


def variants(path: str) -> frozenset[str]:
    """Give the base name, it without version suffix, `.exe` or compiler triplet, and its family: `apt-*`."""
    base = path.rpartition("/")[2]
    # A longer name is no program's; it would fill the memory, and take the expressions long to read.
    return _variants(base) if len(base) <= _LONGEST else frozenset((base,))


@lru_cache(maxsize=_KEPT)
def _variants(base: str) -> frozenset[str]:
    if _LOADER.fullmatch(base):
        return frozenset((base, "ld.so"))
    native = _TRIPLET.sub("", base).removesuffix(".exe")
    plain = _TARGET.sub("", native)
    family, dash, _ = native.partition("-")
    return frozenset(
        name
        for name in (
            base,
            plain,
            _VERSION.sub("", plain),
            plain.split(".")[0].rstrip("-0123456789"),
            f"{family}-*" if family and dash else "",
        )
        if name
    )


def plain_names(path: str) -> frozenset[str]:
    """Give the base name, and it without its version: what a word is called that may be a program's path."""
    base = path.rpartition("/")[2]
    return frozenset((base, _VERSION.sub("", base))) if len(base) <= _LONGEST else frozenset((base,))


def loads_nothing(segment: Segment) -> bool:
    """Tell whether its program surely runs and loads nothing else, whatever its arguments are.

    A program of the system whose every whole name is in the table: a link of that name to another is none.
    """
    executable = segment.executable
    return (
        executable is not None
        and executable.trusted
        and not executable.script
        and _loads_nothing(segment.words[0].value, executable.path, executable.real_path)
    )


def only_reads(segment: Segment) -> bool:
    """Tell whether its program surely does nothing but read and tell, whatever its arguments are."""
    executable = segment.executable
    typed = segment.words[0].value if segment.words else ""
    return (
        executable is not None
        and loads_nothing(segment)
        and reads(executable.path, executable.real_path)
        and typed.rpartition("/")[2] in READS
    )


def reads(path: str, real_path: str) -> bool:
    """Tell whether a program of the system, found at `path`, does nothing but read and tell."""
    return path.rpartition("/")[2] in READS and _loads_nothing(path, path, real_path)


@lru_cache(maxsize=_KEPT)
def _loads_nothing(typed: str, path: str, real_path: str) -> bool:
    directory, _, real = real_path.rpartition("/")
    used = {typed.rpartition("/")[2], path.rpartition("/")[2]}
    return directory in _BIN and used <= LOADS_NOTHING and real in _BEHIND


def names(segment: Segment) -> frozenset[str]:
    """Give every name that the segment's program goes by: as typed, as found, and behind links."""
    if not segment.words:
        return frozenset()
    executable = segment.executable
    if executable is None:
        return variants(segment.words[0].value)
    return _names(segment.words[0].value, executable.path, executable.real_path)


@lru_cache(maxsize=_KEPT)
def _names(typed: str, path: str, real_path: str) -> frozenset[str]:
    used = variants(typed) | variants(path)
    real = variants(real_path)
    return used if real & MULTI_CALL and not used & MULTI_CALL else used | real
