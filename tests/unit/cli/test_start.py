"""The way to the daemon stays short: `sayso exec` imports next to nothing."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "pydantic",
    "asyncio",
    "dataclasses",
    "typing",
    "pathlib",
    "logging",
    "yaml",
    "core",
    "adapters",
    "inspect",
    "shutil",
    "subprocess",
)


def test_asking_imports_only_the_client_and_what_it_needs(tmp_path):
    code = (
        "import sys; from bot.cli import main; status = main(['exec', '--', 'ls']);"
        f"print(status, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    env = {"SAYSO_HOME": str(tmp_path), "SAYSO_TOKEN": "x", "PATH": "/usr/bin:/bin"}
    # -S: what the environment's own start-up files import is not Sayso's doing
    run = [
        sys.executable,
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {sys.path[0]!r}); sys.path.insert(0, '.');" + code,
    ]
    done = subprocess.run(run, capture_output=True, text=True, env=env, check=True)
    assert done.stdout.strip() == "69 []"
