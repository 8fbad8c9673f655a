"""The arguments of `exec_command` and `write_stdin` as pydantic models, to compare what is read with."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from codex_py.tools.shell_command import Whole


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
