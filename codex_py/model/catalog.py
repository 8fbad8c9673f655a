"""The built-in facts about models, and those of `model_catalog_json`. The user's own entries win over both.

That file has the format that servers of ChatGPT logins use.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.config.model_sections import ModelEntry
from codex_py.errors import ConfigError
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.value import Value
from codex_py.text.files import json_reason, os_reason

PatchForm: TypeAlias = Literal["freeform", "function"]

# The limit on one tool output of unknown models: 10,000 bytes.
_CAUTIOUS_OUTPUT: Final = 2500
_CAUTIOUS_ANSWER: Final = 32_768
_AFTER_NAME: Final = "-.:@_/"
# Others' models, and those that do a work of their own.
_NOT_CHOSEN: Final = frozenset({"offline-rules", "gpt-oss", "codex-auto-review"})


class ModelFacts(Value):
    """How a model is asked when the user has chosen nothing.

    `context_window` is what it reads, in tokens; `effort`, `summary` and `verbosity` are None where the model takes no
    such setting or has its own default. `output_tokens` caps one tool output, `max_output_tokens` one answer of a
    model that may not end it by itself. `known`
    is False for a name that is neither in the table nor in the user's configuration. `shell` says whether it is offered
    tools that run commands.
    """

    context_window: int = 272_000
    auto_compact_tokens: int | None = None
    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    takes_verbosity: bool = False
    apply_patch: PatchForm = "function"
    parallel: bool = True
    images: bool = True
    output_tokens: int = 10_000
    max_output_tokens: int | None = None
    known: bool = True
    shell: bool = True


# The built-in rules read what they are given at no cost, and the middle of a long test run matters to them.
_RULES: Final = ModelFacts(output_tokens=50_000)
_CHAT: Final = ModelFacts(context_window=1_047_576)
_REASONING: Final = ModelFacts(context_window=200_000, effort="medium")
_OPEN_WEIGHTS: Final = ModelFacts(
    context_window=131_072, effort="medium", images=False, max_output_tokens=_CAUTIOUS_ANSWER
)
_GPT_5: Final = ModelFacts(effort="medium", takes_verbosity=True, apply_patch="freeform")
_GPT_5_CODEX: Final = _GPT_5.replace(takes_verbosity=False)
_CURRENT: Final = _GPT_5.replace(verbosity="low")
_CURRENT_QUICK: Final = _CURRENT.replace(effort="low")
# They say themselves how long they think when nobody asks for more or less.
_CLAUDE: Final = ModelFacts(context_window=1_000_000, max_output_tokens=128_000)
_CLAUDE_4: Final = ModelFacts(context_window=200_000, max_output_tokens=64_000)
# Of families that several servers offer, with the smallest window that their makers document.
_GEMINI: Final = ModelFacts(context_window=1_048_576, summary="auto", max_output_tokens=65_536)
_OTHERS: Final = ModelFacts(context_window=131_072, summary="auto", max_output_tokens=_CAUTIOUS_ANSWER)
_TEXT_ONLY: Final = _OTHERS.replace(images=False)


def _table() -> dict[str, ModelFacts]:
    return {
        "offline-rules": _RULES,
        "gpt-4.1": _CHAT,
        "gpt-4o": _CHAT.replace(context_window=128_000),
        "o3": _REASONING,
        "o3-mini": _REASONING.replace(images=False),
        "o4-mini": _REASONING,
        "codex-mini-latest": _REASONING,
        "gpt-oss": _OPEN_WEIGHTS,
        "gpt-5": _GPT_5,
        "gpt-5-codex": _GPT_5_CODEX,
        "gpt-5.1": _CURRENT,
        "gpt-5.1-codex": _GPT_5_CODEX,
        "gpt-5.2": _CURRENT,
        "gpt-5.2-codex": _GPT_5_CODEX,
        "gpt-5.3": _CURRENT,
        "gpt-5.3-codex": _GPT_5_CODEX,
        "gpt-5.4": _CURRENT,
        "gpt-5.5": _CURRENT,
        "gpt-5.6": _CURRENT,
        "gpt-5.6-sol": _CURRENT_QUICK,
        "gpt-6": _CURRENT,
        "gpt-6-astra": _CURRENT_QUICK,
        "gpt-6.1": _CURRENT_QUICK,
        "gpt-6.1-terra": _CURRENT_QUICK.replace(context_window=500_000),
        "gpt-daybreak-blue": _CURRENT_QUICK,
        "gpt-daybreak-red": _CURRENT.replace(context_window=372_000, verbosity="high"),
        "codex-auto-review": _CURRENT,
        **_claude_table(),
    }


def _claude_table() -> dict[str, ModelFacts]:
    return {
        "claude": _CLAUDE,
        "claude-3": _CLAUDE_4.replace(max_output_tokens=4096),
        "claude-3-5": _CLAUDE_4.replace(max_output_tokens=8192),
        "claude-3-7": _CLAUDE_4,
        "claude-haiku-4": _CLAUDE_4,
        "claude-opus-4": _CLAUDE_4.replace(max_output_tokens=32_000),
        "claude-opus-4-5": _CLAUDE_4,
        "claude-opus-4-6": _CLAUDE,
        "claude-opus-4-7": _CLAUDE,
        "claude-opus-4-8": _CLAUDE,
        "claude-sonnet-4": _CLAUDE_4,
        "claude-sonnet-4-6": _CLAUDE.replace(max_output_tokens=64_000),
    }


def _family_table() -> dict[str, ModelFacts]:
    """The models of the other built-in providers."""
    return {
        "gemini": _GEMINI,
        "gemini-2.0": _GEMINI.replace(max_output_tokens=8192),
        "deepseek": _TEXT_ONLY.replace(context_window=128_000),
        "deepseek-chat": _TEXT_ONLY.replace(context_window=128_000, max_output_tokens=8192),
        "mistral": _OTHERS,
        "magistral": _OTHERS,
        "ministral": _OTHERS,
        "devstral": _TEXT_ONLY,
        "codestral": _TEXT_ONLY.replace(context_window=256_000),
        "llama-3.1": _TEXT_ONLY,
        "llama-3.3": _TEXT_ONLY,
        "llama-4": _OTHERS,
        "qwen3-coder": _TEXT_ONLY.replace(context_window=262_144),
        "kimi-k2": _TEXT_ONLY,
        "grok-3": _TEXT_ONLY,
        "grok-4": _OTHERS.replace(context_window=256_000),
        "grok-code-fast": _TEXT_ONLY.replace(context_window=256_000),
        "glm": _TEXT_ONLY,
    }


def openai_models() -> tuple[str, ...]:
    """The names in the table that OpenAI knows and a person chooses from, the newest first."""
    return tuple(name for name in reversed(_table()) if name not in _NOT_CHOSEN and not name.startswith("claude"))


def facts_for(
    model: str,
    overrides: Mapping[str, ModelEntry] | None = None,
    *,
    catalog: Mapping[str, ModelFacts] | None = None,
) -> ModelFacts:
    """The facts about a model; `overrides` are the user's entries by exact name, `catalog` adds to the table.

    The longest name in the table that starts the model's decides (`gpt-5-codex-2026-01-01` is `gpt-5-codex`), also
    behind a vendor's prefix (`openai/gpt-oss-20b`). Of an unknown model little is taken for granted.
    """
    table = {**_table(), **_family_table(), **(catalog or {})}
    facts = _from_table(model, table) or _from_table(model.rpartition("/")[2], table)
    if facts is None:
        facts = ModelFacts(
            summary="auto", output_tokens=_CAUTIOUS_OUTPUT, max_output_tokens=_CAUTIOUS_ANSWER, known=False
        )
    own = (overrides or {}).get(model)
    return facts if own is None else _overridden(facts, own)


def _from_table(model: str, table: Mapping[str, ModelFacts]) -> ModelFacts | None:
    name = model.strip().lower()
    matches = [(len(key), facts) for key, facts in table.items() if _is_version_of(name, key)]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def _is_version_of(name: str, key: str) -> bool:
    return name.startswith(key) and (len(name) == len(key) or name[len(key)] in _AFTER_NAME)


def _overridden(facts: ModelFacts, own: ModelEntry) -> ModelFacts:
    return ModelFacts(
        context_window=own.context_window or facts.context_window,
        auto_compact_tokens=own.auto_compact_token_limit or facts.auto_compact_tokens,
        effort=own.reasoning_effort or facts.effort,
        summary=own.reasoning_summary or facts.summary,
        verbosity=own.verbosity or facts.verbosity,
        takes_verbosity=facts.takes_verbosity or own.verbosity is not None,
        apply_patch=own.apply_patch or facts.apply_patch,
        parallel=facts.parallel if own.parallel_tool_calls is None else own.parallel_tool_calls,
        images=facts.images if own.images is None else own.images,
        output_tokens=own.tool_output_token_limit or facts.output_tokens,
        max_output_tokens=own.max_output_tokens or facts.max_output_tokens,
        known=True,
        shell=facts.shell,
    )


_MAX_BYTES: Final = 16 * 1024 * 1024


def read_catalog(path: Path) -> Mapping[str, ModelFacts]:
    """The facts by lower-case name. Raises `ConfigError` for a file that is no such catalogue."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _unusable(path, os_reason(error)) from error
    if len(content) > _MAX_BYTES:
        raise _unusable(path, "over 16 MiB")
    try:
        catalog: object = decode_json(content.decode("utf-8-sig"))
    except ValueError as error:
        raise _unusable(path, f"not JSON: {json_reason(error)}") from error
    entries = as_list(as_object(catalog).get("models"))
    if not entries:
        raise _unusable(path, "no models in it")
    facts: dict[str, ModelFacts] = {}
    for position, entry in enumerate(entries):
        fields = as_object(entry)
        name = fields.get("slug")
        if not isinstance(name, str) or not name.strip():
            raise _unusable(path, f"`models[{position}]` has no `slug`")
        facts[name.strip().lower()] = _facts(fields, f"`models[{position}]` (`{name.strip()}`)", path)
    return facts


