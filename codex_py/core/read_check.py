"""What readers of our own may read for the model: the rules that hold for commands, asked only where it matters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from codex_py.config.load import LoadedConfig
from codex_py.paths import real_path


def read_check(loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str]) -> Callable[[Path], bool]:
    """Whether an absolute path may be read for the model.

    The rules are put together when they are first needed: what the default denials name lies behind a hidden name or
    in `Library`, and is no `SKILL.md`, so that any other plain file needs none of them.
    """

    @cache
    def rules() -> Callable[[Path], bool]:
        from codex_py.core.session_sandbox import read_rules  # the seam: most starts read plain files only

        return read_rules(loaded, home=home, cwd=cwd, env=env).allows

    def may_read(path: Path) -> bool:
        is_plain = not any(part.startswith(".") or part == "Library" for part in path.parts)
        if (
            (is_plain or path.name == "SKILL.md")
            and not loaded.config.sandbox.deny_read
            and real_path(path) == str(path)
        ):
            return True
        return rules()(path)

    return may_read
