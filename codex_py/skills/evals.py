"""The evaluations that a skill brings: prompts with the files to start from and checks of what came out.

Ours are YAML files in `evals/`; the `evals.json` of the Agent Skills community, and its lists of queries that should
or should not trigger a skill, are read too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.protocol.value import Value
from codex_py.text.files import FileRefused, read_inside
from codex_py.text.frontmatter import YamlRefused, parse_yaml
from codex_py.text.nearest import did_you_mean

EVALS: Final = "evals"
MAX_RUNS: Final = 100
_MAX_BYTES: Final = 1024 * 1024
_MAX_FILES: Final = 200
_KEYS: Final = ("name", "prompt", "files", "checks", "runs")
_CHECKS: Final = ("command", "file", "answer", "skill")
# Keys of the community's format; what cannot be checked by a program is kept as text.
_FOREIGN_LISTS: Final = ("evals", "test_cases", "cases")
_FOREIGN_PROMPTS: Final = ("prompt", "query", "input")
_FOREIGN_TEXTS: Final = ("expectations", "assertions", "expected_behavior")


class CommandCheck(Value):
    """The command ends with status 0 in the workspace."""

    command: str


class FileCheck(Value):
    """The file is there, and matches a regular expression where there is one."""

    file: str
    matches: str | None = None


class AnswerCheck(Value):
    """The final message matches a regular expression."""

    answer: str


class SkillCheck(Value):
    """The skill was used, or was not."""

    is_used: bool


class SentenceCheck(Value):
    """A sentence of the community's format holds, which a model judges."""

    sentence: str


Check: TypeAlias = CommandCheck | FileCheck | AnswerCheck | SkillCheck | SentenceCheck


class EvalCase(Value):
    """One prompt. `files` maps paths in the workspace to a text, or to a file or directory of the skill.

    `expectations` are sentences of the community's format, which only a person or a model can judge.
    """

    name: str
    prompt: str
    files: Mapping[str, str | Path]
    checks: tuple[Check, ...]
    runs: int | None = None
    expectations: tuple[str, ...] = ()

    @property
    def wants_skill(self) -> bool:
        """Whether the skill should be used; it should unless a check says otherwise."""
        return all(check.is_used for check in self.checks if isinstance(check, SkillCheck))


def read_evals(directory: Path) -> tuple[EvalCase, ...]:
    """The cases of a skill's directory, in the order of the files. Raises `UserError` for a file with a fault."""
    # Without links and `..` on the way to it, so that a link inside of it that leads out is known as one.
    directory = Path(os.path.realpath(directory))
    cases = [case for file in _eval_files(directory) for case in _read_file(file, directory)]
    if not cases:
        raise UserError(
            f"the skill has no evaluations: `{directory / EVALS}` has none", hint="write `evals/*.yaml` with a `prompt`"
        )
    return tuple(cases)


def _eval_files(directory: Path) -> list[Path]:
    evals = directory / EVALS
    try:
        found = sorted(evals.iterdir()) if evals.is_dir() else []
    except OSError as error:
        raise UserError(f"cannot read `{evals}`: {error.strerror}") from error
    yaml = [path for path in found if path.suffix in (".yaml", ".yml") and path.is_file()]
    foreign = [path for path in found if path.suffix == ".json" and path.is_file()]
    top = [directory / "evals.json"] if (directory / "evals.json").is_file() else []
    return [*yaml, *foreign, *top]


def _read_file(file: Path, directory: Path) -> Iterator[EvalCase]:
    try:
        head = read_inside(directory, file, _MAX_BYTES)
        if head is None or head.size > _MAX_BYTES:
            raise _fault(file, f"more than {_MAX_BYTES} bytes")
        text = head.raw.decode()
        value: object = json.loads(text) if file.suffix == ".json" else parse_yaml(text)
    except (FileRefused, YamlRefused, ValueError, RecursionError, OSError) as error:
        raise _fault(file, str(error) or type(error).__name__) from error
    if file.suffix == ".json":
        yield from _foreign_cases(value, file, directory)
        return
    entries = cast("list[object]", value) if isinstance(value, list) else [value]
    for number, entry in enumerate(entries, start=1):
        name = file.stem if len(entries) == 1 else f"{file.stem} {number}"
        yield _own_case(_mapping(entry, file, "an evaluation"), name, file, directory)


def _own_case(entry: dict[str, Any], name: str, file: Path, directory: Path) -> EvalCase:
    for key in entry:
        if key not in _KEYS:
            raise _fault(file, f"unknown key `{key}`", hint=did_you_mean(key, _KEYS) or f"known: {', '.join(_KEYS)}")
    prompt = entry.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise _fault(file, "`prompt` is missing or empty")
    checks = entry.get("checks")
    if checks is not None and not isinstance(checks, list):
        raise _fault(file, "`checks` is not a list")
    return EvalCase(
        str(entry.get("name") or name),
        prompt,
        _files(entry.get("files"), file, directory),
        tuple(_check(check, file) for check in cast("list[object]", checks or [])),
        _runs(entry.get("runs"), file),
    )


