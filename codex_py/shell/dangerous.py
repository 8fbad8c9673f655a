"""The guard against accidents: commands that lead outside of the workspace, or whose effect cannot be brought back.

It reads what a command line says and cannot know what it computes. The boundary is the sandbox.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from codex_py.shell.command_line import CommandLine, ShellCommand, Words, without_options


class Reach(NamedTuple):
    """The files and hosts that the commands of a session can change; `roots` are the directories they work in.

    All paths are real. `can_write` says whether the sandbox lets commands change a path.
    """

    roots: Words
    home: str
    can_write: Callable[[str], bool]
    has_network: bool = False


class Danger(NamedTuple):
    """Why a command line is dangerous, as a clause that begins with `it`.

    `is_stopped` says that the sandbox stops it anyway.
    """

    reason: str
    is_stopped: bool = False


# A name that is a pattern for everything in a directory.
_EVERYTHING: Final = re.compile(r"(?=.*\*)[]\[*?.!^{},]+")
_DEVICE: Final = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|md|loop|k?mem\b)")
# Without other options `find` finds everything below its starting points.
_FINDS_ALL: Final = frozenset("-depth -maxdepth -mindepth -mount -print -print0 -type -xdev".split())
_REPOSITORY: Final = "it deletes a repository with its history (`.git`)"


def find_danger(line: CommandLine, reach: Reach) -> Danger | None:
    """The danger in a command line, first one that the sandbox does not stop; None when none is seen in it."""
    found = [danger for command in line.commands for danger in _dangers(command, reach)]
    if reach.has_network and any(command.program == "ssh" for command in line.commands):
        # The sandbox does not hold what runs on another machine.
        found = [danger._replace(is_stopped=False) for danger in found]
    return min(found, key=lambda danger: danger.is_stopped, default=None)


def _dangers(command: ShellCommand, reach: Reach) -> Iterator[Danger]:
    name, texts = command.program.partition(".")[0], command.texts
    if name.startswith("python") and texts[1:2] == ("-m",):
        name, texts = "".join(texts[2:3]), texts[2:]
    written = [redirect.target.text or "" for redirect in command.redirects]
    trees: list[str] = []
    match name:
        case "rm":
            trees = _removed(texts)
        case "find":
            trees = _found(texts)
        case "dd":
            written += [word.removeprefix("of=") for word in texts if word.startswith("of=")]
        case "mkfs":
            written += texts
        case "git" | "npm" | "pnpm" | "yarn" | "cargo" | "poetry" | "uv" | "twine" if "--dry-run" not in texts:
            for reading in without_options(texts):
                yield from _git(reading, reach) if name == "git" else _publication(name, reading, reach)
        case _:
            pass
    for tree in trees:
        yield from _deletion(tree, command.directory, reach) if tree and "\0" not in tree else ()
    if any(map(_DEVICE.match, written)):
        yield Danger("it writes to a device", not reach.can_write("/dev"))


def _removed(texts: Words) -> list[str]:
    """The files and directories that `rm` deletes with all that is in them."""
    words = [*takewhile(lambda word: word != "--", texts[1:])]
    operands = [word for word in words if not word.startswith("-")] + [*texts[len(words) + 2 :]]
    return operands if _has([word for word in words if word.startswith("-")], "rR", "--recursive") else []


def _found(texts: Words) -> list[str]:
    """The directories in which `find` deletes everything."""
    words = [*takewhile(lambda word: word not in ("-delete", "-exec", "-execdir"), texts[1:])]
    action = texts[len(words) + 1 :][:2]
    deletes = action[:1] == ("-delete",) or action[1:] == ("rm",)
    words = [word for word in words if word not in ("-H", "-L", "-P")]
    starts = [*takewhile(lambda word: word[:1] not in "-(!", words)]
    narrows = any(word[:1] in ("-", "(", "!") and word not in _FINDS_ALL for word in words)
    return (starts or ["."]) if deletes and not narrows else []


def _deletion(operand: str, directory: str | None, reach: Reach) -> Iterator[Danger]:
    """The danger of deleting a directory tree."""
    above, slash, name = operand.rpartition("/")
    if _EVERYTHING.fullmatch(name):
        operand, name = above + slash or ".", ""
    if directory is None and not operand.startswith("/") and ".git" not in operand.split("/"):
        return
    path = os.path.join(directory or reach.roots[0], operand)  # noqa: PTH118
    # A link is deleted itself, unless a slash follows it.
    is_link = name not in ("", ".", "..") and os.path.islink(path)  # noqa: PTH114
    path = os.path.abspath(path) if is_link else os.path.realpath(path)  # noqa: PTH100
    roots = [root for root in reach.roots if _is_below(root, path)]
    is_stopped = not any(map(reach.can_write, [path, *roots]))
    if roots or _is_below(reach.home, path):
        yield Danger("it deletes a whole workspace, home or root", is_stopped)
    elif ".git" in path.split("/"):
        yield Danger(_REPOSITORY, is_stopped)
    elif not any(_is_below(path, root) for root in reach.roots):
        yield Danger("it deletes a directory outside of the workspace", is_stopped)


def _is_below(path: str, directory: str) -> bool:
    """Whether a path is a directory or something in it."""
    return f"{path}/".startswith(f"{directory.rstrip('/')}/")


def _git(texts: Words, reach: Reach) -> Iterator[Danger]:
    command, options = "".join(texts[1:2]), [word for word in texts[2:] if word.startswith("-")]
    if _has(options, "n"):
        return
    # Forced twice, it deletes nested repositories.
    if command == "clean" and (_has(options, "xX") or sum(word.count("f") for word in options) > 1):
        is_stopped = not any(map(reach.can_write, reach.roots))
        yield Danger("it deletes files that no undo brings back (`git clean`)", is_stopped)
    is_replaced = _has(options, "fd", "--force", "--force-with-lease", "--mirror", "--delete")
    if command == "push" and (is_replaced or any(word.startswith(("+", ":")) for word in texts[2:])):
        yield Danger("it replaces or deletes branches of another repository (`git push`)", not reach.has_network)


def _publication(name: str, texts: Words, reach: Reach) -> Iterator[Danger]:
    word = "upload" if name == "twine" else "publish"
    words = [text for text in texts[1:] if not text.startswith("+")]  # `cargo +nightly`
    if words[:1] == [word] or (name, *words[:2]) == ("yarn", "npm", word):
        yield Danger(f"it publishes a package (`{name} {word}`)", not reach.has_network)


def _has(options: Sequence[str], letters: str, *names: str) -> bool:
    """Whether an option is in a bundle of short ones, or a long one, maybe cut short."""
    long = [option.partition("=")[0] for option in options if option.startswith("--") and len(option) > 3]
    short = "".join(option for option in options if not option.startswith("--"))
    return not set(letters).isdisjoint(short) or any(name.startswith(option) for name in names for option in long)
