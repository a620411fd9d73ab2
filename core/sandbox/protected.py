"""What a held run on the host does not have, or cannot change, beside Sayso's own. Pure data."""

from __future__ import annotations

from typing import Final

# Sockets of programs that start others on request lie here, and new ones appear while a run goes on: all of
# it is absent but for what is known to start nothing and to hold no socket that does.
RUNTIME: Final = "/run"
RUNTIME_SHOWN: Final = (
    "/run/booted-system",
    "/run/current-system",
    "/run/lock",
    "/run/media",
    "/run/mount",
    "/run/netns",
    "/run/NetworkManager/resolv.conf",
    "/run/nscd",
    "/run/opengl-driver",
    "/run/resolvconf",
    "/run/systemd/journal",
    "/run/systemd/resolve",
    "/run/systemd/userdb",
    "/run/udev",
    "/run/utmp",
    "/run/wrappers",
)
# What is put there, a daemon of the system runs later.
SPOOLS: Final = (
    "/var/at",
    "/var/spool/anacron",
    "/var/spool/at",
    "/var/spool/atjobs",
    "/var/spool/atspool",
    "/var/spool/cron",
    "/var/spool/incron",
)
# Below the home: where people keep programs that they call by their bare names.
PROGRAM_PLACES: Final = ("bin", "go/bin")
# Others share these: none can be closed as a whole, or taken as the room of one program.
CROWDED: Final = frozenset(("/", "/dev/shm", "/tmp", "/var/tmp"))  # noqa: S108 - the host's own


def hidden_on_host(path: str) -> bool:
    """Tell whether a held run does not have this place, whoever owns it."""
    shown = any(_within(path, place) for place in RUNTIME_SHOWN)
    return not shown and any(_within(path, place) for place in (RUNTIME, *SPOOLS))


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")
