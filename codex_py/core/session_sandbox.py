"""The sandbox of a session, from its settings. Imported when the first command is on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.config.load import LoadedConfig
from codex_py.sandbox.backends import BACKENDS, BackendName
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.denials import default_denials, own_secrets, still_denied
from codex_py.sandbox.limits import Limits
from codex_py.sandbox.unreadable import ReadRules


def denied_patterns(loaded: LoadedConfig, env: Mapping[str, str]) -> tuple[str, ...]:
    """Every path and pattern that no sandboxed command reads, `CODEX_HOME` aside: the default ones and the user's."""
    rules = loaded.config.sandbox
    return (*(path for path, _ in default_denials(env, rules.allow_read)), *rules.deny_read)


def allowances_without_effect(loaded: LoadedConfig, *, home: Path, env: Mapping[str, str]) -> list[str]:
    """Warnings for the paths of `sandbox.allow_read` that stay denied: by a directory above them, or in any case."""
    rules = loaded.config.sandbox
    own = map(str, own_secrets(home, rules.allow_read, env))
    found = still_denied(rules.allow_read, [*denied_patterns(loaded, env), *own], env)
    return [
        f"`{path}` in `sandbox.allow_read` opens nothing: `{denied}` stays denied"
        + ("" if is_same else "; allow that directory instead")
        for path, denied, is_same in found
    ]


def make_sandbox(
    loaded: LoadedConfig, *, home: Path, env: Mapping[str, str], backends: Sequence[BackendName] = BACKENDS
) -> Sandbox:
    """The sandbox that these settings ask for; nothing is looked up or run yet. `env` is the user's own environment."""
    return Sandbox(
        env,
        deny_read=denied_patterns(loaded, env),
        secrets=own_secrets(home, loaded.config.sandbox.allow_read, env),
        home=home,
        limits=Limits(loaded.config.sandbox.allow_unix_sockets, loaded.config.sandbox.protected),
        backends=backends,
    )


def read_rules(loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str]) -> ReadRules:
    """What readers of ours may read for the model, for those that have no sandbox at hand; as `Sandbox.may_read`."""
    own = own_secrets(home, loaded.config.sandbox.allow_read, env)
    return ReadRules(denied_patterns(loaded, env), cwd, env, secrets=own)
