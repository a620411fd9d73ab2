"""The file that keeps the operator's passphrase, as an Argon2id hash."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from argon2 import PasswordHasher, Type, extract_parameters
from argon2.exceptions import Argon2Error, InvalidHashError, VerifyMismatchError

from bot.home import write_secret
from bot.mend import run_on
from core.errors import StartError

LONGEST_HASH = 1_024
MEND = "stop Sayso, remove that file, and set the passphrase anew: sayso operator passphrase"


class PassphraseFile:
    """A `core.passphrase.guard.Vault` in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hasher = PasswordHasher()

    def load(self) -> str | None:
        """Return the hash that is kept; raises StartError for a file that cannot be relied on."""
        try:
            text = self._read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from None
        try:
            kind = extract_parameters(text).type
        except InvalidHashError:
            kind = None
        if kind is not Type.ID:
            raise self._unusable("holds no Argon2id hash")
        return text

    def required(self) -> str:
        """Return the hash that is kept; raises StartError where none is."""
        kept = self.load()
        if kept is None:
            raise StartError(
                "operator.local is passphrase, and none is set; "
                "run: sayso operator passphrase, then start again"
            )
        self.matches(kept, "")  # what looks like a hash and is none shows here, not at the first guess
        return kept

    def matches(self, kept: str, passphrase: str) -> bool:
        """Tell whether a hash is of this passphrase; raises StartError where that cannot be told."""
        try:
            return self._hasher.verify(kept, passphrase)
        except VerifyMismatchError:
            return False
        except (Argon2Error, InvalidHashError) as error:
            raise self._unusable(f"cannot be checked against: {error}") from None

    def keep(self, passphrase: str) -> str:
        """Put a passphrase in place of the one before; returns its hash."""
        kept = self._hasher.hash(passphrase)
        write_secret(self._path, kept)
        return kept

    def _read(self) -> str:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            self._check(os.fstat(descriptor))
            return file.read(LONGEST_HASH).decode("ascii", "replace").strip()

    def _check(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise self._unusable("is no file")
        if found.st_uid != os.geteuid():
            raise self._unusable(f"belongs to uid {found.st_uid}, who could put another hash there")
        if stat.S_IMODE(found.st_mode) & 0o077:
            close = run_on(self._path, "chmod 600")
            raise StartError(f"{self._path} is open to other users; close it: {close}")

    def _unusable(self, why: str) -> StartError:
        return StartError(f"the operator's passphrase: {self._path} {why}; {MEND}")
