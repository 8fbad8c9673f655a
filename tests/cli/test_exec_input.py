"""What goes into `codex-py exec`: the prompt from the command line and from stdin, files, flags, settings."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.fake_responses import FakeResponses, Request, call, fake_model, repeat, say
from tests.support.home import Place
from tests.support.process import run, start
from tests.support.rollout import read_rollout

SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def png() -> bytes:
    """One grey pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")
    )


def request_of(place: Place, *arguments: str | Path, stdin: bytes | None = None, cwd: Path | None = None) -> Request:
    """Run one good turn with these arguments; give back the request it made."""
    answer = '{"ok": true}' if "--output-schema" in arguments else "done"
    with FakeResponses([say(answer)]) as model:
        if not (place.codex_home / "config.toml").exists():
            place.use_model(model.base_url)
        override = f'model_providers.fake.base_url="{model.base_url}"'
        ended = run(place, "exec", "-c", override, *arguments, stdin=stdin, cwd=cwd)
    assert (ended.status, ended.out) == (0, f"{answer}\n"), ended.err
    return model.requests[0]


@pytest.mark.parametrize(
    ("arguments", "stdin", "prompt"),
    [
        (["say hi"], None, "say hi"),
        (["say hi"], b"", "say hi"),
        (["say hi"], b"some\nlines\n", "say hi\n\n<stdin>\nsome\nlines\n</stdin>"),
        (["say hi"], b"no newline", "say hi\n\n<stdin>\nno newline\n</stdin>"),
        (["say hi"], "é ✓".encode(), "say hi\n\n<stdin>\né ✓\n</stdin>"),
        (["-"], b"from the pipe\n", "from the pipe\n"),
        ([], b"from the pipe", "from the pipe"),
        ([], b"\n  kept as it is \n\n", "\n  kept as it is \n\n"),
        (["-"], b"not utf-8: \xff", "not utf-8: \ufffd"),
        (["--", "-dash first"], None, "-dash first"),
        (["resumed works"], None, "resumed works"),
    ],
)
def test_the_prompt_comes_from_the_argument_and_from_stdin(
    place: Place, arguments: list[str], stdin: bytes | None, prompt: str
) -> None:
    assert request_of(place, *arguments, stdin=stdin).texts("user")[-1] == prompt


def test_a_file_as_stdin_is_read(place: Place) -> None:
    path = place.write("notes.txt", "from a file")
    with FakeResponses([say("done")]) as model, path.open("rb") as notes:
        place.use_model(model.base_url)
        assert run(place, "exec", "summarise", stdin=notes).status == 0
    assert model.requests[0].texts("user")[-1] == "summarise\n\n<stdin>\nfrom a file\n</stdin>"


def test_an_open_but_silent_pipe_does_not_hold_up_a_prompt(place: Place) -> None:
    with fake_model(place, [say("done")]) as model, start(place, "exec", "go", stdin="open") as running:
        ended = running.wait()

    assert (ended.status, ended.stdout) == (0, b"done\n")
    assert model.requests[0].texts("user")[-1] == "go"


def test_a_large_prompt_arrives_whole(place: Place) -> None:
    text = "line of text ✓\n" * 100_000
    assert request_of(place, "-", stdin=text.encode()).texts("user")[-1] == text


@pytest.mark.parametrize("stdin", [b"", b" \n\t\n"])
@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_nothing_on_stdin_is_an_error(place: Place, stdin: bytes, arguments: list[str]) -> None:
    with fake_model(place):
        ended = run(place, "exec", *arguments, stdin=stdin)

    assert (ended.status, ended.stdout, len(ended.err.splitlines())) == (2, b"", 1)


def test_images_are_attached_in_order_before_the_prompt(place: Place) -> None:
    first, second = place.write("a.png", png()), place.write("with space, comma.png", png())
    request = request_of(place, "-i", "a.png", "what is it?", "--image", second)

    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    content = request.input[-1]["content"]
    assert [part["type"] for part in content] == ["input_text", "input_image", "input_text"] * 2 + ["input_text"]
    assert [part["image_url"] for part in content if part["type"] == "input_image"] == [url, url]
    assert [part["text"] for part in content if "text" in part] == [
        f'<image name=[Image #1] path="{first}">',
        "</image>",
        f'<image name=[Image #2] path="{second}">',
        "</image>",
        "what is it?",
    ]
    [rollout] = place.rollouts()
    result = [record.payload for record in read_rollout(rollout) if record.type == "event_msg"]
    assert [one["message"] for one in result if one["type"] == "user_message"] == ["what is it?"]


