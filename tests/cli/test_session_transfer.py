"""`codex-py sessions export`, `import` and `search`: a session as a document, from a document, and found again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from codex_py.text.compression import pack
from tests.support.fake_responses import call, custom_call, fake_model, repeat, say
from tests.support.home import Place
from tests.support.process import run

KEY = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
UNKNOWN = "0199a213-81c0-7800-8aa1-bbab2a035a53"
# Runs `codex-py sessions` and prints the most bytes that its objects have had at a time.
MEASURED = """
import sys, tracemalloc
from codex_py.cli.sessions import run
tracemalloc.start()
run(sys.argv[2:])
print(tracemalloc.get_traced_memory()[1], file=sys.stderr)
"""
PATCH = "*** Begin Patch\n*** Add File: new.py\n+print('<b>')\n*** End Patch\n"


def talk(place: Place) -> str:
    """A session of two turns; its id."""
    answers = (
        [call("c", "exec_command", {"cmd": f"echo {KEY}; echo {place.home}/x"})],
        [custom_call("d", "apply_patch", PATCH)],
        [say("**done** <script>alert(1)</script> ![x](https://example.com/x.png)")],
        [say("the second answer")],
    )
    with fake_model(place, *answers, excuse={"threads"}):
        assert run(place, "exec", "-s", "workspace-write", "find the flux capacitor").status == 0
        assert run(place, "exec", "resume", "--last", "and then?").status == 0
    [path] = place.rollouts()
    return path.stem[-36:]


def export(place: Place, session: str, *arguments: str) -> str:
    ended = run(place, "sessions", "export", session, *arguments)
    assert ended.status == 0, ended.err
    return ended.out


def test_markdown_has_what_was_said_and_folded_calls_without_secrets(place: Place) -> None:
    session = talk(place)
    text = export(place, session)
    assert text.startswith("# find the flux capacitor\n")
    assert "> find the flux capacitor\n" in text
    assert "<details><summary><code>$ echo" in text
    assert "```diff\n" in text
    assert "+print('<b>')" in text
    assert (KEY in text, str(place.home) in text, "~/" in text) == (False, False, True)
    whole = export(place, session, "--format", "jsonl")
    assert (KEY in whole, str(place.home) in whole, "~/.codex" in whole or '"~/' in whole) == (False, False, True)
    assert "$ echo" not in export(place, session, "--no-tools")
    assert "<details><summary><code>$ echo" in (less := export(place, session, "--redact-more"))
    assert "[left out]" in less
    late = export(place, session, "--since", "2")
    assert ("> find the flux" in late, "the second answer" in late) == (False, True)


def test_a_page_runs_and_loads_nothing(place: Place) -> None:
    page = export(place, talk(place), "--format", "html")
    assert page.startswith("<!doctype html>")
    assert ("<script" in page, "<img" in page, "src=" in page, KEY in page) == (False,) * 4
    assert "default-src 'none'" in page
    assert "<strong>done</strong>" in page
    assert "<span class=\"gi\">+print('&lt;b&gt;')</span>" in page
    assert "prefers-color-scheme:dark" in page
    assert 'name="viewport"' in page


@pytest.mark.parametrize("form", ["md", "html"])
def test_what_a_session_cost_is_in_its_export(place: Place, form: str) -> None:
    session = talk(place)
    [cost] = [line for line in run(place, "sessions", "show", session).out.splitlines() if line.startswith("cost:")]
    amount = cost.removeprefix("cost:").strip()
    assert f"cost: {amount}" in (page := export(place, session, "--format", form)) or f"<dd>{amount}</dd>" in page


@pytest.mark.parametrize("form", ["md", "html"])
def test_a_secret_is_no_secret_less_where_a_text_is_cut(place: Place, form: str) -> None:
    path = json.dumps({"path": "x" * 270 + f" {KEY}"})
    printed = "echo " + "x" * 19_980 + f" {KEY}"
    answers = ([call("a", "view_image", json.loads(path)), call("b", "exec_command", {"cmd": printed})], [say("done")])
    with fake_model(place, *answers, excuse={"threads"}):
        assert run(place, "exec", "-s", "workspace-write", "x" * 60 + f" {KEY}").status == 0
    [stored] = place.rollouts()
    assert KEY[:9] not in export(place, stored.stem[-36:], "--format", form)


@pytest.mark.parametrize("option", ["--redact-more", "--no-tools"])
def test_no_record_keeps_the_output_of_a_tool_that_is_left_out(place: Place, option: str) -> None:
    session = talk(place)
    [path] = place.rollouts()
    output = {"type": "function_call_output", "call_id": "c", "output": "PRINTED"}
    item = {"type": "CommandExecution", "id": "1", "command": "x", "aggregated_output": "PRINTED"}
    added = [
        ("early_output", output),
        ("compacted", {"message": "short", "replacement_history": [output]}),
        ("event_msg", {"type": "exec_command_end", "call_id": "c", "command": ["x"], "stdout": "PRINTED"}),
        ("event_msg", {"type": "mcp_tool_call_end", "call_id": "c", "result": {"Ok": {"content": "PRINTED"}}}),
        ("event_msg", {"type": "item_completed", "item": item}),
    ]
    begins = len(path.read_text().splitlines())
    with path.open("a") as file:
        for number, (record_type, payload) in enumerate(added, begins):
            head = {"timestamp": "2026-11-23T10:00:00.000Z", "ordinal": number}
            file.write(json.dumps({**head, "type": record_type, "payload": payload}) + "\n")
    assert export(place, session, "--format", "json").count("PRINTED") == 5
    for form in ("json", "jsonl", "md", "html"):
        assert "PRINTED" not in export(place, session, "--format", form, option)


def test_a_turn_that_is_not_there_leaves_no_half_export(place: Place) -> None:
    session = talk(place)
    for form in ("md", "html", "json", "jsonl"):
        ended = run(place, "sessions", "export", session, "--format", form, "--since", "3")
        assert (ended.status, ended.out, "which has 2 turns" in ended.err) == (2, "", True)


@pytest.mark.parametrize("name", ["session.json", "session.jsonl"])
def test_an_export_is_a_session_again(place: Place, name: str) -> None:
    session, file = talk(place), place.home / name
    assert run(place, "sessions", "export", session, "-o", str(file)).err.endswith(f"wrote `{file}`\n")
    assert KEY not in file.read_text()
    other = place.home / "other"
    other.mkdir()
    taken = run(place, "sessions", "import", str(file), "--cwd", str(other))
    assert taken.status == 0, taken.err
    new = taken.out.strip()
    assert new != session
    shown = json.loads(run(place, "sessions", "show", new, "--json").out)
    first = json.loads(run(place, "sessions", "show", session, "--json").out)
    assert shown["cwd"] == str(other)
    assert [item["turn"] for item in shown["items"]] == [item["turn"] for item in first["items"]]
    with fake_model(place, repeat([say("ok")]), excuse={"threads"}) as model:
        assert run(place, "exec", "-C", str(other), "--skip-git-repo-check", "resume", new, "more").status == 0
    said = [text for text in model.requests[0].texts("user") if not text.startswith("<")]
    assert said == ["find the flux capacitor", "and then?", "more"]


def test_a_document_laid_out_by_another_program_is_taken_too(place: Place) -> None:
    document = json.loads(export(place, talk(place), "--format", "json"))
    (place.home / "pretty.json").write_text(json.dumps(document, indent=2))
    taken = run(place, "sessions", "import", str(place.home / "pretty.json"))
    assert (taken.status, taken.err) == (0, "")


def test_an_import_takes_no_permissions_and_leaves_its_directory_alone(place: Place) -> None:
    meta = {"id": "../../x", "timestamp": "../../../../tmp/x", "cwd": "/", "base_instructions": {"text": "obey"}}
    context = {"cwd": "/", "approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"}}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    records = [("session_meta", meta), ("turn_context", context), ("response_item", message)]
    lines = [json.dumps({"timestamp": 'x","a":"', "type": name, "payload": value}) for name, value in records]
    (place.home / "odd.jsonl").write_text("\n".join([*lines, "{broken", '{"type":"../x","payload":{}}']) + "\n")
    taken = run(place, "sessions", "import", str(place.home / "odd.jsonl"), "--json")
    assert taken.status == 0, taken.err
    result = json.loads(taken.out)
    path = Path(result["path"])
    assert (result["damaged"], path.is_relative_to(place.codex_home / "sessions")) == (2, True)
    stored = path.read_text()
    assert all(json.loads(line) for line in stored.splitlines())
    assert not any(word in stored for word in ("obey", "danger-full-access", "approval_policy"))


OLD = "/somewhere/else/repo"
MESSAGE = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"see {OLD}/a.py, {OLD}2"}]}


def theirs(**meta: object) -> list[dict[str, Any]]:
    """A rollout as Codex CLI writes it: with roots, settings, metadata, and paths in items of events."""
    policies = {"approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"}}
    begun = {"type": "task_started", "turn_id": "t1", "model_context_window": 1000}
    settings = {"cwd": OLD, "runtime_workspace_roots": [OLD], **policies}
    said = {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "look", "text_elements": []}]}
    ran = {"type": "CommandExecution", "id": "c1", "command": ["ls"], "cwd": f"file://{OLD}/sub"}
    changed = {"type": "FileChange", "id": "d", "changes": {f"{OLD}/new.py": {"type": "add", "content": "1\n"}}}
    arguments = json.dumps({"cmd": f"ls\n{OLD}/sub", "workdir": f"{OLD}/sub"})
    called = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": "c1"}
    head = {"id": UNKNOWN, "cwd": OLD, "runtime_workspace_roots": [OLD], "originator": "codex_exec", **meta}
    found = [
        ("session_meta", head),
        ("event_msg", begun),
        ("turn_context", {"turn_id": "t1", "cwd": f"{OLD}/sub", "model": "gpt-5.5", **policies}),
        ("event_msg", {"type": "thread_settings_applied", "thread_settings": settings}),
        ("response_item", MESSAGE),
        ("event_msg", {"type": "item_completed", "turn_id": "t1", "item": said}),
        ("response_item", called),
        ("event_msg", {"type": "item_completed", "turn_id": "t1", "item": ran}),
        ("event_msg", {"type": "item_completed", "turn_id": "t1", "item": changed}),
        ("response_item", {"type": "reasoning", "summary": [], "encrypted_content": f"{OLD}/x"}),
        ("token_usage_record", {"thread_id": UNKNOWN}),
    ]
    lines = [
        {"timestamp": "2026-11-23T11:58:58.490Z", "ordinal": number, "type": name, "payload": payload}
        for number, (name, payload) in enumerate(found)
    ]
    lines[4]["metadata"] = {"history_sequence": 3, "root": OLD}
    return lines


def write_lines(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


def take(place: Place, file: Path, *arguments: str) -> str:
    """Import a file; what the new session's file holds."""
    taken = run(place, "sessions", "import", str(file), "--json", *arguments)
    assert taken.status == 0, taken.err
    return Path(json.loads(taken.out)["path"]).read_text()


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_rollout_of_codex_is_taken_with_its_paths_mapped(place: Place, is_compressed: bool) -> None:
    file = write_lines(place.home / "rollout.jsonl", theirs())
    if is_compressed:
        packed = place.home / "rollout.jsonl.zst"
        packed.write_bytes(pack(file.read_bytes()))
        file = packed
    stored = take(place, file, "--cwd", str(place.repo))
    records = [json.loads(line) for line in stored.splitlines()]
    assert f"see {place.repo}/a.py, {OLD}2" in stored
    assert stored.replace(f"{OLD}2", "").count(OLD) == 1  # what the provider has encrypted
    assert f'"cwd":"file://{place.repo}/sub"' in stored
    assert f'"{place.repo}/new.py":' in stored
    assert [record["payload"]["cwd"] for record in records[:3] if "cwd" in record["payload"]] == [
        str(place.repo),
        f"{place.repo}/sub",
    ]
    assert [record["metadata"] for record in records if "metadata" in record] == [
        {"history_sequence": 3, "root": str(place.repo)}
    ]
    assert not any(word in stored for word in ("approval_policy", "danger-full-access", "thread_settings_applied"))
    with fake_model(place, [say("ok")], excuse={"threads"}) as model:
        assert run(place, "exec", "resume", records[0]["payload"]["id"], "more").status == 0
    said = [text for text in model.requests[0].texts("user") if not text.startswith("<")]
    assert said == [f"see {place.repo}/a.py, {OLD}2", "more"]


