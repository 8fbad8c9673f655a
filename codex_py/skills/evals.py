"""The evaluations that a skill brings: `evals/evals.json` as the Agent Skills guide has it, or our YAML files.

Lists of queries that should or should not trigger a skill are read, too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.text.files import FileRefused, read_inside
from codex_py.text.frontmatter import YamlRefused, parse_yaml
from codex_py.text.nearest import did_you_mean

CheckType: TypeAlias = Literal["command", "file", "answer", "skill", "sentence"]
EVALS: Final = "evals"
MAX_RUNS: Final = 100
_MAX_BYTES: Final = 1024 * 1024
_MAX_FILES: Final = 200
_KEYS: Final = ("name", "prompt", "files", "checks", "runs")
_CHECKS: Final[tuple[CheckType, ...]] = ("command", "file", "answer", "skill")
# Other programs' keys for the same in JSON. Their other keys are ignored.
_LISTS: Final = ("evals", "test_cases", "cases")
_PROMPTS: Final = ("prompt", "query", "input")
_SENTENCES: Final = ("expectations", "assertions", "expected_behavior")


class Check(Value):
    """Something that is checked after a run."""

    type: CheckType
    text: str
    """A command that ends with 0, a file that exists, a pattern in the answer, `used` or `unused`, a sentence."""
    matches: str | None = None
    """A pattern in the file."""


class EvalCase(Value):
    """One prompt, and what is expected of the result."""

    name: str
    prompt: str
    files: Mapping[str, str | Path]
    """Paths in the workspace, each with a text, or with a file or directory of the skill."""
    checks: tuple[Check, ...]
    runs: int | None = None
    expectations: tuple[str, ...] = ()
    """Sentences that only a person or a model can judge."""

    @property
    def wants_skill(self) -> bool:
        """Whether the skill should be used; it should unless a check says otherwise."""
        return Check("skill", "unused") not in self.checks


def read_evals(directory: Path) -> tuple[EvalCase, ...]:
    """The cases of a skill's directory, in the order of the files. Raises `UserError` for a file with a fault."""
    # Without links and `..` on the way to it, so that a link inside of it that leads out is known as one.
    directory = Path(os.path.realpath(directory))
    evals = directory / EVALS
    try:
        found = sorted(evals.iterdir()) if evals.is_dir() else []
    except OSError as error:
        raise UserError(f"cannot read `{evals}`: {error.strerror}") from error
    files = [*found, directory / "evals.json"]
    yaml = [file for file in files if file.suffix in (".yaml", ".yml")]
    cases: list[EvalCase] = []
    for file in (*yaml, *(file for file in files if file.suffix == ".json")):
        if file.is_file():
            try:
                cases += _read_file(file, directory)
            except (FileRefused, YamlRefused, UserError, ValueError, RecursionError, OSError) as error:
                hint = error.hint if isinstance(error, UserError) else None
                raise UserError(f"cannot read `{file}`: {error}", hint=hint) from None
    if not cases:
        raise UserError(
            f"the skill has no evaluations: `{evals}` has none", hint="write `evals/evals.json` with a `prompt`"
        )
    return tuple(cases)


def _read_file(file: Path, directory: Path) -> Iterator[EvalCase]:
    head = read_inside(directory, file, _MAX_BYTES)
    if head is None or head.size > _MAX_BYTES:
        raise UserError(f"more than {_MAX_BYTES} bytes")
    is_json = file.suffix == ".json"
    value: object = json.loads(head.raw) if is_json else parse_yaml(head.raw.decode())
    if is_json and isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        value = next((mapping[key] for key in _LISTS if key in mapping), None)
    if is_json and not isinstance(value, list):
        raise UserError("neither a list of evaluations nor an object with `evals`")
    entries = cast("list[object]", value) if isinstance(value, list) else [value]
    for number, item in enumerate(entries, start=1):
        entry = _mapping(item, "an evaluation")
        if is_json:
            # Other programs may have checks of their own.
            entry["checks"] = [each for each in as_list(entry.get("checks")) if as_object(each).keys() & set(_CHECKS)]
        else:
            _refuse_unknown(entry, _KEYS, "unknown key")
        label = str(entry.get("name") or entry.get("id") or (number if is_json or len(entries) > 1 else ""))
        name = label if entry.get("name") and not is_json else f"{file.stem} {label}".strip()
        yield _case(entry, name, (directory, file.parent))


