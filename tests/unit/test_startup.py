"""Start-up is a feature: what may be imported before the first request is on the wire."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_responses import api_error, call, fake_model, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.process import run

# Heavy, and needed later or never on the way to the first request.
WAIT = {
    "click",
    "markdown_it",
    "mcp",
    "prompt_toolkit",
    "pydantic",
    "pydantic_core",
    "pygments",
    "regex",
    "requests",
    "rich",
    "tiktoken",
    "tomlkit",
    "tree_sitter",
    "watchfiles",
    "yaml",
    "genai_prices",
    "codex_py.text.compression",
    "importlib.metadata",
    "multiprocessing",
    "unittest",
}
# What `codex-py --version` has to do with: nothing of the session.
NOT_FOR_VERSION = WAIT | {"anyio", "asyncio", "httpcore", "httpx", "typer", "click", "ssl", "json"}


def imported(place: Place, *arguments: str) -> set[str]:
    """Run `codex-py` to its end; every module it imported, packages of theirs included."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "codex_py.cli.main", *arguments],
        cwd=place.repo,
        env=place.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    names = set(re.findall(r"(?m)^import time:.*\|\s+(\S+)$", ended.stderr))
    assert "codex_py.errors" in names, ended.stderr[-2000:]
    return names | {name.split(".")[0] for name in names}


def cache_skills(place: Place) -> None:
    """Have the skills cached. What was written within the same tick of the clock is read again, and written again."""
    before: set[tuple[int, int]] | None = None
    while (now := {(entry.stat().st_ino, entry.stat().st_mtime_ns) for entry in cached(place)}) != before:
        before = now
        assert run(place, "skills", "list").status == 0


def cached(place: Place) -> list[Path]:
    return [*(place.codex_home / "cache/skills").glob("*.json")]


def test_bundled_skills_come_from_the_cache(place: Place) -> None:
    place.write(".agents/skills/own/SKILL.md", "---\nname: own\ndescription: Use it here.\n---\nbody\n")
    cache_skills(place)
    names = imported(place, "exec", "--offline", "go")
    assert {"codex_py.skills.scan", "codex_py.skills.parse", "yaml"} & names == set()


@pytest.mark.parametrize("flags", [[], ["--json"], ["-s", "workspace-write"]])
def test_nothing_heavy_is_imported_before_the_first_request(place: Place, flags: list[str]) -> None:
    # The answer ends the turn at once, so that all that was imported was imported for the request.
    cache_skills(place)
    with fake_model(place, api_error(400, "enough")) as model:
        names = imported(place, "exec", *flags, "go")

    assert len(model.requests) == 1
    # The checkpoint of a turn that may write begins beside its request.
    assert names & WAIT <= ({"codex_py.text.compression"} if "-s" in flags else set())


# Other people's code in a run with a tool call: for HTTP, and for reading the command.
ONE_SHOT = frozenset(
    "anyio certifi h11 httpcore httpx httpx_sse idna tree_sitter tree_sitter_bash typing_extensions".split()
)
_LIST_LOADED = """
import sys
from codex_py.cli.main import run
run(sys.argv[1:])
names = {name.partition(".")[0] for name, module in sys.modules.items() if module is not None}
print(*sorted(names - sys.stdlib_module_names - {"__main__", "codex_py"}))
"""


