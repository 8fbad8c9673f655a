"""What a yes to a project's hook covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.hooks.matching import Matcher
from codex_py.hooks.schema import Hook, HookOrigin
from codex_py.hooks.trust import TrustedHooks, fingerprint


def hook(root: Path, command: str | tuple[str, ...]) -> Hook:
    return Hook("Stop", Matcher("x"), command, 5.0, HookOrigin("project", root / ".codex/hooks.json", root))


@pytest.mark.parametrize(
    "command",
    [
        "bash tools/check.sh",
        "./tools/check.sh --fast",
        '"$CLAUDE_PROJECT_DIR"/tools/check.sh',
        "${CODEX_PROJECT_DIR}/tools/check.sh",
        "FOO=1 python3 'tools/check.sh'; true",
        "bash link",
        "bash 'my tools/check.sh'",
        '"$(git rev-parse --show-toplevel)"/tools/check.sh',
        "python3 `git rev-parse --show-toplevel`/tools/check.sh",
        'bash "${CLAUDE_PROJECT_DIR:-$(pwd)}/tools/check.sh"',
        'ROOT=$(pwd); bash "$ROOT/tools/check.sh"',
        "cd tools && ./check.sh",
        'cd "$(git rev-parse --show-toplevel)/tools" && sh check.sh',
        "PATH=$PWD/tools:$PATH check.sh",
        "python3 -m tools.check",
        ("bash", "tools/check.sh"),
    ],
)
def test_a_yes_covers_the_script(tmp_path: Path, command: str | tuple[str, ...]) -> None:
    script = tmp_path / "tools" / "check.sh"
    script.parent.mkdir()
    script.write_text("exit 0\n")
    (tmp_path / "link").symlink_to(script)
    (tmp_path / "tools" / "check.py").symlink_to(script)
    (tmp_path / "my tools").symlink_to(script.parent)
    before = fingerprint(hook(tmp_path, command), tmp_path)
    assert fingerprint(hook(tmp_path, command), tmp_path) == before
    script.write_text("exit 2\n")
    assert fingerprint(hook(tmp_path, command), tmp_path) != before


def test_a_yes_covers_all_of_the_entry(tmp_path: Path) -> None:
    one = hook(tmp_path, "true")
    others = [
        one.replace(event="PreToolUse"),
        one.replace(matcher=Matcher("y")),
        one.replace(command="true "),
        one.replace(command=("true",)),
        one.replace(timeout=6.0),
        one.replace(background=True),
    ]
    assert len({fingerprint(each, tmp_path) for each in (one, *others)}) == 7


def test_a_yes_is_found_again_and_can_be_taken_back(tmp_path: Path) -> None:
    TrustedHooks(tmp_path).put(Path("/a"), ["one", "two", "one"])
    TrustedHooks(tmp_path).put(Path("/b"), ["three"])
    kept = TrustedHooks(tmp_path)
    assert [kept.has(Path("/a"), "one"), kept.has(Path("/a"), "three"), kept.has(Path("/c"), "one")] == [
        True,
        False,
        False,
    ]
    kept.put(Path("/a"), [])
    assert not TrustedHooks(tmp_path).has(Path("/a"), "one")
    assert TrustedHooks(tmp_path).has(Path("/b"), "three")


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"projects": [1]}', b'{"projects": {"/a": "one"}}', b"\xff"])
def test_a_damaged_list_trusts_nothing(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "trusted_hooks.json").write_bytes(junk)
    assert not TrustedHooks(tmp_path).has(Path("/a"), "one")
