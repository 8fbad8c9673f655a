"""Attempts on files: writing outside in every way, at what is protected, and reading what must not be read."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.escapes.fixture import Attempt, Fixture, Refused

_NEW: Final = os.O_CREAT | os.O_WRONLY
_RENAMEAT2: Final = {"x86_64": 316, "aarch64": 276}
_AT_CWD, _RENAME_EXCHANGE = -100, 2


def _write(path: str | Path) -> None:
    fd = os.open(path, _NEW, 0o644)
    os.write(fd, b"x")
    os.close(fd)


def _read(path: str) -> None:
    if not Path(path).read_bytes():
        raise Refused("empty")


def _in(path_of: Callable[[Fixture], str], act: Callable[[str], object]) -> Attempt:
    return lambda fixture: act(path_of(fixture))


def _outside(name: str) -> Callable[[Fixture], str]:
    return lambda fixture: f"{fixture.outside}/{name}"


def _work(name: str) -> Callable[[Fixture], str]:
    return lambda fixture: f"{fixture.work}/{name}"


def _through_link(fixture: Fixture) -> None:
    link = Path(fixture.work, "link-to-file")
    link.symlink_to(f"{fixture.outside}/kept")
    _write(link)


def _through_directory_link(fixture: Fixture) -> None:
    link = Path(fixture.work, "link-to-directory")
    link.symlink_to(fixture.outside)
    _write(link / "new")


def _through_hard_link(fixture: Fixture) -> None:
    os.link(f"{fixture.outside}/kept", f"{fixture.work}/second-name")
    _write(f"{fixture.work}/second-name")


def _reopened(fixture: Fixture) -> None:
    fd = os.open(f"{fixture.outside}/kept", os.O_RDONLY)
    os.write(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_TRUNC), b"x")


def _mapped(fixture: Fixture) -> None:
    with Path(fixture.outside, "kept").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0] = mapped[0]


def _made_in_repository(fixture: Fixture) -> None:
    """Give a nameless file of the workspace a name among the hooks."""
    file = os.open(fixture.work, os.O_TMPFILE | os.O_WRONLY, 0o755)
    # Only with a directory given does Python follow the link; the path is absolute, and the directory does not matter.
    os.link(f"/proc/self/fd/{file}", f"{fixture.work}/.git/hooks/post-commit", src_dir_fd=file, follow_symlinks=True)


def _exchanged_repository(fixture: Fixture) -> None:
    number = _RENAMEAT2.get(platform.machine())
    if number is None:
        raise Refused("another machine")
    Path(fixture.work, "other").mkdir()
    paths = (os.fsencode(f"{fixture.work}/other"), os.fsencode(f"{fixture.work}/.git"))
    libc = ctypes.CDLL(None, use_errno=True)
    for _ in ("there", "back"):
        if libc.syscall(ctypes.c_long(number), _AT_CWD, paths[0], _AT_CWD, paths[1], _RENAME_EXCHANGE) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _at_directory(fixture: Fixture) -> None:
    directory = os.open(fixture.outside, os.O_PATH)
    os.close(os.open("new", _NEW, 0o644, dir_fd=directory))


def _nameless(fixture: Fixture) -> None:
    os.close(os.open(fixture.outside, os.O_TMPFILE | os.O_WRONLY))


def _moved_out(fixture: Fixture) -> None:
    _write(f"{fixture.work}/moving")
    Path(fixture.work, "moving").rename(f"{fixture.outside}/moved")


def _moved_repository(fixture: Fixture) -> None:
    moved = Path(fixture.work, ".git").rename(f"{fixture.work}/old")
    moved.rename(f"{fixture.work}/.git")


def _removed_in_repository(fixture: Fixture) -> None:
    Path(fixture.work, ".git", "config").unlink()
    _write(f"{fixture.work}/.git/config")


def _planted_settings(fixture: Fixture) -> None:
    _write(f"{fixture.work}/.codex/config.toml")
    Path(fixture.work, ".codex", "config.toml").unlink()


def _linked_config(fixture: Fixture) -> None:
    os.link(f"{fixture.work}/.git/config", f"{fixture.work}/config")
    _write(f"{fixture.work}/config")


def _swapped_repository(fixture: Fixture) -> None:
    own = Path(fixture.work, "sub", ".git")
    moved = own.rename(f"{fixture.work}/sub/old")
    own.mkdir()
    moved.rename(own)


def _secret_link(fixture: Fixture) -> None:
    link = Path(fixture.work, "link-to-secret")
    link.symlink_to(f"{fixture.secret}/key")
    _read(str(link))


def _secret_hard_link(fixture: Fixture) -> None:
    os.link(fixture.env_file, f"{fixture.work}/env-copy")
    _read(f"{fixture.work}/env-copy")


def _secret_moved(fixture: Fixture) -> None:
    Path(fixture.env_file).rename(f"{fixture.work}/env-moved")
    _read(f"{fixture.work}/env-moved")


def _secret_opened_up(fixture: Fixture) -> None:
    Path(fixture.secret).chmod(0o777)
    _read(f"{fixture.secret}/key")


def _secret_by_handle(fixture: Fixture) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    handle = ctypes.create_string_buffer(b"\x80\0\0\0" + bytes(132), 136)
    mount = ctypes.c_int()
    named = libc.name_to_handle_at(-100, os.fsencode(fixture.outside), handle, ctypes.byref(mount), 0)
    directory = os.open(fixture.outside, os.O_RDONLY)
    if named < 0 or libc.open_by_handle_at(directory, handle, os.O_RDONLY) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _login_link(fixture: Fixture) -> None:
    link = Path(fixture.work, "link-to-login")
    link.symlink_to(f"{fixture.home}/auth.json")
    _read(str(link))


def _login_hard_link(fixture: Fixture) -> None:
    os.link(f"{fixture.home}/auth.json", f"{fixture.work}/login-copy")
    _read(f"{fixture.work}/login-copy")


def _login_at_directory(fixture: Fixture) -> None:
    directory = os.open(f"{fixture.home}/skills", os.O_PATH)
    if not os.read(os.open("../auth.json", os.O_RDONLY, dir_fd=directory), 1):
        raise Refused("empty")


def _own(name: str) -> Callable[[Fixture], str]:
    return lambda fixture: f"{fixture.own}/{name}"


def _replaced_settings(fixture: Fixture) -> None:
    _write(f"{fixture.work}/settings")
    Path(fixture.work, "settings").rename(f"{fixture.own}/config.toml")


def _settings_by_link(fixture: Fixture) -> None:
    link = Path(fixture.work, "link-to-settings")
    link.symlink_to(f"{fixture.home}/config.toml")
    _read(str(link))


def _swapped_home(fixture: Fixture) -> None:
    moved = Path(fixture.own).rename(f"{fixture.work}/old-home")
    Path(fixture.own).mkdir()
    moved.rename(fixture.own)


def _swapped_way(fixture: Fixture) -> None:
    Path(fixture.own).parent.rename(f"{fixture.work}/old-way")
    Path(fixture.own).mkdir(parents=True)
    _write(f"{fixture.own}/config.toml")


def _linked_settings(fixture: Fixture) -> None:
    os.link(f"{fixture.own}/config.toml", f"{fixture.work}/settings-copy")
    _write(f"{fixture.work}/settings-copy")


def _shared_memory(fixture: Fixture) -> None:
    if not fixture.shared:
        raise Refused("there is none")
    _read(fixture.shared)


def _device_node(fixture: Fixture) -> None:
    path = f"{fixture.work}/disk"
    os.mknod(path, stat.S_IFBLK | 0o600, os.lstat(fixture.work).st_dev)
    os.close(os.open(path, os.O_RDONLY))


def _disks(_: Fixture) -> None:
    with os.scandir("/dev") as listing:
        disks = [entry.path for entry in listing if stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode)]
    if not disks:
        raise Refused("there is none")
    os.close(os.open(disks[0], os.O_RDONLY))


def _open_to_write(path: str) -> Attempt:
    return lambda _: os.close(os.open(path, os.O_WRONLY))


ATTEMPTS: Final[tuple[tuple[str, Attempt], ...]] = (
    ("make a file outside", _in(_outside("new"), _write)),
    ("write into a file outside", _in(_outside("kept"), _write)),
    ("cut a file outside short", _in(_outside("kept"), lambda path: os.truncate(path, 0))),
    ("remove a file outside", _in(_outside("kept"), os.unlink)),
    ("rename a file outside", lambda fixture: Path(fixture.outside, "kept").rename(f"{fixture.outside}/other")),
    ("make a directory outside", _in(_outside("directory"), os.mkdir)),
    ("remove a directory outside", _in(_outside("empty"), os.rmdir)),
    ("move a file from outside", lambda fixture: Path(fixture.outside, "kept").rename(f"{fixture.work}/stolen")),
    ("move a file to outside", _moved_out),
    ("make a link outside", lambda fixture: Path(fixture.outside, "link").symlink_to("/")),
    ("make a named pipe outside", _in(_outside("pipe"), os.mkfifo)),
    ("change a mode outside", _in(_outside("kept"), lambda path: Path(path).chmod(0o666))),
    ("change an owner outside", _in(_outside("kept"), lambda path: os.chown(path, os.getuid(), os.getgid()))),
    ("change a time outside", _in(_outside("kept"), lambda path: os.utime(path, (1, 1)))),
    ("set an attribute outside", _in(_outside("kept"), lambda path: os.setxattr(path, "user.x", b"1"))),
    ("write outside through a link", _through_link),
    ("write outside through a linked directory", _through_directory_link),
    ("write outside through a hard link", _through_hard_link),
    ("write outside by way of `..`", lambda fixture: _write(f"{fixture.work}/../outside/new")),
    ("write outside by way of /proc/self/cwd", lambda _: _write("/proc/self/cwd/../outside/new")),
    ("write outside by way of /proc/self/root", lambda fixture: _write(f"/proc/self/root{fixture.outside}/new")),
    ("write outside by way of /proc/1/root", lambda fixture: _write(f"/proc/1/root{fixture.outside}/new")),
    ("write outside by opening anew what was opened to read", _reopened),
    ("write outside into a mapped file", _mapped),
    ("write outside from an open directory", _at_directory),
    ("make a nameless file outside", _nameless),
    ("write to the home directory", lambda _: _write(Path.home() / ".codex-py-attempt")),
    ("write to /etc", lambda _: _write("/etc/codex-py-attempt")),
    ("write to /tmp where it is not writable", lambda _: _write("/tmp/codex-py-attempt")),
    ("write to /var/tmp", lambda _: _write("/var/tmp/codex-py-attempt")),
    ("write to /sys", lambda _: os.mkdir("/sys/fs/cgroup/codex-py-attempt")),  # noqa: PTH102
    ("make a device", _device_node),
    ("read a disk", _disks),
    ("open the kernel's memory", _open_to_write("/dev/mem")),
    ("open the kernel's log", _open_to_write("/dev/kmsg")),
    ("open a virtual machine's device", _open_to_write("/dev/kvm")),
    ("set where core dumps go", _open_to_write("/proc/sys/kernel/core_pattern")),
    ("set the kernel's module loader", _open_to_write("/proc/sys/kernel/modprobe")),
    ("press a system request key", _open_to_write("/proc/sysrq-trigger")),
    ("write into the first process", _open_to_write("/proc/1/mem")),
    ("plant a git hook", _in(_work(".git/hooks/pre-commit"), _write)),
    ("write into the git configuration", _in(_work(".git/config"), _write)),
    ("move the repository away", _moved_repository),
    ("remove a file of the repository", _removed_in_repository),
    ("change the repository's mode", _in(_work(".git"), lambda path: Path(path).chmod(0o777))),
    ("write into the git configuration through a hard link", _linked_config),
    ("plant a git hook in a nested repository", _in(_work("sub/.git/hooks/pre-commit"), _write)),
    ("swap a nested repository", _swapped_repository),
    ("plant a git hook made without a name", _made_in_repository),
    ("exchange the repository with another directory", _exchanged_repository),
    ("plant a configuration for this program", _planted_settings),
    ("read a secret", lambda fixture: _read(f"{fixture.secret}/key")),
    ("list a directory of secrets", lambda fixture: os.listdir(fixture.secret)),  # noqa: PTH208
    ("read a secret by way of /proc/self/root", lambda fixture: _read(f"/proc/self/root{fixture.secret}/key")),
    ("read a secret by way of /proc/1/root", lambda fixture: _read(f"/proc/1/root{fixture.secret}/key")),
    ("read a secret through a link", _secret_link),
    ("read a secret after changing its mode", _secret_opened_up),
    ("read a secret by its handle", _secret_by_handle),
    ("read a secret file of the workspace", lambda fixture: _read(fixture.env_file)),
    ("read a secret file of the workspace through a hard link", _secret_hard_link),
    ("read a secret file of the workspace after moving it", _secret_moved),
    ("put a file in a directory of secrets", lambda fixture: _write(f"{fixture.secret}/new")),
    ("read a login that has been replaced", lambda fixture: _read(f"{fixture.home}/auth.json")),
    ("read a replaced login from an open directory beside it", _login_at_directory),
    ("read a replaced login by way of /proc/1/root", lambda fixture: _read(f"/proc/1/root{fixture.home}/auth.json")),
    ("read a replaced login through a link", _login_link),
    ("read a replaced login through a hard link", _login_hard_link),
    ("read a login that is being written", lambda fixture: _read(f"{fixture.home}/.auth-next")),
    ("read a login that came later", lambda fixture: _read(f"{fixture.new_home}/auth.json")),
    ("read our settings", lambda fixture: _read(f"{fixture.home}/config.toml")),
    ("read the settings of a profile", lambda fixture: _read(f"{fixture.home}/work.config.toml")),
    ("read a session of another project", lambda fixture: _read(f"{fixture.home}/sessions/other.jsonl")),
    ("list the sessions of other projects", lambda fixture: os.listdir(f"{fixture.home}/sessions")),  # noqa: PTH208
    ("read our settings by a link", _settings_by_link),
    ("replace our login", lambda fixture: _write(f"{fixture.home}/auth.json")),
    ("read the login in our home", lambda fixture: _read(f"{fixture.own}/auth.json")),
    ("write into our settings", _in(_own("config.toml"), _write)),
    ("replace our settings", _replaced_settings),
    ("write into our settings through a hard link", _linked_settings),
    ("remove our settings", _in(_own("config.toml"), os.unlink)),
    ("allow a command by our own rule", _in(_own("rules/default.rules"), _write)),
    ("plant settings for a profile", _in(_own("work.config.toml"), _write)),
    ("plant a skill among ours", _in(_own("skills/planted"), os.mkdir)),
    ("change the mode of our home", _in(_own(""), lambda path: Path(path).chmod(0o777))),
    ("replace our home", _swapped_home),
    ("move away a directory that leads to our home", _swapped_way),
    ("read shared memory of outside", _shared_memory),
)
