"""The only module that talks to a model provider: one attempt at one request, as a stream of events."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.request import getproxies

from codex_py.errors import ModelError
from codex_py.model.answer import Answer, read_error_body
from codex_py.model.auth import Credentials
from codex_py.model.failures import http_failure
from codex_py.model.http import CONNECT_SECONDS, httpx, is_loopback, open_client
from codex_py.model.prompt import Prompt, encode_body
from codex_py.model.providers import Provider, responses_url, shown_url
from codex_py.model.retry import RetryBudget
from codex_py.model.stream import Completed, ResponseEvent
from codex_py.model.transport import no_answer
from codex_py.protocol.encoding import encode_json
from codex_py.text.redact import Redactor


class TurnState:
    """What the server wants to hear back within one turn, and only there. Make a new one for each turn."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: str | None = None

    def note(self, value: str | None) -> None:
        """Keep what an answer's header says, if it can be sent back; None changes nothing."""
        if value is not None and value.isascii() and value.isprintable():
            self.value = value


class ModelClient:
    """A provider with one kept-alive connection. Raises `UserError` when proxy or certificate settings are unusable."""

    def __init__(self, provider: Provider, credentials: Credentials, *, originator: str, version: str) -> None:
        base_url = credentials.base_url or provider.base_url
        self._provider = provider
        self._url = responses_url(base_url, provider.query_params)
        self._shown_url = shown_url(self._url)
        self._host = httpx.URL(self._shown_url).netloc.decode()
        self._redactor = Redactor((credentials.token or "", *credentials.secrets))
        self._headers = _fixed_headers(provider, credentials, originator, version)
        self._own_headers = credentials.headers
        self._http = open_client(base_url, ca_file=provider.ca_file, idle_timeout=provider.idle_timeout)

    def retry_budget(self) -> RetryBudget:
        """A fresh budget, for one sampling request."""
        return RetryBudget(
            request_retries=self._provider.request_max_retries,
            stream_retries=self._provider.stream_max_retries,
            connect_seconds=self._provider.connect_retry_seconds,
        )

    async def stream(self, prompt: Prompt, *, turn_state: TurnState) -> AsyncGenerator[ResponseEvent, None]:
        """Make one attempt and yield its events; the last one is `Completed`.

        Raises `ModelError` for everything else an attempt can come to; no message of it shows a secret. Closing the
        generator, or cancelling its task, closes the connection at once, unless the answer was whole.
        """
        try:
            async with aclosing(self._attempt(prompt, turn_state)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            raise self._redacted(error) from error.__cause__

    async def aclose(self) -> None:
        """Close the connection. Safe to call more than once."""
        await self._http.aclose()

    async def _attempt(self, prompt: Prompt, turn_state: TurnState) -> AsyncGenerator[ResponseEvent, None]:
        response = await self._send(prompt, turn_state)
        answer = Answer(response, url=self._shown_url, idle_timeout=self._provider.idle_timeout)
        whole = False
        try:
            turn_state.note(response.headers.get("x-codex-turn-state"))
            async with aclosing(answer.events()) as events:
                async for event in events:
                    whole = isinstance(event, Completed)
                    yield event
                    if whole:
                        return
            raise ModelError("the stream ended before the answer was whole", retryable=True, streaming=True)
        finally:
            if whole:
                await answer.drain()
            await response.aclose()

    async def _send(self, prompt: Prompt, turn_state: TurnState) -> httpx.Response:
        """Send the request and wait for a 2xx."""
        request = self._http.build_request(
            "POST", self._url, content=encode_body(prompt), headers=self._request_headers(prompt, turn_state)
        )
        idle = self._provider.idle_timeout
        try:
            # The client's own deadlines end a silence; this one ends an answer that drips in byte by byte.
            async with asyncio.timeout(CONNECT_SECONDS + 2 * idle):
                response = await self._http.send(request, stream=True)
        except (httpx.HTTPError, OSError) as error:
            raise no_answer(error, host=self._host, idle_timeout=idle, hint=self._hint()) from error
        if response.is_success:
            return response
        try:
            body = await read_error_body(response.aiter_bytes())
        finally:
            await response.aclose()
        raise http_failure(response.status_code, response.headers, body, url=self._shown_url, now=time.time())

    def _request_headers(self, prompt: Prompt, turn_state: TurnState) -> dict[str, str]:
        headers = {
            **self._headers,
            "session-id": prompt.thread_id,
            "thread-id": prompt.thread_id,
            "x-client-request-id": prompt.thread_id,
            "x-codex-window-id": prompt.window_id,
            "x-codex-turn-metadata": _turn_metadata(prompt),
        }
        if turn_state.value is not None:
            headers["x-codex-turn-state"] = turn_state.value
        # Last: what the user has written is sent as it is.
        return headers | dict(self._own_headers)

    def _hint(self) -> str:
        if is_loopback(httpx.URL(self._url).host):
            return f"is {self._provider.name if self._provider.local else 'the server'} running?"
        return "the environment names a proxy" if getproxies() else ""

    def _redacted(self, error: ModelError) -> ModelError:
        message = str(error)
        shown = self._redactor.redact(message)
        if shown == message:
            return error
        return ModelError(
            shown,
            retryable=error.retryable,
            retry_after=error.retry_after,
            unreachable=error.unreachable,
            streaming=error.streaming,
        )


def _turn_metadata(prompt: Prompt) -> str:
    """What the server is told of the turn; nothing of the machine or its user."""
    fields = {
        "session_id": prompt.thread_id,
        "thread_id": prompt.thread_id,
        "turn_id": prompt.turn_id,
        "window_id": prompt.window_id,
        "window_number": prompt.window,
        "request_kind": "turn",
    }
    return encode_json(fields).decode()


def _fixed_headers(provider: Provider, credentials: Credentials, originator: str, version: str) -> dict[str, str]:
    # The name may come from the environment, and a header takes visible ASCII only.
    name = "".join(char for char in originator if char.isascii() and char.isprintable()).strip() or "codex-py"
    machine = os.uname().machine if hasattr(os, "uname") else "unknown"
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        # Compressed events would reach us late, in blocks.
        "accept-encoding": "identity",
        "originator": name,
        "user-agent": f"{name}/{version} ({sys.platform}; {machine})",
    }
    if credentials.token:
        headers["authorization"] = f"Bearer {credentials.token}"
    if provider.id == "openai":
        headers["version"] = version
    return headers
