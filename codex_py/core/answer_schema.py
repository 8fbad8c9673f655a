"""Whether an answer fits the JSON schema that the caller asked for."""

from __future__ import annotations

from typing import Any, Final

from codex_py.errors import UsageError
from codex_py.protocol.encoding import decode_json
from codex_py.text.nearest import did_you_mean

_MAX_SHOWN: Final = 300
_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")


def check_schema(schema: dict[str, Any], name: str = "the output schema") -> None:
    """Raise `UsageError` for a schema that is not valid; `name` is its name in messages. Loads the validator: 0.1 s."""
    library = _load_library()
    try:
        _validator_class(schema).check_schema(schema)
    except library.SchemaError as error:
        raise UsageError(f"{name} is not a valid JSON schema: {_shown_mistake(error)}") from error
    except RecursionError as error:
        raise UsageError(f"{name} is nested too deeply") from error


def find_misfit(answer: str, schema: dict[str, Any]) -> str | None:
    """Describe on one line how the answer violates the schema; None when it is valid. `$ref` URLs are never fetched."""
    if not answer.strip():
        return "it is empty"
    references = _load_library().validators.referencing
    try:
        value: Any = decode_json(answer)
        registry: Any = references.Registry()
        errors: Any = _validator_class(schema)(schema, registry=registry).iter_errors(value)
        error: Any = next(errors, None)
    except references.exceptions.Unresolvable as unresolved:
        return f"the schema refers to `{unresolved.ref}`, which is not in it"
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as invalid:
        return f"it is not JSON: {invalid}"
    return None if error is None else _shown(error)


def _validator_class(schema: dict[str, Any]) -> Any:
    validators = _load_library().validators
    return validators.validator_for(schema, default=validators.Draft202012Validator)


def _load_library() -> Any:
    import jsonschema

    return jsonschema


def _shown_mistake(error: Any) -> str:
    """What is wrong with a schema: for a wrong `type`, which types there are."""
    value: object = error.instance
    if list(error.path)[-1:] != ["type"] or not isinstance(value, str):
        return _shown(error)
    guess = did_you_mean(value, _TYPES)
    allowed = ", ".join(f"`{name}`" for name in _TYPES)
    return (
        f"at `{error.json_path}`: there is no type `{value[:40]}`; {guess}{' ' if guess else ''}allowed are {allowed}"
    )


def _shown(error: Any) -> str:
    line = " ".join(str(error.message).split())
    return f"at `{error.json_path}`: {line if len(line) <= _MAX_SHOWN else line[: _MAX_SHOWN - 1] + '…'}"
