"""Which hooks of a project or a skill the user trusts, and private copies of the scripts they run.

The hash covers the entry and every file that its command names: a changed script must be trusted again. Files that
such a file loads are not covered.

A script is copied when it is named as the program or as the first argument of an interpreter. These run where they are:
scripts that use their own path (`$0`, `__file__`), JavaScript, which finds its packages from there, binaries, and what
is named in another way (`cd tools && ./check.sh`, `make`). A command of the model could replace such a file between
check and start, so a hook does not start where commands may write it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import CodexError, UserError
from codex_py.hooks.schema import Hook
from codex_py.paths import make_private_dir, open_private
from codex_py.process.named_files import MAX_SCRIPT, hash_of, named_files, named_links
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json, uuid7
from codex_py.replace_file import replace_file
from codex_py.text.files import FileHead, FileRefused, read_trusted

TRUST_FILE: Final = "trusted_hooks.json"
_MAX_TRUST: Final = 4 * 1024 * 1024
CHANGED: Final = "is not run: it, or a file it names, has changed since you trusted it (`codex-py hooks trust`)"


def fingerprint(hook: Hook, cwd: Path) -> str:
    """The hash that a user trusts: `sha256:…` of the entry and of the files it names.

    `cwd` is where the command would run. Of a file that cannot be read the name counts.
    """
    return fingerprint_with(hook, hook_files(hook, cwd))


def hook_files(hook: Hook, cwd: Path) -> dict[Path, bytes]:
    """The files that a project's hook names, each with a hash of its content."""
    if hook.origin.root is None:
        return {}
    return named_files(command_words(hook), (Path(os.path.realpath(hook.origin.root)),), cwd)


def command_words(hook: Hook) -> list[str]:
    """The words of a hook's command; a line for a shell is one word."""
    return [hook.command] if isinstance(hook.command, str) else list(hook.command)


def fingerprint_with(hook: Hook, files: Mapping[Path, bytes]) -> str:
    """`fingerprint` for files that were read already."""
    digest = hashlib.sha256(_entry(hook))
    for path, content in files.items():
        digest.update(b"\0" + os.fsencode(path) + b"\0" + content)
    return f"sha256:{digest.hexdigest()}"


def entry_fingerprint(hook: Hook) -> str:
    """`entry:sha256:…` of the entry alone: tells that a hook was trusted before its files changed."""
    return f"entry:sha256:{hashlib.sha256(_entry(hook)).hexdigest()}"


class TrustedHooks:
    """The hashes that the user trusts, by the directory of a project or a skill.

    They are in a file of CODEX_HOME that only the user can read.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._file = home / TRUST_FILE
        self._projects = self._read()

    def has(self, project: Path, hashed: str) -> bool:
        """Whether the user trusts this hash in a project."""
        return hashed in self._projects.get(str(project), ())

    def put(self, project: Path, hashes: Sequence[str]) -> None:
        """Trust exactly these hashes in a project from now on. Raises `UserError`."""
        if hashes:
            self._projects[str(project)] = tuple(dict.fromkeys(hashes))
        else:
            self._projects.pop(str(project), None)
        try:
            self._write()
        except OSError as error:
            raise UserError(f"cannot write `{self._file}`: {(error.strerror or str(error)).lower()}") from error

    def _read(self) -> dict[str, tuple[str, ...]]:
        try:
            head = read_trusted(self._file, _MAX_TRUST)
            document: Any = {} if head is None else decode_json(head.raw)
        except (FileRefused, ValueError):
            return {}
        projects = as_object(as_object(document).get("projects"))
        return {
            name: tuple(fingerprint for fingerprint in as_list(fingerprints) if isinstance(fingerprint, str))
            for name, fingerprints in projects.items()
        }

    def _write(self) -> None:
        make_private_dir(self._file.parent)
        document = {
            "version": 1,
            "projects": {name: list(fingerprints) for name, fingerprints in sorted(self._projects.items())},
        }
        replace_file(self._file, encode_json(document) + b"\n")


def _entry(hook: Hook) -> bytes:
    entry = [
        hook.event,
        hook.matcher.text,
        isinstance(hook.command, str),
        command_words(hook),
        hook.timeout,
        hook.background,
    ]
    if hook.condition.text:
        entry.append(hook.condition.text)
    if hook.fail_closed:
        entry.append("fail_closed")
    if hook.once:
        entry.append("once")
    return encode_json(entry)


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
    """The `files` that a hook outside the sandbox names, with the hash that each had when it was checked.

    `private` is the directory for copies; `may_write` says whether commands of the session may write a path.
    """

    files: Mapping[Path, bytes]
    project: Path
    private: Path
    may_write: Callable[[Path], bool]


def copy_scripts(hook: Hook, start: PreparedCommand, scripts: HookScripts) -> PreparedCommand:
    """The command with copies in place of the scripts that it names.

    Raises `CodexError` when a script has changed since it was checked, or may change before it runs.
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
    return start.replace(argv=argv, cleanup=copies.remove)


def _in_line(argv: tuple[str, ...], copied: Callable[[str], str]) -> tuple[str, ...]:
    """The same for a line that a shell runs. A line that changes the directory stays: its paths start there."""
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
    """Copies of files, each made once, in a directory that only the user can enter."""

    def __init__(self, files: Mapping[Path, bytes], directory: Path) -> None:
        self._files = files
        self._directory = directory
        self.made: dict[Path, str] = {}

    def of(self, path: Path) -> str:
        """The copy of a file; "" for another file, and for one that has to run where it is."""
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
    """Whether a script does the same in another directory."""
    return path.suffix not in _RUN_WHERE_STORED and b"\0" not in head.raw and not _FINDS_ITSELF.search(head.raw)
