"""Asking for a secret: on the terminal, from nowhere else, and with this process' memory closed to others."""

from __future__ import annotations

import os
from getpass import getpass

from bot.client import PASSPHRASE_NEEDED, Refused
from bot.undumpable import close_to_other_processes

NOTHING = Refused(PASSPHRASE_NEEDED, "no passphrase was given, so nothing was done")


def secret(prompt: str, without_terminal: Exception) -> str:
    """Ask, without showing what is typed; raises what is given where there is no terminal to ask on."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        raise without_terminal from None  # and never read from a pipe, or shown while it is typed
    close_to_other_processes()
    try:
        given = getpass(prompt)
    except EOFError:
        given = ""
    if not given:
        raise NOTHING
    return given