def test_a_rollout_keeps_its_paths_where_no_directory_is_named(place: Place) -> None:
    stored = take(place, write_lines(place.home / "rollout.jsonl", theirs()))
    assert f"see {OLD}/a.py, {OLD}2" in stored
    assert [json.loads(line)["payload"].get("cwd") for line in stored.splitlines()[:3]] == [OLD, None, f"{OLD}/sub"]


def test_a_directory_of_an_import_does_not_lead_out_of_the_one_that_is_named(place: Place) -> None:
    lines = theirs()
    lines[2]["payload"]["cwd"] = f"{OLD}/../../../etc"
    stored = take(place, write_lines(place.home / "rollout.jsonl", lines), "--cwd", str(place.repo))
    assert json.loads(stored.splitlines()[2])["payload"]["cwd"] == str(place.repo)


def test_a_fork_of_codex_is_taken_with_what_it_goes_on_from(place: Place) -> None:
    day = place.home / "elsewhere/sessions/2026/11/23"
    child = UNKNOWN.replace("0199", "0200")
    fork = theirs(id=child, forked_from_id=UNKNOWN, forked_from_ordinal_exclusive=6)
    fork = [fork[0], *({**line, "ordinal": line["ordinal"] + 6} for line in fork[4:5])]
    file = write_lines(day / f"rollout-2026-11-23T12-00-00-{child}.jsonl", fork)
    alone = run(place, "sessions", "import", str(file))
    assert (alone.status, alone.err.count("\n")) == (1, 1)
    assert f"it goes on from session `{UNKNOWN}`, which is not there" in alone.err
    assert place.rollouts() == []

    write_lines(day / f"rollout-2026-11-23T11-00-00-{UNKNOWN}.jsonl", theirs())
    records = [json.loads(line) for line in take(place, file).splitlines()]
    assert [record["ordinal"] for record in records] == [0, 1, 2, 4, 5, 10]
    assert not any("forked" in key for key in records[0]["payload"])


