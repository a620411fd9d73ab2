"""Files can be exchanged under a running daemon: once it has started, it loads no more of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _Sealed(MetaPathFinder):
    """Refuses what is no part of the standard library, which belongs to the system, not to Sayso's user."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        del path, target
        if fullname.partition(".")[0] not in sys.stdlib_module_names:
            raise ModuleNotFoundError(
                f"{fullname} was not loaded when Sayso started, and its file may have been exchanged since: "
                "start Sayso again, and report this",
                name=fullname,
            )


def seal() -> None:
    """Have every later import fail that is not of the standard library; to be called once all is started."""
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - compared with entries of sys.path, which are texts
    sys.path[:] = [entry for entry in sys.path if entry in (library, f"{library}/lib-dynload")]
    sys.meta_path.insert(0, _Sealed())
