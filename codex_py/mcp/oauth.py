"""Logins at servers: tokens that are kept, renewed and got by signing in. Imports the SDK.

Their metadata stands at the root of their origin and may name an issuer below it. The SDK takes only the origin's own
name, as is right for issuers elsewhere; for one of the same origin nobody else could have written the document.

The SDK finds the issuer, registers this program there, and does PKCE; what it forgets between two runs is kept here:
when a token ends, and where it is renewed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlsplit

from httpx2 import Request, Response
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from codex_py.mcp.host import McpContext, SignIn, TokenFile, login_key
from codex_py.mcp.servers import McpServer
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.text.address import is_plain_http

_METADATA: Final = "/.well-known/oauth-authorization-server"


def is_metadata_request(request: Request) -> bool:
    """Whether a request asks for the metadata of an issuer at the root of its origin."""
    return str(request.url.path) == _METADATA


async def with_own_issuer(response: Response, request: Request) -> Response:
    """The answer, naming the origin as its issuer where it names one below it; any other answer as it is."""
    if response.status_code != 200:
        return response
    try:
        document = as_object(decode_json(await response.aread()))
    except ValueError:
        return response
    issuer = document.get("issuer")
    origin = _origin(str(request.url))
    if not isinstance(issuer, str) or _origin(issuer) != origin:
        return response
    return Response(200, json={**document, "issuer": origin}, request=request)


def _origin(url: str) -> str:
    pieces = urlsplit(url)
    return f"{pieces.scheme}://{pieces.netloc}"


# A token that ends within this is renewed before it is used.
_LEEWAY: Final = 30.0
_NO_REDIRECT: Final = "http://127.0.0.1/auth/callback"


class ServerLogin(OAuthClientProvider):
    """Authorizes requests to a server: the SDK's provider with a memory of its own.

    Without `sign_in` only a stored login is used.
    """

    def __init__(self, server: McpServer, mcp_context: McpContext, sign_in: SignIn | None = None) -> None:
        self._login = _LoginStorage(mcp_context.tokens, login_key(server))
        self._scope = " ".join(server.scopes) or None
        self._sign_in = sign_in
        self._allows_plain_http = server.allow_insecure_http
        redirect = sign_in.redirect_uri if sign_in else _NO_REDIRECT
        super().__init__(
            server_url=server.url or "",
            client_metadata=OAuthClientMetadata(
                redirect_uris=[AnyUrl(redirect)],
                client_name="codex-py",
                scope=self._scope,
            ),
            storage=self._login,
            redirect_handler=sign_in.show if sign_in else None,
            callback_handler=self._come_back if sign_in else None,
        )
        self._login.registered = _registered(server, mcp_context.env, redirect)
        self._login.issuer_of = self._issuer
        self._restore()
        if sign_in is not None:
            # Registered for another port of this machine, it would be refused.
            self._login.forget_client()

    async def _come_back(self) -> AuthorizationCodeResult:
        assert self._sign_in is not None
        result = await self._sign_in.wait()
        return AuthorizationCodeResult(code=result.code, state=result.state, iss=result.issuer)

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        # The SDK asks for what the server advertises; what the user has chosen comes before that.
        if self._scope is not None:
            self.context.client_metadata.scope = self._scope
        return await super()._perform_authorization_code_grant()

    async def _auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
        refusal: Response | None = None
        token = await self._token_that_holds()
        if token is not None:
            # Not under the lock of the SDK's flow: a call that takes its time must not hold up the word that ends it.
            if token:
                self._add_auth_header(request)
            refusal = yield request
            if refusal.status_code not in (401, 403):
                return
        flow = super()._auth_flow(request)
        async with aclosing(flow):
            outgoing = await anext(flow)
            while True:
                self._require_encryption(outgoing, request)
                if refusal is None or outgoing is not request or self._access_token() != token:
                    refusal = yield outgoing
                answer, refusal = refusal, None
                if outgoing is request and answer.status_code == 401:
                    # The SDK would start over; a token may be refused before its time, and its login still hold.
                    if await self._has_newer_token():
                        self._add_auth_header(request)
                        answer = yield request
                    elif self.context.can_refresh_token():
                        renewed = yield await self._refresh_token()
                        if await self._handle_refresh_response(renewed):
                            self._add_auth_header(request)
                            answer = yield request
                    if answer.status_code == 401 and self._sign_in is None:
                        # Without anybody to sign in nothing is registered there either.
                        raise OAuthFlowError("there is no login")
                if self.context.auth_server_url is None and is_metadata_request(outgoing):
                    answer = await with_own_issuer(answer, outgoing)
                try:
                    outgoing = await flow.asend(answer)
                except StopAsyncIteration:
                    return

    def _require_encryption(self, outgoing: Request, request: Request) -> None:
        """A login goes to its issuer: an address that the server names, over https unless it is this machine."""
        if outgoing is not request and is_plain_http(str(outgoing.url)) and not self._allows_plain_http:
            raise OAuthFlowError(f"the login would be sent to `{outgoing.url.host}` without encryption")

    async def _token_that_holds(self) -> str | None:
        """The access token to send, "" when there is no login; None when it is to be renewed first."""
        async with self.context.lock:
            if not self._initialized:
                await self._initialize()
            if self._is_over() and not await self._has_newer_token():
                return None
        return self._access_token()

    def _is_over(self) -> bool:
        return not self.context.is_token_valid() and self.context.can_refresh_token()

    async def _has_newer_token(self) -> bool:
        """Take the token that another program has got for this login meanwhile: one is renewed only once."""
        used = self.context.current_tokens.access_token if self.context.current_tokens else ""
        stored = await self._login.get_tokens()
        if stored is None or stored.access_token in ("", used):
            return False
        self.context.current_tokens, self.context.token_expiry_time = stored, self._login.ends_at()
        return True

    def _access_token(self) -> str:
        tokens = self.context.current_tokens
        return tokens.access_token if tokens is not None and self.context.is_token_valid() else ""

    def _issuer(self) -> dict[str, Any]:
        context = self.context
        return {
            "metadata": _plain(context.oauth_metadata),
            "resource": _plain(context.protected_resource_metadata),
            "server": context.auth_server_url,
        }

    def _restore(self) -> None:
        known = as_object(self._login.entry().get("issuer"))
        context = self.context
        context.oauth_metadata = _read(OAuthMetadata, known.get("metadata"))
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, known.get("resource"))
        server = known.get("server")
        context.auth_server_url = server if isinstance(server, str) else None


class _LoginStorage:
    """One login in the file of all, in the form the SDK asks for."""

    def __init__(self, tokens: TokenFile, key: str) -> None:
        self._tokens = tokens
        self._key = key
        self.issuer_of: Callable[[], dict[str, Any]] = dict
        # What the user has registered this program as.
        self.registered: OAuthClientInformationFull | None = None

    def entry(self) -> dict[str, Any]:
        return as_object(self._tokens.load().get(self._key))

    def forget_client(self) -> None:
        if "client" in self.entry():
            self._put(client=None, tokens=None)

    def ends_at(self) -> float | None:
        """When the access token ends, in seconds of the clock."""
        ends = self.entry().get("ends_at")
        return float(ends) if isinstance(ends, int | float) else None

    async def get_tokens(self) -> OAuthToken | None:
        token = _read(OAuthToken, self.entry().get("tokens"))
        ends = self.ends_at()
        if token is not None and ends is not None and ends < time.time() + _LEEWAY:
            # Without an access token the SDK renews the login before its first request.
            token.access_token = ""
        return token

    async def set_tokens(self, tokens: OAuthToken) -> None:
        ends = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self._put(tokens=_plain(tokens), ends_at=ends, issuer=self.issuer_of())

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.registered or _read(OAuthClientInformationFull, self.entry().get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._put(client=_plain(client_info))

    def _put(self, **fields: Any) -> None:
        everything = dict(self._tokens.load())
        entry = {**as_object(everything.get(self._key)), **fields}
        everything[self._key] = {name: value for name, value in entry.items() if value is not None}
        self._tokens.save(everything)


def _registered(server: McpServer, env: Mapping[str, str], redirect: str) -> OAuthClientInformationFull | None:
    """The registration that the user has made by hand; its id may be the address of a document about the program."""
    if server.oauth_client_id is None:
        return None
    name = server.oauth_client_secret_env_var
    secret = env.get(name) if name else None
    return OAuthClientInformationFull(
        client_id=server.oauth_client_id,
        client_secret=secret,
        redirect_uris=[AnyUrl(redirect)],
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
    )


def _plain(model: BaseModel | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def _read(model: type[Any], value: object) -> Any:
    if not isinstance(value, Mapping):
        return None
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
