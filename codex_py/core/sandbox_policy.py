"""What the settings let a session's commands do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codex_py.config.load import LoadedConfig
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
