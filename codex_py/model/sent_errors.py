"""Errors that come within a 200 answer, in place of its chunks or beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_py.errors import ModelError
from codex_py.model.failures import RETRIED_STATUSES, stream_failure
from codex_py.protocol.encoding import as_object


def sent_error(value: Mapping[str, Any], *, now: float) -> ModelError | None:
    """The error in an object of a stream, None when it has none. `now` is the wall clock.

    It stands under `error`, as an object or a text, or is the object itself (vLLM, FastAPI).
    """
    error = value.get("error")
    if not error:
        has_answer = "choices" in value or "delta" in value
        if has_answer or not (value.get("object") == "error" or value.get("type") == "error" or "detail" in value):
            return None
        # The type is that of the event.
        error = {name: field for name, field in value.items() if (name, field) != ("type", "error")}
    fields = as_object(error) or {"message": str(error)}
    status = next((code for key in ("code", "status", "status_code") if (code := _status(fields.get(key)))), 0)
    failure = stream_failure(fields, now=now, status=status)
    if 400 <= status < 500 and status not in RETRIED_STATUSES:
        failure.retryable = False
    return failure


def _status(value: object) -> int:
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