def test_the_output_schema_is_sent_strict(place: Place) -> None:
    path = place.write("schema.json", json.dumps(SCHEMA))
    request = request_of(place, "--output-schema", path, "go")

    wanted = {"type": "json_schema", "strict": True, "schema": SCHEMA, "name": "codex_output_schema"}
    assert request.body["text"]["format"] == wanted


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("It is fine.", "it is not JSON"),
        ('```json\n{"ok": true}\n```', "it is not JSON"),
        ('{"ok": "yes"}', "at `$.ok`: 'yes' is not of type 'boolean'"),
        ("{}", "at `$`: 'ok' is a required property"),
        ("", "it is empty"),
    ],
)
def test_an_answer_that_does_not_fit_the_schema_is_asked_for_once_more(place: Place, answer: str, problem: str) -> None:
    path = place.write("schema.json", json.dumps(SCHEMA))
    good = '{"ok": true}'
    with fake_model(place, [say(answer)], [say(good)]) as model:
        ended = run(place, "exec", "--output-schema", path, "go")
    assert (ended.status, ended.out) == (0, f"{good}\n"), ended.err
    assert problem in model.requests[1].texts("developer")[-1]

    with fake_model(place, [say(answer)], [say(answer)]) as model:
        ended = run(place, "exec", "--json", "--output-schema", path, "-o", "answer.json", "go")
    assert ended.status == 66
    assert (ended.events[-1]["type"], ended.events[-1]["error"]["code"]) == ("turn.failed", "schema")
    message = ended.events[-1]["error"]["message"]
    assert message.startswith(f"the answer does not fit the output schema: {problem}")
    assert not (place.repo / "answer.json").exists()


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ('{"type": "objekt"}', "at `$.type`"),
        ('{"properties": 3}', "at `$.properties`"),
    ],
)
def test_a_schema_that_is_not_valid_is_refused_before_any_request(place: Place, schema: str, problem: str) -> None:
    path = place.write("schema.json", schema)
    with fake_model(place):
        ended = run(place, "exec", "--output-schema", path, "go")
    assert (ended.status, ended.stdout) == (2, b"")
    assert ended.err.startswith(f"error: the output schema `{path}` is not a valid JSON schema: {problem}")


def test_a_reference_of_the_schema_is_never_fetched(place: Place) -> None:
    path = place.write("schema.json", '{"$ref": "http://127.0.0.1:9/x.json"}')
    with fake_model(place, [say("{}")], [say("{}")]):
        ended = run(place, "exec", "--output-schema", path, "go")
    assert ended.status == 66
    assert "the schema refers to `http://127.0.0.1:9/x.json`, which is not in it" in ended.err


def test_the_model_flag_beats_the_override_and_the_file(place: Place) -> None:
    assert request_of(place, "-m", "gpt-5.2", "-c", 'model="gpt-5"', "go").body["model"] == "gpt-5.2"
    assert request_of(place, "-c", "model=gpt-5-raw", "go").body["model"] == "gpt-5-raw"


@pytest.mark.parametrize(("supported", "sent"), [("true", {"summary": "auto"}), ("false", None)])
def test_a_model_can_be_said_to_sum_up_its_thinking_or_not(place: Place, supported: str, sent: Any) -> None:
    setting = f"model_supports_reasoning_summaries={supported}"
    assert request_of(place, "-m", "unheard-of", "-c", setting, "go").body.get("reasoning") == sent


def test_flags_may_stand_before_the_subcommand(place: Place) -> None:
    with fake_model(place, [say("done")]) as model:
        ended = run(place, "-m", "gpt-5.2", "-c", 'model_reasoning_effort="high"', "exec", "go")

    assert ended.status == 0
    assert (model.requests[0].body["model"], model.requests[0].body["reasoning"]["effort"]) == ("gpt-5.2", "high")


def test_a_profile_adds_its_file(place: Place) -> None:
    (place.codex_home / "slow.config.toml").write_text('model_reasoning_effort = "high"\nmodel = "gpt-5.2"\n')
    request = request_of(place, "-p", "slow", "go")

    assert (request.body["model"], request.body["reasoning"]["effort"]) == ("gpt-5.2", "high")


def test_the_working_directory_is_the_flag_s(place: Place) -> None:
    place.write("sub/file.txt", "x")
    request = request_of(place, "-C", place.repo / "sub", "go", cwd=place.home)
    relative = request_of(place, "--cd", "repo/sub", "go", cwd=place.repo.parent)

    for one in (request, relative):
        assert any(f"<cwd>{place.repo / 'sub'}</cwd>" in text for text in one.texts("user"))


