"""An issuer of ChatGPT logins on the loopback: signs in, renews and revokes, and keeps the rules of OAuth.

    with FakeIssuer() as issuer:
        ...  # `codex-py login --issuer URL`, or `CODEX_REFRESH_TOKEN_URL_OVERRIDE`
    assert issuer.paths == ["/oauth/token"]

Refresh tokens are good for one use, as the real ones are; a code is good for one exchange, with the right verifier.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from base64 import urlsafe_b64encode
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.loopback import Loopback

Json = dict[str, Any]


def make_jwt(claims: Json) -> str:
    """A token in the form of a JSON web token; nobody here checks its signature."""
    head = urlsafe_b64encode(b'{"alg":"RS256"}').rstrip(b"=").decode()
    return f"{head}.{urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.c2lnbmF0dXJl"


def make_tokens(number: int, *, account: str = "acc-1", end: float | None = None) -> Json:
    """The tokens of the n-th login or renewal, good until `end`, else for an hour; different ones for each number."""
    auth = {"chatgpt_account_id": account, "chatgpt_plan_type": "plus"}
    return {
        "id_token": make_jwt({"email": "ada@example.com", "n": number, "https://api.openai.com/auth": auth}),
        "access_token": make_jwt({"exp": int(end or time.time() + 3600), "n": number}),
        "refresh_token": f"refresh-token-{number}",
    }


class FakeIssuer:
    """The server. `requests` are (path, fields) of every POST, in order.

    `waits` is how often the device code is not typed yet; `refuse` maps a path to a status and an error body.
    """

    def __init__(
        self,
        *,
        account: str = "acc-1",
        lifetime: float = 3600.0,
        waits: int = 0,
        refuse: dict[str, tuple[int, Json]] | None = None,
    ) -> None:
        self.requests: list[tuple[str, Json]] = []
        self.issued_tokens: list[Json] = []
        self._account, self._end = account, time.time() + lifetime
        self._waits = waits
        self._refuse = refuse or {}
        self._challenges: dict[str, tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def token_url(self) -> str:
        return f"{self.url}/oauth/token"

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def give(self) -> Json:
        """Hand out the next tokens; the refresh token before them is worthless from now on."""
        tokens = self.tokens(len(self.issued_tokens) + 1)
        self.issued_tokens.append(tokens)
        return tokens

    def tokens(self, number: int) -> Json:
        """The tokens that are given out as the n-th."""
        return make_tokens(number, account=self._account, end=self._end)

    def authorize(self, query: dict[str, str]) -> str:
        """The user signs in: where their browser is sent back to."""
        assert query["code_challenge_method"] == "S256", query
        code = f"code-{len(self._challenges) + 1}"
        self._challenges[code] = query["code_challenge"], query["redirect_uri"]
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def answer(self, path: str, fields: Json) -> tuple[int, Json]:
        with self._lock:
            self.requests.append((path, fields))
            if path in self._refuse:
                return self._refuse[path]
            match path:
                case "/oauth/token":
                    return self._token(fields)
                case "/oauth/revoke":
                    return 200, {}
                case "/api/accounts/deviceauth/usercode":
                    return 200, {"device_auth_id": "device-1", "user_code": "ABCD-1234", "interval": "0"}
                case "/api/accounts/deviceauth/token":
                    return self._typed()
                case _:
                    return 404, {"error": "not_found"}

    def _token(self, fields: Json) -> tuple[int, Json]:
        if fields["grant_type"] == "refresh_token":
            if not self.issued_tokens or fields["refresh_token"] != self.issued_tokens[-1]["refresh_token"]:
                return 401, {"error": {"code": "refresh_token_reused", "message": "already used"}}
            return 200, self.give()
        challenge, redirect = self._challenges.pop(fields["code"], ("", ""))
        digest = urlsafe_b64encode(hashlib.sha256(fields["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if digest != challenge or fields["redirect_uri"] != redirect:
            return 400, {"error": "invalid_grant", "error_description": "the code does not belong to this sign-in"}
        return 200, self.give()

    def _typed(self) -> tuple[int, Json]:
        if self._waits:
            self._waits -= 1
            return 403, {"error": "authorization_pending"}
        verifier = "device-verifier"
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        self._challenges["device-code"] = challenge, f"{self.url}/deviceauth/callback"
        return 200, {"authorization_code": "device-code", "code_challenge": challenge, "code_verifier": verifier}


class _Server(Loopback):
    daemon_threads = True

    def __init__(self, issuer: FakeIssuer) -> None:
        self.issuer = issuer
        super().__init__(_Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path != "/oauth/authorize":
            self._send(404, {})
            return
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._send(302, {}, location=self.server.issuer.authorize(query))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-type"] == "application/json":
            fields = json.loads(raw)
        else:
            fields = {name: values[0] for name, values in parse_qs(raw.decode()).items()}
        self._send(*self.server.issuer.answer(self.path, fields))

    def _send(self, status: int, body: Json, *, location: str | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        if location is not None:
            self.send_header("location", location)
        self.end_headers()
        self.wfile.write(content)
