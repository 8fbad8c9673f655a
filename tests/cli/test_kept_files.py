"""A file that is changed stays the same file, with its mounts, links, owner, mode and attributes."""

from __future__ import annotations

import json
import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest

from tests.support.fake_responses import FakeResponses, call, custom_call, say
from tests.support.home import Place
from tests.support.process import COMMAND, run
from tests.unit.patch_cases import patch, update

_MOUNTS: Final = ("unshare", "-rm")
# The same user without any capability: as root, permissions would not count.
_NO_CAPABILITIES: Final = ("unshare", "-U")

pytestmark = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*_MOUNTS, "true"], capture_output=True, check=False).returncode != 0,
    reason="needs user namespaces",
)


class Target(NamedTuple):
    """A file `a` with the content `x`, as `prepare` and then the shell line `mount` make it, and a patch of it."""

    prepare: Callable[[Path], object] = lambda _: None
    mount: str = ""
    prefix: Sequence[str] = _MOUNTS
    text: str = update("a", "-x", "+y")
    after: Mapping[str, str] = MappingProxyType({"a": "y\n"})
    error: str = ""
    file: str = "a"
    """The file that is the same one afterwards."""


def _access_list(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


_NOBODY: Final = 0xFFFFFFFF
_ACL: Final = _access_list((1, 6, _NOBODY), (2, 6, 1234), (4, 4, _NOBODY), (16, 6, _NOBODY), (32, 4, _NOBODY))


def _attribute(path: Path) -> None:
    os.setxattr(path / "a", "user.note", b"\0important")


def _access(path: Path) -> None:
    os.setxattr(path / "a", "system.posix_acl_access", _ACL)


def _default_access(path: Path) -> None:
    os.setxattr(path, "system.posix_acl_default", _ACL)


def _link(path: Path) -> None:
    (path / "b").hardlink_to(path / "a")


def _linked_with_mode(path: Path) -> None:
    _link(path)
    (path / "a").chmod(0o4755)


def _read_only_directory(path: Path) -> None:
    path.chmod(0o555)


def _foreign_in_sticky(path: Path) -> None:
    if os.getuid():
        pytest.skip("only root can make a file of another user")
    for each in (path / "a", path):
        os.chown(each, 1234, 1234)
        each.chmod(0o1777 if each == path else 0o666)


def _symbolic_link(path: Path) -> None:
    (path / "a").rename(path / "real")
    (path / "a").symlink_to("real")


def _sparse(path: Path) -> None:
    with (path / "a").open("r+b") as file:
        file.truncate(1 << 20)


def _fifo(path: Path) -> None:
    (path / "a").unlink()
    os.mkfifo(path / "a")


def _second(path: Path) -> None:
    (path / "b").write_text("old\n")


def _linked_and_blocked(path: Path) -> None:
    _link(path)
    (path / "d").mkdir()
    (path / "d/c").write_text("x\n")


_MOUNT_A: Final = "echo x > ../outside; mount --bind ../outside a"
_MOVE: Final = update("a", "*** Move to: c", "-x", "+y")
_UNMOUNT_C: Final = update("d/c", "-x", "+y").removeprefix("*** Begin Patch\n").removesuffix("\n*** End Patch")
_TWO: Final = patch("*** Update File: a", "-x", "+y", *_UNMOUNT_C.splitlines())
_BUSY: Final = "device or resource busy\nnothing was changed"

TARGETS: Final = {
    "plain": Target(),
    "hard link": Target(_link, after={"a": "y\n", "b": "y\n"}),
    "hard link that is moved": Target(_link, text=_MOVE, after={"b": "y\n", "c": "y\n"}, file="c"),
    "hard link that is moved over its other name": Target(
        _link, text=update("a", "*** Move to: b", "-x", "+y"), after={"b": "y\n"}, file="b"
    ),
    "hard link with the bits of another user": Target(_linked_with_mode, after={"a": "y\n", "b": "y\n"}),
    "hard link, and another file fails": Target(
        _linked_and_blocked,
        "mount --bind d d; mount -o remount,ro,bind d",
        text=_TWO,
        after={"a": "x\n", "b": "x\n"},
        error="d/c: the file is read-only\nnothing was changed",
    ),
    "extended attribute": Target(_attribute),
    "extended attribute of a moved file": Target(_attribute, text=_MOVE, after={"c": "y\n"}, file="c"),
    "access list": Target(_access, prefix=()),
    "access list that names a user who is unknown here": Target(_access),
    "access list of the directory alone": Target(_default_access, prefix=()),
    "mounted": Target(mount=_MOUNT_A),
    "mounted, and the new text is shorter": Target(mount=_MOUNT_A, text=update("a", "-x"), after={"a": ""}),
    "mounted, and added again": Target(mount=_MOUNT_A, text=patch("*** Add File: a", "+y")),
    "mounted, as the goal of a move": Target(
        _second, "echo x > ../outside; mount --bind ../outside a", text=update("b", "*** Move to: a", "-old", "+y")
    ),
    "mounted, and deleted": Target(
        mount=_MOUNT_A, text=patch("*** Delete File: a"), after={"a": "x\n"}, error=f"delete file {{top}}/a: {_BUSY}"
    ),
    "mounted, and moved": Target(
        mount=_MOUNT_A, text=_MOVE, after={"a": "x\n"}, error=f"delete file {{top}}/a: {_BUSY}"
    ),
    "mounted in a directory that is read-only": Target(
        mount=f"{_MOUNT_A}; mount --bind . .; cd .; mount --bind ../outside a; mount -o remount,ro,bind ."
    ),
    "writable in a directory that is not": Target(_read_only_directory, prefix=_NO_CAPABILITIES),
    "another user's in a sticky directory": Target(_foreign_in_sticky, prefix=_NO_CAPABILITIES),
    "symbolic link": Target(_symbolic_link, after={"a": "y\n", "real": "y\n"}),
    "sparse": Target(_sparse, after={"a": "y\n" + "\0" * ((1 << 20) - 2) + "\n"}),
    "fifo": Target(_fifo, after={}, error="a: not a regular file"),
    "goal of a move": Target(_second, text=update("b", "*** Move to: a", "-old", "+y"), file=""),
    "full disk": Target(
        mount="mount -t tmpfs -o size=16k none .; cd .; echo x > a; ln a b; head -c 8k /dev/zero > full",
        text=patch("*** Update File: a", "-x", "+" + "y" * 12_000),
        after={"a": "x\n", "b": "x\n"},
        error="a: no space left on device\nnothing was changed",
    ),
}

# The state is read where the mounts are.
_STATE: Final = """
import json, os, stat, sys
found = {}
for name in sorted(os.listdir(".")):
    status = os.stat(name)
    text = open(name).read() if stat.S_ISREG(status.st_mode) else None
    attributes = {key: os.getxattr(name, key).hex() for key in os.listxattr(name)}
    is_link = os.path.islink(name)
    found[name] = [text, [status.st_ino, status.st_nlink, is_link], [status.st_mode, status.st_uid, attributes]]
print(json.dumps(found))
"""


@pytest.mark.parametrize("name", TARGETS)
def test_a_patch_keeps_the_file(name: str, place: Place) -> None:
    target = TARGETS[name]
    place.env["STATE"] = _STATE
    top = place.repo / "work"
    top.mkdir()
    (top / "a").write_text("x\n")
    target.prepare(top)
    script = f'{target.mount or ":"}; python3 -c "$STATE"; {COMMAND} apply-patch - ; echo; python3 -c "$STATE"'

    argv = [*target.prefix, "sh", "-c", script]
    ended = subprocess.run(argv, cwd=top, env=place.env, input=target.text, capture_output=True, text=True, check=False)

    lines = ended.stdout.splitlines()
    before, after = json.loads(lines[0]), json.loads(lines[-1])
    texts = {name: state[0] for name, state in after.items() if state[0] is not None and name != "full"}
    assert texts == target.after, ended.stderr
    assert target.error.format(top=top) in ended.stderr
    assert bool(target.error) is bool(ended.stderr)
    if target.file in after:
        was, now = before["a"], after[target.file]
        assert now[2] == was[2]
        is_one_file = was[1][1] > 1 or target.mount or target.prefix == _NO_CAPABILITIES
        assert not is_one_file or now[1][0] == was[1][0]
        assert now[1][2] == was[1][2]


def _set_value(place: Place) -> list[str]:
    return ["config", "set", "model", "m"]


def _log_in(place: Place) -> list[str]:
    return ["login", "--with-api-key"]


def _trust_hooks(place: Place) -> list[str]:
    hook = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "exit 0"}]}]}}
    place.write(".codex/hooks.json", json.dumps(hook))
    return ["hooks", "trust", "--yes"]