def _check(value: object, file: Path) -> Check:
    entry = _mapping(value, file, "a check")
    found = [key for key in _CHECKS if key in entry]
    unknown = [key for key in entry if key not in (*_CHECKS, "matches")]
    if unknown:
        hint = did_you_mean(unknown[0], (*_CHECKS, "matches"))
        raise _fault(file, f"a check has the unknown key `{unknown[0]}`", hint=hint)
    if len(found) != 1:
        raise _fault(file, f"a check needs exactly one of {', '.join(f'`{key}`' for key in _CHECKS)}")
    key, text = found[0], entry[found[0]]
    if not isinstance(text, str) or not text.strip():
        raise _fault(file, f"`{key}` of a check is not a text")
    if "matches" in entry and key != "file":
        raise _fault(file, "`matches` belongs to a `file` check")
    match key:
        case "command":
            return CommandCheck(text)
        case "file":
            return FileCheck(_inside(text, file), _pattern(entry.get("matches"), file))
        case "answer":
            return AnswerCheck(_pattern(text, file) or text)
        case _:
            if text not in ("used", "unused"):
                raise _fault(file, f"`skill` of a check is `used` or `unused`, not `{text}`")
            return SkillCheck(text == "used")


def _pattern(value: object, file: Path) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _fault(file, "`matches` is not a text")
    try:
        re.compile(value, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise _fault(file, f"`{value}` is no regular expression: {error}") from error
    return value


def _runs(value: object, file: Path) -> int | None:
    if value is None:
        return None
    text = str(value)
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_RUNS):
        raise _fault(file, f"`runs` is a number from 1 to {MAX_RUNS}, not `{text}`")
    return int(text)


def _files(value: object, file: Path, directory: Path) -> dict[str, str | Path]:
    """The files to start from: a mapping of paths to texts, or a list of files of the skill."""
    if value is None:
        return {}
    if isinstance(value, dict):
        texts = cast("dict[str, object]", value)
        if len(texts) > _MAX_FILES:
            raise _fault(file, f"more than {_MAX_FILES} files")
        for name, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise _fault(file, f"the content of `{name}` is not a text")
        return {_inside(name, file): str(text or "") for name, text in texts.items()}
    if not isinstance(value, list):
        raise _fault(file, "`files` is neither a mapping nor a list")
    found: dict[str, str | Path] = {}
    for item in cast("list[object]", value):
        if not isinstance(item, str):
            raise _fault(file, "`files` has an item that is not a path")
        name = _inside(item, file)
        path = next((top / name for top in (directory, file.parent) if (top / name).exists()), None)
        if path is None:
            raise _fault(file, f"`{name}` of `files` is not in the skill")
        if not path.resolve().is_relative_to(directory.resolve()):
            raise _fault(file, f"`{name}` of `files` leads out of the skill")
        target = re.sub(r"^(evals/)?(files/)?", "", name)
        found[target if path.is_file() else "."] = path
    return found


def _inside(name: str, file: Path) -> str:
    """A path in the workspace as it is written, if it stays there."""
    parts = name.split("/")
    if name.startswith(("/", "~")) or ".." in parts or "\0" in name or not name.strip("./"):
        raise _fault(file, f"`{name}` is not a path inside the workspace")
    if ".git" in parts:
        raise _fault(file, f"`{name}` would write into a repository's own files")
    return "/".join(part for part in parts if part not in ("", "."))


def _foreign_cases(value: object, file: Path, directory: Path) -> Iterator[EvalCase]:
    entries: object = value
    if isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        entries = next((mapping[key] for key in _FOREIGN_LISTS if key in mapping), None)
    if not isinstance(entries, list):
        raise _fault(file, "neither a list of evaluations nor an object with `evals`")
    for number, item in enumerate(cast("list[object]", entries), start=1):
        entry = _mapping(item, file, f"evaluation {number}")
        prompt = next((entry[key] for key in _FOREIGN_PROMPTS if key in entry), None)
        if not isinstance(prompt, str) or not prompt.strip():
            raise _fault(file, f"evaluation {number} has no `prompt`")
        checks: list[Check] = []
        if "should_trigger" in entry:
            checks.append(SkillCheck(entry["should_trigger"] is not False))
        texts = [str(entry["expected_output"])] if entry.get("expected_output") else []
        for key in _FOREIGN_TEXTS:
            listed = entry.get(key)
            texts += [_sentence(part) for part in cast("list[object]", listed)] if isinstance(listed, list) else []
        name = str(entry.get("name") or entry.get("id") or number)
        files = _files(entry.get("files") or None, file, directory)
        yield EvalCase(f"{file.stem} {name}", prompt, files, tuple(checks), expectations=tuple(texts))


def _sentence(part: object) -> str:
    if isinstance(part, dict):
        entry = cast("dict[str, object]", part)
        return str(entry.get("text") or entry.get("description") or entry.get("name") or entry)
    return str(part)


def _mapping(value: object, file: Path, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fault(file, f"{what} is not a mapping")
    return cast("dict[str, Any]", value)


def _fault(file: Path, message: str, *, hint: str = "") -> UserError:
    return UserError(f"cannot read `{file}`: {message}", hint=hint or None)
