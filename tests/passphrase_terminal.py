"""A shell on a real terminal of its own, typed at by a person."""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
import threading
import time

PASSPHRASE = "correct horse 9 battery"
PROMPT = "operator passphrase: "


class ShellOnATerminal:
    """Runs lines in one shell that leads a session on a pseudo terminal."""

    def __init__(self, env, cwd, *, echo=False):
        self._fd, inner = pty.openpty()
        self._screen = bytearray()
        self._news = threading.Condition()
        self._marks = itertools.count(1)
        self._shell = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc", "--noprofile", "--noediting"],
            env={**env, "PS1": "", "PS2": ""},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=cwd,
        )
        os.close(inner)
        self._reader = threading.Thread(target=self._read, name="screen")
        self._reader.start()
        assert self.run("stty echo" if echo else "stty -echo")[0] == 0

    def _read(self):
        # EIO is how a terminal ends whose last program has gone.
        while True:
            try:
                data = os.read(self._fd, 4096)
            except OSError:
                return
            with self._news:
                self._screen += data
                self._news.notify_all()

    @property
    def text(self):
        return self._screen.decode(errors="replace").replace("\r\n", "\n")

    @property
    def pid(self):
        return self._shell.pid

    def type(self, line):
        os.write(self._fd, f"{line}\n".encode())

    def see(self, text, start, seconds=45.0):
        """Wait until a text stands on the screen behind `start`; returns all that is there by then."""
        end = time.monotonic() + seconds
        with self._news:
            while text not in self.text[start:]:
                left = end - time.monotonic()
                assert left > 0, f"{text!r} is not on the screen:\n{self.text[start:]}"
                self._news.wait(left)
        return self.text[start:]

    def start(self, line):
        """Type a line; returns the mark that its end will show, and where on the screen that was."""
        mark, start = f"ended{next(self._marks)}", len(self.text)
        self.type(f"{line}; echo {mark[:3]}''{mark[3:]}=$?=")
        return mark, start

    def end(self, mark, start):
        """Wait for the end of what was started; returns its status and what it showed."""
        shown, _, rest = self.see(f"{mark}=", start).partition(f"{mark}=")
        if "=" not in rest:
            rest = self.see("=", start + len(shown) + len(mark) + 1)
        return int(rest.split("=")[0]), shown

    def run(self, line, *answers):
        """Run a line, answering each prompt for a passphrase; returns its status and what it showed."""
        mark, start = self.start(line)
        at = start
        for prompt, answer in answers:
            shown = self.see(prompt, at)
            at += shown.index(prompt) + len(prompt)
            self.type(answer)
        return self.end(mark, start)

    def ended(self):
        """Tell whether the shell has gone."""
        return self._shell.poll() is not None

    def close(self):
        self._shell.kill()
        self._shell.wait(10)
        self._reader.join(10)
        os.close(self._fd)
