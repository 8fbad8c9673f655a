"""Whether what a dangerous command may take away could be brought back, by the checkpoint of the running turn.

The command is read for the files that it may take away; what else it does is not known here, and is not undone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from glob import iglob
from itertools import takewhile
from typing import Final, NamedTuple

from codex_py.checkpoints.entries import Entry
from codex_py.checkpoints.snapshot import Snapshot
from codex_py.checkpoints.store import Missing
from codex_py.shell.command_line import ShellCommand
from codex_py.shell.reader import Danger
from codex_py.shell.runners import NAME_PASSERS
from codex_py.shell.words import Words

_MAX_FILES: Final = 50_000


# What these git commands throw away is the content of files.
_UNDONE_BY_CONTENT: Final = frozenset(("checkout", "reset", "restore", "rm", "switch"))
# All that these delete or cut short is named by their operands.
_BY_OPERANDS: Final = frozenset(("rimraf", "rm", "shred", "srm", "truncate"))
_PATTERN: Final = re.compile(r"[*?\[{]")
# Not every shell reads these in the same way.
_OTHER_PATTERN: Final = re.compile(r"\*\*|[()~^#\\]")
_CHOICE: Final = re.compile(r"\{([^{},/]*(?:,[^{},/]*)+)\}")
_MAX_CHOICES: Final = 64
# They can change what a pattern stands for.
_OPTION_SETTERS: Final = frozenset(("set", "setopt", "shopt", "unsetopt"))
_FOLLOWS_LINKS: Final = frozenset(("-L", "-H", "-follow"))
_FINDS_OTHERS: Final = frozenset(("-files0-from", "-printf"))
_ANY: Final = frozenset(("-o", "-or", ","))


class _Loss(NamedTuple):
    """What a command may delete or reset: the files at and below `path`.

    With `by_git` it is those of the working tree around it that git does not ignore. With a `pattern` of the shell it
    is what that stands for in `path`, with a `name` what has a name like that below `path`; all with the files below.
    """

    path: str
    by_git: bool = False
    pattern: str = ""
    name: str = ""


def why_lost(snapshot: Snapshot, moment: float, danger: Danger) -> str | None:
    """Why it could not be brought back, as a clause; None when it could. `moment` is when the snapshot was begun.

    What was made since then is the turn's own, and none of the files that /undo promises.
    """
    for command in danger.dangerous:
        losses = _losses_of(command, danger.commands)
        if losses is None:
            return "no checkpoint brings that back"
        if reason := next(filter(None, (_why_one_lost(snapshot, moment, loss) for loss in losses)), None):
            return reason
    return None


def _why_one_lost(snapshot: Snapshot, moment: float, loss: _Loss) -> str | None:
    path = _real(loss.path)
    if loss.pattern:
        # Where nothing matches, nothing is taken away.
        matches = (_real(os.path.join(path, match)) for match in iglob(loss.pattern, root_dir=path))  # noqa: PTH118, PTH207
        return next(filter(None, (_why_lost_at(snapshot, moment, match, loss) for match in matches)), None)
    return _why_lost_at(snapshot, moment, path, loss)


def _why_lost_at(snapshot: Snapshot, moment: float, path: str, loss: _Loss) -> str | None:
    root = max((root for root in snapshot.roots if path == root or path.startswith(f"{root}/")), key=len, default=None)
    if root is None:
        return f"`{path}` lies outside of what its checkpoint covers"
    if snapshot.is_partial(root):
        return f"its checkpoint does not cover all files of `{root}`"
    try:
        files = snapshot.files(root)
    except Missing:
        return "its checkpoint is damaged"
    if loss.by_git:
        uncovered = next((name for name, entry in files.items() if entry and not entry.is_covered), None)
        return _not_covered(uncovered) if uncovered else None
    found = _named_below(path, loss.name) if loss.name else _files_below(path)
    return _why_files_lost(found, root, files, moment)


def _real(path: str) -> str:
    """A path without links on the way; a link at its end is the file itself, unless a slash follows it."""
    parent, name = os.path.split(path)
    return os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(parent), name)  # noqa: PTH118


def _why_files_lost(paths: Iterator[str], root: str, files: dict[bytes, Entry | None], moment: float) -> str | None:
    for number, found in enumerate(paths):
        inside = os.fsencode(found[len(root) + 1 :])
        if ".git" in found[len(root) :].split("/"):
            return f"`{os.path.dirname(found)}` is part of a repository"  # noqa: PTH120
        if number >= _MAX_FILES:
            return f"there are more than {_MAX_FILES:,} files in it"
        entry = files.get(inside)
        if entry is not None and entry.is_covered:
            continue
        if entry is not None or os.lstat(found).st_ctime < moment:
            return _not_covered(inside)
    return None


def _not_covered(path: bytes) -> str:
    return f"`{os.fsdecode(path)}` is ignored by git, or too large to be stored: it could not be brought back"


def _named_below(path: str, name: str) -> Iterator[str]:
    """The files at and below all that has a name like this, whatever case it is in."""
    pattern = name.casefold()
    if fnmatchcase(os.path.basename(path).casefold(), pattern):  # noqa: PTH119
        yield from _files_below(path)
        return
    for directory, inner, names in os.walk(path):
        found = [each for each in (*inner, *names) if fnmatchcase(each.casefold(), pattern)]
        for each in found:
            yield from _files_below(f"{directory}/{each}")
        inner[:] = [each for each in inner if each not in found]


def _files_below(path: str) -> Iterator[str]:
    if os.path.islink(path) or not os.path.isdir(path):  # noqa: PTH112, PTH114
        if os.path.lexists(path):
            yield path
        return
    for directory, inner, names in os.walk(path):
        links = [name for name in inner if os.path.islink(f"{directory}/{name}")]  # noqa: PTH114
        if os.path.lexists(f"{directory}/.git"):
            yield f"{directory}/.git/HEAD"
        inner[:] = [name for name in inner if name != ".git"]
        yield from (f"{directory}/{name}" for name in (*names, *links))


def _losses_of(command: ShellCommand, commands: Sequence[ShellCommand]) -> list[_Loss] | None:
    """The files that one of the `commands` of a line may take away; None where they are not known, or more is lost."""
    if command.gets_names:
        return _found_losses(command, commands)
    directory, words = command.directory, command.words[1:]
    if directory is None or command.is_guess or any(word.text is None for word in words):
        return None
    texts = [word.text or "" for word in words]
    is_plain = _OPTION_SETTERS.isdisjoint(other.program for other in commands)
    match command.program:
        case "git":
            return _git_losses(directory, texts)
        case "find":
            return _find_losses(directory, texts)
        case "dd":
            written = [text.removeprefix("of=") for text in texts if text.startswith("of=")]
            return _operand_losses(directory, written, is_plain=is_plain)
        case program if program in _BY_OPERANDS:
            return _operand_losses(directory, _operands(texts), is_plain=is_plain)
        case _:
            return None


def _git_losses(directory: str, texts: list[str]) -> list[_Loss] | None:
    if texts[:1] == ["clean"]:
        options = "".join(text[1:] for text in texts[1:] if text.startswith("-") and not text.startswith("--"))
        # Twice forced, it deletes repositories with all of their history.
        is_forced_twice = options.count("f") + sum(text.startswith("--f") for text in texts) > 1
        return None if "x" in options.lower() or is_forced_twice else [_Loss(directory, by_git=True)]
    return [_Loss(directory, by_git=True)] if texts[:1] and texts[0] in _UNDONE_BY_CONTENT else None


def _operands(texts: Sequence[str]) -> list[str]:
    if "--" in texts:
        return [*texts[texts.index("--") + 1 :]]
    return [text for text in texts if not text.startswith("-")]


def _operand_losses(directory: str, operands: Sequence[str], *, is_plain: bool) -> list[_Loss] | None:
    if any(text.startswith("~") or not text for text in operands):
        return None
    return [loss for text in operands for loss in _operand_loss(directory, text, is_plain=is_plain)]


def _operand_loss(directory: str, text: str, *, is_plain: bool) -> Iterator[_Loss]:
    """The files that one operand names. A pattern may have been quoted: the file of that name counts too."""
    yield _Loss(_joined(directory, text))
    if not (begin := _PATTERN.search(text)):
        return
    choices = _choices(text)
    if not is_plain or _OTHER_PATTERN.search(text) or choices is None:
        # It stands for anything in the directory it begins in.
        around = text[: begin.start()].rpartition("/")
        yield _Loss(_joined(directory, around[0] + around[1]))
        return
    for choice in choices:
        yield _Loss(directory, pattern=_widened(choice))


def _joined(directory: str, path: str) -> str:
    return path if path.startswith("/") else f"{directory}/{path}"


def _choices(text: str) -> Words | None:
    """A pattern for each of the choices in braces; None for braces of another form, or too many."""
    found = [text]
    while choice := next(filter(None, map(_CHOICE.search, found)), None):
        expanded = [
            choice.string[: choice.start()] + part + choice.string[choice.end() :] for part in choice[1].split(",")
        ]
        found = [*(each for each in found if each != choice.string), *expanded]
        if len(found) > _MAX_CHOICES:
            return None
    return None if any("{" in each for each in found) else tuple(found)


def _widened(pattern: str) -> str:
    """A pattern that stands for all that this one does in any shell: in place of `[…]` for any text."""
    return re.sub(r"\[[^/]*", "*", pattern)


def _find_losses(directory: str, texts: list[str]) -> list[_Loss] | None:
    """Everything below the directories where `find` starts, or of that what has the name it asks for."""
    while texts[:1] and (texts[0] == "-P" or texts[0].startswith("-O")):
        texts = texts[1:]
    if not (_FOLLOWS_LINKS | _FINDS_OTHERS).isdisjoint(texts):
        return None
    starts = [*takewhile(lambda text: not text.startswith(("-", "(", "!")), texts)] or ["."]
    if any(_PATTERN.search(start) or start.startswith("~") or not start for start in starts):
        return None
    name = _name_found(texts)
    return [_Loss(_joined(directory, start), name=name) for start in starts]


def _name_found(texts: Sequence[str]) -> str:
    """The pattern that the names of all found files match; empty where there is none."""
    if not _ANY.isdisjoint(texts):
        return ""
    for before, test, pattern in zip(texts, texts[1:], texts[2:], strict=False):
        if test in ("-name", "-iname") and before not in ("!", "-not") and "\\" not in pattern:
            return _widened(pattern)
    return ""


def _found_losses(command: ShellCommand, commands: Sequence[ShellCommand]) -> list[_Loss] | None:
    """The losses by a command that gets the names of files, where all names come from `find`."""
    operands = [text for text in command.texts[1:] if not text.startswith("-")]
    if command.program not in _BY_OPERANDS or any(text != "{}" for text in operands):
        return None
    finds = [other for other in commands if other.program == "find"]
    passers = [other for other in commands if other.program in NAME_PASSERS and other.program != "find"]
    if not finds or any(map(_gets_other_names, passers)) or (passers and not all("-print0" in f.texts for f in finds)):
        return None
    losses: list[_Loss] = []
    for find in finds:
        is_known = (
            find.directory is not None and not find.gets_names and all(word.text is not None for word in find.words)
        )
        found = _find_losses(find.directory or "", [*find.texts[1:]]) if is_known else None
        if found is None:
            return None
        losses += found
    return losses


def _gets_other_names(command: ShellCommand) -> bool:
    """Whether the names it hands on may not be whole names from `find`."""
    return command.program != "xargs" or command.input.programs != ("find",) or "-0" not in command.texts
