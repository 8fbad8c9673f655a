"""`model_catalog_json`: facts about models in a file, in the format that servers of ChatGPT logins use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.errors import ConfigError
from codex_py.model.catalog import ModelFacts, PatchForm
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.text.files import json_reason, os_reason

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