def test_a_one_shot_run_loads_no_other_libraries(place: Place) -> None:
    cache_skills(place)
    with fake_model(place, [call("c", "exec_command", {"cmd": "true"})], [say("done")]):
        ended = subprocess.run(
            [sys.executable, "-c", _LIST_LOADED, "exec", "go"],
            cwd=place.repo,
            env=place.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

    answer, loaded = ended.stdout.splitlines()
    assert (answer, set(loaded.split()) - ONE_SHOT) == ("done", set())


def test_the_offline_model_is_not_imported_for_another_one(place: Place) -> None:
    with fake_model(place, api_error(400, "enough")):
        names = imported(place, "exec", "go")

    ours = {name for name in names if name.startswith("codex_py.")}
    other = r"codex_py\.(offline\.(?!server)|ui\b|server\b|mcp\.|hooks\.(session|dispatcher|engine))"
    assert {name for name in ours if re.match(other, name)} == set()


def test_what_many_runs_need_is_not_imported_for_one(place: Place) -> None:
    with fake_model(place, [call("c", "exec_command", {"cmd": "true"})], [say("done")]):
        names = imported(place, "exec", "go")

    assert names & {"codex_py.batch", "codex_py.telemetry", "codex_py.cli.exec_runs", "codex_py.cli.batch"} == set()
    assert names & {"ray", "opentelemetry", "fsspec", "google.protobuf", "requests"} == set()


def test_a_batch_without_a_terminal_draws_nothing(place: Place) -> None:
    tasks = place.home.parent / "tasks.jsonl"
    tasks.write_text('{"id": "a", "prompt": "go"}\n')
    with fake_model(place, [say("done")]) as model:
        names = imported(place, "batch", str(tasks), "--out", str(place.home.parent / "out"))

    assert len(model.requests) == 1
    assert names & {"rich", "prompt_toolkit", "codex_py.batch.live_table"} == set()


def test_a_command_does_not_bring_the_terminal_interface(place: Place) -> None:
    cache_skills(place)
    with fake_model(place, [call("c", "exec_command", {"cmd": "true"})], [say("done")]) as model:
        names = imported(place, "exec", "go")

    assert len(model.requests) == 2
    assert names & {"prompt_toolkit", "rich", "tiktoken", "mcp", "yaml"} == set()


def test_the_version_costs_next_to_nothing(place: Place) -> None:
    assert imported(place, "--version") & NOT_FOR_VERSION == set()


def test_what_runs_hooks_is_not_imported_where_there_are_none(place: Place) -> None:
    with fake_model(place, [call("c", "exec_command", {"cmd": "true"})], [say("done")]) as model:
        names = imported(place, "exec", "go")

    assert len(model.requests) == 2
    parts = ("sources", "session", "dispatcher", "engine")
    assert names & {f"codex_py.hooks.{part}" for part in parts} == set()


def test_hooks_bring_no_library_before_the_first_request(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry("true", "Bash")], SessionStart=[entry("echo hello")])
    cache_skills(place)
    with fake_model(place, api_error(400, "enough")):
        names = imported(place, "exec", "go")

    assert "codex_py.hooks.engine" in names
    assert names & WAIT == set()


def test_no_call_of_a_command_brings_pydantic(place: Place) -> None:
    odd_call = {"cmd": "true", "yield_time_ms": "500", "justification": "why", "prefix_rule": ["true"], "more": 1}
    with fake_model(
        place, [call("c1", "exec_command", odd_call)], [call("c2", "exec_command", {})], [say("done")]
    ) as model:
        names = imported(place, "exec", "go")

    assert "missing field `cmd`" in model.requests[-1].output_of("c2")
    assert "pydantic" not in names


def test_rules_are_read_without_what_runs_commands_where_none_runs(place: Place) -> None:
    rules = place.codex_home / "rules" / "own.rules"
    rules.parent.mkdir()
    rules.write_text('prefix_rule(pattern = ["ls"], decision = "allow")\n')
    with fake_model(place, [say("done")]):
        names = imported(place, "exec", "go")

    assert "codex_py.tools.rules" in names
    assert names & {"codex_py.core.tool_runtime", "codex_py.sandbox.command", "codex_py.process.manager"} == set()


def test_the_prompt_is_drawn_before_what_runs_a_session_and_draws_its_events_is_loaded() -> None:
    look = (
        "import sys\nimport codex_py.cli.main, codex_py.cli.repl, codex_py.ui.repl.app\n"
        "heavy = {'httpx', 'rich', 'markdown_it', 'pygments', 'codex_py.render.event', 'codex_py.core.build'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_what_judges_commands_is_not_imported_before_there_is_one(place: Place) -> None:
    with fake_model(place, api_error(400, "enough")):
        names = imported(place, "exec", "go")

    own = {name.removeprefix("codex_py.shell.") for name in names if name.startswith("codex_py.shell.")}
    assert own == {"reader", "command_line"}
