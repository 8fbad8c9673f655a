"""What users are promised about speed, each measured once.

    scripts/bench_promises.py [--ours PATH | --peer PATH] NAME

Prints seconds: of CPU for work in one process, of wall time for what somebody waits for. Hostile input is that of the
tests, and the worst of it counts. `scripts/bench` runs this, a process for each round.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench_paired import ROOT, SKILLS, Program, directory_with_skills, exec_arguments, fake_model, run, write_config
from bench_sessions import clean_checkpoint, long_export, wide_search
from bench_terminal import (
    bytes_to_terminal,
    files_in_menu,
    key_while_streaming,
    list_of_files,
    start_of_session,
    streaming_cpu,
)

Measure = Callable[[Program], float]

CALLS = 20
# Of this program and its tests nothing is imported at the top: what a start costs belongs to a cold figure, and
# `scripts/bench` reads the limits without any of it.


def cpu(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


def worst(acts: Iterable[Callable[[], object]]) -> float:
    return max(cpu(act) for act in acts)


def hostile_mentions(_: Program) -> float:
    from codex_py.skills.mentions import find_mentions
    from tests.unit.test_skills_mentions import HOSTILE, MANY_COLONS

    return worst(lambda text=text: find_mentions(text, MANY_COLONS) for text in HOSTILE)


def hostile_frontmatter(_: Program) -> float:
    from codex_py.skills.parse import SkillRefused, parse_skill
    from tests.unit.test_skills_parse import HOSTILE

    return worst(lambda text=text: refused(SkillRefused, parse_skill, text) for text in HOSTILE)


def hostile_patch(_: Program) -> float:
    from codex_py.patch.grammar import PatchError, parse_patch
    from tests.unit.test_patch_grammar import HOSTILE

    return worst(lambda text=text: refused(PatchError, parse_patch, text) for text in HOSTILE.values())


def hostile_stream(_: Program) -> float:
    from tests.unit.test_model_sse import HOSTILE, parse

    streams = [unit * (1024 * 1024 // len(unit)) for unit in HOSTILE]
    return worst(
        lambda stream=stream: parse(*(stream[at : at + 65536] for at in range(0, len(stream), 65536)))
        for stream in streams
    )


def hostile_session_line(_: Program) -> float:
    from tests.unit.test_rollout_reader import HOSTILE, Replay

    return worst(lambda line=line: Replay().feed(line + b"\n") for line in HOSTILE)


def large_event(_: Program) -> float:
    from tests.unit.test_model_sse import parse

    chunks = [b"data: ", *[b"x" * 65536] * 800, b"\n\n"]
    return cpu(lambda: parse(*chunks))


def large_answer(_: Program, event: Callable[[str], dict[str, Any]], wire: str) -> float:
    """A text of 50 MB in one event, from its bytes to the text in memory."""
    import json

    from codex_py.model.wires.chat_answer import ChatDecoder
    from codex_py.model.wires.messages_answer import MessagesDecoder
    from codex_py.model.wires.tools import ToolTable
    from tests.unit.test_model_sse import parse

    decoder = (
        ChatDecoder(ToolTable(), lambda _: False) if wire == "chat" else MessagesDecoder(ToolTable(), lambda _: False)
    )
    if wire == "messages":
        decoder.decode('{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}')
    body = b"data: " + json.dumps(event("word \n" * (50 * 1024 * 1024 // 7))).encode() + b"\n\n"

    def read() -> None:
        [data] = parse(*(body[at : at + 65536] for at in range(0, len(body), 65536)))
        assert decoder.decode(data)

    return cpu(read)


def one_shot_over(program: Program, wire: str) -> float:
    """The CPU of a one-shot over another API than Responses, as a ratio."""
    directory = make_repository(program)
    taken: dict[str, list[float]] = {"responses": [], wire: []}
    with fake_model(0) as url:
        for number in range(-1, 21):
            for api in taken if number % 2 else reversed(taken):
                write_config(program, url, url, api)
                taken[api].append(run(program, exec_arguments("-C", str(directory), "say done"), directory).cpu)
    return statistics.median(
        other / usual for usual, other in zip(taken["responses"][1:], taken[wire][1:], strict=True)
    )


def many_skills(program: Program, *, cached: bool) -> float:
    from tests.unit.test_skills_service import Workplace, age, write

    place = Workplace(program.home.parent)
    for number in range(2000):
        write(place.user, f"skill-{number:04}", "a description of some length, as they are in real life, you know")
    age(place.top)
    if cached:
        # In another process, so that nothing but the cache is left of it.
        script = f"import sys; sys.path[:0] = {sys.path!r}; from pathlib import Path\n"
        script += "from tests.unit.test_skills_service import Workplace; Workplace(Path(sys.argv[1])).load()"
        subprocess.run([sys.executable, "-c", script, place.top], check=True)
    return cpu(place.load)


def hostile_skills(program: Program) -> float:
    from tests.unit.test_skills_service import Workplace, write_hostile

    place = Workplace(program.home.parent)
    write_hostile(place)
    return cpu(place.load)


def skills_in_exec(program: Program) -> float:
    """What many skills add to a one-shot, once they are in the cache."""
    without = str(make_repository(program))
    with_skills = directory_with_skills(program)
    with fake_model(0) as url:
        write_config(program, url, url)
        taken: dict[str, list[float]] = {without: [], with_skills: []}
        for _ in range(4):
            for directory in taken:
                taken[directory].append(
                    run(program, exec_arguments("-C", directory, "say done"), program.home).wall / 1000
                )
    return min(taken[with_skills][1:]) - min(taken[without][1:])


def servers_before_first_request(program: Program) -> float:
    """What five MCP servers that are known add to the time until the first request has arrived."""
    from tests.support.fake_responses import FakeResponses, repeat, say
    from tests.support.mcp_servers import odd

    directory = make_repository(program)
    tables = "".join(odd(f"server{number}", "good") for number in range(5))
    taken: dict[str, list[float]] = {"": [], tables: []}
    with FakeResponses(repeat([say("done")]), excuse={"threads", "pairs", "order", "prefix"}) as model:
        write_config(program, model.base_url, model.base_url)
        config = program.home / "config.toml"
        alone = config.read_text()
        for _ in range(8):
            for servers in taken:
                config.write_text(alone + servers)
                began = time.monotonic()
                run(program, exec_arguments("-C", str(directory), "say done"), directory)
                taken[servers].append(model.requests[-1].received_at - began)
    return min(taken[tables][1:]) - min(taken[""][1:])


def current_bundled_skills(program: Program) -> float:
    from codex_py.skills.bundled import sync_bundled

    problem = sync_bundled(program.home, enabled=True)
    assert problem is None, problem
    return min(cpu(lambda: sync_bundled(program.home, enabled=True)) for _ in range(20))


def second_writer(program: Program) -> float:
    from codex_py.errors import UserError
    from codex_py.rollout.reader import load_session
    from codex_py.rollout.recorder import RolloutRecorder
    from tests.unit.rollout_builders import conversation, no_warning, stored

    path = stored(program.home, conversation(4))
    first = RolloutRecorder.resume(load_session(path), warn=no_warning)
    began = time.perf_counter()
    refused(UserError, lambda: RolloutRecorder.resume(load_session(path), warn=no_warning))
    taken = time.perf_counter() - began
    first.close()
    return taken


def hostile_message(_: Program) -> float:
    from tests.unit.test_render_markdown import HOSTILE, draw_stream, hostile

    return worst(lambda unit=unit: draw_stream([hostile(unit, 100_000)]) for unit in HOSTILE)


def streamed_message(_: Program) -> float:
    """Drawing a message of 10,000 deltas of every kind, 25 frames a second while 100 deltas come."""
    from tests.unit.test_render_markdown import EVERYTHING, draw_stream

    text = EVERYTHING * (60_000 // len(EVERYTHING) + 1)
    return cpu(lambda: draw_stream([text[at : at + 6] for at in range(0, 60_000, 6)], each=4))


def many_sessions(program: Program) -> float:
    from tests.unit.session_builders import session

    for number in range(5000):
        session(program.home, f"prompt {number} of some length, as they are in real life", cwd="/work")
    arguments = ["sessions", "list", "--all"]
    run(program, arguments, program.home)
    return min(run(program, arguments, program.home).wall for _ in range(3)) / 1000


def interrupt(program: Program) -> float:
    """From SIGINT, in the midst of a command, to the end of the process."""
    arguments = exec_arguments("--json", "-s", "danger-full-access", "-C", str(make_repository(program)), "work")
    with fake_model(1, "sleep 600;") as url:
        write_config(program, url, url)
        with subprocess.Popen(
            [program.path, *arguments],
            env=program.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            while b'"item.started"' not in (line := process.stdout.readline()):
                assert line, "it ended before a command was started"
            began = time.perf_counter()
            process.send_signal(signal.SIGINT)
            process.wait()
            return time.perf_counter() - began


def sandboxed_command(program: Program) -> float:
    """What the sandbox adds to one command."""
    directory = str(make_repository(program))
    added: list[float] = []
    with fake_model(CALLS) as url:
        write_config(program, url, url)
        for _ in range(11):
            inside, outside = (
                run(program, exec_arguments("-s", sandbox, "-C", directory, "work"), program.home).wall / 1000
                for sandbox in ("workspace-write", "danger-full-access")
            )
            added.append((inside - outside) / CALLS)
    return statistics.median(added)


def flood(program: Program, command: str) -> float:
    """How many times as long a flood takes here as through a pipe to `tail -c`: a ratio, not seconds."""
    ratios: list[float] = []
    with fake_model(1, "true; :") as short, fake_model(1, f"{{ {command}; }}; :") as long, fake_model(1) as calling:
        arguments = exec_arguments("-s", "danger-full-access", "-C", str(make_repository(program)), "work")
        for _ in range(21):
            walls: list[float] = []
            for url in (short, long):
                write_config(program, url, calling)
                walls.append(run(program, arguments, program.home).wall / 1000)
            began = time.perf_counter()
            subprocess.run(["bash", "-c", f"{command} | tail -c 1000"], stdout=subprocess.DEVNULL, check=True)
            ratios.append((walls[1] - walls[0]) / (time.perf_counter() - began))
    return statistics.median(ratios)


def refused(kind: type[Exception], act: Callable[..., object], *arguments: Any) -> None:
    """Do what may be refused, as hostile input is."""
    with contextlib.suppress(kind):
        act(*arguments)


def make_repository(program: Program) -> Path:
    directory = program.home.parent / "repository"
    subprocess.run(["git", "init", "-q", str(directory)], check=True)
    return directory


# The limit in seconds, and how it is measured.
PROMISES: dict[str, tuple[float, Measure]] = {
    "hostile mentions of 1 MB": (0.2, hostile_mentions),
    "hostile frontmatter of 1 MB": (0.2, hostile_frontmatter),
    "hostile patch of 1 MB": (0.2, hostile_patch),
    "hostile stream of 1 MB": (0.5, hostile_stream),
    "hostile session line of 1 MB": (0.2, hostile_session_line),
    "one event of 50 MB": (3.0, large_event),
    "one event of 50 MB over chat": (
        3.0,
        lambda program: large_answer(program, lambda text: {"choices": [{"delta": {"content": text}}]}, "chat"),
    ),
    "one event of 50 MB over messages": (
        3.0,
        lambda program: large_answer(
            program,
            lambda text: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            "messages",
        ),
    ),
    "one-shot over chat, times Responses": (1.05, lambda program: one_shot_over(program, "chat")),
    "one-shot over messages, times Responses": (1.05, lambda program: one_shot_over(program, "messages")),
    "2000 skills cold": (0.5, lambda program: many_skills(program, cached=False)),
    "2000 skills cached": (0.1, lambda program: many_skills(program, cached=True)),
    "hostile skills": (5.0, hostile_skills),
    f"{SKILLS} skills in exec": (0.03, skills_in_exec),
    "5 MCP servers before a request": (0.02, servers_before_first_request),
    "current bundled skills": (0.001, current_bundled_skills),
    "second writer refused": (0.5, second_writer),
    "hostile message of 100 KB": (5.0, hostile_message),
    # What 15 % of a core are while they come.
    "message of 10,000 deltas": (15.0, streamed_message),
    "list of 5000 sessions": (0.3, many_sessions),
    "interrupt to exit": (2.0, interrupt),
    "sandboxed command": (0.015, sandboxed_command),
    # Beside a pipe to `tail -c`, whose own time varies by as much from one run to the next.
    "1 GB of lines, times tail -c": (1.3, lambda program: flood(program, "yes | head -c 1000000000")),
    "1 GB without a line end, times tail -c": (
        1.3,
        lambda program: flood(program, "head -c 1000000000 /dev/zero | tr '\\0' a"),
    ),
    "300 MB of noise, times tail -c": (1.3, lambda program: flood(program, "head -c 300000000 /dev/urandom")),
    # With that of git; wall times are in docs/guides/undo.md.
    "CPU of a checkpoint of 10,000 files": (0.06, lambda _: clean_checkpoint(10_000)),
    "CPU of a checkpoint of 100,000 files": (0.6, lambda _: clean_checkpoint(100_000)),
    "Markdown of 2000 turns": (2.0, lambda _: long_export("md")),
    "page of 2000 turns": (2.0, lambda _: long_export("html")),
    "search in 5000 sessions": (0.5, lambda _: wide_search()),
    "prompt on the screen": (0.2, lambda program: start_of_session(program, "› ")),
    "settings on the screen": (0.3, lambda program: start_of_session(program, "workspace-write [")),
    "key while a message streams": (0.01, key_while_streaming),
    "`@` in 100,000 files": (0.05, lambda program: statistics.median(files_in_menu(program))),
    "`@` in 100,000 files, worst key": (0.05, lambda program: max(files_in_menu(program))),
    "first list of 100,000 files": (3.0, list_of_files),
    # Of each second, while they come at the pace of a model and of a fast one.
    "CPU at 200 deltas a second": (0.06, lambda program: streaming_cpu(program, rate=200)),
    "bytes a second to the terminal at 200 deltas a second": (
        8000.0,
        lambda program: bytes_to_terminal(program, rate=200),
    ),
    "CPU at 300 deltas a second": (0.15, lambda program: streaming_cpu(program, rate=300)),
    "CPU at 1,000 deltas a second": (0.15, lambda program: streaming_cpu(program, rate=1000)),
}
# What can be measured of another program too.
COMPARED = {
    "prompt on the screen",
    "key while a message streams",
    "CPU at 200 deltas a second",
    "bytes a second to the terminal at 200 deltas a second",
    "CPU at 300 deltas a second",
    "CPU at 1,000 deltas a second",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", default=str(ROOT / ".venv/bin/codex-py"))
    parser.add_argument("--peer", help="measure the other binary instead")
    parser.add_argument("name", choices=PROMISES)
    options = parser.parse_args()
    if options.peer and options.name not in COMPARED:
        parser.error(f"`{options.name}` cannot be measured of another program")
    _, measure = PROMISES[options.name]
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory(prefix=".codex-bench-", dir=Path.home()) as directory:
        home = Path(directory) / "ours" / ".codex"
        home.mkdir(parents=True)
        program = Program("peer", options.peer, home) if options.peer else Program("ours", options.ours, home)
        print(measure(program))


if __name__ == "__main__":
    main()
