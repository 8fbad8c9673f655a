"""The `skills.lock` of version 0.1: its consent is moved to the records once the user confirms it."""

from __future__ import annotations

import os

from codex_py.cli import skills_install_view as view
from codex_py.cli.console import can_ask, is_agreed, print_note
from codex_py.errors import UserError
from codex_py.services.skill_install import current_hash, opened_target, record_skill
from codex_py.services.skill_origins import targets
from codex_py.skills.records import RecordsRefused, read_records, write_records
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.service import OLD_LOCK
from codex_py.text.files import os_reason


def take_over(request: SkillRootsRequest, *, yes: bool) -> None:
    """Ask whether the consent in a `skills.lock` of version 0.1 counts here, and move it to the records."""
    for target in targets(request, os.environ):
        file = target.root / OLD_LOCK
        if not (target.has_records and os.path.lexists(file)):
            continue
        try:
            old = read_records(file)
        except RecordsRefused as error:
            raise UserError(str(error), hint="restore it, or delete it") from None
        print_note(f"`{file}` is of version 0.1. It says that you agreed to these skills:")
        print_note(
            *(f"  {name}: from {view.origin(record)}, {view.summary(record.declared)}" for name, record in old.items())
        )
        if not (yes or can_ask()):
            print_note("nobody can be asked whether to keep this consent: run the command in a terminal, or with --yes")
            continue
        if not is_agreed("keep this consent?", yes=yes, otherwise=f"`{file}` stays as it is"):
            continue
        with opened_target(target):
            for name, record in old.items():
                # The lock file describes the files: one that was changed since, or is gone, gets no entry.
                if current_hash(target.root / name) == record.tree_hash:
                    record_skill(target, name, record)
            try:
                write_records(target.home, target.root, {**old, **target.records()})
                file.unlink()
            except OSError as error:
                raise UserError(f"cannot take `{file}` over: {os_reason(error)}") from error
