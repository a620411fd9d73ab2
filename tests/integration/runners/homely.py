"""Runs of an account that has a home, as `namespace_options` lays them out.

Started as root in a mount namespace of its own with the root of a place, it shows that home, and what of it
is closed, under second names, and prints which writes by those names succeed.
"""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from adapters.runners.accounts import Account
from adapters.runners.bubblewrap import encoded, find_bubblewrap
from adapters.runners.host import namespace_options
from adapters.runners.process import memory_file
from core.config import ExecSettings
from core.model.plan import SandboxPlan
from core.sandbox.plan import host_plan

NOBODY = pwd.getpwnam("nobody")
WHOLE, PART, OPEN_PART = "/mnt", "/media", "/opt"
BY_OTHER_NAMES = {
    "a dot file": f"echo evil >{WHOLE}/.bashrc",
    "a new dot file": f"echo evil >{WHOLE}/.zshrc",
    "a program": f"echo evil >{WHOLE}/go/bin/x",
    "what a link leads to": f"echo evil >{WHOLE}/dotfiles/vimrc",
    "a dot directory": f"echo evil >{PART}/git/config",
    "work by the whole": f"echo x >{WHOLE}/projects/x",
    "work by a part": f"echo x >{OPEN_PART}/y",
}


class Homely:
    """A home of `nobody` below a directory of root's."""

    def __init__(self, root: Path, plan: SandboxPlan) -> None:
        self.home = root / "home"
        self.account = Account("nobody", NOBODY.pw_uid, NOBODY.pw_gid, drop=True, home=str(self.home))
        self.plan = plan

    def furnish(self) -> Homely:
        """Put there what a home has."""
        for path in (".config/git", ".local/share", ".ssh", "bin", "go/bin", "projects", "dotfiles"):
            (self.home / path).mkdir(parents=True)
        for path in (".bashrc", ".ssh/config", ".config/git/config", "dotfiles/vimrc"):
            (self.home / path).write_text("as it was")
        (self.home / ".vimrc").symlink_to("dotfiles/vimrc")
        return self.owned()

    def owned(self) -> Homely:
        """Give it all to the account."""
        for path in (self.home, *self.home.rglob("*")):
            os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
        return self

    def can(self, script: str, *, by_person: bool = False, **plan: object) -> bool:
        """Tell whether a script, started in the home, ends well."""
        bwrap = find_bubblewrap()
        options = namespace_options(
            replace(self.plan, **plan),
            self.account,
            bwrap,
            env={"PATH": "/usr/bin:/bin"},
            cwd=str(self.home),
            by_person=by_person,
        )
        with memory_file(encoded(options)) as descriptor:
            command = [bwrap.path, "--args", str(descriptor), "--", "/bin/sh", "-c", f"echo began; {script}"]
            done = subprocess.run(
                command,
                pass_fds=(descriptor,),
                cwd="/",
                capture_output=True,
                text=True,
                **self.account.identity,
            )
        assert done.stdout.startswith("began"), done.stderr
        return done.returncode == 0


def main(root: Path) -> None:
    """Mount the second names, which end with this namespace, and try to write by them."""
    plan = host_plan(
        *(ExecSettings(),),
        own=(),
        program=(),
        workspace="/",
        account="nobody",
        unheld=None,
        timeout_s=10,
    )
    homely = Homely(root, plan)
    for part, name in (("", WHOLE), (".config", PART), ("projects", OPEN_PART)):
        subprocess.run(["mount", "--bind", str(homely.home / part), name], check=True)
    ways = BY_OTHER_NAMES.items()
    found = {
        by: {way: homely.can(script, by_person=person) for way, script in ways}
        for by, person in (("rule", False), ("person", True))
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
