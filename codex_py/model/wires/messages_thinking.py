"""How a model of the Messages API is asked to think, and for JSON of a form: by what its name says of its age."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from codex_py.model.client import Prompt
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value

# `claude-opus-4-5-20251101`, `claude-3-7-sonnet`, `anthropic.claude-4.7-opus`, `claude-sonnet-4@20250514`.
_CLAUDE: Final = r"claude(?:[-.][a-z]+)*(?:[-.](\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?)?"
_NEWEST: Final = (99, 0)
_FIRST_THINKING: Final = (3, 7)
_FIRST_INTERLEAVED: Final = (4, 0)
_FORMATS: Final = (4, 5)
_ADAPTIVE: Final = (4, 6)
_MIN_BUDGET: Final = 1024
_BUDGETS: Final[Mapping[str, int]] = {"minimal": 1024, "low": 4096, "medium": 10_000, "high": 20_000}
_MAX_BUDGET: Final = 32_000
_BEYOND_HIGH: Final = ("xhigh", "max", "ultra", "persistent")
# What the API's JSON schemas may say; the rest is checked when the answer is there.
_SCHEMA_KEYS: Final = frozenset({"type", "description", "title", "enum", "const", "default", "$ref", "required"})


class Thinking(Value):
    """`fields` are those of `thinking` in a request, `effort` that of `output_config`; None leaves either out.
    `interleaved` calls for the beta header.
    """

    fields: Mapping[str, Any] | None = None
    effort: str | None = None
    interleaved: bool = False


def claude_version(model: str) -> tuple[int, int] | None:
    """The version in a name, as (4, 5); a Claude without one counts as the newest, and another's model has None."""
    found = re.search(_CLAUDE, model.lower())
    if found is None:
        return None
    return (int(found[1]), int(found[2] or 0)) if found[1] else _NEWEST


def thinking_for(prompt: Prompt, max_tokens: int, *, has_thought: bool, refused: Collection[str] = ()) -> Thinking:
    """The thinking parameters for an effort. `has_thought` says whether the answer under way began with thinking:
    where thinking has a budget, the API takes no other one back. `refused` are forms that the server does not take.
    """
    version = claude_version(prompt.model)
    if "thinking" in refused:
        return Thinking()
    adaptive = version is not None and version >= _ADAPTIVE
    if ("budget" in refused or adaptive) and "adaptive" not in refused:
        return _adaptive(prompt, version or _NEWEST, refused)
    return _budgeted(prompt, version, max_tokens) if has_thought and "budget" not in refused else Thinking()


def _adaptive(prompt: Prompt, version: tuple[int, int], refused: Collection[str]) -> Thinking:
    effort = None if prompt.effort is None or "effort" in refused else _effort(prompt.effort, prompt.model, version)
    if prompt.effort == "none":
        # Some of them think whatever is asked, and refuse to be told not to.
        return Thinking(effort=effort)
    display = {} if "display" in refused else {"display": "omitted" if prompt.summary == "none" else "summarized"}
    return Thinking({"type": "adaptive", **display}, effort)


def _budgeted(prompt: Prompt, version: tuple[int, int] | None, max_tokens: int) -> Thinking:
    effort = prompt.effort
    if not effort or effort == "none" or (version is not None and version < _FIRST_THINKING):
        return Thinking()
    budget = min(_BUDGETS.get(effort, _MAX_BUDGET), max_tokens * 3 // 4)
    if budget < _MIN_BUDGET:
        return Thinking()
    interleaved = version is not None and version >= _FIRST_INTERLEAVED
    return Thinking({"type": "enabled", "budget_tokens": budget}, interleaved=interleaved)


def _effort(effort: str, model: str, version: tuple[int, int]) -> str:
    if effort in ("none", "minimal"):
        return "low"
    if effort not in _BEYOND_HIGH:
        return effort
    if version == _ADAPTIVE:
        return "max" if effort != "xhigh" and "opus" in model.lower() else "high"
    return "xhigh" if effort == "xhigh" else "max"


def supported_schema(model: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema as the API takes it, which may be wider; None where model or schema leave that to the instructions."""
    version = claude_version(model)
    if version is None or version < _FORMATS:
        return None
    try:
        return _narrowed(schema)
    except ValueError:
        return None


def _narrowed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Only what the API knows, every object closed. Raises `ValueError` for an object of any keys."""
    narrowed: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _SCHEMA_KEYS:
            narrowed[key] = value
        elif key in ("properties", "$defs", "definitions"):
            narrowed[key] = {name: _narrowed(as_object(inner)) for name, inner in as_object(value).items()}
        elif key == "items":
            narrowed[key] = _narrowed(as_object(value))
        elif key in ("anyOf", "allOf", "oneOf"):
            narrowed["anyOf" if key == "oneOf" else key] = [_narrowed(as_object(inner)) for inner in as_list(value)]
        elif key == "patternProperties" or (key == "additionalProperties" and value is not False):
            raise ValueError(key)
    if narrowed.get("type") == "object" or "properties" in narrowed:
        if "properties" not in narrowed:
            raise ValueError("an object without properties")
        narrowed["additionalProperties"] = False
    return narrowed
