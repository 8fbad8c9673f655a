"""What the model may pass to `exec_command` and `write_stdin`. Imports pydantic: loaded at the first call of either."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field


def _whole(value: object) -> object:
    """A float without regard to its fraction: models write `500.0`, and half a millisecond matters to nobody."""
    return int(value) if isinstance(value, float) and value == value and abs(value) < 2**53 else value


Whole = Annotated[int, BeforeValidator(_whole)]


class ExecCommandArguments(BaseModel):
    cmd: str
    workdir: str | None = None
    shell: str | None = None
    login: bool = True
    tty: bool = False
    yield_time_ms: Whole = 10_000
    max_output_tokens: Whole = 10_000
    sandbox_permissions: Literal["use_default", "require_escalated"] = "use_default"
    justification: str | None = None
    prefix_rule: list[str] = Field(default_factory=list)


class WriteStdinArguments(BaseModel):
    session_id: Whole
    chars: str = ""
    yield_time_ms: Whole | None = None
    max_output_tokens: Whole = 10_000
