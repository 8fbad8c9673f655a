"""Renews credentials while a session runs: a login that expires, and a command that prints tokens."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.auth.find_credentials import (
    LoginRules,
    for_provider,
    read_token_file,
    run_token_command,
    stored_credentials,
)
from codex_py.auth.login_store import LoginStore, locked_login, open_store
from codex_py.auth.oauth import (
    RefreshReason,
    RefreshRefused,
    has_expired,
    issuer_of,
    refresh_tokens,
    renewed_login,
    should_renew,
    stored_tokens,
)
from codex_py.errors import ModelError, UserError
from codex_py.model.credentials import Credentials, Renewal, Renewed
from codex_py.model.providers import Provider
from codex_py.protocol.value import Value
from codex_py.text.compression import pack

# After a renewal that failed for a temporary reason, the old token is used this long before the next attempt.
_PAUSE_SECONDS: Final = 60.0
# How often, and at what intervals, a file with a refused token is looked at again.
_FILE_LOOKS: Final = 10
_FILE_PAUSE: Final = 0.2


class LoginContext(Value):
    """What is needed to find a login again: its provider, the environment, CODEX_HOME, the rules."""

    provider: Provider
    env: Mapping[str, str]
    home: Path
    rules: LoginRules


def find_renewal(credentials: Credentials, context: LoginContext) -> Renewal | None:
    """The renewal for these credentials; None if they are never renewed."""
    if credentials.is_chatgpt:
        return LoginRenewal(context)
    if context.provider.auth_file is not None and credentials.is_renewable:
        return FileRenewal(context, context.provider.auth_file)
    if context.provider.auth_command and credentials.is_renewable:
        return CommandRenewal(context)
    return None


class FileRenewal:
    """Reads the token file again: when it has changed, and when a token is refused."""

    pack = None

    def __init__(self, context: LoginContext, path: Path) -> None:
        self._context = context
        self._path = path
        self._seen = self._signature()

    def is_due(self, credentials: Credentials) -> bool:
        return self._signature() != self._seen

    async def renew(self, credentials: Credentials, *, refused: bool) -> Renewed | None:
        for left in range(_FILE_LOOKS if refused else 1, 0, -1):
            # Before it is read: what changes meanwhile is read the next time.
            self._seen = self._signature()
            try:
                token = read_token_file(self._path)
            except UserError as error:
                if not refused:
                    # It is being replaced, or gone; the old token may still work.
                    return None
                raise ModelError(f"{error}; {error.hint}", retryable=False).counted_as("auth") from error
            if token != credentials.token:
                renewed = credentials.replace(token=token, headers={}, secrets=())
                return Renewed(for_provider(renewed, self._context.provider, self._context.env))
            if left > 1:
                # Whoever renews it may be a moment late.
                await asyncio.sleep(_FILE_PAUSE)
        return None

    def _signature(self) -> tuple[int, ...]:
        try:
            status = os.stat(self._path)  # noqa: PTH116 - before each request
        except OSError:
            return ()
        return (status.st_ino, status.st_size, status.st_mtime_ns)


class CommandRenewal:
    """Runs the provider's token command again: after its refresh interval, and when a token is refused."""

    pack = None

    def __init__(self, context: LoginContext, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._clock = clock
        self._renewed_at = clock()

    def is_due(self, credentials: Credentials) -> bool:
        interval = self._context.provider.auth_refresh_interval
        return interval > 0 and self._clock() >= self._renewed_at + interval

    async def renew(self, credentials: Credentials, *, refused: bool) -> Renewed | None:
        provider, env = self._context.provider, self._context.env
        try:
            token = await asyncio.to_thread(run_token_command, provider, env)
        except UserError as error:
            raise ModelError(f"{error}; {error.hint}", retryable=False).counted_as("auth") from error
        self._renewed_at = self._clock()
        if token == credentials.token:
            return None
        return Renewed(for_provider(credentials.replace(token=token, headers={}, secrets=()), provider, env))


class LoginRenewal:
    """Renews the ChatGPT login, and uses a login that another process has renewed."""

    pack = staticmethod(pack)

    def __init__(self, context: LoginContext, *, now: Callable[[], float] = time.time) -> None:
        self._context = context
        self._now = now
        self._next_look = 0.0
        # A renewed login that could not be saved: the stored one is no longer valid.
        self._unsaved: Mapping[str, Any] | None = None

    def is_due(self, credentials: Credentials) -> bool:
        now = self._now()
        if now < self._next_look:
            return False
        # The store is read when the token expires soon, and once at the start for one without an expiry time.
        login = {"tokens": {"access_token": credentials.token or ""}}
        return self._next_look == 0.0 or should_renew(login, now=now)

    async def renew(self, credentials: Credentials, *, refused: bool) -> Renewed | None:
        self._next_look = self._now() + _PAUSE_SECONDS
        try:
            async with locked_login(self._context.home):
                return await self._renew_locked(credentials, refused=refused)
        except UserError as error:
            message = f"{error}; {error.hint}" if error.hint else str(error)
            raise ModelError(message, retryable=False).counted_as("auth") from error

    async def _renew_locked(self, credentials: Credentials, *, refused: bool) -> Renewed | None:
        rules = self._context.rules
        store = await asyncio.to_thread(open_store, rules.store, self._context.home)
        login = self._unsaved or await asyncio.to_thread(store.load)
        stored = stored_credentials(login, store.where, rules)
        if stored is None or stored.account != credentials.account:
            raise ModelError(
                "the login was removed or changed to another account; start again, after `codex-py login` if need be",
                retryable=False,
            ).counted_as("auth")
        is_new = stored.token != credentials.token
        if is_new and (refused or not should_renew(login, now=self._now())):
            # Another process has renewed it.
            return Renewed(self._complete(stored, credentials), is_last=False)
        if not refused and not should_renew(login, now=self._now()):
            return None
        return await self._refresh(store, login, credentials, refused=refused)

    async def _refresh(
        self, store: LoginStore, login: Mapping[str, Any], credentials: Credentials, *, refused: bool
    ) -> Renewed | None:
        tokens = stored_tokens(login)
        if tokens is None or not tokens.refresh:
            if not refused and not has_expired(credentials.token or "", now=self._now()):
                return None
            raise RefreshRefused(
                "the ChatGPT login has ended and cannot be renewed; sign in again with `codex-py login`"
            )
        reason: RefreshReason = "unauthorized_recovery" if refused else "proactive_expiry"
        try:
            new = await refresh_tokens(issuer_of(login, self._context.env), tokens.refresh, reason=reason)
        except ModelError:
            if refused or has_expired(tokens.access, now=self._now()):
                raise
            # The old token still works for a while; if not, the request fails.
            return None
        login = renewed_login(login, new)
        fresh = stored_credentials(login, store.where, self._context.rules)
        assert fresh is not None, "a login with an access token"
        try:
            await asyncio.to_thread(store.save, login)
            self._unsaved, warning = None, None
        except UserError as error:
            self._unsaved = login
            warning = f"{error}; this session goes on with the new login, the next one may have to sign in again"
        return Renewed(self._complete(fresh, credentials), warning=warning)

    def _complete(self, stored: Credentials, before: Credentials) -> Credentials:
        login = stored.replace(source=before.source)
        return for_provider(login, self._context.provider, self._context.env)
