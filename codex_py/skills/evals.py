"""The evaluations that a skill brings, and what came of them.

They are `evals/evals.json` as the Agent Skills guide has it, other JSON files with queries that should or should not
trigger a skill, and YAML files of earlier versions.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pvariance, variance
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.text.files import FileRefused, read_inside
from codex_py.text.frontmatter import YamlRefused, parse_yaml
from codex_py.text.nearest import did_you_mean

CheckType: TypeAlias = Literal["command", "file", "answer", "skill", "sentence"]
Arm: TypeAlias = Literal["with", "without"]
ARMS: Final[tuple[Arm, ...]] = ("with", "without")
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
# Of a normal distribution, for an interval that holds 95 of 100 times.
_Z: Final = 1.96


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
    runs: int
    expectations: tuple[str, ...]
    """Sentences that only a person or a model can judge."""

    @property
    def wants_skill(self) -> bool:
        """Whether the skill should be used; it should unless a check says otherwise."""
        return Check("skill", "unused") not in self.checks


class CheckResult(Value):
    """How a check ended."""

    check: Check
    fault: str
    """In one line why it did not pass; "" when it did."""


class EvalRun(Value):
    """One run of a case."""

    case: EvalCase
    arm: Arm
    used: bool = False
    checks: tuple[CheckResult, ...] = ()
    tokens: int = 0
    seconds: float = 0.0
    usd: float = 0.0
    failure: str = ""
    """Why the run could not be judged; it counts in no rate then."""
    answer: str = ""
    unjudged: str = ""
    """Why the sentences of the case were not judged."""

    @property
    def is_right_use(self) -> bool:
        """Whether the skill was used when it should be, or left alone when not."""
        return self.used == self.case.wants_skill

    @property
    def relevant_checks(self) -> tuple[CheckResult, ...]:
        """The checks that count. Without the skill it cannot be used, so its use counts only if nothing else does."""
        others = tuple(result for result in self.checks if result.check.type != "skill")
        return others if others and self.arm == "without" else self.checks

    @property
    def passed(self) -> bool | None:
        """Whether every check that counts passed; None where nothing was checked."""
        checks = self.relevant_checks
        return not any(result.fault for result in checks) if checks and not self.failure else None


def judged_runs(runs: Sequence[EvalRun], arm: Arm) -> list[EvalRun]:
    """The runs of an arm that count."""
    return [run for run in runs if run.arm == arm and not run.failure]


def verdicts(runs: Sequence[EvalRun]) -> list[bool]:
    """Whether each run passed. A case that checks only the skill's use counts if no case checks a result."""
    checked = [run for run in runs if run.checks]
    results = [run for run in checked if any(result.check.type != "skill" for result in run.checks)]
    return [run.passed is True for run in results or checked]


def difference(first: Sequence[float], second: Sequence[float], *, is_rate: bool) -> dict[str, float | None] | None:
    """How much higher the mean of `first` is, and the bounds between which the truth lies 95 of 100 times.

    Rates have the interval of Agresti and Caffo, which holds for few runs too. None where a mean is missing.
    """
    if not first or not second:
        return None
    value = fmean(first) - fmean(second)
    if is_rate:  # A success and a failure are added to each arm.
        first, second = [*first, 0, 1], [*second, 0, 1]
    elif min(len(first), len(second)) < 2:
        return {"value": value, "low": None, "high": None}
    spread = pvariance if is_rate else variance
    error = _Z * math.sqrt(spread(first) / len(first) + spread(second) / len(second))
    low, high = (fmean(first) - fmean(second) + sign * error for sign in (-1, 1))
    return {"value": value, "low": max(-1.0, low) if is_rate else low, "high": min(1.0, high) if is_rate else high}


def read_evals(directory: Path) -> tuple[EvalCase, ...]:
    """The cases of a skill's directory, in the order of the files. Raises `UserError` for a file with a fault."""
    # Without links and `..` on the way to it, so that a link inside of it that leads out is known as one.
    directory = Path(os.path.realpath(directory))
    evals = directory / EVALS
    cases: list[EvalCase] = []
    for file in (*sorted(evals.glob("*.y*ml")), *sorted(evals.glob("*.json")), directory / "evals.json"):
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
    if is_json:
        fields = as_object(value)
        value = next((fields[key] for key in _LISTS if key in fields), value)
        if not isinstance(value, list):
            raise UserError("neither a list of evaluations nor an object with `evals`")
    entries = as_list(cast("object", value)) if isinstance(value, list) else [value]
    for number, item in enumerate(entries, start=1):
        entry = _mapping(item, "an evaluation")
        if is_json:
            # Other programs may have checks of their own.
            entry["checks"] = [each for each in as_list(entry.get("checks")) if as_object(each).keys() & set(_CHECKS)]
        else:
            _refuse_unknown(entry, _KEYS, "unknown key")
        label = entry.get("name") or entry.get("id") or (number if is_json or len(entries) > 1 else "")
        name = str(label) if entry.get("name") and not is_json else f"{file.stem} {label}".strip()
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
    runs = entry.get("runs", 1)
    if not re.fullmatch("[1-9][0-9]?|100", str(runs)):
        raise UserError(f"`runs` is a number from 1 to {MAX_RUNS}, not `{runs}`")
    files, sentences = _files(entry.get("files") or None, tops), tuple(map(_sentence, texts))
    return EvalCase(name, prompt, files, tuple(checks), int(str(runs)), sentences)


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
    texts = as_object(cast("object", value))
    names = list(texts) or as_list(cast("object", value))
    if len(names) > _MAX_FILES:
        raise UserError(f"more than {_MAX_FILES} files")
    found: dict[str, str | Path] = {}
    for item in names:
        if not isinstance(item, str):
            raise UserError("`files` has an item that is not a path")
        name = _inside(item)
        if texts:
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