@pytest.mark.parametrize("way", ["mounted", "hard link"])
@pytest.mark.parametrize(
    ("file", "words", "old"),
    [
        ("config.toml", _set_value, 'model = "a much longer name"\n'),
        ("auth.json", _log_in, '{"auth_mode": "apikey", "OPENAI_API_KEY": "' + "o" * 200 + '"}\n'),
        ("trusted_hooks.json", _trust_hooks, '{"version": 1, "projects": {}}\n'),
    ],
)
def test_our_own_files_stay_what_they_are(
    file: str, words: Callable[[Place], list[str]], old: str, way: str, place: Place
) -> None:
    path, outside = place.codex_home / file, place.home / "outside"
    outside.write_text(old)
    outside.chmod(0o600)
    if way == "mounted":
        path.touch()
        how = f"mount --bind {outside} {path}"
    else:
        path.unlink(missing_ok=True)
        how = f"ln {outside} {path}"
    argv = [*_MOUNTS, "sh", "-c", f'{how} && exec "$@"', "sh", COMMAND, *words(place)]

    ended = subprocess.run(
        argv, cwd=place.repo, env=place.env, input="sk-new", capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert outside.read_text() != old
    assert not outside.read_text().endswith("\n\n")
    assert not list(place.codex_home.glob(f".{path.stem}-*"))


def test_a_session_and_its_rewind_keep_links(place: Place) -> None:
    path = place.write("a.txt", "one\n")
    (place.repo / "b.txt").hardlink_to(path)
    path.chmod(0o640)
    answers: list[list[dict[str, Any]]] = [[custom_call("c", "apply_patch", update("a.txt", "-one", "+two"))]]
    with FakeResponses(*answers, [say("done")], excuse={"threads"}) as model:
        place.use_model(model.base_url)
        ended = run(place, "exec", "-s", "workspace-write", "go")
    assert ended.status == 0, ended.err
    assert (place.repo / "b.txt").read_text() == "two\n"

    run(place, "sessions", "rewind", place.rollouts()[0].stem[-36:], "--to", "1", "--files")

    assert (place.repo / "b.txt").read_text() == "one\n"
    assert path.stat().st_ino == (place.repo / "b.txt").stat().st_ino
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_session_writes_into_a_mounted_file(place: Place) -> None:
    path, outside = place.write("a.txt", "one\n"), place.home / "outside"
    outside.write_text("one\n")
    write = [custom_call("c", "apply_patch", update("a.txt", "-one", "+two"))]
    rewrite = [call("d", "exec_command", {"cmd": "ls -A"})]
    with FakeResponses(write, rewrite, [say("done")], excuse={"threads"}) as model:
        place.use_model(model.base_url)
        words = [COMMAND, "exec", "--json", "-s", "workspace-write", "go"]
        script = f'mount --bind {outside} {path} && exec "$@"'
        argv = [*_MOUNTS, "sh", "-c", script, "sh", *words]
        ended = subprocess.run(argv, cwd=place.repo, env=place.env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert outside.read_text() == "two\n"
    assert "codex-patch" not in ended.stdout
