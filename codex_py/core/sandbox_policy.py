"""What the settings let a session's commands do, and what our own readers may read for the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from codex_py.config.load import LoadedConfig
from codex_py.paths import real_path
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite


def choose_policy(loaded: LoadedConfig, extra_roots: Sequence[Path] = ()) -> SandboxPolicy:
    """The policy of a session with these settings; `extra_roots` are writable too with workspace-write."""
    config = loaded.config
    # Whoever trusts a project expects work to be done there; everywhere else looking is all that was allowed.
    mode = config.sandbox_mode or ("workspace-write" if loaded.trust == "trusted" else "read-only")
    match mode:
        case "read-only":
            return ReadOnly()
        case "danger-full-access":
            return DangerFullAccess()
        case "workspace-write":
            rules = config.sandbox_workspace_write
            return WorkspaceWrite(
                writable_roots=(*rules.writable_roots, *extra_roots),
                network_access=rules.network_access,
                exclude_tmpdir_env_var=rules.exclude_tmpdir_env_var,
                exclude_slash_tmp=rules.exclude_slash_tmp,
            )


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
