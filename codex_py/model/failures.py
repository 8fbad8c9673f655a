"""Every way a request can fail, as `ModelError`: no connection, a refusal, a stream that breaks off or says so itself.

Text from outside is bounded, on one line and without control characters.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, Self

import httpx

from codex_py.errors import ModelError
from codex_py.model.error_bodies import (
    NO_MODEL,
    NO_QUOTA,
    TOO_LONG,
    code_of,
    codes_of,
    error_object,
    failure_in,
    message_of,
    on_one_line,
    plain_text,
)
from codex_py.model.refused_items import names_item
from codex_py.model.wordings import cut_reason, names_answer_limit
from codex_py.protocol.usage import RequestCost, TokenUsage
from codex_py.protocol.value import Value

MAX_ERROR_BODY: Final = 64 * 1024
# A person should decide about waits beyond this, not a sleeping program.
_MAX_WAIT: Final = 600.0
_FAR_AWAY: Final = 10 * 365 * 86400.0

FILTERED: Final = "content_filter"
REFUSED: Final = "refusal"
ANSWER_LIMIT: Final = "max_output_tokens"
RETRIED_STATUSES: Final = frozenset({408, 409, 425, 429})
_FINAL_CODES: Final = NO_QUOTA | {
    TOO_LONG,
    NO_MODEL,
    "server_is_overloaded",
    "invalid_prompt",
    "cyber_policy",
    "bio_policy",
}
# Patterns stay text: compiling them is work for the day something fails, not for every start.
_DELAY: Final = r"(?i)try again in\s{0,8}([0-9]{1,9}(?:\.[0-9]{1,9})?)\s{0,8}(ms|s(?:econds?)?)\b"
_SECONDS: Final = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"


class IncompleteAnswer(ModelError):
    """An answer that reached its limit, was filtered or was refused. It is paid for like a whole one: `usage` is what
    the server has counted, and `cost` its price, where somebody counts that.
    """

    usage: TokenUsage | None = None
    cost: RequestCost | None = None

    def with_usage(self, usage: TokenUsage | None) -> Self:
        self.usage = usage
        return self


class Server(Value):
    """The facts about a server that messages use. `url` is shown; `on_401` is advice for a refused login."""

    url: str
    api: str = "Responses API"
    on_401: str = "check the API key"

    @property
    def check_address(self) -> str:
        return f"does `base_url` name a server of the {self.api}?"


def http_failure(status: int, headers: Mapping[str, str], body: bytes, *, server: Server, now: float) -> ModelError:
    """An answer other than 2xx. `headers` are looked up in lower case, `now` is the wall clock."""
    url = server.url
    if 300 <= status < 400 and headers.get("location"):
        target = on_one_line(headers["location"], 200)
        return ModelError(
            f"{_status_line(status)}: `{url}` redirects to `{target}`; a request is never sent on, set `base_url` to "
            "the address that answers",
            retryable=False,
        ).counted_as("config")
    error = error_object(body)
    codes = codes_of(error)
    reported = message_of(error) or plain_text(body)
    if names_item(field := on_one_line(str(error.get("param")), 100)) and not names_item(reported):
        reported += f" ({field})"
    if status in (404, 405) and message_of(error).lower() in ("", "not found", "method not allowed"):
        reported = f"{reported}, at `{url}`" if reported else f"nothing answers at `{url}`"
        reported += f"; {server.check_address}"
    message = _status_line(status) + (f": {reported}" if reported else "")
    if status == 401:
        message += f"; {server.on_401}"
    if reset := _reset_note(error, now):
        message += f"; {reset}"
    if request_id := _request_id(headers):
        message += f" (request id: {request_id})"
    code = code_of(error, reported, status)
    passing = status in RETRIED_STATUSES or status >= 500
    retryable = passing and code not in (TOO_LONG, NO_MODEL) and not codes & NO_QUOTA
    delay = None
    if retryable and (status == 429 or status >= 500):
        delay = retry_after(headers, now=now)
        if delay is None and status == 429:
            delay = delay_in_message(reported)
    failure = ModelError(message, retryable=retryable, retry_after=delay, code=code)
    return _bounded(failure.counted_as(failure_in(code, codes, status)), now=now)


def unexpected_answer(
    status: int, headers: Mapping[str, str], body: bytes, *, server: Server, expected: str
) -> ModelError:
    """A 2xx answer that is not what was `expected`: a login page, a proxy's notice, an error sent as success."""
    content_type = on_one_line(headers.get("content-type", "").partition(";")[0], 60)
    reason = message_of(error_object(body))
    reported = reason or plain_text(body)
    shown = f"`{content_type}`" if content_type else "something else"
    message = f"`{server.url}` answered {status} with {shown}, not with {expected}"
    if reported:
        message += f": {reported}"
    if not reason:
        message += f"; {server.check_address}"
    if request_id := _request_id(headers):
        message += f" (request id: {request_id})"
    return ModelError(message, retryable=False).counted_as("" if reason else "config")


def not_readable(coding: str, *, url: str) -> ModelError:
    """An answer that is compressed in a way nobody has asked for."""
    return ModelError(
        f"`{url}` answered compressed with `{on_one_line(coding, 60)}`, although the request wants no compression; the "
        "server, or a proxy in between, must be told to leave event streams as they are",
        retryable=False,
    )


