"""One small request with a JSON answer: for signing in and for lists of models, not for the model itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final, Literal
from urllib.parse import urlencode, urlsplit

from codex_py import __version__
from codex_py.errors import ModelError
from codex_py.model.http import HTTP_ERRORS, HttpClient, no_answer, read_body
from codex_py.protocol.encoding import as_object, decode_or_none, encode_json
from codex_py.protocol.value import Value
from codex_py.text.address import is_loopback, shown_url

_SECONDS: Final = 30.0
_MAX_BYTES: Final = 16 * 1024 * 1024


class JsonRequest(Value):
    """`form` and `json` are bodies; a request with neither is a GET. `seconds` bound the whole exchange."""

    url: str
    headers: Mapping[str, str] = {}
    form: Mapping[str, str] | None = None
    json: Mapping[str, Any] | None = None
    seconds: float = _SECONDS

    @property
    def method(self) -> Literal["GET", "POST"]:
        return "GET" if self.form is None and self.json is None else "POST"


class JsonAnswer(Value):
    """`body` is the decoded object, empty where the answer is none; `raw` are its bytes."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


async def fetch_json(request: JsonRequest, *, ca_file: str | None = None) -> JsonAnswer:
    """Send the request once and read the whole answer, whatever its status.

    Raises `ModelError` when no whole answer came or one over 16 MiB. Redirects are answers like any other.
    """
    host = urlsplit(shown_url(request.url)).netloc
    try:
        async with (
            asyncio.timeout(request.seconds),
            aclosing(HttpClient(request.url, ca_file=ca_file, idle_timeout=request.seconds)) as client,
            aclosing(
                await client.send(request.method, request.url, headers=_headers(request), content=_content(request))
            ) as answer,
        ):
            raw = await read_body(answer.aiter_bytes(), limit=_MAX_BYTES)
    except HTTP_ERRORS as error:
        hint = "is it running?" if is_loopback(urlsplit(request.url).hostname or "") else ""
        address = f"`{shown_url(request.url)}`"
        raise no_answer(error, host=host, idle_timeout=request.seconds, address=address, hint=hint) from error
    if len(raw) > _MAX_BYTES:
        raise ModelError(f"the answer of `{host}` is over 16 MiB", retryable=False)
    body = as_object(decode_or_none(raw.decode("utf-8", "replace")))
    return JsonAnswer(answer.status_code, dict(answer.headers), body, raw)


def _headers(request: JsonRequest) -> dict[str, str]:
    headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": f"codex-py/{__version__}"}
    if request.method == "POST":
        headers["content-type"] = "application/x-www-form-urlencoded" if request.json is None else "application/json"
    return headers | dict(request.headers)


def _content(request: JsonRequest) -> bytes | None:
    if request.json is not None:
        return encode_json(request.json)
    return None if request.form is None else urlencode(request.form).encode()
