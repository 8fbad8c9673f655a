"""The `apply_patch` tool in a session: its specs, its calls, its policy, its events."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.process.manager import ProcessManager
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import Event, FileChange, PatchFinished, PatchRejected, PatchStarted
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.shell.reader import CommandLineReader
from codex_py.tools.apply_patch import ApplyPatch, apply_patch_text
from codex_py.tools.command_runs import CommandCalls
from codex_py.tools.spec import ToolContext, ToolOutput
from tests.unit.patch_cases import harvest, patch, plant, update

WORKSPACE = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
OUTSIDE = "patch rejected: writing outside of the project; rejected by user approval settings"
READ_ONLY = "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings"


@dataclass
class Session:
    cwd: Path
    policy: SandboxPolicy = WORKSPACE
    events: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.sandbox = Sandbox({})

    @property
    def context(self) -> ToolContext:
        return ToolContext(
            call_id="c1",
            cwd=self.cwd,
            sandbox_policy=self.policy,
            approval="never",
            sandbox=self.sandbox,
            processes=ProcessManager(),
            env={},
            output_tokens=10_000,
            emit=self.events.append,
            command_lines=CommandLineReader(),
            commands=CommandCalls(),
        )

    async def apply(self, text: str, workdir: Path | None = None) -> ToolOutput:
        output = await apply_patch_text(text, self.context, workdir=workdir or self.cwd)
        self.events += [] if output.ended is None else [output.ended]
        return output


@pytest.fixture
def session(tmp_path: Path) -> Session:
    plant(tmp_path, {"repo/a": "x\n", "repo/.git/config": "g\n", "repo/sub/b": "1\n", "secret": "s\n"})
    return Session(tmp_path / "repo")


def succeeded(output: ToolOutput, *listed: str) -> bool:
    lines = "".join(f"{line}\n" for line in ("Success. Updated the following files:", *listed))
    layout = rf"Exit code: 0\nWall time: \d+\.\d seconds\nOutput:\n{re.escape(lines)}"
    return output.ok and not output.parts and re.fullmatch(layout, output.text) is not None


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("c", "apply_patch", update("a", "-x", "+y"), custom=True),
        ToolCall("c", "apply_patch", encode_json({"input": update("a", "-x", "+y")}).decode()),
        ToolCall("c", "apply_patch", encode_json({"patch": update("a", "-x", "+y")}).decode()),
        ToolCall("c", "apply_patch", update("a", "-x", "+y")),
        ToolCall("c", "apply_patch", encode_json({"input": update("a", "-x", "+y")}).decode(), custom=True),
    ],
    ids=["custom", "input", "patch", "text for an object", "object for a text"],
)
async def test_a_call_of_either_form_is_applied(call: ToolCall, session: Session) -> None:
    output = await ApplyPatch().run(call, session.context)
    assert succeeded(output, "M a")
    assert (session.cwd / "a").read_text() == "y\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{}", "failed to parse function arguments: `input` is missing"),
        ("[]", "failed to parse function arguments: `input` is missing"),
        ('{"input": 1}', "failed to parse function arguments: `input` is not a string"),
        ("{", "failed to parse function arguments: "),
        ("", "failed to parse function arguments: "),
    ],
)
async def test_wrong_arguments_are_named(arguments: str, message: str, session: Session) -> None:
    with pytest.raises(ToolError) as error:
        await ApplyPatch(freeform=False).run(ToolCall("c", "apply_patch", arguments), session.context)
    assert str(error.value).startswith(message)


def test_the_two_specs() -> None:
    custom, function = ApplyPatch(freeform=True).spec(), ApplyPatch(freeform=False).spec()

    assert list(custom) == ["type", "name", "description", "format"]
    assert (custom["type"], custom["name"]) == ("custom", "apply_patch")
    assert (custom["format"]["type"], custom["format"]["syntax"]) == ("grammar", "lark")
    assert custom["format"]["definition"].startswith("start: begin_patch hunk+ end_patch\n")
    assert list(function) == ["type", "name", "description", "strict", "parameters"]
    assert (function["type"], function["name"], function["strict"]) == ("function", "apply_patch", False)
    parameters: dict[str, Any] = function["parameters"]
    assert (list(parameters["properties"]), parameters["required"]) == (["input"], ["input"])
    assert parameters["additionalProperties"] is False
    # About 350 tokens.
    assert len(custom["description"]) < 1500


def test_the_example_in_the_description_is_a_patch(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "src/app.py": "class App:\n    def run(self):\n        setup()\n        start()\n        wait()\n",
            "old.txt": "",
        },
    )
    description = ApplyPatch().spec()["description"]
    example = description[description.index("*** Begin Patch") : description.index("*** End Patch") + 13]

    output = asyncio.run(Session(tmp_path).apply(example))

    assert succeeded(output, "A docs/notes.md", "M src/main.py", "D old.txt")


async def test_events_tell_what_changes(session: Session) -> None:
    text = patch(
        *("*** Add File: n", "+new", "*** Update File: a", "*** Move to: m", "-x", "+y"),
        "*** Delete File: sub/b",
    )
    output = await session.apply(text)

    cwd = session.cwd
    changes = (
        FileChange(cwd / "n", "add", None, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new\n"),
        FileChange(cwd / "a", "update", cwd / "m", "--- a/a\n+++ b/m\n@@ -1 +1 @@\n-x\n+y\n"),
        FileChange(cwd / "sub/b", "delete", None, "--- a/sub/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"),
    )
    said = "Success. Updated the following files:\nA n\nM m\nD sub/b\n"
    assert session.events == [PatchStarted("c1", changes), PatchFinished("c1", changes, True, said)]
    assert output.text.endswith(f"Output:\n{said}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "invalid patch: The first line of the patch must be '*** Begin Patch'"),
        (patch("junk"), "invalid patch hunk on line 2: 'junk' is not a valid hunk header. "),
        (update("none", "-x"), "Failed to read file to update {cwd}/none: no such file"),
        (update("a", "-z"), "Failed to find expected lines in {cwd}/a:\nz\nhunk 1, patch line 3\n"),
    ],
)
async def test_a_patch_that_does_not_fit_is_explained(text: str, message: str, session: Session) -> None:
    output = await session.apply(text)
    assert not output.ok
    assert output.text.startswith("apply_patch verification failed: " + message.format(cwd=session.cwd))
    assert session.events == [PatchRejected("c1", output.text)]


async def test_an_empty_patch_is_rejected(session: Session) -> None:
    assert await session.apply(patch()) == ToolOutput("patch rejected: empty patch", ok=False)


async def test_where_no_file_can_be_none_is_looked_for(session: Session) -> None:
    long = "x" * 300
    output = await session.apply(patch(f"*** Add File: {long}", "+x"))
    assert output.text == (
        f"apply_patch verification failed: Failed to write file {session.cwd}/{long}: file name too long"
    )


async def test_a_read_only_session_writes_nothing(session: Session) -> None:
    session.policy = ReadOnly()
    before = harvest(session.cwd)
    assert await session.apply(update("a", "-x", "+y")) == ToolOutput(READ_ONLY, ok=False)
    assert harvest(session.cwd) == before


@pytest.mark.parametrize(
    "text",
    [
        patch("*** Add File: ../out", "+x"),
        patch("*** Add File: sub/../../out", "+x"),
        patch("*** Add File: sub/../in", "+x"),
        patch("*** Add File: {outside}/out", "+x"),
        patch("*** Add File: /{outside}/out", "+x"),
        update("{outside}/secret", "-s", "+x"),
        patch("*** Delete File: {outside}/secret"),
        patch("*** Delete File: ../secret"),
        update("a", "*** Move to: ../out", " x"),
        update("a", "*** Move to: {outside}/out", " x"),
        update("../secret", "*** Move to: a", " s"),
        update("link", "-s", "+x"),
        patch("*** Add File: link", "+x"),
        patch("*** Add File: dangling", "+x"),
        patch("*** Add File: up/out", "+x"),
        patch("*** Delete File: up/secret"),
        update("a", "*** Move to: up/out", " x"),
        update("a", "*** Move to: link", " x"),
        patch("*** Add File: .git/hooks/pre-commit", "+x"),
        update(".git/config", "-g", "+x"),
        patch("*** Delete File: .git/config"),
        update("a", "*** Move to: .git/config", " x"),
        patch("*** Add File: .GIT/x", "+x"),
        patch("*** Add File: sub/.git/hooks/x", "+x"),
        patch("*** Add File: .codex/config.toml", "+x"),
        patch("*** Add File: .agents/skills/x/SKILL.md", "+x"),
        patch("*** Add File: .codex", "+x"),
        patch("*** Delete File: .agents"),
        patch("*** Add File: into/x", "+x"),
        patch("*** Add File: {cwd}/.git/x", "+x"),
    ],
)
async def test_nothing_is_written_outside_of_the_writable_directories(text: str, session: Session) -> None:
    cwd, outside = session.cwd, session.cwd.parent
    (cwd / "link").symlink_to("../secret")
    (cwd / "dangling").symlink_to("../nowhere")
    (cwd / "up").symlink_to("..")
    (cwd / "into").symlink_to(".git")
    (cwd / ".agents").symlink_to("sub/b")
    text = text.replace("{outside}", str(outside)).replace("{cwd}", str(cwd))
    before = harvest(outside)

    output = await session.apply(text)

    assert not output.ok
    assert output.text.startswith(f"{OUTSIDE}: `")
    assert harvest(outside) == before
    assert session.events == [PatchRejected("c1", output.text)]


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        (patch("*** Add File: .github/x", "+x"), "A .github/x"),
        (patch("*** Add File: .gitignore", "+x"), "A .gitignore"),
        (patch("*** Add File: ..a/..b", "+x"), "A ..a/..b"),
        (patch("*** Add File: {cwd}/n", "+x"), "A {cwd}/n"),
        (update("inner/b", "-1", "+2"), "M inner/b"),
        (patch("*** Delete File: out"), "D out"),
        (patch("*** Add File: {extra}/n", "+x"), "A {extra}/n"),
    ],
)
async def test_what_lies_inside_is_written(text: str, listed: str, session: Session, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    session.policy = WorkspaceWrite((extra,), exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
    (session.cwd / "inner").symlink_to("sub")
    (session.cwd / "out").symlink_to("../secret")

    output = await session.apply(text.replace("{cwd}", str(session.cwd)).replace("{extra}", str(extra)))

    assert succeeded(output, listed.replace("{cwd}", str(session.cwd)).replace("{extra}", str(extra)))
    assert (tmp_path / "secret").read_text() == "s\n"


async def test_a_directory_given_by_the_model_widens_nothing(session: Session) -> None:
    outside = session.cwd.parent
    assert succeeded(await session.apply(update("b", "-1", "+2"), session.cwd / "sub"), "M b")
    assert (await session.apply(update("secret", "-s", "+x"), outside)).text.startswith(OUTSIDE)
    assert (await session.apply(patch("*** Add File: x"), session.cwd / ".git")).text.startswith(OUTSIDE)
    missing = await session.apply(patch("*** Add File: x"), session.cwd / "none")
    assert missing.text == f"apply_patch verification failed: `{session.cwd}/none` is not a directory"


async def test_a_root_that_became_a_link_leads_nowhere(session: Session, tmp_path: Path) -> None:
    assert succeeded(await session.apply(patch("*** Add File: n")), "A n")
    plant(tmp_path, {"elsewhere/a": "x\n"})
    session.cwd.rename(tmp_path / "away")
    session.cwd.symlink_to("elsewhere")

    output = await session.apply(update("a", "-x", "+y"))

    assert output.text.startswith(OUTSIDE)
    assert (tmp_path / "elsewhere/a").read_text() == "x\n"


async def test_full_access_writes_anywhere(session: Session) -> None:
    session.policy = DangerFullAccess()
    text = patch("*** Update File: ../secret", "-s", "+x", "*** Add File: .git/hooks/h", "+x")
    assert succeeded(await session.apply(text), "A .git/hooks/h", "M ../secret")
    assert (session.cwd.parent / "secret").read_text() == "x\n"


async def test_a_write_that_fails_is_reported_with_its_exit_code(session: Session) -> None:
    session.policy = DangerFullAccess()
    text = patch("*** Update File: a", "-x", "+y", "*** Add File: /proc/none/x", "+x")

    output = await session.apply(text)

    assert not output.ok
    layout = r"Exit code: 1\nWall time: \d+\.\d seconds\nOutput:\n"
    failed = r"Failed to write file /proc/none/x: no such file or directory\nnothing was changed"
    assert re.fullmatch(layout + failed, output.text)
    [_, finished] = session.events
    assert isinstance(finished, PatchFinished)
    assert not finished.ok
    assert (session.cwd / "a").read_text() == "x\n"


async def test_a_cancelled_call_leaves_all_or_nothing(session: Session) -> None:
    names = [f"f{number}" for number in range(300)]
    plant(session.cwd, {name: "x\n" for name in names})
    text = patch(*(line for name in names for line in (f"*** Update File: {name}", "-x", "+y")))
    started = asyncio.Event()
    context = session.context

    def emit(event: Event) -> None:
        session.events.append(event)
        started.set()

    object.__setattr__(context, "emit", emit)
    call = asyncio.create_task(apply_patch_text(text, context, workdir=session.cwd))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    found = {(session.cwd / name).read_text() for name in names}
    [_, finished] = session.events
    assert isinstance(finished, PatchFinished)
    assert found == ({"y\n"} if finished.ok else {"x\n"})
    if not finished.ok:
        assert finished.output == "interrupted; nothing was changed"
    assert not [name for name in harvest(session.cwd) if ".codex-patch-" in name]
