"""Reads the tasks of a batch from JSONL, CSV or a list of repositories, and finds what is wrong before any runs."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.protocol.encoding import decode_json, encode_json
from codex_py.services.git_fetch import git_source
from codex_py.text.display import first_names
from codex_py.text.files import json_reason
from codex_py.text.nearest import did_you_mean

OptionType: TypeAlias = Literal["flag", "value", "list"]
Row: TypeAlias = dict[str, Any]

# What a session may be called too. The first character keeps `.`, `..`, hidden files and options out.
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_REF: Final = re.compile(r"[A-Za-z0-9_][\w./+@-]{0,254}")
_COLUMN: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w-]*)\}")
_ON_GITHUB: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
# Names of the files that the batch itself keeps beside the directories of its tasks.
RESERVED: Final = frozenset(("batch.json", "report.csv", "report.html", "predictions.jsonl"))
_OWN_KEYS: Final = ("id", "prompt", "repo", "ref")
_TRUE: Final = frozenset(("true", "yes", "1"))
_FALSE: Final = frozenset(("false", "no", "0"))
_MAX_NAMED: Final = 10
_MAX_CELL: Final = 64 * 1024 * 1024


class Task(NamedTuple):
    """A run of `exec`: `options` are its arguments beside the prompt. `repo` is an absolute directory or a URL."""

    id: str
    prompt: str
    repo: str = ""
    ref: str = ""
    options: tuple[str, ...] = ()
    is_evaluation: bool = False

    @property
    def digest(self) -> str:
        """The same for equal tasks only, whatever their ids."""
        return hashlib.sha256(encode_json([self.prompt, self.repo, self.ref, self.options])).hexdigest()[:16]


class TaskRules(NamedTuple):
    """What tasks may say: `options` are the long options of `exec`, without dashes; those of `managed` are the batch's.

    `check` raises `UserError` for arguments that `exec` would refuse.
    """

    options: Mapping[str, OptionType]
    managed: frozenset[str]
    check: Callable[[Sequence[str]], object]
    template: str = ""


class TaskProblem(UserError):
    """A row that is no task."""


def read_tasks(raw: bytes, name: str, rules: TaskRules) -> tuple[list[Task], list[str]]:
    """The tasks of a file, and a line for each problem, with the row where it is. `name` decides the format."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return [], [f"`{name}` is not UTF-8 at byte {error.start}"]
    if not name.endswith(".csv") and _is_array(text):
        return [], [f"`{name}` is a JSON array: write one object a line, as `jq -c '.[]'` does"]
    is_csv = name.endswith(".csv") or not (name.endswith((".jsonl", ".ndjson")) or text.lstrip()[:1] in ("{", "["))
    return _collect(_csv_rows(text) if is_csv else _json_rows(text), name, lambda row: read_task(row, rules))


def read_repositories(raw: bytes, name: str, prompt: str) -> tuple[list[Task], list[str]]:
    """A task for each line of a list of repositories, as `REPO` or `REPO#REF`; the prompt may name `{repo}`."""
    try:
        lines = raw.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        return [], [f"`{name}` is not UTF-8 at byte {error.start}"]
    rows = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    rows = [(number, line) for number, line in rows if line and not line.startswith("#")]
    ids = _repository_ids([line for _, line in rows])
    seen: dict[str, int] = {}

    def read(row: Row) -> Task:
        line = str(row["line"])
        if (first := seen.setdefault(line, row["number"])) != row["number"]:
            raise TaskProblem(f"the same repository as in row {first}: `{line}`")
        repo, _, ref = line.partition("#")
        columns = {"id": ids[line], "repo": repo, "ref": ref}
        return Task(_checked_id(ids[line]), fill_template(prompt, columns), *_repository(repo, ref))

    return _collect(((number, {"line": line, "number": number}) for number, line in rows), name, read)


