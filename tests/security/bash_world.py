"""A directory in which a real bash may run hostile lines: what they run only leaves a note."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from core.shell.word_list import word_list

# These do what they always do; everything else on the PATH is a stub that notes its name and arguments.
REAL = sorted(
    word_list(
        """
        awk bash chrt dash ed env find flock git ionice make mawk nice node nohup perl prlimit python3
        script sed setarch setsid sh sort split stdbuf strace tar taskset time timeout xargs yes
        """
    )
)
STUBS = ["id", "rg", "cat"]
# Never started for real: these change who runs, reach the network, or wait for a person.
HARMFUL = re.compile(
    r"\b(?:sudo|doas|su|runuser|pkexec|nsenter|unshare|setpriv|chroot|systemd-run|fakeroot|ssh|npx|npm|yarn|pnpm"
    r"|uvx|bunx|pipx|busybox|parallel|watch|vim|man|run-parts)\b|ld-linux|LD_|ls-remote"
)
EVIL = {
    "evil": "id\n",
    "evil.py": 'import os\nos.system("id")\n',
    "evil.pm": 'system "id"; 1;\n',
    "evil.js": 'require("child_process").execSync("id")\n',
    "evil.mk": "x:\n\t@id\n",
    "evil.awk": 'BEGIN { system("id") }\n',
    "evil.ed": "!id\nq\n",
    "evil.rg": "--pre=id\n",
}


class BashWorld:
    """Stubs, carriers and hostile files in a directory of their own."""

    def __init__(self, root: Path) -> None:
        self._root, self._log = root, root / "log"
        self._work = root / "work"
        programs = root / "bin"
        for directory in (programs, self._work, self._work / "sub", self._work / "tools"):
            directory.mkdir()
        for name in REAL:
            if found := shutil.which(name, path="/usr/bin:/bin"):
                (programs / name).symlink_to(found)
        stub = f'#!/bin/sh\nprintf "%s\\n" "${{0##*/}}${{*:+ $*}}" >>"{self._log}"\n'
        places = [programs / name for name in STUBS] + [self._work / "id", self._work / "tools" / "id"]
        for place in places:
            place.write_text(stub)
            place.chmod(0o755)
        for name, text in EVIL.items():
            (self._work / name).write_text(text)
        self._environment = {"PATH": str(programs), "HOME": str(root), "TERM": "dumb", "LC_ALL": "C.UTF-8"}

    @property
    def programs(self) -> str:
        """The only directory on the PATH."""
        return str(self._root / "bin")

    @property
    def work(self) -> str:
        """The directory in which lines run."""
        return str(self._work)

    def can_run(self, line: str) -> bool:
        """Tell whether a line is harmless here, and every carrier that it names is installed."""
        named = set(re.findall(r"[a-z][a-z0-9-]*", line)) & set(REAL)
        return not HARMFUL.search(line) and all(os.path.lexists(self._root / "bin" / name) for name in named)

    def run(self, line: str) -> list[str]:
        """Run a line and return what the stubs noted, each thing once."""
        subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-c", line],
            cwd=self._work,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,  # read to its end, so that what runs in the background is waited for
            timeout=10,
            check=False,
            start_new_session=True,
        )
        noted = sorted(set(self._log.read_text().splitlines())) if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return noted
