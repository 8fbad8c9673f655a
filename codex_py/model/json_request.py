"""One small request with a JSON answer: for signing in and for lists of models, not for the model itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from codex_py import __version__
from codex_py.errors import ModelError
from codex_py.model.failures import no_answer
from codex_py.model.http import httpx, open_client
from codex_py.protocol.encoding import as_object, decode_json, encode_json
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


class JsonAnswer(NamedTuple):
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
    host = httpx.URL(shown_url(request.url)).netloc.decode()
    try:
        async with (
            asyncio.timeout(request.seconds),
            open_client(request.url, ca_file=ca_file, idle_timeout=request.seconds) as client,
            client.stream(
                request.method,
                request.url,
                content=None if request.json is None else encode_json(request.json),
                data=request.form,
                headers=_headers(request),
            ) as response,
        ):
            raw = await _read_all(response, host)
    except (httpx.HTTPError, OSError) as error:
        hint = "is it running?" if is_loopback(httpx.URL(request.url).host) else ""
        address = f"`{shown_url(request.url)}`"
        raise no_answer(error, host=host, idle_timeout=request.seconds, address=address, hint=hint) from error
    return JsonAnswer(response.status_code, response.headers, _decoded(raw), raw)


def _headers(request: JsonRequest) -> dict[str, str]:
    headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": f"codex-py/{__version__}"}
    if request.json is not None:
        headers["content-type"] = "application/json"
    return headers | dict(request.headers)


async def _read_all(response: httpx.Response, host: str) -> bytes:
    raw = bytearray()
    async for chunk in response.aiter_bytes():
        raw += chunk
        if len(raw) > _MAX_BYTES:
            raise ModelError(f"the answer of `{host}` is over 16 MiB", retryable=False)
    return bytes(raw)


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        return as_object(decode_json(raw.decode("utf-8", "replace")))
    except ValueError:
        return {}