def test_agents_md_and_the_environment_come_before_the_prompt(place: Place) -> None:
    place.write("AGENTS.md", "Always say please.")
    place.write("sub/AGENTS.md", "Here say thanks.")
    (place.codex_home / "AGENTS.md").write_text("From home.")
    request = request_of(place, "-C", "sub", "go")

    roles = [one["role"] for one in request.input]
    texts = request.texts("user")
    assert roles == ["developer", "user", "user"]
    assert texts[0] == (
        f"# AGENTS.md instructions for {place.repo / 'sub'}\n\n<INSTRUCTIONS>\nFrom home.\n\n--- project-doc ---\n\n"
        "Always say please.\n\nHere say thanks.\n</INSTRUCTIONS>"
    )
    assert texts[1].startswith("<environment_context>")
    assert texts[2] == "go"
    assert request.body["instructions"]


def test_extra_directories_become_writable(place: Place) -> None:
    extra, other = place.home / "extra", place.home / "other"
    extra.mkdir()
    other.mkdir()
    place.configure("")
    write = f"echo x > {extra}/a; echo x > {other}/b; echo x > c"
    with fake_model(
        place,
        [call("c", "exec_command", {"cmd": write})],
        [say("done")],
        top="[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n",
    ):
        ended = run(place, "exec", "-s", "workspace-write", "--add-dir", extra, "go")

    assert ended.status == 0
    assert [(extra / "a").exists(), (other / "b").exists(), (place.repo / "c").exists()] == [True, False, True]


def test_outside_a_repository_only_with_the_flag(place: Place) -> None:
    outside = place.home / "plain"
    outside.mkdir()
    with fake_model(place, repeat([say("done")]), excuse={"threads"}) as model:
        refused = run(place, "exec", "go", cwd=outside)
        allowed = run(place, "exec", "--skip-git-repo-check", "go", cwd=outside)
        trusted = run(place, "exec", "--trust", "go", cwd=outside)
        remembered = run(place, "exec", "go", cwd=outside)

    assert (refused.status, refused.stdout, len(refused.err.splitlines())) == (1, b"", 1)
    assert "--skip-git-repo-check" in refused.err
    assert [one.status for one in (allowed, trusted, remembered)] == [0, 0, 0]
    assert len(model.requests) == 3


def test_an_empty_git_directory_is_no_repository(place: Place) -> None:
    outside = place.home / "plain/below"
    outside.mkdir(parents=True)
    # As a sandbox leaves it for a moment where it keeps commands from making one.
    (outside.parent / ".git").mkdir()
    with fake_model(place):
        refused = run(place, "exec", "go", cwd=outside)

    assert (refused.status, refused.stdout, len(refused.err.splitlines())) == (1, b"", 1)


def test_an_ephemeral_session_leaves_nothing_of_itself(place: Place) -> None:
    place.write(".agents/skills/lint/SKILL.md", "---\nname: lint\ndescription: x\n---\n")
    with fake_model(place, [say("done")]):
        ended = run(place, "exec", "--ephemeral", "use $lint")

    assert ended.stdout == b"done\n"
    # The skills that come with the program are installed, and what was read of skills is kept for the next start.
    left = {path.relative_to(place.codex_home).parts[0] for path in place.codex_home.rglob("*") if path.is_file()}
    assert left <= {"config.toml", "skills", "cache"}


def test_a_session_is_kept_private(place: Place) -> None:
    request_of(place, "go")
    [path] = place.rollouts()

    assert path.stat().st_mode & 0o777 == 0o600
    assert {one.stat().st_mode & 0o777 for one in (place.codex_home / "sessions").rglob("*") if one.is_dir()} == {0o700}


def test_keys_do_not_reach_commands_nor_any_output(place: Place) -> None:
    secret = "sk-test-0123456789abcdef"
    env = place.with_env(FAKE_KEY=secret, OPENAI_API_KEY=secret, MY_TOKEN="tok-0123456789", HARMLESS="yes")
    with fake_model(place, [call("c", "exec_command", {"cmd": "env"})], [say("done")], env_key="FAKE_KEY") as model:
        ended = run(env, "exec", "--json", "-s", "danger-full-access", "go")
    output = model.requests[1].output_of("c")

    assert model.requests[0].headers["authorization"] == f"Bearer {secret}"
    assert "HARMLESS=yes" in output
    assert "tok-0123456789" not in output
    [rollout] = place.rollouts()
    for text in (output, ended.out, ended.err, rollout.read_text()):
        assert secret not in text


def test_a_key_in_a_prompt_is_sent_and_not_shown(place: Place) -> None:
    secret = "sk-test-0123456789abcdef"
    with fake_model(place, [say("done")], env_key="FAKE_KEY") as model:
        ended = run(place.with_env(FAKE_KEY=secret), "exec", f"is {secret} still good?")

    assert model.requests[0].texts("user")[-1] == f"is {secret} still good?"
    assert "\nis [redacted] still good?\n" in ended.err
    assert secret not in ended.err


