"""What the body of an error says: its message, its code, and which failure that is. Servers have many forms for it.

Text from outside is bounded, on one line and without control characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any, Final

from codex_py.model.wordings import says_over_rate, says_too_long
from codex_py.protocol.encoding import as_list, as_object, decode_or_none
from codex_py.protocol.failures import FailureCode

TOO_LONG: Final = "context_length_exceeded"
NO_MODEL: Final = "model_not_found"
_NO_CREDIT: Final = "insufficient_quota"
NO_QUOTA: Final = frozenset({"usage_limit_reached", _NO_CREDIT, "usage_not_included"})
_MAX_MESSAGE: Final = 500
# The same as a code of llama.cpp, Anthropic, LiteLLM, GitHub and z.ai.
_TOO_LONG_CODES: Final = frozenset(
    {
        TOO_LONG,
        "exceed_context_size_error",
        "request_too_large",
        "ContextWindowExceededError",
        "tokens_limit_reached",
        "model_context_window_exceeded",
        "1261",
    }
)

# Patterns stay text: compiling them is work for the day something fails, not for every start.
_TITLE: Final = r"(?i)<title[^<>]{0,200}>([^<]{0,800})"
_PAGE: Final = r"(?i)<(?:html|!doctype html|body)\b"
_NO_LOGIN: Final = frozenset(
    {"authentication_error", "invalid_api_key", "permission_error", "permission_denied", "invalid_authentication"}
)
_REFUSALS: Final = frozenset(
    {"invalid_prompt", "cyber_policy", "bio_policy", "content_filter", "content_policy_violation", "refusal"}
)
_RATE: Final = frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests"})
_GONE: Final = frozenset({NO_MODEL, "not_found_error"})
_GONE_MODELS: Final = frozenset({NO_MODEL, "model_decommissioned", "invalid_model", "DeploymentNotFound"})
# What a 404 says of models, in the words of Anthropic, Google and OpenRouter too; and what Groq, Mistral and OpenRouter
# say in a 400.
_MISSING: Final = r"(?i)\bmodels?\b|no endpoints (?:found|available)"
_GONE_WORDS: Final = (
    r"(?i)\bmodel\b.{0,120}\b(?:does not exist|has been decommissioned)|not a valid model|invalid model\b"
)
# Those of Anthropic (400), OpenRouter (403) and xAI (403) for an account that has nothing left.
_EMPTY_ACCOUNT: Final = r"(?i)credit balance is too low|key limit exceeded|doesn't have any credits"
_OVERLOADS: Final = frozenset(
    {"server_is_overloaded", "overloaded_error", "server_error", "api_error", "slow_down", "internal_server_error"}
)


def failure_in(code: str, words: Set[str], status: int = 0) -> FailureCode:
    """Which failure an error is, by the server's words for it and the status of its answer, 0 within a stream."""
    words = {*words, code}
    if code == TOO_LONG:
        return "context_length"
    if words & NO_QUOTA or status == 402 or "billing_error" in words:
        return "quota"
    if status in (401, 403):
        return "auth"
    if status == 429 or words & _RATE:
        return "rate_limit"
    if status in (408, 504, 524) or "timeout_error" in words:
        return "timeout"
    if status >= 500 or status in (409, 425) or words & _OVERLOADS:
        return "overloaded"
    if words & _NO_LOGIN:
        return "auth"
    if words & _REFUSALS:
        return "refused"
    if status in (404, 405) or words & _GONE:
        return "config"
    # A failure within a stream that names no reason passes.
    return "internal" if status or any(words) else "overloaded"


def on_one_line(text: str, limit: int = _MAX_MESSAGE) -> str:
    """Text from outside for a message: printable, single spaces, at most `limit` characters."""
    text = text[: limit * 4]
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def error_object(body: bytes) -> dict[str, Any]:
    """The error in a JSON body: the object under `error`, or the body itself for the servers that have none."""
    if body.lstrip()[:1] not in (b"{", b"["):
        return {}
    decoded = decode_or_none(body.decode("utf-8", "replace"))
    # Google's come in an array of one.
    value = as_object(decoded) or as_object(next(iter(as_list(decoded)), None))
    error = value.get("error")
    if isinstance(error, str):
        return {**value, "message": error}
    return as_object(error) or value


def codes_of(error: Mapping[str, Any]) -> set[str]:
    """The words of the server for what kind of error it is."""
    return {value for key in ("code", "type") if isinstance(value := error.get(key), str)}


def code_of(error: Mapping[str, Any], message: str, status: int = 0) -> str:
    """The word for an error: `TOO_LONG` for every request that was longer than the model can read, `NO_MODEL` where the
    server does not have the model, and that for an account without credit where the server has only a sentence for it.
    """
    codes, sentence = codes_of(error), message_of(error)
    if _is_too_long(codes, message, status):
        return TOO_LONG
    gone = {404: _MISSING, 410: _MISSING, 0: _GONE_WORDS, 400: _GONE_WORDS}.get(status)
    if codes & _GONE_MODELS or (gone and re.search(gone, sentence)):
        return NO_MODEL
    if status in (0, 400, 403) and re.search(_EMPTY_ACCOUNT, sentence):
        return _NO_CREDIT
    return on_one_line(str(error.get("code") or error.get("type") or ""), 60)


def _is_too_long(codes: Set[str], message: str, status: int) -> bool:
    if codes & _TOO_LONG_CODES or status == 413 or says_over_rate(message):
        return True
    if codes & (_RATE | NO_QUOTA) or not (status in (0, 400, 422) or status >= 500):
        return False
    return says_too_long(message)


def message_of(error: Mapping[str, Any]) -> str:
    """The message of an error, on one line, with that of the server behind a router; empty where it says nothing."""
    raw = as_object(error.get("metadata")).get("raw")
    if isinstance(raw, str) and raw.strip():
        return on_one_line(f"{error.get('message') or 'refused'}: {raw}")
    for key in ("message", "detail", "msg"):
        value = error.get(key)
        if isinstance(value, str) and (line := on_one_line(value)):
            return line
        # FastAPI's validation errors: a list of objects with a `msg` each, and the field that it is about.
        found = [as_object(item) for item in as_list(as_object(value).get("detail", value))[:10]]
        texts = [[*_field_of(item), str(item["msg"])] for item in found if item.get("msg")]
        if line := on_one_line("; ".join(map(": ".join, texts))):
            return line
        if line := on_one_line(str(as_object(value).get("message") or "")):
            return line
    return ""


def _field_of(item: Mapping[str, Any]) -> list[str]:
    """The field that a validation error is about, without the types of a union that pydantic tried."""
    path = [str(step) for step in as_list(item.get("loc"))[1:] if re.fullmatch(r"\w+", str(step))]
    return [".".join(path)] if path else []


def plain_text(body: bytes) -> str:
    """The text of a body that is no error object; of a web page its title."""
    text = body.decode("utf-8", "replace")
    if "<" not in text[:200]:
        return on_one_line(text)
    found = re.search(_TITLE, text)
    if found and (title := on_one_line(found[1], 200)):
        return f"an HTML page titled “{title}”"
    return "an HTML page" if found or re.search(_PAGE, text) else on_one_line(text)
