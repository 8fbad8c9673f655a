"""What people see after a mistake: what is wrong, where, and the one next step, all of them in `mistakes.txt`."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.fake_responses import FakeResponses, repeat, say
from tests.support.home import Place, make_place
from tests.support.process import COMMAND, Finished, run

TABLE: Final = Path(__file__).with_name("mistakes.txt")
# Settings that these rows share: a server that is down is asked once.
DOWN: Final = (
    'model = "gpt-5.1-codex"\nmodel_provider = "mine"\n[model_providers.mine]\nname = "My server"\n'
    "connect_retry_seconds = 0.1\nrequest_max_retries = 0\nstream_max_retries = 0\n"
)
_MESSAGE: Final = re.compile(r"(error|warning|ERROR): ")
_SESSION: Final = "--------"
MAX_LINES: Final = 3


class Mistake(NamedTuple):
    """A command line, what stands around it, and every message that it leads to.

    `files` are written first: `HOME/…`, `REPO/…`, `stdin`; `top` is the head of the usual config.toml, `down` the
    address in the settings of `DOWN`, `env NAME` a variable.
    """

    line: int
    command: str
    files: dict[str, bytes]
    messages: list[str]
    status: int


def read_table() -> list[Mistake]:
    """The rows of the table: files as JSON strings, `$` and the command line, the messages, `[STATUS]`."""
    rows: list[Mistake] = []
    files: dict[str, bytes] = {}
    messages: list[str] = []
    command: str | None = None
    at = 0
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if line.startswith("$ codex-py"):
            command, at = line.removeprefix("$ codex-py").strip(), number
        elif found := re.fullmatch(r"\[(\d+)\]", line):
            rows.append(Mistake(at, command or "", files, messages, int(found[1])))
            files, messages, command = {}, [], None
        elif command is not None:
            messages.append(line)
        elif line and not line.startswith("#"):
            name, _, text = line.partition(" = ")
            # Every code point is a byte: what is not UTF-8 can be written too.
            files[name] = str(json.loads(text)).encode("latin-1")
    return rows


ROWS: Final = read_table()


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.line}: {row.command}" for row in ROWS])
def test_a_mistake_gets_what_where_and_the_next_step(row: Mistake, place: Place) -> None:
    with FakeResponses(repeat([say("done")])) as model:
        finished = run(
            _set_up(row, place, model.base_url), *shlex.split(row.command), stdin=row.files.get("stdin", b"")
        )
    assert (_messages(finished, place), finished.status) == (row.messages, row.status)
    check_form(finished, row.messages)


def check_form(finished: Finished, messages: list[str]) -> None:
    """What holds for every message: short, one sentence, in small letters."""
    assert len(messages) <= MAX_LINES
    if _SESSION not in finished.err:
        assert len(finished.err.splitlines()) <= MAX_LINES
    for message in messages:
        word, _, text = message.partition(": ")
        # `ERROR:` heads the lines of an event, as other programs print it; a linter begins with the file.
        assert word == "ERROR" or not text[:1].isupper() or text.startswith(("CODEX_HOME", "README.md"))
        assert not re.search(r"(?<!\.)\.$", text)


def test_the_table_is_long_and_says_nothing_twice() -> None:
    assert len(ROWS) >= 140
    seen = [(row.command, tuple(sorted(row.files.items()))) for row in ROWS]
    assert len(set(seen)) == len(seen)


def test_a_directory_that_may_not_be_entered_is_named(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    place.use_model("http://127.0.0.1:9/v1")
    locked = place.repo / "locked"
    locked.mkdir(mode=0o000)
    # Of root only the number is left.
    shed = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    ended = subprocess.run(
        [*shed, COMMAND, "exec", "-C", "locked", "go"], cwd=place.repo, env=place.env, capture_output=True, check=False
    )
    said = "error: cannot work in `locked`: you are not allowed to read it; name another directory with `-C`\n"
    assert (ended.returncode, ended.stderr.decode()) == (2, said)


def test_setting_a_value_keeps_comments_and_repairs_a_wrong_one(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    place.configure('# mine\nsandbox_mode = "readonly"  # why\n')
    ended = run(place, "config", "set", "sandbox_mode", "read-only")
    assert (ended.status, ended.err) == (0, f"set `sandbox_mode` in `{place.codex_home}/config.toml`\n")
    assert (place.codex_home / "config.toml").read_text() == '# mine\nsandbox_mode = "read-only"  # why\n'
    assert run(place, "config", "get", "sandbox_mode").out == "read-only\n"


def test_setting_a_value_of_a_profile_changes_its_file_alone(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    for arguments in (("-p", "work", "config", "set"), ("config", "set", "-p", "work")):
        assert run(place, *arguments, "model", "a").status == 0
    assert run(place, "-p", "work", "config", "get", "model").out == "a\n"
    assert not (place.codex_home / "config.toml").exists()
    wrong = run(place, "config", "set", "-p", "../x", "model", "a")
    assert wrong.status == 2 and wrong.err.startswith("error: not the name of a profile: `../x`")


WITHOUT_SETTINGS = (
    *("sessions list", "sessions", "checkpoints list", "plugin list", "mcp remove x", "skills sync", "login status"),
    *("doctor", "cost", "update --help", "archive x", "diff --turn 1", "config get model"),
)


@pytest.mark.parametrize("words", WITHOUT_SETTINGS)
def test_settings_may_stand_before_every_command(tmp_path: Path, words: str) -> None:
    place = make_place(tmp_path)
    (place.codex_home / "work.config.toml").write_text("")
    plain = run(place, *words.split())
    ended = run(place, "-c", "model=gpt-5.5", "-p", "work", "--config=model_verbosity=low", *words.split())
    assert "unknown option" not in ended.err
    assert ended.status == plain.status


def test_the_doctor_and_the_costs_heed_settings(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    assert "none is needed for the offline model" in run(place, "-c", "model_provider=offline", "doctor").out
    assert "no profile `nosuch`" in run(place, "cost", "-p", "nosuch").err


def test_the_value_of_an_unknown_option_is_not_taken_for_a_command(tmp_path: Path) -> None:
    ended = run(make_place(tmp_path), "-m", "test", "skills", "list")
    assert ended.err == "error: unknown option `-m`; see `codex-py skills list --help`\n"


def test_a_server_is_added_with_and_without_dashes(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    for dashes in ([], ["--"]):
        assert run(place, "mcp", "add", "x", *dashes, "npx", "-y", "foo").status == 0
        assert json.loads(run(place, "mcp", "get", "x", "--json").out)["transport"]["args"] == ["-y", "foo"]


@pytest.mark.parametrize("arguments", [["help"], ["help", "exec"], ["help", "skills", "list"], ["version"]])
def test_help_and_version_are_commands(arguments: list[str], tmp_path: Path) -> None:
    place = make_place(tmp_path)
    flags = ["--version"] if arguments == ["version"] else [*arguments[1:], "--help"]
    by_word, by_flag = run(place, *arguments), run(place, *flags)
    assert (by_word.status, by_word.out, by_word.err) == (0, by_flag.out, "")


def _set_up(row: Mistake, place: Place, url: str) -> Place:
    """Write the files of a row; give back the place with its variables."""
    texts = {name: content.decode("latin-1") for name, content in row.files.items()}
    if "down" in texts:
        place.configure(f"{DOWN}base_url = {json.dumps(texts['down'])}\n")
    elif "HOME/config.toml" not in texts:
        place.use_model(url, texts.get("top", ""))
    for name, content in row.files.items():
        root, _, path = name.partition("/")
        if root in ("HOME", "REPO"):
            file = {"HOME": place.codex_home, "REPO": place.repo}[root] / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    variables = {name.removeprefix("env "): text for name, text in texts.items() if name.startswith("env ")}
    return place.with_env(**{name: text.replace("REPO", str(place.repo)) for name, text in variables.items()})


def _messages(finished: Finished, place: Place) -> list[str]:
    """The messages on stderr and then those on stdout, which a linter prints; all of stderr before a session."""
    lines = finished.err.splitlines()
    if _SESSION in lines:
        lines = [line for line in lines if _MESSAGE.match(line)]
    lines += [line for line in finished.out.splitlines() if _MESSAGE.match(line)]
    return [line.replace(str(place.codex_home), "HOME").replace(str(place.repo), "REPO") for line in lines]