def _collect(
    rows: Iterator[tuple[int, Row | TaskProblem]], name: str, read: Callable[[Row], Task]
) -> tuple[list[Task], list[str]]:
    tasks: list[Task] = []
    problems: list[str] = []
    seen: dict[str, int] = {}
    for number, row in rows:
        try:
            if isinstance(row, TaskProblem):
                raise row
            task = read(row)
            # Directories may have names without case.
            if (first := seen.setdefault(task.id.lower(), number)) != number:
                raise TaskProblem(f"the id `{task.id}` is that of row {first} too")
            tasks.append(task)
        except UserError as error:
            problems.append(f"`{name}`: row {number}: {error}" + (f"; {error.hint}" if error.hint else ""))
    if not tasks and not problems:
        problems.append(f"`{name}` has no tasks")
    return tasks, problems


def _is_array(text: str) -> bool:
    """Whether a text of several lines is one JSON array."""
    lines = text.strip()
    if lines[:1] != "[" or "\n" not in lines:
        return False
    try:
        return isinstance(decode_json(lines), list)
    except ValueError:
        return False


def _json_rows(text: str) -> Iterator[tuple[int, Row | TaskProblem]]:
    # Not `splitlines`, which breaks lines inside of JSON strings too.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value: object = decode_json(line)
        except ValueError as error:
            yield number, TaskProblem(f"not JSON: {json_reason(error)}")
            continue
        if isinstance(value, dict):
            yield number, cast("Row", value)
        else:
            yield number, TaskProblem("not a JSON object: write one object a line")


def _csv_rows(text: str) -> Iterator[tuple[int, Row | TaskProblem]]:
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    head: list[str] = []
    start = 1
    try:
        for cells in reader:
            number, start = start, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not head:
                head = [cell.strip() for cell in cells]
                if problem := _head_problem(head):
                    yield number, problem
                    return
            elif len(cells) != len(head):
                yield number, TaskProblem(f"{len(cells)} cells below {len(head)} columns")
            else:
                yield number, {name: cell for name, cell in zip(head, cells, strict=True) if cell != ""}
    except csv.Error as error:
        yield start, TaskProblem(f"not CSV: {error}")


def _head_problem(head: Sequence[str]) -> TaskProblem | None:
    """Why a first row cannot be the names of the columns."""
    if repeated := next((name for name in head if head.count(name) > 1), None):
        return TaskProblem(f"the column `{repeated}` is there twice")
    if "id" in head or "instance_id" in head:
        return None
    hint = "the first row names the columns, separated by commas"
    if "ID" in head or "Id" in head:
        hint = "names of columns are case-sensitive"
    names = [f"`{name[:80]}`" for name in head]
    return TaskProblem(f"no column `id`: the columns are {first_names(names, _MAX_NAMED)}", hint=hint)


def read_task(row: Row, rules: TaskRules) -> Task:
    """A row as a task. Raises `UserError`."""
    is_evaluation = "instance_id" in row and "problem_statement" in row
    if is_evaluation:
        columns = {"id": row["instance_id"], "prompt": row["problem_statement"], "ref": row.get("base_commit", "")}
        row = {**row, **{name: value for name, value in columns.items() if value not in ("", None)}}
    task_id = _checked_id(row.get("id"))
    prompt = _text(row.get("prompt"), "prompt")
    used = {name for name in _COLUMN.findall(rules.template) if name}
    if rules.template and (not prompt or "prompt" in used):
        prompt = fill_template(rules.template, {**row, "id": task_id})
    if not prompt.strip():
        raise TaskProblem("no `prompt`")
    _check_text(prompt, "prompt")
    repo, ref = _text(row.get("repo"), "repo"), _text(row.get("ref"), "ref")
    if is_evaluation and _ON_GITHUB.fullmatch(repo) and not Path(repo).is_dir():
        repo = f"https://github.com/{repo}"
    options: list[str] = []
    for key, value in row.items():
        name = key.replace("_", "-")
        if key in _OWN_KEYS or value is None:
            continue
        if name in rules.managed:
            if not is_evaluation and key not in used:
                raise TaskProblem(f"`{key}` cannot be set for a task: the batch decides it")
        elif name in rules.options:
            options += _arguments(name, value, rules.options[name])
        elif key not in used and not is_evaluation:
            hint = did_you_mean(key, [*_OWN_KEYS, *rules.options]) or "use it in `--prompt`, or leave it out"
            raise TaskProblem(f"unknown key `{key}`: neither of a task nor a long option of `exec`", hint=hint)
    if options:
        rules.check(options)
    return Task(task_id, prompt, *_repository(repo, ref), tuple(options), is_evaluation)


