"""Starts a process of Sayso's own code beside the daemon, with a socket to it as standard input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

_RUN: Final = """
import sys, types
for name, source in {sources!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
module.main()
"""


def spawn(module: str, control: int) -> subprocess.Popen[bytes]:
    """Start a module with what this process imports from, and nothing else of its environment."""
    path = os.pathsep.join(filter(None, sys.path))
    return _start(["-P", "-m", module], control, {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"})


@dataclass(frozen=True, slots=True)
class Program:
    """What can be started later as it is now, whatever becomes of its files."""

    name: str
    text: bytes

    @classmethod
    def of(cls, *modules: ModuleType) -> Program:
        """Read modules that import each other and the standard library; the last one has `main`."""
        sources = {module.__name__: Path(str(module.__file__)).read_text() for module in modules}
        return cls(modules[-1].__name__, _RUN.format(sources=sources).encode())

    def spawn(self, control: int) -> subprocess.Popen[bytes]:
        """Start it, with nothing of the environment; its name is there for who lists processes."""
        descriptor = os.memfd_create(self.name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self.text)
            file.flush()
            arguments = ["-I", "-S", f"/proc/self/fd/{descriptor}", self.name]
            return _start(arguments, control, {}, inherit=(descriptor,))


def _start(
    arguments: Sequence[str], control: int, env: Mapping[str, str], inherit: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=control,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=env,
        pass_fds=inherit,
        start_new_session=True,
    )