def deep(levels: int) -> list[dict[str, Any]]:
    lines = theirs()
    lines[4]["payload"] = json.loads('{"a":' * levels + f'"{OLD}"' + "}" * levels)
    return lines


def test_odd_values_of_an_import_are_no_trouble(place: Place) -> None:
    lines = theirs()
    lines[1]["ordinal"] = True
    lines[2]["payload"]["cwd"] = 5
    lines[5] = {"type": "event_msg", "payload": {}, "timestamp": 5, "ordinal": -(10**30), "metadata": "x"}
    stored = take(place, write_lines(place.home / "odd.jsonl", [*lines, *lines]), "--cwd", str(place.repo))
    ordinals = [json.loads(line)["ordinal"] for line in stored.splitlines()]
    assert ordinals == sorted(set(ordinals))
    assert run(place, "sessions", "show", json.loads(stored.splitlines()[0])["payload"]["id"]).status == 0
    ended = run(place, "sessions", "import", str(write_lines(place.home / "deep.jsonl", deep(700))), "-C", ".")
    assert (ended.status in (0, 1, 2), "Traceback" in ended.err, ended.err.count("\n") <= 1) == (True, False, True)


@pytest.mark.parametrize("name", ["nosuch.json", "directory", "fifo", "/dev/zero", "one", "cut.zst", "nowhere"])
def test_a_file_that_cannot_be_taken_is_refused_in_one_line(place: Place, name: str) -> None:
    (place.home / "directory").mkdir()
    os.mkfifo(place.home / "fifo")
    write_lines(place.home / "one", theirs()[:1])
    write_lines(place.home / "nowhere", theirs(cwd="relative"))
    packed = pack((place.home / "nowhere").read_bytes())
    (place.home / "cut.zst").write_bytes(packed[:-4] + b"oops")
    ended = run(place, "sessions", "import", str(place.home / name))
    assert (ended.status in (1, 2), ended.err.count("\n"), ended.out) == (True, 1, "")
    assert ended.err.startswith("error: cannot import `")
    assert place.rollouts() == []


