"""Private copies of the scripts that a hook runs outside the sandbox: what was compared is what runs.

Copied are scripts named in the place of a program, or as the first argument of an interpreter. These run where they
are: scripts that look for their own place (`$0`, `__file__`), JavaScript, which finds its packages from there, programs
that are no text, and what is not named so (`cd tools && ./check.sh`, `make`). A command of the model could exchange
such a file between the comparison and the start, so there is no start where commands may write it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import CodexError
from codex_py.hooks.command import Start
from codex_py.hooks.schema import Hook
from codex_py.hooks.trust import CHANGED, command_words
from codex_py.paths import make_private_dir, open_private
from codex_py.process.named_files import MAX_SCRIPT, hash_of, named_links
from codex_py.protocol.ids import uuid7
from codex_py.text.regular_file import FileHead, FileRefused, read_trusted

_PROJECT: Final = r"\$\{?(?:CLAUDE_PROJECT_DIR|CODEX_PROJECT_DIR)\}?"
_INTERPRETER: Final = r"(?:[\w./-]*/)?(?:sh|bash|dash|ksh|zsh|python[\d.]*|perl|ruby)"
_SCRIPT: Final = re.compile(
    rf"(?P<before>(?:^|[;&|(\n])\s*(?:\w+=[^\s;&|()'\"]*\s+)*(?:(?:exec|source|\.|env)\s+)?(?:{_INTERPRETER}\s+(?:-\w+\s+)*)?"
    rf"['\"]?)(?P<word>(?:{_PROJECT}\"?/)?[\w./-]+)(?=['\"\s;&|)<>]|$)"
)
_MOVES: Final = re.compile(r"\b(?:cd|pushd|popd|chdir)\b|\s-C\b")
_PLAIN: Final = re.compile(r"[\w./-]+")
_FINDS_ITSELF: Final = re.compile(
    rb"\$\{?0\b|BASH_SOURCE|__file__|argv\[0\]|\$PROGRAM_NAME|__dir__|require_relative|FindBin"
)
_RUN_WHERE_STORED: Final = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"})


class HookScripts(NamedTuple):
    """What was compared of a hook outside the sandbox: the `files` it names, with the hash of each, in a `project`.

    `private` is the directory for copies; `may_write` says whether commands of the session may write a path.
    """

    files: Mapping[Path, bytes]
    project: Path
    private: Path
    may_write: Callable[[Path], bool]


def hold_scripts(hook: Hook, start: Start, scripts: HookScripts) -> Start:
    """The start with copies in place of the scripts that it names.

    Raises `CodexError` when one has changed since it was compared, or may change before it is run.
    """
    files, project = scripts.files, scripts.project
    copies = _Copies(files, scripts.private / uuid7())

    def copied(word: str) -> str:
        return copies.of(Path(os.path.realpath(start.cwd / re.sub(_PROJECT, lambda _: str(project), word))))

    try:
        argv = _in_line(start.argv, copied) if isinstance(hook.command, str) else _in_words(start.argv, copied)
        in_place = [*files.keys() - copies.made.keys()]
        links = named_links(command_words(hook), (Path(os.path.realpath(project)),), start.cwd)
        in_place += [link for link, path in links if path not in copies.made]
        if written := sorted(filter(scripts.may_write, in_place)):
            raise CodexError(
                f"is not run outside the sandbox: commands may write `{written[0]}`, and it has to stay where it is;"
                " keep it in `.codex`, or trust the hook without `--outside`"
            )
    except (OSError, CodexError) as error:
        copies.remove()
        raise CodexError(str(error)) from error
    return start._replace(argv=argv, cleanup=copies.remove)


def _in_line(argv: tuple[str, ...], copied: Callable[[str], str]) -> tuple[str, ...]:
    """The same for a line that a shell runs. One that changes its folder names its files from there: it stays."""
    *shell, line = argv
    if _MOVES.search(line):
        return argv

    def replaced(found: re.Match[str]) -> str:
        before, word = found["before"], found["word"]
        copy = copied(word.replace('"', ""))
        # In `"$CLAUDE_PROJECT_DIR"/check.sh` the quotes end within the word.
        return before + ((copy + '"' * word.count('"')) if copy else word)

    return (*shell, _SCRIPT.sub(replaced, line))


def _in_words(argv: tuple[str, ...], copied: Callable[[str], str]) -> tuple[str, ...]:
    words = list(argv)
    script = 0
    if re.fullmatch(_INTERPRETER, words[0]):
        script = next((index for index, word in enumerate(words) if index and not word.startswith("-")), 0)
    words[script] = copied(words[script]) or words[script]
    return tuple(words)


class _Copies:
    """Copies of files, each made once, in a folder that only the user can enter."""

    def __init__(self, files: Mapping[Path, bytes], directory: Path) -> None:
        self._files = files
        self._directory = directory
        self.made: dict[Path, str] = {}

    def of(self, path: Path) -> str:
        """The copy of a file; "" when it is none of the files or has to run where it is."""
        if path not in self._files:
            return ""
        if path not in self.made and (copy := self._make(path, self._directory / str(len(self.made)) / path.name)):
            self.made[path] = copy
        return self.made.get(path, "")

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def _make(self, path: Path, copy: Path) -> str:
        try:
            head = read_trusted(path, MAX_SCRIPT)
        except FileRefused as error:
            raise CodexError(CHANGED) from error
        if head is None or hash_of(head) != self._files[path]:
            raise CodexError(CHANGED)
        if not _can_move(path, head):
            return ""
        if not _PLAIN.fullmatch(str(copy)):
            raise CodexError(
                f"is not run: its script needs a copy, and `{copy.name}` or CODEX_HOME has an unusual name"
            )
        make_private_dir(copy.parent)
        with os.fdopen(open_private(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
            stream.write(head.raw)
        copy.chmod(0o700)
        return str(copy)


def _can_move(path: Path, head: FileHead) -> bool:
    """Whether a script does the same from another place."""
    return path.suffix not in _RUN_WHERE_STORED and b"\0" not in head.raw and not _FINDS_ITSELF.search(head.raw)
