"""What a refused request says to the user, and when it is worth another try."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.model.error_bodies import on_one_line
from codex_py.model.failures import (
    Server,
    delay_in_message,
    http_failure,
    retry_after,
    stream_failure,
    unexpected_answer,
)
from tests.support.work import within

URL = "https://models.example/v1/responses"
CHECK = "does `base_url` name a server of the Responses API?"
NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


def refused(
    status: int, body: Any = b"", headers: dict[str, str] | None = None
) -> tuple[str, bool, float | None, bool, bool]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = http_failure(status, headers or {}, content, server=Server(URL), now=NOW)
    return str(error), error.retryable, error.retry_after, error.streaming, error.unreachable


def test_a_used_up_plan_says_when_it_starts_again() -> None:
    body = {"error": {"type": "usage_limit_reached", "message": "limit", "plan_type": "plus", "resets_at": NOW + 3600}}
    assert refused(429, body)[0] == (
        "429 Too Many Requests: limit; the limit resets in 60 minutes, at 2027-01-15 09:00 UTC"
    )
    body = {"error": {"type": "usage_limit_reached", "message": "limit", "resets_in_seconds": 86400 * 9}}
    assert refused(429, body)[0].endswith("; the limit resets after 2027-01-24 08:00 UTC")
    for odd in (-5, "soon", None, True, 1e300):
        body = {"error": {"type": "usage_limit_reached", "message": "limit", "resets_in_seconds": odd}}
        assert refused(429, body)[0] == "429 Too Many Requests: limit"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":{"message":"in the error"}}', ": in the error"),
        (b'{"error":"a plain error"}', ": a plain error"),
        (b'{"detail":"a detail"}', ": a detail"),
        (b'{"detail":[{"loc":["body"],"msg":"field required"},{"msg":"too long"}]}', ": field required; too long"),
        (b'{"detail":{"message":"nested"}}', ": nested"),
        (b'{"message":"at the top"}', ": at the top"),
        (b'{"error":{"code":"x"}}', ': {"error":{"code":"x"}}'),
        (b'{"error":null,"message":"beside it"}', ": beside it"),
        (b"plain text\r\nof two lines", ": plain text of two lines"),
        (b"\x1b]0;title\x07a\x00b \xe2\x80\xae c", ": ]0;title a b c"),
        (b"\xff\xfe\xfa", ": \ufffd\ufffd\ufffd"),
        (b"", ""),
        (b"  \n ", ""),
        (b"[1]", ": [1]"),
        (b'{"broken', ': {"broken'),
        (b"<html><head><TITLE >Bad\n gateway</TITLE></head>", ": an HTML page titled “Bad gateway”"),
        (b"<!DOCTYPE html><body>no title</body>", ": an HTML page"),
        (b"<html><title></title></html>", ": an HTML page"),
        (b"<html><title>never closed", ": an HTML page titled “never closed”"),
        (b"<Error><Code>AccessDenied</Code></Error>", ": <Error><Code>AccessDenied</Code></Error>"),
    ],
)
def test_the_message_is_found_wherever_the_server_put_it(body: bytes, said: str) -> None:
    assert refused(500, body)[0] == f"500 Internal Server Error{said}"


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({"x-oai-request-id": "a"}, " (request id: a)"),
        ({"cf-ray": "c", "x-request-id": "r"}, " (request id: r)"),
        ({"cf-ray": "c\x1b[2J"}, " (request id: c [2J)"),
        ({"x-request-id": "  "}, ""),
    ],
)
def test_the_request_id_is_shown_when_there_is_one(headers: dict[str, str], shown: str) -> None:
    assert refused(400, {"message": "no"}, headers)[0] == f"400 Bad Request: no{shown}"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT", "date": "Fri, 15 Jan 2027 08:00:10 GMT"}, 20.0),
        ({"retry-after": "Friday, 15-Jan-27 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri Jan 15 08:00:30 2027"}, 30.0),
        ({"retry-after": "999999999999"}, 10 * 365 * 86400.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 10 * 365 * 86400.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 99 Jan 2027 99:00:30 GMT"}, None),
        ({"retry-after": "9" * 10_000}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("status", "delay"), [(429, 7.0), (500, 7.0), (503, 7.0), (408, None), (409, None), (400, None)]
)
def test_retry_after_counts_for_429_and_5xx(status: int, delay: float | None) -> None:
    assert refused(status, b"", {"retry-after": "7"})[2] == delay


def test_a_wait_of_more_than_ten_minutes_is_final_and_says_when() -> None:
    assert refused(429, {"message": "slow"}, {"retry-after": "600"})[1:3] == (True, 600.0)
    assert refused(429, {"message": "slow"}, {"retry-after": "7200"})[:3] == (
        "429 Too Many Requests: slow; the server asks to try again in 120 minutes, at 2027-01-15 10:00 UTC",
        False,
        None,
    )
    assert refused(503, b"", {"retry-after": "36000"})[0].endswith("in 10 hours, at 2027-01-15 18:00 UTC")


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("try again in 1.5s", 1.5),
        ("Try again in 300ms.", 0.3),
        ("please try again in 2 seconds", 2.0),
        ("try again in 1 second.", 1.0),
        ("try again in 6m0s", None),
        ("try again in 5 sunsets", None),
        ("try again later", None),
        ("", None),
    ],
)
def test_a_delay_named_in_a_message(message: str, seconds: float | None) -> None:
    assert delay_in_message(message) == seconds


@pytest.mark.parametrize("unit", ["try again in ", "try again in 1", "<title", "1." * 9, " ", "<", "\x00"])
def test_a_hostile_megabyte_is_read_in_linear_time(unit: str) -> None:
    text = unit * (1024 * 1024 // len(unit))
    within(len(text), lambda: delay_in_message(text))
    within(len(text), lambda: on_one_line(text))
    http_headers = {"retry-after": text, "x-request-id": text}
    within(len(text), lambda: http_failure(429, http_headers, text.encode(), server=Server(URL), now=NOW))


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (
            "text/html; charset=utf-8",
            b"<html><title>Log in</title>",
            f"`{URL}` answered 200 with `text/html`, not with an event stream: an HTML page titled “Log in”; {CHECK}",
        ),
        (
            "application/json",
            b'{"error":{"message":"no such model"}}',
            f"`{URL}` answered 200 with `application/json`, not with an event stream: no such model",
        ),
        ("", b"hello", f"`{URL}` answered 200 with something else, not with an event stream: hello; {CHECK}"),
        ("text/html", b"", f"`{URL}` answered 200 with `text/html`, not with an event stream; {CHECK}"),
    ],
)
def test_an_answer_that_is_no_stream_is_one_final_error(kind: str, body: bytes, expected: str) -> None:
    error = unexpected_answer(200, {"content-type": kind}, body, server=Server(URL), expected="an event stream")
    assert (str(error), error.retryable) == (expected, False)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "context_length_exceeded", "message": "too long"}),
        (400, {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"}),
        (400, {"message": "This model's maximum context length is 8192 tokens, however you requested 9000"}),
        (500, {"message": "Input exceeds the context window of this model"}),
    ],
)
def test_a_request_that_is_too_long_has_one_code_whoever_says_it(status: int, error: dict[str, str]) -> None:
    body = json.dumps({"error": error}).encode()
    before = http_failure(status, {}, body, server=Server(URL), now=NOW)
    within_the_answer = stream_failure(error, now=NOW)
    assert [(one.code, one.retryable) for one in (before, within_the_answer)] == [
        ("context_length_exceeded", False)
    ] * 2