def stream_failure(error: Mapping[str, Any], *, now: float, status: int = 0) -> ModelError:
    """The error object of a `response.failed` or `error` event; an empty one counts as a passing trouble.

    `status` is the one that the error would have had before the stream, where it says so.
    """
    codes = codes_of(error)
    reported = message_of(error)
    code = code_of(error, reported, status)
    if reported and code:
        message = f"{reported} (`{code}`)"
    elif reported or code:
        message = reported or f"the server reported `{code}`"
    else:
        message = "the server reported a failure without saying which"
    if reset := _reset_note(error, now):
        message += f"; {reset}"
    delay = delay_in_message(reported) if "rate_limit_exceeded" in codes else None
    retryable = code != TOO_LONG and not {*codes, code} & _FINAL_CODES
    failure = ModelError(message, retryable=retryable, retry_after=delay, streaming=True, code=code)
    return _bounded(failure.counted_as(failure_in(code, codes, status)), now=now)


def incomplete_answer(reason: str, *, guides: bool = False) -> IncompleteAnswer:
    """An answer that the server has ended early. One that has reached its limit would reach it again, and one that was
    filtered would be filtered again, unless `guides` says that the model is sent advice before it is asked again.
    """
    if (cut := cut_answer(reason)) is not None:
        return cut
    shown = on_one_line(reason, 60) or "unknown"
    return IncompleteAnswer(
        f"the answer is incomplete, the server's reason: `{shown}`",
        retryable=guides or reason != FILTERED,
        streaming=True,
        code=shown,
    ).counted_as("refused" if shown == FILTERED else "")


def cut_answer(reason: str) -> IncompleteAnswer | None:
    """An answer that was cut off at a limit, by the server's word for why it ended; None for another reason.

    One that filled the context window has the code `TOO_LONG`: a compaction makes room.
    """
    match cut_reason(reason):
        case "window":
            message, code = "the answer is incomplete: the context window of the model is full", TOO_LONG
        case "answer":
            message, code = f"the answer is incomplete, the server's reason: `{ANSWER_LIMIT}`", ANSWER_LIMIT
        case _:
            return None
    return IncompleteAnswer(message, retryable=False, streaming=True, code=code).counted_as("context_length")


def refused_answer(reason: str) -> IncompleteAnswer:
    """An answer that the model, or a judge beside it, has refused to give. It would be refused again."""
    shown = on_one_line(reason)
    return IncompleteAnswer(
        f"the model has refused to answer{f': {shown}' if shown else ''}",
        retryable=False,
        streaming=True,
        code=REFUSED,
    ).counted_as("refused")


def answer_limit_reached(error: IncompleteAnswer, model: str, limit: int | None) -> IncompleteAnswer:
    """An answer that ended at its limit, with that in the message: what this program has sent, or the server's own,
    which is as much as the server has counted. The error itself where neither is known.
    """
    if limit is not None:
        message = (
            f"the answer is incomplete: it reached the limit of {limit:,} output tokens, which `max_output_tokens` and "
            f'`context_window` under `[models."{on_one_line(model, 100)}"]` set'
        )
    elif error.usage is not None and error.usage.output_tokens:
        message = (
            f"the answer is incomplete: it reached the server's limit of {error.usage.output_tokens:,} output tokens"
        )
    else:
        return error
    reached = IncompleteAnswer(message, retryable=False, streaming=True, code=ANSWER_LIMIT)
    return reached.counted_as("context_length").with_usage(error.usage)


def refuses_answer_limit(status: int, failure: ModelError) -> bool:
    """Whether a server has refused a request because of the limit on its answer."""
    return status in (400, 422) and names_answer_limit(str(failure))


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """The delay in seconds a server asks for: `retry-after-ms`, or `retry-after` as seconds or as an HTTP date.

    A date is compared with the server's own clock when it sent one.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if re.fullmatch(_SECONDS, milliseconds):
        return min(float(milliseconds) / 1000, _FAR_AWAY)
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(_SECONDS, value):
        return min(float(value), _FAR_AWAY)
    moment = _http_date(value)
    if moment is None:
        return None
    sent = _http_date(headers.get("date", ""))
    return min(max(0.0, moment - (now if sent is None else sent)), _FAR_AWAY)


def delay_in_message(message: str) -> float | None:
    """The delay in seconds that a rate limit message names (`try again in 1.5s`)."""
    found = re.search(_DELAY, message)
    if found is None:
        return None
    return float(found[1]) / (1000 if found[2].lower() == "ms" else 1)


def _bounded(error: ModelError, *, now: float) -> ModelError:
    """The error itself, or a final one when the server asks for a wait that is too long to sit out."""
    if not error.retryable or error.retry_after is None or error.retry_after <= _MAX_WAIT:
        return error
    return ModelError(
        f"{error}; the server asks to try again {_when(error.retry_after, now)}",
        retryable=False,
        streaming=error.streaming,
        code=error.code,
    ).counted_as(error.failure)


def _when(delay: float, now: float) -> str:
    moment = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now + delay))
    minutes = math.ceil(delay / 60)
    if minutes < 180:
        return f"in {minutes} minutes, at {moment}"
    hours = math.ceil(delay / 3600)
    return f"in {hours} hours, at {moment}" if hours < 72 else f"after {moment}"


def _reset_note(error: Mapping[str, Any], now: float) -> str:
    """When a used-up plan is reset, if the error says so."""
    left, moment = error.get("resets_in_seconds"), error.get("resets_at")
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        left = moment - now
    if not isinstance(left, int | float) or isinstance(left, bool) or not 0 <= left <= _FAR_AWAY:
        return ""
    return f"the limit resets {_when(float(left), now)}"


def _status_line(status: int) -> str:
    return f"{status} {httpx.codes.get_reason_phrase(status)}".rstrip()


def _request_id(headers: Mapping[str, str]) -> str:
    for name in ("x-request-id", "x-oai-request-id", "request-id", "cf-ray"):
        if value := on_one_line(headers.get(name, ""), 100):
            return value
    return ""


def _http_date(value: str) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
        # The oldest of the three forms names no zone, and means UTC.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
