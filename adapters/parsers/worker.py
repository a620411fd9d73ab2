"""What a worker does: it parses the lines that a socket brings, and may be killed at any time."""

from __future__ import annotations

import gc
import os
import resource
import socket
from typing import Final

from adapters.parsers.wire import (
    decode_answer,
    decode_line,
    encode_commands,
    encode_line,
    encode_ready,
    encode_refusal,
)
from core.shell.parse import parse_by_grammar
from core.shell.scan import Refused

MEMORY: Final = 512 * 1024 * 1024
_CPU_S: Final = 2
_COLLECTING: Final = 64  # lines between collections of garbage, which in the midst of them cost a third
# One of everything that is parsed or refused, so that what is imported or built late is there by then.
_WARMING_UP: Final = (
    "A=$X B='x y' make \\\n -j4 2>&1 >/dev/null & [ -f ~/x ] && cd {a,b} || ! ls *.c; wait",
    'find . -name "é \\$x" -exec wc -l {} \\; | sort "${Y}" # end',
    "if a; then",
    "for x in a; do b; done",
    "a | | b",
    "a &&",
    "a )",
    "echo 'x",
    "",
)


def warm_up() -> None:
    """Import and build all that parsing needs, by parsing."""
    for line in _WARMING_UP:
        try:
            decode_answer(_answer(decode_line(encode_line(line))))
        except Refused:
            continue


def serve(connection: socket.socket) -> None:
    """Answer line after line until there are no more."""
    _confine()
    gc.disable()
    connection.sendall(encode_ready(os.getpid()))
    for number, data in enumerate(connection.makefile("rb")):
        _bound_time()
        connection.sendall(_answer(decode_line(data)))
        if number % _COLLECTING == 0:
            gc.collect()


def _answer(text: str) -> bytes:
    try:
        return encode_commands(parse_by_grammar(text))
    except Refused as refused:
        return encode_refusal(refused)
    except (RecursionError, MemoryError):
        return encode_refusal(Refused("too-deep", 0, "it is nested too deep"))


def _confine() -> None:
    """Take away what parsing does not need: memory, processes, files to open or write, core dumps."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for kind in (
        resource.RLIMIT_NPROC,
        resource.RLIMIT_NOFILE,
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_CORE,
    ):
        resource.setrlimit(kind, (0, 0))


def _bound_time() -> None:
    """Let the kernel end this process where one line takes seconds, should nobody be there to kill it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + _CPU_S, hard))