def fill_template(template: str, columns: Mapping[str, Any]) -> str:
    """The template with each `{column}` replaced; `{{` and `}}` are braces. Raises `UserError` for a missing column."""

    def fill(found: re.Match[str]) -> str:
        if not found[1]:
            return found[0][0]
        if found[1] not in columns:
            raise TaskProblem(f"`--prompt` names the column `{found[1]}`, which is not there")
        value = columns[found[1]]
        return value if isinstance(value, str) else encode_json(value).decode()

    return _COLUMN.sub(fill, template)


def _checked_id(value: object) -> str:
    if value is None or value == "":
        raise TaskProblem("no `id`")
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _ID.fullmatch(text):
        raise TaskProblem(
            f"`{str(value)[:80]}` is not an id: 1 to 64 letters, digits, `.`, `_`, `-`, the first no `.` or `-`"
        )
    if text.lower() in RESERVED:
        raise TaskProblem(f"`{text}` is not an id: a file of the batch has this name")
    return text


def _text(value: object, key: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TaskProblem(f"`{key}` is not text")
    _check_text(value, key)
    return value


def _check_text(text: str, key: str) -> None:
    if "\0" in text:
        raise TaskProblem(f"`{key}` has a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TaskProblem(f"`{key}` has half a character, which is not UTF-8") from None


def _repository(repo: str, ref: str) -> tuple[str, str]:
    """The repository and the ref, checked; a directory as an absolute path."""
    if not repo:
        if ref:
            raise TaskProblem("`ref` without `repo`")
        return "", ""
    source = git_source(repo)
    if source is not None:
        if ref and source.ref:
            raise TaskProblem(f"two refs: `{ref}`, and `{source.ref}` behind the `#` of `repo`")
        repo, ref = source.url, ref or source.ref or ""
    else:
        directory = Path(repo).expanduser()
        if not directory.is_dir():
            raise TaskProblem(f"`{repo}` is neither a directory nor a repository's URL")
        repo = os.path.realpath(directory)
    if ref and not _REF.fullmatch(ref):
        raise TaskProblem(f"not a branch, tag or commit: `{ref[:80]}`")
    return repo, ref


def _arguments(name: str, value: object, option_type: OptionType) -> list[str]:
    """An option of `exec` as arguments."""
    match option_type:
        case "flag":
            word = str(value).lower()
            if word not in _TRUE | _FALSE:
                raise TaskProblem(f"`{name}` is true or false, not `{str(value)[:80]}`")
            return [f"--{name}"] if word in _TRUE else []
        case "list" if isinstance(value, list):
            return [word for part in cast("list[object]", value) for word in _pair(name, part)]
        case _:
            return _pair(name, value)


def _pair(name: str, value: object) -> list[str]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TaskProblem(f"`{name}` needs text or a number")
    _check_text(str(value), name)
    # In one word: a value may begin with a dash.
    return [f"--{name}={value}"]


def _repository_ids(lines: Sequence[str]) -> dict[str, str]:
    """An id for each repository: its name, with the name of its parent where two have the same."""
    parts = {line: _id_parts(line) for line in lines}
    names = [part[-1].lower() for part in parts.values()]
    return {line: part[-1] if names.count(part[-1].lower()) == 1 else "-".join(part) for line, part in parts.items()}


def _id_parts(line: str) -> list[str]:
    path = line.partition("#")[0].rstrip("/").removesuffix(".git").removesuffix("/")
    words = [re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-.") for word in re.split(r"[/:]", path)]
    return [word[:31] for word in words if word][-2:] or [""]