def _case(entry: Mapping[str, Any], name: str, tops: tuple[Path, Path]) -> EvalCase:
    """A case; `tops` are the directories that listed files may be below."""
    prompt = next((entry[key] for key in _PROMPTS if key in entry), None)
    if not isinstance(prompt, str) or not prompt.strip():
        raise UserError("`prompt` is missing or empty")
    if not isinstance(entry.get("checks"), list | None):
        raise UserError("`checks` is not a list")
    checks = [_check(check) for check in as_list(entry.get("checks"))]
    if "should_trigger" in entry:
        checks.append(Check("skill", "unused" if entry["should_trigger"] is False else "used"))
    texts = [entry["expected_output"]] if entry.get("expected_output") else []
    texts += [part for key in _SENTENCES for part in as_list(entry.get(key))]
    runs = entry.get("runs")
    if runs is not None and not (re.fullmatch("[0-9]{1,9}", str(runs)) and 1 <= int(str(runs)) <= MAX_RUNS):
        raise UserError(f"`runs` is a number from 1 to {MAX_RUNS}, not `{runs}`")
    return EvalCase(
        name,
        prompt,
        _files(entry.get("files") or None, tops),
        tuple(checks),
        int(str(runs)) if runs is not None else None,
        expectations=tuple(_sentence(part) for part in texts),
    )


def _sentence(part: object) -> str:
    entry = as_object(part)
    return str(entry.get("text") or entry.get("description") or entry.get("name") or part)


def _check(value: object) -> Check:
    entry = _mapping(value, "a check")
    _refuse_unknown(entry, (*_CHECKS, "matches"), "a check has the unknown key")
    found: list[CheckType] = [key for key in _CHECKS if key in entry]
    if len(found) != 1:
        raise UserError(f"a check needs exactly one of {', '.join(f'`{key}`' for key in _CHECKS)}")
    key, text, pattern = found[0], entry[found[0]], entry.get("matches")
    if not isinstance(text, str) or not text.strip():
        raise UserError(f"`{key}` of a check is not a text")
    if "matches" in entry and key != "file":
        raise UserError("`matches` belongs to a `file` check")
    if key == "skill" and text not in ("used", "unused"):
        raise UserError(f"`skill` of a check is `used` or `unused`, not `{text}`")
    if (expression := text if key == "answer" else pattern) is not None:
        try:
            re.compile(expression, re.MULTILINE)
        except (re.error, RecursionError, OverflowError, TypeError) as error:
            raise UserError(f"`{expression}` is no regular expression: {error}") from error
    return Check(key, _inside(text) if key == "file" else text, pattern)


def _files(value: object, tops: tuple[Path, Path]) -> dict[str, str | Path]:
    """The files to start from: a mapping of paths to texts, or a list of files of the skill."""
    if not isinstance(value, list | dict | None):
        raise UserError("`files` is neither a mapping nor a list")
    texts = cast("dict[object, object]", value) if isinstance(value, dict) else None
    names: list[object] = as_list(cast("object", value)) if texts is None else list(texts)
    if len(names) > _MAX_FILES:
        raise UserError(f"more than {_MAX_FILES} files")
    found: dict[str, str | Path] = {}
    for item in names:
        if not isinstance(item, str):
            raise UserError("`files` has an item that is not a path")
        name = _inside(item)
        if texts is not None:
            if not isinstance(text := texts[item] or "", str):
                raise UserError(f"the content of `{name}` is not a text")
            found[name] = text
            continue
        path = next((top / name for top in tops if (top / name).exists()), None)
        if path is None:
            raise UserError(f"`{name}` of `files` is not in the skill")
        if not path.resolve().is_relative_to(tops[0]):
            raise UserError(f"`{name}` of `files` leads out of the skill")
        found[re.sub(r"^(evals/)?(files/)?", "", name) if path.is_file() else "."] = path
    return found


def _inside(name: str) -> str:
    """A path in the workspace as it is written, if it stays there."""
    parts = name.split("/")
    if name.startswith(("/", "~")) or ".." in parts or "\0" in name or not name.strip("./"):
        raise UserError(f"`{name}` is not a path inside the workspace")
    if ".git" in parts:
        raise UserError(f"`{name}` would write into a repository's own files")
    return "/".join(part for part in parts if part not in ("", "."))


def _refuse_unknown(entry: Mapping[str, Any], known: tuple[str, ...], message: str) -> None:
    for key in entry.keys() - set(known):
        raise UserError(f"{message} `{key}`", hint=did_you_mean(key, known) or f"known: {', '.join(known)}")


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{what} is not a mapping")
    return cast("dict[str, Any]", value)
