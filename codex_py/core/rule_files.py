"""The `.rules` files of the machine, the user and a trusted project, read into one rule book."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.config.files import weak_permissions
from codex_py.config.load import LoadedConfig
from codex_py.paths import is_there
from codex_py.text.files import FileHead, FileRefused, read_inside, read_trusted
from codex_py.tools.rules import MAX_FILE_BYTES, RuleBook, RuleError, parse_rules

_MAX_FILES: Final = 64
_CORRECT: Final = "correct or remove it"
_OR_LEAVE_OUT: Final = f"{_CORRECT}, or start with `--ignore-rules`"


class RuleFiles(NamedTuple):
    """The parsed rule files. `warnings` tell the user which files could not be read and which rules are ignored."""

    book: RuleBook
    warnings: tuple[str, ...]


def read_rule_files(loaded: LoadedConfig, *, home: Path, cwd: Path, ignore_rules: bool = False) -> RuleFiles:
    """Read the rule files that apply in a directory, including those that store the user's lasting approvals.

    With `ignore_rules` only those of the machine apply.

    A file that cannot be read might forbid something: it is a fault of the rules, and no command runs. A project's
    rules may ask and forbid; what it would allow is not taken: whoever writes a repository does not decide what runs
    unasked.
    """
    project = loaded.project_root or cwd
    reading = _Reading()
    for file in reading.files_in(loaded.system / "rules"):
        reading.own(file)
    if ignore_rules:
        return RuleFiles(reading.book, tuple(reading.warnings))
    reading.remedy = _OR_LEAVE_OUT
    for file in [*reading.files_in(home / "rules"), *store_files(home, project)]:
        reading.own(file)
    # The layers are those the configuration found trusted; a directory of rules without one beside it counts as well.
    directories = [cwd, *cwd.parents] if loaded.trust == "trusted" else []
    for directory in directories:
        if not directory.is_relative_to(project):
            break
        if (directory / ".codex") != home:
            for file in reading.files_in(directory / ".codex" / "rules"):
                reading.of_project(file, project)
    return RuleFiles(reading.book, tuple(reading.warnings))


def store_files(home: Path, project: Path) -> tuple[Path, Path]:
    """The files that store lasting approvals: one for every project, and one for this project."""
    own = home / "rules" / "codex-py"
    # A name a person recognises, and that no other project has.
    name = "".join(letter if letter.isalnum() else "-" for letter in project.name)[:40] or "root"
    digest = hashlib.sha256(str(project).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return own / "default.rules", own / "projects" / f"{name}-{digest}.rules"


class _Reading:
    """Rules and warnings as they come in. `remedy` is what to do about a file with a fault."""

    def __init__(self) -> None:
        self.book = RuleBook()
        self.warnings: list[str] = []
        self.remedy = _CORRECT

    def files_in(self, directory: Path) -> Sequence[Path]:
        """The rules files of a directory in their order; those that cannot be read are a fault."""
        try:
            files = sorted(path for path in directory.iterdir() if path.suffix == ".rules")
        except OSError as error:
            if is_there(directory):
                self._fail(directory, (error.strerror or str(error)).lower())
            return []
        if len(files) > _MAX_FILES:
            self._fail(directory, f"{len(files)} files of rules, of which only {_MAX_FILES} are read")
        return files[:_MAX_FILES]

    def own(self, file: Path) -> None:
        """A file of the user's or of the machine's. One that others can write allows nothing."""
        try:
            book = _parse(read_trusted(file, MAX_FILE_BYTES + 1))
        except (FileRefused, RuleError) as error:
            self._fail(file, str(error))
            return
        weak = weak_permissions(file) if is_there(file) else None
        if weak is not None:
            self.warnings.append(f"what `{file}` would allow is ignored: {weak}")
            book = book.without_allowing()
        self.book = self.book.joined(book)

    def of_project(self, file: Path, root: Path) -> None:
        """A file of a trusted project: only what is stricter counts."""
        try:
            book = _parse(read_inside(root, file, MAX_FILE_BYTES + 1))
        except (FileRefused, RuleError) as error:
            self._fail(file, str(error))
            return
        strict = book.without_allowing()
        if len(strict.rules) < len(book.rules):
            left_out = len(book.rules) - len(strict.rules)
            self.warnings.append(f"`{file}`: {left_out} `allow` left out: a project may only ask and forbid")
        self.book = self.book.joined(RuleBook(strict.rules))

    def _fail(self, path: Path, reason: str) -> None:
        """Rules that cannot be read might forbid what is about to run."""
        fault = f"the rules in `{path}` cannot be used: {reason}; {self.remedy}"
        self.warnings.append(f"no command runs: {fault}")
        self.book = self.book.joined(RuleBook(faults=(fault,)))


def _parse(head: FileHead | None) -> RuleBook:
    if head is None:
        return RuleBook()
    try:
        return parse_rules(head.raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RuleError(f"not UTF-8 (byte {error.start})") from error
