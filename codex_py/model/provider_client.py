"""The `ModelClient` that asks a provider over HTTP: one attempt at one request, as a stream of events, on any wire."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx

from codex_py.errors import ModelError
from codex_py.model.answer import ResponseBody, read_error_body
from codex_py.model.client import Admit, Completed, ItemDone, Prompt, ResponseEvent, TurnState, admit_always
from codex_py.model.credentials import Credentials, Renewal, Renewed
from codex_py.model.failures import (
    ANSWER_LIMIT,
    IncompleteAnswer,
    Server,
    answer_limit_reached,
    http_failure,
    refused_answer,
    refuses_answer_limit,
    unexpected_answer,
)
from codex_py.model.http import HTTP_ERRORS, HttpClient, broken_stream, no_answer, read_body
from codex_py.model.pictures import (
    PICTURE_REFUSED,
    PICTURES_REFUSED,
    has_picture,
    may_refuse_picture,
    to_leave_out,
    without_pictures,
)
from codex_py.model.providers import Provider, endpoint_url
from codex_py.model.refused_items import names_item, refused_items
from codex_py.model.refused_tools import TOOL_REFUSED, refused_tools, without_tools
from codex_py.model.repetition import RepetitionWatch
from codex_py.model.retry import RetryBudget
from codex_py.model.wires import TokenCounter, compacted_items, count_in, open_wire
from codex_py.protocol.items import ResponseItem, refusal_of
from codex_py.protocol.origin import Origin, with_origin
from codex_py.protocol.usage import CompactionWay
from codex_py.text.address import is_loopback, shown_url
from codex_py.text.redact import Redactor

_MAX_COMPACTED_BODY: Final = 64 * 1024 * 1024


_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})


class ProviderClient:
    """A provider with one kept-alive connection. Raises `UserError` when proxy or certificate settings are unusable.

    `renewal` knows how the credentials are renewed, if they can be.
    """

    def __init__(
        self,
        provider: Provider,
        credentials: Credentials,
        *,
        originator: str,
        version: str,
        renewal: Renewal | None = None,
        installation_id: str = "",
    ) -> None:
        base_url = credentials.base_url or provider.base_url
        self._provider = provider
        self._wire = open_wire(provider, installation_id)
        self._base_url = base_url
        self._host = urlsplit(shown_url(base_url)).netloc
        self._credentials = credentials
        self._renewal = renewal
        self._add_secrets: Callable[[Sequence[str]], None] = _ignore
        self._warn: Callable[[str], None] = _ignore
        self._redactor = Redactor((credentials.token or "", *credentials.secrets))
        self._headers = _fixed_headers(provider, originator, version)
        self._limits_answers = not provider.is_openai
        # The names of tools that the server has refused.
        self._refused_tools: set[str] = set()
        # Threads and models that are shown no pictures any more.
        self._blind: set[tuple[str, str]] = set()
        self._pack = renewal.pack if renewal is not None and provider.id == "openai" else None
        self._http = HttpClient(base_url, ca_file=provider.ca_file, idle_timeout=provider.idle_timeout)

    def watch(self, *, add_secrets: Callable[[Sequence[str]], None], warn: Callable[[str], None]) -> None:
        """As `ModelClient` says."""
        self._add_secrets, self._warn = add_secrets, warn

    def retry_budget(self) -> RetryBudget:
        """As `ModelClient` says."""
        return RetryBudget(
            request_retries=self._provider.request_max_retries,
            stream_retries=self._provider.stream_max_retries,
            connect_seconds=self._provider.connect_retry_seconds,
        )

    async def stream(
        self, prompt: Prompt, *, turn_state: TurnState, admit: Admit = admit_always
    ) -> AsyncGenerator[ResponseEvent, None]:
        """As `ModelClient` says."""
        try:
            async with aclosing(self._attempt(prompt, turn_state, admit)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            if isinstance(error, IncompleteAnswer) and error.code == ANSWER_LIMIT:
                limit = prompt.max_output_tokens if self._limits_answers else None
                error = answer_limit_reached(error, prompt.model, limit)
            if not error.retryable and names_item(str(error)):
                error.refused = refused_items(str(error), self._wire.encode(self._as_sent(prompt)), prompt.input)
            raise self._redacted(error) from error.__cause__

    @property
    def compaction(self) -> CompactionWay:
        """As `ModelClient` says."""
        return self._provider.compaction

    async def compact(self, prompt: Prompt, *, admit: Admit = admit_always) -> list[ResponseItem]:
        """As `ModelClient` says."""
        try:
            response = await self._send(prompt.replace(kind="compaction_endpoint"), TurnState(), admit)
            try:
                return await self._read_compacted(response, self._origin(prompt))
            finally:
                await response.aclose()
        except ModelError as error:
            raise self._redacted(error) from error.__cause__

    async def count_tokens(self, prompt: Prompt) -> int | None:
        """As `ModelClient` says."""
        if not isinstance(self._wire, TokenCounter):
            return None
        path, body = self._wire.encode_count(self._as_sent(prompt))
        url = endpoint_url(self._base_url, path, self._provider.query_params)
        try:
            response = await self._post(body, self._request_headers(prompt, TurnState()), url)
            if not response.is_success:
                raise await self._failure(response, url)
            try:
                return count_in(await read_error_body(response.aiter_bytes()))
            finally:
                await response.aclose()
        except ModelError as error:
            raise self._redacted(error) from error.__cause__

    async def aclose(self) -> None:
        """As `ModelClient` says."""
        await self._http.aclose()

    async def _attempt(
        self, prompt: Prompt, turn_state: TurnState, admit: Admit
    ) -> AsyncGenerator[ResponseEvent, None]:
        response = await self._send(prompt, turn_state, admit)
        server = self._server(self._url_for(prompt))
        answer = ResponseBody(response, server=server, idle_timeout=self._provider.idle_timeout)
        repetition, refusals, whole = RepetitionWatch(), RefusalWatch(), False
        origin = self._origin(prompt)
        try:
            turn_state.note(response.headers.get("x-codex-turn-state"))
            async with aclosing(answer.events(self._wire.decoder(prompt))) as events:
                async for event in events:
                    repetition.check(event)
                    refusals.check(event)
                    if isinstance(event, ItemDone):
                        event = ItemDone(with_origin(event.item, origin))
                    whole = isinstance(event, Completed)
                    yield event
                    if whole:
                        return
            raise ModelError("the stream ended before the answer was whole", retryable=True, streaming=True)
        finally:
            if whole:
                await answer.drain()
            await response.aclose()

    async def _send(self, prompt: Prompt, turn_state: TurnState, admit: Admit) -> httpx.Response:
        """Send the request and wait for a 2xx. What the server refuses of it is left out, where it can be, and a 401 is
        met by renewing what was refused.
        """
        renewal = self._renewal
        if renewal is not None and renewal.is_due(self._credentials):
            await self._renew(renewal, refused=False)
        url, body = self._url_for(prompt), self._encoded(prompt)
        first_refusal: ModelError | None = None
        # What is left out next where a picture may be refused, and what is left out now.
        trials: list[frozenset[str] | None] = []
        whole = prompt
        left_out: frozenset[str] | None = None
        while True:
            await admit()
            response = await self._post(body, self._request_headers(prompt, turn_state), url)
            if response.is_success:
                if first_refusal is not None:
                    self._note_pictures(prompt, first_refusal, left_out, turn_state)
                return response
            failure = await self._failure(response, url)
            if self._leave_out_tools(prompt, response.status_code, failure):
                body = self._encoded(prompt)
                continue
            if self._may_refuse_picture(prompt, response.status_code, failure):
                if first_refusal is None:
                    first_refusal, sent = failure, self._as_sent(prompt)
                    named = refused_items(str(failure), self._wire.encode(sent), sent.input)
                    trials = to_leave_out(str(failure), sent.input, named)
                if trials:
                    left_out = trials.pop(0)
                    prompt = _leave_out(whole, left_out)
                    body = self._encoded(prompt)
                    continue
            if self._wire.adapt(response.status_code, failure):
                body = self._encoded(prompt)
                continue
            is_limited = self._limits_answers and prompt.max_output_tokens is not None
            if is_limited and refuses_answer_limit(response.status_code, failure):
                # Some servers take no limit, or none above their own.
                self._limits_answers = False
                body = self._encoded(prompt)
                continue
            if response.status_code != 401 or renewal is None:
                raise failure
            renewed = await self._renew(renewal, refused=True)
            if renewed is None:
                raise failure
            if renewed.is_last:
                renewal = None

    def _may_refuse_picture(self, prompt: Prompt, status: int, failure: ModelError) -> bool:
        shown = self._as_sent(prompt).pictures and has_picture(prompt.input)
        return shown and may_refuse_picture(status, str(failure))

    def _note_pictures(
        self, prompt: Prompt, refusal: ModelError, left_out: frozenset[str] | None, turn_state: TurnState
    ) -> None:
        """Go on without the picture that a server has refused, or without any (None): it took the request so."""
        if left_out is None:
            self._blind.add((prompt.thread_id, prompt.model))
            self._warn(PICTURES_REFUSED.format(prompt.model, self._redactor.redact(str(refusal))))
        else:
            turn_state.refused_pictures |= left_out
            self._warn(PICTURE_REFUSED.format(self._redactor.redact(str(refusal))))

    def _leave_out_tools(self, prompt: Prompt, status: int, failure: ModelError) -> bool:
        """Leave out the tools of MCP servers that a refusal names, from now on; whether there are any."""
        sent = self._as_sent(prompt)
        names = refused_tools(status, str(failure), self._wire.encode(sent), sent.tools)
        self._refused_tools |= names
        for name in sorted(names):
            self._warn(TOOL_REFUSED.format(f"`{name}`", self._redactor.redact(str(failure))))
        return bool(names)

    def _as_sent(self, prompt: Prompt) -> Prompt:
        if self._refused_tools:
            prompt = prompt.replace(tools=without_tools(prompt.tools, self._refused_tools))
        return prompt.replace(pictures=False) if (prompt.thread_id, prompt.model) in self._blind else prompt

    async def _renew(self, renewal: Renewal, *, refused: bool) -> Renewed | None:
        renewed = await renewal.renew(self._credentials, refused=refused)
        if renewed is None:
            return None
        self._credentials = renewed.credentials
        secrets = (renewed.credentials.token or "", *renewed.credentials.secrets)
        self._redactor = self._redactor.with_secrets(secrets)
        self._add_secrets(secrets)
        if renewed.warning:
            self._warn(renewed.warning)
        return renewed

    def _origin(self, prompt: Prompt) -> Origin:
        return Origin(self._provider.id, prompt.model, self._provider.wire_api)

    def _encoded(self, prompt: Prompt) -> bytes:
        prompt = self._as_sent(prompt)
        if not self._limits_answers:
            prompt = prompt.replace(max_output_tokens=None)
        body = self._wire.encode(prompt)
        return self._pack(body) if self._pack else body

    def _url_for(self, prompt: Prompt) -> str:
        return endpoint_url(self._base_url, self._wire.path(prompt), self._provider.query_params)

    def _server(self, url: str) -> Server:
        return Server(shown_url(url), api=self._wire.api, on_401=self._credentials.advice)

    async def _post(self, body: bytes, headers: dict[str, str], url: str) -> httpx.Response:
        try:
            return await self._http.send("POST", url, headers=headers, content=body)
        except HTTP_ERRORS as error:
            idle, address = self._provider.idle_timeout, f"the provider `{self._provider.name}` at `{shown_url(url)}`"
            raise no_answer(error, host=self._host, idle_timeout=idle, address=address, hint=self._hint()) from error

    async def _failure(self, response: httpx.Response, url: str) -> ModelError:
        try:
            body = await read_error_body(response.aiter_bytes())
        finally:
            await response.aclose()
        return http_failure(response.status_code, response.headers, body, server=self._server(url), now=time.time())

    def _request_headers(self, prompt: Prompt, turn_state: TurnState) -> dict[str, str]:
        headers = self._headers | self._wire.headers(prompt)
        if self._credentials.token:
            headers |= self._wire.auth_headers(self._credentials.token)
        if self._pack:
            headers["content-encoding"] = "zstd"
        if turn_state.value is not None:
            headers["x-codex-turn-state"] = turn_state.value
        # Last: what the user has written is sent as it is.
        return headers | dict(self._credentials.headers)

    async def _read_compacted(self, response: httpx.Response, origin: Origin) -> list[ResponseItem]:
        """The items of a 2xx answer, at least one.

        Raises `ModelError` for a body that breaks off, is over 64 MiB, or holds no items.
        """
        try:
            body = await read_body(response.aiter_bytes(), limit=_MAX_COMPACTED_BODY)
        except HTTP_ERRORS as error:
            raise broken_stream(error, idle_timeout=self._provider.idle_timeout) from error
        if len(body) > _MAX_COMPACTED_BODY:
            raise ModelError("the compacted history is over 64 MiB", retryable=False)
        if items := compacted_items(body):
            return [with_origin(item, origin) for item in items]
        server = self._server(str(response.url))
        raise unexpected_answer(
            response.status_code, response.headers, body[:4096], server=server, expected="a compacted history"
        )

    def _hint(self) -> str:
        if is_loopback(urlsplit(self._base_url).hostname or ""):
            return f"is {self._provider.name if self._provider.local else 'the server'} running?"
        return "the environment names a proxy" if getproxies() else ""

    def _redacted(self, error: ModelError) -> ModelError:
        error.args = (self._redactor.redact(str(error)),)
        return error


def _leave_out(prompt: Prompt, pictures: frozenset[str] | None) -> Prompt:
    """The prompt without some pictures, or without any (None)."""
    if pictures is None:
        return prompt.replace(pictures=False)
    return prompt.replace(input=[without_pictures(item, pictures) for item in prompt.input])


class RefusalWatch:
    """Reads the events of one answer, which may be whole and a refusal in words."""

    def __init__(self) -> None:
        self._words = ""
        self._has_calls = False

    def check(self, event: ResponseEvent) -> None:
        """Raise `ModelError` when an answer ends that is a refusal and calls no tool."""
        match event:
            case ItemDone(item):
                self._words = self._words or refusal_of(item)
                # By the type alone: an item may have fifty megabytes to decode.
                self._has_calls = self._has_calls or item.type in _CALLS
            case Completed(usage=usage) if self._words and not self._has_calls:
                raise refused_answer(self._words).with_usage(usage)
            case _:
                pass


def _ignore(_: object) -> None:
    pass


def _fixed_headers(provider: Provider, originator: str, version: str) -> dict[str, str]:
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
    if provider.id == "openai":
        headers["version"] = version
    return headers
