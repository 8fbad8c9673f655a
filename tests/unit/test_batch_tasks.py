"""Reading the tasks of a batch: what is a task, and the line for what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.batch.tasks import Task, TaskRules, read_repositories, read_tasks
from codex_py.cli.batch import MANAGED
from codex_py.cli.exec_parser import exec_parser

PARSER = exec_parser()
RULES = TaskRules(PARSER.long_options(), MANAGED, PARSER.read)


def read(*rows: Any, rules: TaskRules = RULES) -> tuple[list[Task], list[str]]:
    raw = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return read_tasks(raw.encode(), "t.jsonl", rules)


def problem(*rows: Any) -> str:
    tasks, [line] = read(*rows)
    assert len(tasks) == len(rows) - 1
    return line.removeprefix("`t.jsonl`: ")


def test_a_row_is_a_task() -> None:
    row = {
        "id": 7,
        "prompt": "p",
        "model": "m",
        "max_requests": 3,
        "oss": True,
        "offline": False,
        "config": ["a=1", "b=2"],
    }
    tasks, problems = read(row, "", {"id": "b", "prompt": "q", "repo": None, "ref": ""})
    assert problems == []
    assert tasks == [
        Task("7", "p", options=("--model=m", "--max-requests=3", "--oss", "--config=a=1", "--config=b=2")),
        Task("b", "q"),
    ]


@pytest.mark.parametrize(
    "text", ["..", ".", "a/b", "/a", "-a", ".a", "a" * 65, "a b", "é", "a\n", True, 1.5, ["a"], {}]
)
def test_an_id_that_could_be_a_path_or_an_option_is_refused(text: Any) -> None:
    assert problem({"id": text, "prompt": "p"}).startswith("row 1: `")
    assert "is not an id: 1 to 64" in problem({"id": text, "prompt": "p"})


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (["{"], "row 1: not JSON: line 1 column 2: "),
        (["[]"], "row 1: not a JSON object: write one object a line"),
        ([{"prompt": "p"}], "row 1: no `id`"),
        ([{"id": "a"}], "row 1: no `prompt`"),
        ([{"id": "a", "prompt": " "}], "row 1: no `prompt`"),
        ([{"id": "a", "prompt": 1}], "row 1: `prompt` is not text"),
        (['{"id": "a", "prompt": "\\u0000"}'], "row 1: `prompt` has a NUL character"),
        (['{"id": "a", "prompt": "\\ud800"}'], "row 1: `prompt` has half a character, which is not UTF-8"),
        ([{"id": "report.csv", "prompt": "p"}], "row 1: `report.csv` is not an id: a file of the batch has this name"),
        ([{"id": "a", "prompt": "p"}, {"id": "A", "prompt": "q"}], "row 2: the id `A` is that of row 1 too"),
        ([{"id": "a", "prompt": "p", "ref": "x"}], "row 1: `ref` without `repo`"),
        ([{"id": "a", "prompt": "p", "repo": "/nowhere"}], "row 1: `/nowhere` is neither a directory nor"),
        ([{"id": "a", "prompt": "p", "repo": "ext::sh -c x"}], "row 1: not a repository's address: `ext::sh -c x`"),
        ([{"id": "a", "prompt": "p", "repo": "--upload-pack=x"}], "row 1: not a source: `--upload-pack=x` looks like"),
        ([{"id": "a", "prompt": "p", "repo": "http://x.invalid/r"}], "row 1: `http://x.invalid/r` is not protected"),
        ([{"id": "a", "prompt": "p", "repo": "/", "ref": "--x"}], "row 1: not a branch, tag or commit: `--x`"),
        ([{"id": "a", "prompt": "p", "modle": "m"}], "row 1: unknown key `modle`: neither of a task nor a long option"),
        ([{"id": "a", "prompt": "p", "cd": "/"}], "row 1: `cd` cannot be set for a task: the batch decides it"),
        ([{"id": "a", "prompt": "p", "session_id": "x"}], "row 1: `session_id` cannot be set for a task"),
        ([{"id": "a", "prompt": "p", "oss": "maybe"}], "row 1: `oss` is true or false, not `maybe`"),
        ([{"id": "a", "prompt": "p", "model": True}], "row 1: `model` needs text or a number"),
        ([{"id": "a", "prompt": "p", "model": ["m"]}], "row 1: `model` needs text or a number"),
        ([{"id": "a", "prompt": "p", "max-usd": -1}], "row 1: `--max-usd` needs a number above 0, not `-1`"),
    ],
)
def test_a_row_that_is_no_task_is_a_line_with_its_number(rows: list[Any], line: str) -> None:
    assert problem(*rows).startswith(line)


def test_every_wrong_row_has_its_line() -> None:
    tasks, problems = read({"id": "a", "prompt": "p"}, {"id": "b"}, "x")
    assert ([task.id for task in tasks], len(problems)) == (["a"], 2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "`t.csv` has no tasks"),
        ("id,prompt\n", "`t.csv` has no tasks"),
        ("id,prompt,id\na,b,c\n", "`t.csv`: row 1: the column `id` is there twice"),
        ('id,prompt\na,"x\ny"\nb\n', "`t.csv`: row 4: 1 cells below 2 columns"),
        ('id,prompt\na,"x\n', "`t.csv`: row 2: not CSV: unexpected end of data"),
        ("id,prompt\n,x\n", "`t.csv`: row 2: no `id`"),
        (
            "id;prompt\na;x\nb;y\n",
            "`t.csv`: row 1: no column `id`: the columns are `id;prompt`; the first row names the columns, separated "
            "by commas",
        ),
        (
            "ID,Prompt\na,x\n",
            "`t.csv`: row 1: no column `id`: the columns are `ID`, `Prompt`; names of columns are case-sensitive",
        ),
    ],
)
def test_a_table_that_is_wrong_is_named_by_its_line(text: str, line: str) -> None:
    assert read_tasks(text.encode(), "t.csv", RULES)[1] == [line]


def test_an_array_is_named_as_one() -> None:
    text = '[{"id": "a", "prompt": "x"},\n {"id": "b", "prompt": "y"}]\n'
    for name in ("t.jsonl", "t.json", "-"):
        line = f"`{name}` is a JSON array: write one object a line, as `jq -c '.[]'` does"
        assert read_tasks(text.encode(), name, RULES) == ([], [line])


def test_other_encodings_are_refused_and_a_mark_of_utf8_is_not() -> None:
    assert read_tasks("id,prompt\né,x".encode("latin-1"), "t.csv", RULES)[1] == ["`t.csv` is not UTF-8 at byte 10"]
    assert read_tasks("\ufeffid,prompt\na,x".encode(), "t.csv", RULES)[0] == [Task("a", "x")]


def test_a_template_takes_columns_that_are_no_options() -> None:
    rules = RULES._replace(template="do {what} to {n}")
    assert read({"id": "a", "what": "x", "n": 2}, rules=rules)[0] == [Task("a", "do x to 2")]
    assert read({"id": "a", "prompt": "own", "what": "x"}, rules=rules)[0] == [Task("a", "own")]
    [line] = read({"id": "a", "what": "x"}, rules=rules)[1]
    assert line == "`t.jsonl`: row 1: `--prompt` names the column `n`, which is not there"


def test_a_row_of_swe_bench_is_a_task(tmp_path: Path) -> None:
    row = {"instance_id": "o__r-1", "repo": "o/r", "base_commit": "abc", "problem_statement": "p {x}", "hints_text": ""}
    assert read(row) == ([Task("o__r-1", "p {x}", "https://github.com/o/r", "abc", is_evaluation=True)], [])


def test_repositories_get_ids_of_their_names(tmp_path: Path) -> None:
    for name in ("a/one", "b/one", "a/two"):
        (tmp_path / name).mkdir(parents=True)
    lines = f"{tmp_path}/a/one\n# no\n\n{tmp_path}/b/one\n{tmp_path}/a/two\nhttps://x.invalid/y/three.git#v1\n"
    tasks, problems = read_repositories(lines.encode(), "r", "go {id} {ref}")
    assert problems == []
    assert [(task.id, task.prompt, task.ref) for task in tasks] == [
        ("a-one", "go a-one ", ""),
        ("b-one", "go b-one ", ""),
        ("two", "go two ", ""),
        ("three", "go three v1", "v1"),
    ]
    _, [line] = read_repositories(f"{tmp_path}/a/one\n{tmp_path}/a/one\n".encode(), "r", "go")
    assert line == f"`r`: row 2: the same repository as in row 1: `{tmp_path}/a/one`"