@pytest.mark.parametrize("variable", ["CODEX_API_KEY", "OPENAI_API_KEY"])
def test_the_built_in_provider_takes_its_key_and_url_from_the_environment(place: Place, variable: str) -> None:
    with FakeResponses([say("done")]) as model:
        env = place.with_env(**{variable: "sk-test-0123456789", "OPENAI_BASE_URL": model.base_url})
        ended = run(env, "exec", "-m", "gpt-5.2", "go")

    assert ended.status == 0
    assert model.requests[0].headers["authorization"] == "Bearer sk-test-0123456789"


@pytest.mark.parametrize("words", ["resume", "--weird", "-h"])
def test_what_stands_behind_two_dashes_is_a_prompt(place: Place, words: str) -> None:
    with fake_model(place, [say("done")]) as model:
        ended = run(place, "exec", "-s", "read-only", "--", words)

    assert (ended.status, ended.stdout) == (0, b"done\n")
    assert model.requests[0].texts("user")[-1] == words


def test_rules_forbid_a_command_unless_they_are_ignored(place: Place) -> None:
    rules = place.codex_home / "rules" / "mine.rules"
    rules.parent.mkdir(mode=0o700)
    rules.write_text('prefix_rule(pattern=["uname"], decision="forbidden", justification="not here")\n')
    script = [call("c1", "exec_command", {"cmd": "uname -s"})], [say("done")]
    with FakeResponses(*script) as model, FakeResponses(*script) as free:
        place.use_model(model.base_url)
        run(place, "exec", "go")
        place.use_model(free.base_url)
        run(place, "exec", "--ignore-rules", "go")

    assert "not here" in model.requests[1].output_of("c1")
    assert free.requests[1].output_of("c1").endswith("Linux\n")


def test_rules_of_any_editor_hold_for_what_a_shell_is_given_to_read(place: Place) -> None:
    rules = place.codex_home / "rules" / "mine.rules"
    rules.parent.mkdir(mode=0o700)
    rules.write_bytes('\ufeffprefix_rule(\r\n  pattern=["uname"], decision="forbidden",\r\n)\r\n'.encode())
    with fake_model(place, [call("c1", "exec_command", {"cmd": "sh <<END\nuname -s\nEND"})], [say("done")]) as model:
        ended = run(place, "exec", "go")

    assert "forbidden by a rule of the user" in model.requests[1].output_of("c1")
    assert "is ignored" not in ended.err


def picture(side: int) -> bytes:
    out = BytesIO()
    Image.new("RGB", (side, side // 2), "navy").save(out, "PNG")
    return out.getvalue()


def test_a_damaged_picture_is_refused_in_one_line_and_nothing_is_sent(place: Place) -> None:
    place.write("cut.png", picture(100)[:-30])
    with fake_model(place) as model:
        ended = run(place, "exec", "-i", "cut.png", "what is it?")
    assert (ended.status, model.requests) == (2, [])
    [line] = ended.err.splitlines()
    assert line.startswith("error: cannot attach image") and "damaged" in line


@pytest.mark.parametrize("form", ["PNG", "GIF"])
def test_a_picture_that_lacks_its_last_bytes_only_is_made_whole(place: Place, form: str) -> None:
    out = BytesIO()
    Image.effect_noise((50, 50), 40).save(out, form)
    place.write("cut.bin", out.getvalue()[:-2])
    request = request_of(place, "-i", "cut.bin", "what is it?")
    [url] = [part["image_url"] for part in request.input[-1]["content"] if part["type"] == "input_image"]
    sent = base64.b64decode(url.partition(",")[2])
    assert sent.endswith(b"IEND\xaeB`\x82")
    assert Image.open(BytesIO(sent)).size == (50, 50)


def test_a_wrong_checksum_of_a_part_that_readers_may_skip_does_not_matter(place: Place) -> None:
    whole = picture(50)
    place.write("odd.png", whole[:33] + b"\0\0\0\2tEXtab\0\0\0\0" + whole[33:])
    request = request_of(place, "-i", "odd.png", "what is it?")
    [url] = [part["image_url"] for part in request.input[-1]["content"] if part["type"] == "input_image"]
    assert base64.b64decode(url.partition(",")[2]) == whole


def test_a_large_picture_is_scaled_to_2048_pixels(place: Place) -> None:
    place.write("large.png", picture(5000))
    request = request_of(place, "-i", "large.png", "what is it?")
    [url] = [part["image_url"] for part in request.input[-1]["content"] if part["type"] == "input_image"]
    assert Image.open(BytesIO(base64.b64decode(url.partition(",")[2]))).size == (2048, 1024)
