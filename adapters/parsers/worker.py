"""A process that does nothing but parse: it takes lines on standard input, and may be killed at any time."""

from __future__ import annotations

import gc
import resource
import sys
from typing import Final

from adapters.parsers.wire import decode_line, encode_commands, encode_refusal
from core.shell.parse import parse_by_grammar
from core.shell.scan import Refused

READY: Final = b"ready\n"
MEMORY: Final = 512 * 1024 * 1024
_CPU_S: Final = 2
_COLLECTING: Final = 64  # lines between collections of garbage, which in the midst of them cost a third


def main() -> None:
    """Answer line after line until there are no more."""
    _confine()
    parse_by_grammar("warm up")
    gc.freeze()
    gc.disable()
    _write(READY)
    for number, data in enumerate(sys.stdin.buffer):
        _bound_time()
        _write(_answer(decode_line(data)))
        if number % _COLLECTING == 0:
            gc.collect()


def _answer(text: str) -> bytes:
    try:
        return encode_commands(parse_by_grammar(text))
    except Refused as refused:
        return encode_refusal(refused)
    except (RecursionError, MemoryError):
        return encode_refusal(Refused("too-deep", 0, "it is nested too deep"))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _confine() -> None:
    """Take away what parsing does not need: memory, other processes, files to write, core dumps."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(kind, (0, 0))


def _bound_time() -> None:
    """Let the kernel end this process where one line takes seconds, should nobody be there to kill it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + _CPU_S, hard))


if __name__ == "__main__":
    main()
