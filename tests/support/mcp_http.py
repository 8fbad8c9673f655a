"""An MCP server over HTTP with an authorization server beside it, on the loopback, that keeps the rules of OAuth.

    with McpOverHttp(login=True) as server:
        ...  # `url = server.url` in a table, `codex-py mcp login`
    assert server.paths[-1] == "/mcp"

Written without any SDK. A code is good for one exchange with the right verifier, a refresh token for one renewal.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.loopback import Loopback

Json = dict[str, Any]

# What is called answers with the request's authorization, never, with 17 MB, and that the session is over.
_TOOLS: Final = ("whoami", "hangs", "huge", "forgets")


class McpOverHttp:
    """`login` says that it wants a token of its own issuer, `headers` what it wants besides; `lifetime` is a token's.

    `requests` are (path, headers, fields) of all that arrived, in order; header names are in lower case.
    """

    def __init__(
        self, *, login: bool = False, headers: Mapping[str, str] | None = None, lifetime: int = 3600, mcp: str = "/mcp"
    ) -> None:
        self.requests: list[tuple[str, dict[str, str], Json]] = []
        self.lifetime = lifetime
        self.refreshes: list[str] = []
        # What happens elsewhere while a token is refused.
        self.when_refused: Callable[[], Any] | None = None
        # The text of a call without an authorization.
        self.text = "nobody"
        self._login, self._headers, self._mcp = login, dict(headers or {}), mcp
        self._tokens: list[str] = []
        self._codes: dict[str, Json] = {}
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"{self.base}{self._mcp}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.requests]

    @property
    def called(self) -> list[str]:
        """The tools that were called."""
        return [one["params"]["name"] for _, _, one in self.requests if one.get("method") == "tools/call"]

    def forms(self, path: str) -> list[Json]:
        """What was sent to one path."""
        return [fields for one, _, fields in self.requests if one == path]

    def revoke(self) -> None:
        """No access token that was given out is good any more."""
        self._tokens.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, headers: dict[str, str], fields: Json) -> tuple[int, Json | None, dict[str, str]]:
        """The status, the body and the headers for one request."""
        with self._lock:
            self.requests.append((path, headers, fields))
            if path == self._mcp:
                return self._speak(headers, fields)
            if not self._login:
                return 404, {}, {}
            match path:
                case "/issuer/register":
                    return 201, {**fields, "client_id": "client-1"}, {}
                case "/issuer/authorize":
                    return 302, {}, {"location": self._authorize(fields)}
                case "/issuer/token":
                    return self._token(fields)
                case _:
                    document = self._documents().get(path)
                    return (200, document, {}) if document is not None else (404, {}, {})

    def _documents(self) -> dict[str, Json]:
        issuer = f"{self.base}/issuer"
        return {
            f"/.well-known/oauth-protected-resource{self._mcp}": {
                "resource": self.url,
                "authorization_servers": [issuer],
                "scopes_supported": ["notes:read"],
            },
            "/.well-known/oauth-authorization-server/issuer": {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "registration_endpoint": f"{issuer}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            },
        }

    def _authorize(self, query: Json) -> str:
        assert (query["code_challenge_method"], query["response_type"]) == ("S256", "code"), query
        assert query["redirect_uri"].startswith("http://127.0.0.1:"), query
        code = f"code-{len(self._codes) + 1}"
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def _token(self, fields: Json) -> tuple[int, Json, dict[str, str]]:
        if fields["grant_type"] == "refresh_token":
            if fields["refresh_token"] not in self.refreshes:
                return 400, {"error": "invalid_grant"}, {}
            self.refreshes.remove(fields["refresh_token"])
        else:
            query = self._codes.pop(fields["code"], {})
            digest = urlsafe_b64encode(hashlib.sha256(fields["code_verifier"].encode()).digest()).rstrip(b"=").decode()
            if (digest, fields["redirect_uri"]) != (query.get("code_challenge"), query.get("redirect_uri")):
                return 400, {"error": "invalid_grant"}, {}
        number = len(self.forms("/issuer/token"))
        self._tokens.append(f"access-token-{number}")
        self.refreshes.append(f"refresh-token-{number}")
        return (
            200,
            {
                "access_token": self._tokens[-1],
                "refresh_token": self.refreshes[-1],
                "token_type": "Bearer",
                "expires_in": self.lifetime,
                "scope": "notes:read",
            },
            {},
        )

    def _speak(self, headers: dict[str, str], message: Json) -> tuple[int, Json | None, dict[str, str]]:
        if self._login and headers.get("authorization", "").removeprefix("Bearer ") not in self._tokens:
            if self.when_refused is not None:
                self.when_refused()
            where = f"{self.base}/.well-known/oauth-protected-resource{self._mcp}"
            return 401, {}, {"www-authenticate": f'Bearer resource_metadata="{where}"'}
        if any(headers.get(name.lower()) != value for name, value in self._headers.items()):
            return 403, {"error": "who are you?"}, {}
        match message.get("method"):
            case "initialize":
                version = message["params"]["protocolVersion"]
                about = {"name": "notes", "version": "1"}
                result: Json = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            case "tools/list":
                schema: Json = {"type": "object", "properties": {}}
                reads = {"readOnlyHint": True}
                result = {"tools": [{"name": name, "inputSchema": schema, "annotations": reads} for name in _TOOLS]}
            case "tools/call" if message["params"]["name"] == "forgets":
                return 404, {}, {}
            case "tools/call" if message["params"]["name"] == "huge":
                result = {"content": [{"type": "text", "text": "z" * 17_000_000}]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": headers.get("authorization", self.text)}]}
            case _ if "id" not in message:
                return 202, None, {}
            case _:
                result = {}
        return 200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, {"mcp-session-id": "session-1"}


class _Server(Loopback):
    daemon_threads = True

    def __init__(self, fake: McpOverHttp) -> None:
        self.fake = fake
        super().__init__(_Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that hung up, as it may
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _fake(self) -> McpOverHttp:
        assert isinstance(self.server, _Server)
        return self.server.fake

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == urlsplit(self._fake.url).path:
            self._send(405, {}, {})
            return
        self._send(*self._answer(parts.path, {name: one[0] for name, one in parse_qs(parts.query).items()}))

    def do_DELETE(self) -> None:
        fake = self._fake
        if "hangs" in fake.called:
            fake.closing.wait()
        self._send(200, {}, {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-type"].startswith("application/json"):
            fields = json.loads(raw)
        else:
            fields = {name: values[0] for name, values in parse_qs(raw.decode()).items()}
        self._send(*self._answer(self.path, fields))

    def _answer(self, path: str, fields: Json) -> tuple[int, Json | None, dict[str, str]]:
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self._fake.answer(path, headers, fields)
        if fields.get("method") == "tools/call" and fields["params"]["name"] == "hangs":
            self._fake.closing.wait()
        return answer

    def _send(self, status: int, body: Json | None, headers: Mapping[str, str]) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