@pytest.mark.parametrize("content", [b"", b"hello\n", b"{}", b'{"records":[]}', b"\xff\xfe\n", b'[{"type":"x"}]'])
def test_what_is_no_session_is_refused(place: Place, content: bytes) -> None:
    (place.home / "no.json").write_bytes(content)
    ended = run(place, "sessions", "import", str(place.home / "no.json"))
    assert (ended.status, ended.err.count("error:")) == (1, 1)
    assert place.rollouts() == []


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ("flux", "prompt"),
        ("FLUX capacitor", "prompt"),
        ("second answer", "answer"),
        ("new.py", "file"),
        ("echo flux", "command"),
    ],
)
def test_words_are_found_in_what_was_said_and_done(place: Place, words: str, where: str) -> None:
    session = talk(place)
    [hit] = json.loads(run(place, "sessions", "search", words, "--json").out)
    assert (hit["id"], hit["turn"]) == (session, 2 if where == "answer" else 1)
    assert hit["where"] in (where, "prompt")
    assert run(place, "archive", session).status == 0
    [hit] = json.loads(run(place, "sessions", "search", words, "--json", "--repo", "--since", "1d").out)
    assert hit["archived"] is True
    elsewhere = place.home / "elsewhere"
    elsewhere.mkdir()
    assert run(place, "sessions", "search", words, "--repo", "-C", str(elsewhere), "--json").out == "[]\n"
    assert run(place, "sessions", "search", f"{words} nowhere", "--json").out == "[]\n"


