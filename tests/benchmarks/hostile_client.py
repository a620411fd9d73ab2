"""An agent that sends what is hostile, one case after the other, then many at once; tells when each ran."""

from __future__ import annotations

import json
import socket
import sys
import time

from tests.benchmarks.hostile_lines import calls

PATIENCE_S = 20.0
AT_ONCE = 6


def main() -> None:
    """Print a row of JSON for each case: its name, and from when to when it was on its way."""
    path, token, only = sys.argv[1], sys.argv[2], " ".join(sys.argv[3:])
    cases = [(name, line) for name, line in calls() if only in name]
    for name, line in cases:
        _case(path, token, name, [line])
    dear = [line for name, line in cases if "KiB" in name or "4,000" in name or "64 commands" in name]
    for at in range(0, len(dear), AT_ONCE):
        _case(path, token, f"{AT_ONCE} at once ({at // AT_ONCE + 1})", dear[at : at + AT_ONCE])


def _case(path: str, token: str, name: str, lines: list[bytes]) -> None:
    """Send lines on a connection of their own, and wait for as many answers, or for the end."""
    hello = {"jsonrpc": "2.0", "id": 0, "method": "hello", "params": {"token": token}}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(path)
        connection.sendall(json.dumps(hello).encode() + b"\n")
        with connection.makefile("rb") as answers:
            answers.readline()
            began, answer = time.monotonic(), b""
            try:
                connection.sendall(b"".join(line + b"\n" for line in lines))
                for _ in lines:
                    answer = answers.readline()
            except OSError as error:
                answer = str(error).encode()
    print(json.dumps([name, began, time.monotonic(), answer[:160].decode("utf-8", "replace")]), flush=True)


if __name__ == "__main__":
    main()
