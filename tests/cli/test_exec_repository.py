"""A whole run: a repository with a failing test, a model that fixes it, the file on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import (
    FakeResponses,
    Request,
    api_error,
    call,
    completed,
    custom_call,
    fake_model,
    reasoning,
    say,
    tokens,
)
from tests.support.home import Place, make_place
from tests.support.process import run

FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": 'def total(prices):\n    """The sum of the prices."""\n    return sum(prices) + 1\n',
    "tests/__init__.py": "",
    "tests/test_prices.py": (
        "import unittest\n\nfrom shop.prices import total\n\n\n"
        "class TotalTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    ),
    "AGENTS.md": "Run the tests with `python3 -m unittest`.\n",
}
PATCH = """*** Begin Patch
*** Update File: shop/prices.py
@@ def total(prices):
-    return sum(prices) + 1
+    return sum(prices)
*** End Patch
"""


@pytest.fixture
def shop(tmp_path: Path) -> Place:
    return make_place(tmp_path, FILES)


def after_green(request: Request) -> list[dict[str, object]]:
    """A model that believes only what it has seen."""
    green = "OK" in request.output_of("green") and "Process exited with code 0" in request.output_of("green")
    return [say("The test passes now." if green else "Still red."), completed(tokens(100, 20))]


@pytest.mark.parametrize("through", ["tool", "heredoc"])
def test_a_failing_test_is_read_mended_and_run_green(shop: Place, through: str) -> None:
    patch = (
        custom_call("patch", "apply_patch", PATCH)
        if through == "tool"
        else call("patch", "exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}EOF"})
    )
    script = (
        [
            reasoning("blob-1", "Look first"),
            call("red", "exec_command", {"cmd": "python3 -m unittest"}),
            call("read", "exec_command", {"cmd": "cat shop/prices.py"}),
        ],
        [reasoning("blob-2"), patch],
        [call("green", "exec_command", {"cmd": "python3 -m unittest 2>&1 | tail -n 3; exit ${PIPESTATUS[0]}"})],
        [call("diff", "exec_command", {"cmd": "git diff --stat", "workdir": "shop"})],
        after_green,
    )
    with fake_model(shop, *script) as model:
        ended = run(shop, "exec", "-s", "workspace-write", "mend the failing test")

    assert (ended.status, ended.stdout) == (0, b"The test passes now.\n"), ended.err
    assert (shop.repo / "shop/prices.py").read_text() == FILES["shop/prices.py"].replace(" + 1", "")
    red, last = model.requests[1].output_of("red"), model.requests[4]
    assert "FAILED (failures=1)" in red
    assert "Process exited with code 1" in red
    assert "return sum(prices) + 1" in last.output_of("read")
    assert "Success. Updated the following files:\nM shop/prices.py\n" in last.output_of("patch")
    assert "1 file changed, 1 insertion(+), 1 deletion(-)" in last.output_of("diff")
    assert len(last.input_bytes) > len(model.requests[0].input_bytes)


def test_the_default_sandbox_is_read_only(shop: Place) -> None:
    script = (
        [custom_call("patch", "apply_patch", PATCH)],
        [call("write", "exec_command", {"cmd": "echo x > new.txt"})],
        [call("network", "exec_command", {"cmd": "exec 3<>/dev/tcp/127.0.0.1/PORT && echo reached"})],
        [say("It is read-only.")],
    )
    with FakeResponses() as other, FakeResponses(*script) as model:
        script[2][0]["item"]["arguments"] = script[2][0]["item"]["arguments"].replace("PORT", str(other.port))
        shop.use_model(model.base_url)
        ended = run(shop, "exec", "mend it")

    assert ended.stdout == b"It is read-only.\n"
    assert (shop.repo / "shop/prices.py").read_text() == FILES["shop/prices.py"]
    assert not (shop.repo / "new.txt").exists()
    assert "read-only" in model.requests[1].output_of("patch").lower()
    assert "Read-only file system" in model.requests[2].output_of("write")
    assert "reached" not in model.requests[3].output_of("network")
    assert other.connections == 0


def test_workspace_write_keeps_git_and_the_world_outside_as_they_are(shop: Place) -> None:
    outside = shop.home / "outside.txt"
    targets = [outside, ".git/hooks/post-commit", "inside.txt", ".codex/config.toml"]
    commands = "mkdir -p .codex; " + "; ".join(f"echo x > {target}" for target in targets)
    with FakeResponses([call("c", "exec_command", {"cmd": commands})], [say("done")]) as model:
        shop.use_model(model.base_url, "[sandbox_workspace_write]\nexclude_slash_tmp = true\n")
        ended = run(shop, "exec", "-s", "workspace-write", "write")

    assert ended.status == 0
    assert not outside.exists()
    assert not (shop.repo / ".git/hooks/post-commit").exists()
    assert (shop.repo / "inside.txt").read_text() == "x\n"
    named = f"commands made settings that other programs use: `{shop.repo}/.codex/config.toml`; look at them first"
    assert named in ended.err


@pytest.mark.parametrize("answer", [say("done"), api_error(400, "no")], ids=["done", "failed"])
def test_repositories_that_the_last_command_made_are_told_of_at_the_end(shop: Place, answer: Any) -> None:
    make = "for d in shop new; do git init -q $d && git -C $d config core.fsmonitor ./run; done"
    with fake_model(shop, [call("c1", "exec_command", {"cmd": make})], [answer]):
        ended = run(shop, "exec", "-s", "workspace-write", "make repositories")
    shown = [line for line in ended.err.splitlines() if line.startswith("warning: ")]
    assert [line.partition("; it is now")[0] for line in shown] == [
        f"warning: a command made `{shop.repo}/shop/.git`, by which git would run something: its `config` sets "
        "`core.fsmonitor`",
        f"warning: git may run a program in repositories that commands made: `{shop.repo}/new/.git` (its `config` sets "
        "`core.fsmonitor`)",
    ]
    assert not (shop.repo / "shop/.git").exists()


def test_a_flood_is_cut_and_the_turn_goes_on(shop: Place) -> None:
    with fake_model(shop, [call("c", "exec_command", {"cmd": "seq 1 3000000"})], [say("done")]) as model:
        ended = run(shop, "exec", "--json", "go")

    output = model.requests[1].output_of("c")
    assert ended.status == 0
    assert len(output) < 60_000
    assert output.rstrip().endswith("3000000")
    assert "tokens truncated…" in output
    assert max(map(len, ended.stdout.splitlines())) < 2_200_000


@pytest.mark.parametrize("name", ["HEAD", "config", "packed-refs", "commondir"])
@pytest.mark.parametrize("content", ["directory", "fifo", b"ref: refs/heads/\0x\n", b"gitdir: \0\n", b"\n" * 150_000])
def test_an_odd_repository_neither_ends_nor_stalls_a_start(place: Place, name: str, content: str | bytes) -> None:
    path = place.repo / ".git" / name
    path.unlink(missing_ok=True)
    if content == "directory":
        path.mkdir()
    elif content == "fifo":
        os.mkfifo(path)
    else:
        assert isinstance(content, bytes)
        path.write_bytes((b'[remote "origin"]\n' if name == "config" else b"") + content)
    with fake_model(place, [say("done")]):
        ended = run(place, "exec", "hi")
    assert (ended.status, ended.out) == (0, "done\n")