@pytest.mark.parametrize(
    "words",
    [
        "Straße",
        "STRASSE",
        "straße gross",
        'a "quoted" word',
        r"back\slash",
        ".*",
        "(un[closed",
        "日本語",
        "émigré",
        "🎉",
        "-l",
    ],
)
def test_odd_words_are_found(place: Place, words: str) -> None:
    with fake_model(place, [say("done")], excuse={"threads"}):
        prompt = 'Straße GROSS a "quoted" word back\\slash .* (un[closed 日本語 ÉMIGRÉ 🎉 -l'
        assert run(place, "exec", prompt).status == 0
    [hit] = json.loads(run(place, "sessions", "search", "--json", "--", words).out)
    assert (hit["turn"], hit["where"]) == (1, "prompt")


def test_a_search_for_nothing_is_a_mistake_and_a_moment_has_its_zone(place: Place) -> None:
    talk(place)
    assert run(place, "sessions", "search", " ").status == 2
    now = datetime.now(timezone(timedelta(hours=9)))
    for moment, count in ((now - timedelta(minutes=30), 2), (now + timedelta(minutes=30), 0)):
        found = run(place, "sessions", "search", "e", "--since", moment.isoformat(), "--json")
        assert len(json.loads(found.out)) == count


def test_paths_of_the_home_are_shortened_wherever_they_stand(place: Place) -> None:
    home = str(place.home)
    changes = {f"{home}/a.py": {"type": "add", "content": ""}}
    arguments = json.dumps({"cmd": f"cd x\n{home}/run", "workdir": f"file://{home}/x", "other": f"{home}2"})
    lines = theirs()
    lines[8]["payload"]["item"]["changes"] = changes
    lines[6]["payload"]["arguments"] = arguments
    stored = take(place, write_lines(place.home / "rollout.jsonl", lines))
    whole = export(place, json.loads(stored.splitlines()[0])["payload"]["id"], "--format", "json")
    assert whole.replace(f"{home}2", "").count(home) == 0
    assert all(text in whole for text in ('"~/a.py":', "\\\\n~/run", "file://~/x", f"{home}2"))
    assert [record["metadata"] for record in json.loads(whole)["records"] if "metadata" in record] == [
        {"history_sequence": 3, "root": OLD}
    ]


@pytest.mark.parametrize("form", ["md", "html", "json", "jsonl"])
def test_a_long_session_needs_no_more_memory_than_a_short_one(place: Place, form: str) -> None:
    def peak(turns: int) -> int:
        lines = theirs()
        said = json.loads(json.dumps(lines[5]).replace('"look"', json.dumps("x" * 40_000)))
        begun, message, head = lines[1], lines[4], lines[0]
        session = f"{UNKNOWN[:-6]}{turns:06}"
        head = {**head, "payload": {**head["payload"], "id": session}}
        path = place.codex_home / f"sessions/2026/11/23/rollout-2026-11-23T11-00-00-{session}.jsonl"
        write_lines(path, [head, *({**line, "ordinal": 0} for line in (begun, message, said) * turns)])
        arguments = ["sessions", "export", session, "--format", form, "-o", str(place.home / "out")]
        argv = [sys.executable, "-c", MEASURED, *arguments]
        ended = subprocess.run(argv, cwd=place.repo, env=place.env, check=True, capture_output=True, text=True)
        return int(ended.stderr.split()[-1])

    # From 150 turns on it is the same to a thousand bytes; a turn has 40,000.
    assert peak(250) < peak(150) + 500_000


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_half_a_document_is_imported_as_far_as_it_goes_and_that_is_said(place: Place, share: float) -> None:
    whole = export(place, talk(place), "--format", "json")
    part = place.write("half.json", whole[: int(len(whole) * share)])
    taken = run(place, "sessions", "import", str(part))
    assert taken.status == 1
    assert f"`{part}` is cut off: the session ends where the file does; export it again for the rest\n" in taken.err
    assert json.loads(run(place, "sessions", "import", str(part), "--json").out)["cut"] is True
    complete = run(place, "sessions", "import", str(place.write("whole.json", whole)), "--json")
    assert (complete.status, json.loads(complete.out)["cut"]) == (0, False)


@pytest.mark.parametrize("name", ["md", "html"])
def test_the_title_of_a_part_is_not_taken_from_before_it(place: Place, name: str) -> None:
    text = export(place, talk(place), "--since", "2", "--format", name)
    assert "flux capacitor" not in text
    assert "and then?" in text.splitlines()[0] if name == "md" else "<title>and then?" in text
