"""Stores a login in `auth.json`, or in the keyring of the operating system.

Several programs share both, so `locked_login` must be held from reading a login to writing it.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.replace_file import replace_file
from codex_py.text.files import json_reason, os_reason

StoreType: TypeAlias = Literal["file", "keyring", "auto", "ephemeral"]

AUTH_FILE: Final = "auth.json"
MCP_FILE: Final = "mcp-auth.json"
# Keys of providers other than OpenAI, by the names of their variables. Codex CLI has no such file.
PROVIDER_KEYS_FILE: Final = "provider-keys.json"
# The names that Codex CLI uses, so that both programs find the same entry.
_SERVICES: Final = {
    AUTH_FILE: "Codex Auth",
    MCP_FILE: "Codex MCP Credentials",
    PROVIDER_KEYS_FILE: "codex-py Provider Keys",
}
_MAX_FILE: Final = 1024 * 1024
_LOCK_FILE: Final = "auth.json.lock"
_LOCK_SECONDS: Final = 45.0
_LOCK_POLL: Final = 0.05


class LoginStore(Protocol):
    """A place for one login. `name` is short, `where` is for messages."""

    @property
    def name(self) -> str: ...
    @property
    def where(self) -> str: ...

    def load(self) -> Mapping[str, Any]:
        """The stored login, empty when there is none. Raises `UserError` for what cannot be read."""
        ...

    def save(self, login: Mapping[str, Any]) -> None:
        """Replace the login. Raises `UserError`, and keeps the old one, if that fails."""
        ...

    def remove(self) -> bool:
        """Remove the login; False when there was none."""
        ...


def open_store(store_type: StoreType, home: Path, name: str = AUTH_FILE) -> LoginStore:
    """The store for a setting. `auto` is the keyring if one works, else the file.

    Raises `UserError` when the setting requires a keyring and there is none.
    """
    file = FileStore(home, name)
    if store_type == "file":
        return file
    if store_type == "ephemeral":
        return NoStore()
    library = _keyring_library()
    if library is not None:
        keyring = KeyringStore(library, home, also_file=store_type == "auto", name=name)
        if store_type == "keyring" or keyring.works():
            return keyring
    elif store_type == "keyring":
        raise UserError(
            "`cli_auth_credentials_store` asks for the keyring, and its library is not installed",
            hint="install `codex-py[keyring]`, or set it to `file`",
        )
    return file


@asynccontextmanager
async def locked_login(home: Path) -> AsyncGenerator[None, None]:
    """Lock the login against changes by other processes, Codex CLI's included.

    Without a lock, as in a read-only home, the work goes on unlocked. Raises `UserError` after 45 s.
    """
    try:
        make_private_dir(home)
        descriptor = open_private(home / _LOCK_FILE, os.O_RDWR | os.O_CREAT)
    except OSError:
        yield
        return
    try:
        await _take(descriptor, home / _LOCK_FILE)
        yield
    finally:
        os.close(descriptor)


def read_login(path: Path) -> Mapping[str, Any]:
    """The contents of auth.json, empty when there is none."""
    try:
        content = _read_private(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, str(error.strerror).lower()) from error
    if len(content) > _MAX_FILE:
        raise _unreadable(path, "larger than 1 MiB")
    try:
        stored = decode_json(content.decode("utf-8-sig"))
    except ValueError as error:
        raise _unreadable(path, f"not JSON: {json_reason(error)}") from error
    if not isinstance(stored, dict):
        raise _unreadable(path, "not a JSON object")
    return as_object(cast("object", stored))


def _read_private(path: Path) -> bytes:
    """The content of a private file, whose permissions are tightened if needed; cut just beyond the size limit."""
    # O_NONBLOCK: a named pipe in its place must not stop the program.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _unreadable(path, "not a regular file")
        if status.st_mode & 0o077:
            with suppress(OSError):
                os.fchmod(descriptor, 0o600)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(_MAX_FILE + 1)
    finally:
        os.close(descriptor)


def _unreadable(path: Path, reason: str) -> UserError:
    return UserError(
        f"cannot read `{path}`: {reason}",
        hint="remove it and sign in with `codex-py login`, or set OPENAI_API_KEY",
    )


class FileStore:
    """A file such as `auth.json` in CODEX_HOME, readable by the user alone, replaced in one step."""

    def __init__(self, home: Path, name: str = AUTH_FILE) -> None:
        self._path = home / name

    @property
    def name(self) -> str:
        return self._path.name

    @property
    def where(self) -> str:
        return f"`{self._path}`"

    def load(self) -> Mapping[str, Any]:
        return read_login(self._path)

    def save(self, login: Mapping[str, Any]) -> None:
        # Links are followed, because some users keep their settings elsewhere.
        target = Path(os.path.realpath(self._path))
        try:
            make_private_dir(target.parent)
            replace_file(target, json.dumps(login, indent=2).encode() + b"\n", sync=True)
        except OSError as error:
            raise UserError(f"cannot save the login in `{self._path}`: {os_reason(error)}") from error

    def remove(self) -> bool:
        # A read-only disk would refuse even to remove a missing file.
        if not os.path.lexists(self._path):
            return False
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"cannot remove `{self._path}`: {os_reason(error)}") from error
        return True


class KeyringStore:
    """One entry in the keyring of the operating system for each CODEX_HOME.

    With `also_file` a login that is still in `auth.json` counts as long as the keyring has none.
    """

    def __init__(self, library: ModuleType, home: Path, *, also_file: bool = False, name: str = AUTH_FILE) -> None:
        self._keyring = library
        self._service = _SERVICES[name]
        self._also_file = also_file
        digest = hashlib.sha256(os.path.realpath(home).encode(errors="surrogateescape")).hexdigest()
        self._entry = f"cli|{digest[:16]}"
        self._file = FileStore(home, name)

    @property
    def name(self) -> str:
        return "keyring"

    @property
    def where(self) -> str:
        return "the keyring"

    def works(self) -> bool:
        """Whether the keyring answers; machines without a desktop mostly have none."""
        try:
            self._keyring.get_password(self._service, self._entry)
        except self._failures():
            return False
        return True

    def load(self) -> Mapping[str, Any]:
        try:
            content: object = self._keyring.get_password(self._service, self._entry)
        except self._failures() as error:
            raise self._unusable("read", error) from error
        if not isinstance(content, str):
            return self._file.load() if self._also_file else {}
        try:
            return as_object(decode_json(content))
        except ValueError as error:
            raise UserError(
                "cannot read the login in the keyring: not JSON", hint="sign in again with `codex-py login`"
            ) from error

    def save(self, login: Mapping[str, Any]) -> None:
        try:
            self._keyring.set_password(self._service, self._entry, json.dumps(login))
        except self._failures() as error:
            raise self._unusable("save", error) from error
        # An older login must not stay behind in the file.
        self._file.remove()

    def remove(self) -> bool:
        try:
            found = self._keyring.get_password(self._service, self._entry) is not None
            if found:
                self._keyring.delete_password(self._service, self._entry)
        except self._failures() as error:
            raise self._unusable("remove", error) from error
        return self._file.remove() or found

    def _failures(self) -> tuple[type[Exception], ...]:
        failure: type[Exception] = self._keyring.errors.KeyringError
        return (failure, OSError, RuntimeError)

    def _unusable(self, verb: str, error: Exception) -> UserError:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        return UserError(
            f"cannot {verb} the login in the keyring: {reason}",
            hint="set `cli_auth_credentials_store` to `file` where there is no keyring",
        )


class NoStore:
    """Stores nothing, for machines where every run gets its own key."""

    @property
    def name(self) -> str:
        return "memory"

    @property
    def where(self) -> str:
        return "memory"

    def load(self) -> Mapping[str, Any]:
        return {}

    def save(self, login: Mapping[str, Any]) -> None:
        raise UserError(
            "the login would be forgotten at once: `cli_auth_credentials_store` is `ephemeral`",
            hint="set it to `file`, `keyring` or `auto`",
        )

    def remove(self) -> bool:
        return False


def _keyring_library() -> ModuleType | None:
    try:
        import keyring  # an extra, and half a second on machines that ask a desktop service
    except ImportError:
        return None
    return keyring


async def _take(descriptor: int, path: Path) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if loop.time() > deadline:
                raise UserError(
                    f"another program has been changing the login for {_LOCK_SECONDS:g} s",
                    hint=f"find out which one holds `{path}`",
                ) from None
            await asyncio.sleep(_LOCK_POLL)
        except OSError:
            # A file system without locks.
            return
