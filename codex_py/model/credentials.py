"""The credentials of a request, and the protocol for renewing them; `auth` finds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Protocol

from codex_py.model.providers import NO_NAMES
from codex_py.protocol.value import Value

FROM_COMMAND: Final = "auth.command"
FROM_FILE: Final = "auth.file"


class Credentials(Value):
    """The credentials of a request. `headers` are those of the provider, with values from the environment.

    `base_url` replaces the provider's where a login belongs to another address. `secrets` are the values that must
    appear nowhere; `source` says where the key was found. `account` is the account of a ChatGPT login, empty when the
    login names none, and None for everything else.
    """

    secret_fields: ClassVar[frozenset[str]] = frozenset({"token", "headers", "secrets", "account"})

    token: str | None = None
    headers: Mapping[str, str] = NO_NAMES
    secrets: tuple[str, ...] = ()
    base_url: str | None = None
    source: str = ""
    account: str | None = None

    @property
    def is_chatgpt(self) -> bool:
        """Whether this is a ChatGPT login, which runs out and is renewed."""
        return self.account is not None

    @property
    def advice(self) -> str:
        """Advice for a user whose credentials the server refuses."""
        return "sign in again with `codex-py login`" if self.is_chatgpt else "check the API key"

    @property
    def is_renewable(self) -> bool:
        return self.is_chatgpt or self.source in (FROM_COMMAND, FROM_FILE)


class Renewed(Value):
    """`warning` is for the user. `is_last` says that nothing is left to try if these are refused too."""

    credentials: Credentials
    is_last: bool = True
    warning: str | None = None


class Renewal(Protocol):
    """Knows how credentials are renewed. One caller at a time. `pack` compresses bodies if the server takes it."""

    @property
    def pack(self) -> Callable[[bytes], bytes] | None: ...

    def is_due(self, credentials: Credentials) -> bool:
        """Whether to renew before the next request; asked before each, so it costs next to nothing."""
        ...

    async def renew(self, credentials: Credentials, *, refused: bool) -> Renewed | None:
        """New credentials, or None when these are all there is; `refused` says that a server has refused them.

        Raises `ModelError`.
        """
        ...