def _facts(entry: Mapping[str, Any], where: str, path: Path) -> ModelFacts:
    limit = as_object(entry.get("truncation_policy"))
    tokens = _number(limit, "limit", where, path)
    if tokens is not None and limit.get("mode") == "bytes":
        tokens = max(1, tokens // 4)
    usual = ModelFacts()
    form: PatchForm = "freeform" if entry.get("apply_patch_tool_type") == "freeform" else "function"
    takes_verbosity = entry.get("support_verbosity") is True
    modalities = as_list(entry.get("input_modalities"))
    return ModelFacts(
        context_window=_number(entry, "context_window", where, path) or usual.context_window,
        auto_compact_tokens=_number(entry, "auto_compact_token_limit", where, path),
        effort=_word(entry, "default_reasoning_level", where, path),
        summary=_summary(_word(entry, "default_reasoning_summary", where, path)),
        verbosity=_word(entry, "default_verbosity", where, path) if takes_verbosity else None,
        takes_verbosity=takes_verbosity,
        apply_patch=form,
        parallel=entry.get("supports_parallel_tool_calls") is not False,
        images="image" in modalities if modalities else usual.images,
        shell=entry.get("shell_type") != "disabled",
        output_tokens=tokens or usual.output_tokens,
    )


def _summary(word: str | None) -> str | None:
    return None if word == "none" else word


def _number(entry: Mapping[str, Any], key: str, where: str, path: Path) -> int | None:
    value = entry.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _unusable(path, f"`{key}` of {where} is not a whole number above 0")
    return value


def _word(entry: Mapping[str, Any], key: str, where: str, path: Path) -> str | None:
    value = entry.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise _unusable(path, f"`{key}` of {where} is not a word")
    return value.strip()


def _unusable(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"cannot use the model catalogue `{path}`: {reason}", hint="see `model_catalog_json` in config.toml"
    )
