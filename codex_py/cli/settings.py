"""What the command line of a session means: the folder to work in, the settings in force, the pictures."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.errors import UsageError
from codex_py.paths import is_directory, is_there

_OFFLINE: Final = "offline"
_OTHER_DIRECTORY: Final = "name another directory with `-C`"


def working_directory(chosen: str | None) -> Path:
    """The real path of the directory to work in."""
    shown = f"cannot work in `{chosen or '.'}`"
    try:
        cwd = Path(chosen or ".").resolve(strict=True)
    except FileNotFoundError as error:
        raise UsageError(f"{shown}: there is no such directory", hint=_OTHER_DIRECTORY) from error
    except (OSError, RuntimeError) as error:
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "too many links"
        raise UsageError(f"{shown}: {reason}", hint=_OTHER_DIRECTORY) from error
    if not is_directory(cwd):
        raise UsageError(f"{shown}: it is not a directory", hint=_OTHER_DIRECTORY)
    if not os.access(cwd, os.R_OK | os.X_OK):
        raise UsageError(f"{shown}: you are not allowed to read it", hint=_OTHER_DIRECTORY)
    return cwd


def load_settings(options: argparse.Namespace, home: Path, cwd: Path) -> LoadedConfig:
    """The configuration in force. `--oss` alone means the local server that the configuration names."""
    if options.offline and (options.oss or options.local_provider):
        raise UsageError(
            "`--offline` and `--oss` exclude each other", hint="`--offline` uses no model, `--oss` a local one"
        )
    loaded = load_config(config_request(options, home, cwd))
    preferred = loaded.config.oss_provider
    if options.oss and not options.local_provider and preferred:
        options.local_provider = preferred
        return load_config(config_request(options, home, cwd))
    return loaded


def config_request(options: argparse.Namespace, home: Path, cwd: Path) -> ConfigRequest:
    """The configuration that the flags of a session ask for."""
    sandbox = (
        "danger-full-access"
        if options.bypass
        else options.sandbox or ("workspace-write" if options.full_auto else None)
    )
    provider = options.local_provider or ("ollama" if options.oss else None)
    chosen = {
        "model": options.model,
        "sandbox_mode": sandbox,
        # Only the terminal session has a flag for it; `exec` never asks.
        "approval_policy": "never" if options.bypass else getattr(options, "approval", None),
        "model_provider": _OFFLINE if options.offline else provider,
    }
    return request_for(options, home, cwd, chosen=chosen)


def request_for(options: argparse.Namespace, home: Path, cwd: Path, *, chosen: Mapping[str, Any]) -> ConfigRequest:
    """The configuration that the flags of `add_config_flags` ask for; `chosen` are keys that other flags set."""
    flags: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for flag, names, value in (("--enable", options.enable, True), ("--disable", options.disable, False)):
        for name in names:
            flags[f"features.{name}"], texts[f"features.{name}"] = value, f"{flag} {name}"
    return ConfigRequest(
        home=home,
        cwd=cwd,
        env=os.environ,
        overrides=tuple(options.config),
        flags=flags | {key: value for key, value in chosen.items() if value is not None},
        flag_texts=texts,
        profile=options.profile,
        strict=options.strict_config,
        ignore_user=options.ignore_user_config,
    )


def find_images(arguments: Sequence[str]) -> tuple[Path, ...]:
    """The pictures as absolute paths. One flag may name several, split at commas, unless a file has that very name."""
    names: list[str] = []
    for value in arguments:
        names += [value] if is_there(Path(value)) else value.split(",")
    return tuple(Path(name).absolute() for name in names if name)
