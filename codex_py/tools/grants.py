"""What the user has allowed in this session, and the files that keep what they allowed for longer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Literal

from codex_py.errors import UserError
from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.value import Value
from codex_py.shell.words import Words
from codex_py.tools.rule_files import rule_line
from codex_py.tools.rules import PrefixRule, RuleBook


class RuleStore(Value):
    """The files a yes is written to: for every project, and for `project` alone."""

    always: Path
    project_file: Path
    project: Path


class Approvals:
    """The rules that hold now, and what was allowed for the session; one of these belongs to one session.

    `lock` is held from a verdict to its answer, so that two calls do not ask the same question.
    """

    def __init__(
        self, rules: RuleBook | None = None, *, store: RuleStore | None = None, warnings: tuple[str, ...] = ()
    ) -> None:
        self.rules = rules or RuleBook()
        self.warnings = warnings
        self.lock = asyncio.Lock()
        self._store = store
        self._allowed: dict[Hashable, tuple[str, ...]] = {}

    @property
    def can_store(self) -> bool:
        """Whether a yes can be kept beyond the session."""
        return self._store is not None

    def is_allowed(self, key: Hashable) -> bool:
        """Whether the user has said yes to exactly this for the session."""
        return key in self._allowed

    def allowed_files(self, key: Hashable) -> tuple[str, ...] | None:
        """The files a yes for the session is bound to, as `bound_files` gives them; None where there is no such yes."""
        return self._allowed.get(key)

    def allow(self, key: Hashable, files: tuple[str, ...] = ()) -> None:
        """Remember a yes until the session ends."""
        self._allowed[key] = files

    def allow_pattern(
        self,
        pattern: Words,
        scope: Literal["project", "always"],
        *,
        sandbox_off: bool,
        files: tuple[str, ...] | None = None,
    ) -> None:
        """Remember a yes to every command that begins with `pattern`, and write it down.

        With `files` it holds while these stay the same. Raises `UserError` when it cannot be written; it holds for the
        session then.
        """
        rule = PrefixRule(tuple((word,) for word in pattern), sandbox_off=sandbox_off, files=files)
        # One for the same words, kept for files that have changed since, is replaced.
        others = tuple(
            other_rule
            for other_rule in self.rules.rules
            if other_rule.files is None or other_rule.pattern != rule.pattern
        )
        self.rules = self.rules.replace(rules=(*others, rule))
        if self._store is None:
            return
        file = self._store.always if scope == "always" else self._store.project_file
        about = "" if scope == "always" else f" in `{self._store.project}`"
        try:
            _append(file, rule_line(pattern, sandbox_off=sandbox_off, files=files), about)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"cannot keep the rule in `{file}`: {reason}; it holds for this session") from error


def _append(file: Path, line: str, about: str) -> None:
    make_private_dir(file.parent)
    descriptor = open_private(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:
            shown = about.replace("\n", "\\n")
            line = f"# Commands you have allowed{shown}. Edit or delete lines as you like.\n{line}"
        elif os.pread(descriptor, 1, size - 1) != b"\n":
            # A person's editor may leave the last line open.
            line = f"\n{line}"
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
