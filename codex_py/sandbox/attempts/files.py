"""Attempts on files: writing outside in every way, at what is protected, and reading what must not be read."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.sandbox.attempts.arena import Arena, Attempt, Refused

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


def _in(place: Callable[[Arena], str], act: Callable[[str], object]) -> Attempt:
    return lambda arena: act(place(arena))


def _outside(name: str) -> Callable[[Arena], str]:
    return lambda arena: f"{arena.outside}/{name}"


def _work(name: str) -> Callable[[Arena], str]:
    return lambda arena: f"{arena.work}/{name}"


def _through_link(arena: Arena) -> None:
    link = Path(arena.work, "link-to-file")
    link.symlink_to(f"{arena.outside}/kept")
    _write(link)


def _through_folder_link(arena: Arena) -> None:
    link = Path(arena.work, "link-to-folder")
    link.symlink_to(arena.outside)
    _write(link / "new")


def _through_hard_link(arena: Arena) -> None:
    os.link(f"{arena.outside}/kept", f"{arena.work}/second-name")
    _write(f"{arena.work}/second-name")


def _reopened(arena: Arena) -> None:
    fd = os.open(f"{arena.outside}/kept", os.O_RDONLY)
    os.write(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_TRUNC), b"x")


def _mapped(arena: Arena) -> None:
    with Path(arena.outside, "kept").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0] = mapped[0]


def _made_in_repository(arena: Arena) -> None:
    """Give a nameless file of the workspace a name among the hooks."""
    file = os.open(arena.work, os.O_TMPFILE | os.O_WRONLY, 0o755)
    # Only with a folder given does Python follow the link; the path is absolute, and the folder does not matter.
    os.link(f"/proc/self/fd/{file}", f"{arena.work}/.git/hooks/post-commit", src_dir_fd=file, follow_symlinks=True)


def _exchanged_repository(arena: Arena) -> None:
    number = _RENAMEAT2.get(platform.machine())
    if number is None:
        raise Refused("another machine")
    Path(arena.work, "other").mkdir()
    paths = (os.fsencode(f"{arena.work}/other"), os.fsencode(f"{arena.work}/.git"))
    libc = ctypes.CDLL(None, use_errno=True)
    for _ in ("there", "back"):
        if libc.syscall(ctypes.c_long(number), _AT_CWD, paths[0], _AT_CWD, paths[1], _RENAME_EXCHANGE) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _at_folder(arena: Arena) -> None:
    folder = os.open(arena.outside, os.O_PATH)
    os.close(os.open("new", _NEW, 0o644, dir_fd=folder))


def _nameless(arena: Arena) -> None:
    os.close(os.open(arena.outside, os.O_TMPFILE | os.O_WRONLY))


def _moved_out(arena: Arena) -> None:
    _write(f"{arena.work}/moving")
    Path(arena.work, "moving").rename(f"{arena.outside}/moved")


def _moved_repository(arena: Arena) -> None:
    moved = Path(arena.work, ".git").rename(f"{arena.work}/old")
    moved.rename(f"{arena.work}/.git")


def _removed_in_repository(arena: Arena) -> None:
    Path(arena.work, ".git", "config").unlink()
    _write(f"{arena.work}/.git/config")


def _planted_settings(arena: Arena) -> None:
    folder = Path(arena.work, ".codex")
    folder.mkdir(exist_ok=True)
    _write(folder / "config.toml")
    shutil.rmtree(folder)


def _linked_skills(arena: Arena) -> None:
    place = Path(arena.work, ".agents")
    with suppress(FileNotFoundError):
        place.rmdir()
    place.symlink_to("/")


def _onto_missing(arena: Arena) -> None:
    folder = Path(arena.work, "made")
    folder.mkdir()
    folder.rename(f"{arena.work}/.codex")


def _linked_config(arena: Arena) -> None:
    os.link(f"{arena.work}/.git/config", f"{arena.work}/config")
    _write(f"{arena.work}/config")


def _swapped_repository(arena: Arena) -> None:
    own = Path(arena.work, "sub", ".git")
    moved = own.rename(f"{arena.work}/sub/old")
    own.mkdir()
    moved.rename(own)


def _secret_link(arena: Arena) -> None:
    link = Path(arena.work, "link-to-secret")
    link.symlink_to(f"{arena.secret}/key")
    _read(str(link))


def _secret_hard_link(arena: Arena) -> None:
    os.link(arena.env_file, f"{arena.work}/env-copy")
    _read(f"{arena.work}/env-copy")


def _secret_moved(arena: Arena) -> None:
    Path(arena.env_file).rename(f"{arena.work}/env-moved")
    _read(f"{arena.work}/env-moved")


def _secret_opened_up(arena: Arena) -> None:
    Path(arena.secret).chmod(0o777)
    _read(f"{arena.secret}/key")


def _secret_by_handle(arena: Arena) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    handle = ctypes.create_string_buffer(b"\x80\0\0\0" + bytes(132), 136)
    mount = ctypes.c_int()
    named = libc.name_to_handle_at(-100, os.fsencode(arena.outside), handle, ctypes.byref(mount), 0)
    folder = os.open(arena.outside, os.O_RDONLY)
    if named < 0 or libc.open_by_handle_at(folder, handle, os.O_RDONLY) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _login_link(arena: Arena) -> None:
    link = Path(arena.work, "link-to-login")
    link.symlink_to(f"{arena.home}/auth.json")
    _read(str(link))


def _login_hard_link(arena: Arena) -> None:
    os.link(f"{arena.home}/auth.json", f"{arena.work}/login-copy")
    _read(f"{arena.work}/login-copy")


def _login_at_folder(arena: Arena) -> None:
    folder = os.open(f"{arena.home}/skills", os.O_PATH)
    if not os.read(os.open("../auth.json", os.O_RDONLY, dir_fd=folder), 1):
        raise Refused("empty")


def _own(name: str) -> Callable[[Arena], str]:
    return lambda arena: f"{arena.own}/{name}"


def _replaced_settings(arena: Arena) -> None:
    _write(f"{arena.work}/settings")
    Path(arena.work, "settings").rename(f"{arena.own}/config.toml")


def _settings_by_link(arena: Arena) -> None:
    link = Path(arena.work, "link-to-settings")
    link.symlink_to(f"{arena.home}/config.toml")
    _read(str(link))


def _swapped_home(arena: Arena) -> None:
    moved = Path(arena.own).rename(f"{arena.work}/old-home")
    Path(arena.own).mkdir()
    moved.rename(arena.own)


def _swapped_way(arena: Arena) -> None:
    Path(arena.own).parent.rename(f"{arena.work}/old-way")
    Path(arena.own).mkdir(parents=True)
    _write(f"{arena.own}/config.toml")


def _linked_settings(arena: Arena) -> None:
    os.link(f"{arena.own}/config.toml", f"{arena.work}/settings-copy")
    _write(f"{arena.work}/settings-copy")


def _shared_memory(arena: Arena) -> None:
    if not arena.shared:
        raise Refused("there is none")
    _read(arena.shared)


def _device_node(arena: Arena) -> None:
    path = f"{arena.work}/disk"
    os.mknod(path, stat.S_IFBLK | 0o600, os.lstat(arena.work).st_dev)
    os.close(os.open(path, os.O_RDONLY))


def _disks(_: Arena) -> None:
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
    ("rename a file outside", lambda arena: Path(arena.outside, "kept").rename(f"{arena.outside}/other")),
    ("make a folder outside", _in(_outside("folder"), os.mkdir)),
    ("remove a folder outside", _in(_outside("empty"), os.rmdir)),
    ("move a file from outside", lambda arena: Path(arena.outside, "kept").rename(f"{arena.work}/stolen")),
    ("move a file to outside", _moved_out),
    ("make a link outside", lambda arena: Path(arena.outside, "link").symlink_to("/")),
    ("make a named pipe outside", _in(_outside("pipe"), os.mkfifo)),
    ("change a mode outside", _in(_outside("kept"), lambda path: Path(path).chmod(0o666))),
    ("change an owner outside", _in(_outside("kept"), lambda path: os.chown(path, os.getuid(), os.getgid()))),
    ("change a time outside", _in(_outside("kept"), lambda path: os.utime(path, (1, 1)))),
    ("set an attribute outside", _in(_outside("kept"), lambda path: os.setxattr(path, "user.x", b"1"))),
    ("write outside through a link", _through_link),
    ("write outside through a linked folder", _through_folder_link),
    ("write outside through a hard link", _through_hard_link),
    ("write outside by way of `..`", lambda arena: _write(f"{arena.work}/../outside/new")),
    ("write outside by way of /proc/self/cwd", lambda _: _write("/proc/self/cwd/../outside/new")),
    ("write outside by way of /proc/self/root", lambda arena: _write(f"/proc/self/root{arena.outside}/new")),
    ("write outside by way of /proc/1/root", lambda arena: _write(f"/proc/1/root{arena.outside}/new")),
    ("write outside by opening anew what was opened to read", _reopened),
    ("write outside into a mapped file", _mapped),
    ("write outside from an open folder", _at_folder),
    ("make a nameless file outside", _nameless),
    ("write to the home folder", lambda _: _write(Path.home() / ".codex-py-attempt")),
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
    ("exchange the repository with another folder", _exchanged_repository),
    ("plant a configuration for this program", _planted_settings),
    ("put a folder in the place of a missing `.codex`", _onto_missing),
    ("put a link in the place of a missing `.agents`", _linked_skills),
    ("read a secret", lambda arena: _read(f"{arena.secret}/key")),
    ("list a folder of secrets", lambda arena: os.listdir(arena.secret)),  # noqa: PTH208
    ("read a secret by way of /proc/self/root", lambda arena: _read(f"/proc/self/root{arena.secret}/key")),
    ("read a secret by way of /proc/1/root", lambda arena: _read(f"/proc/1/root{arena.secret}/key")),
    ("read a secret through a link", _secret_link),
    ("read a secret after changing its mode", _secret_opened_up),
    ("read a secret by its handle", _secret_by_handle),
    ("read a secret file of the workspace", lambda arena: _read(arena.env_file)),
    ("read a secret file of the workspace through a hard link", _secret_hard_link),
    ("read a secret file of the workspace after moving it", _secret_moved),
    ("put a file in a folder of secrets", lambda arena: _write(f"{arena.secret}/new")),
    ("read a login that has been replaced", lambda arena: _read(f"{arena.home}/auth.json")),
    ("read a replaced login from an open folder beside it", _login_at_folder),
    ("read a replaced login by way of /proc/1/root", lambda arena: _read(f"/proc/1/root{arena.home}/auth.json")),
    ("read a replaced login through a link", _login_link),
    ("read a replaced login through a hard link", _login_hard_link),
    ("read a login that is being written", lambda arena: _read(f"{arena.home}/.auth-next")),
    ("read a login that came later", lambda arena: _read(f"{arena.late}/auth.json")),
    ("read our settings", lambda arena: _read(f"{arena.home}/config.toml")),
    ("read the settings of a profile", lambda arena: _read(f"{arena.home}/work.config.toml")),
    ("read a session of another project", lambda arena: _read(f"{arena.home}/sessions/other.jsonl")),
    ("list the sessions of other projects", lambda arena: os.listdir(f"{arena.home}/sessions")),  # noqa: PTH208
    ("read our settings by a link", _settings_by_link),
    ("put a login in the place of ours", lambda arena: _write(f"{arena.home}/auth.json")),
    ("read the login in our home", lambda arena: _read(f"{arena.own}/auth.json")),
    ("write into our settings", _in(_own("config.toml"), _write)),
    ("put other settings in the place of ours", _replaced_settings),
    ("write into our settings through a hard link", _linked_settings),
    ("remove our settings", _in(_own("config.toml"), os.unlink)),
    ("allow a command by a rule of ours", _in(_own("rules/default.rules"), _write)),
    ("plant settings for a profile", _in(_own("work.config.toml"), _write)),
    ("plant a skill among ours", _in(_own("skills/planted"), os.mkdir)),
    ("change the mode of our home", _in(_own(""), lambda path: Path(path).chmod(0o777))),
    ("put another home in the place of ours", _swapped_home),
    ("move away a folder that leads to our home", _swapped_way),
    ("read shared memory of outside", _shared_memory),
)
