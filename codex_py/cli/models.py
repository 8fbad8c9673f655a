"""`codex-py models`: what a provider offers, and what is known about each model."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from codex_py.cli.typer_command import Overrides, Profile, WorkingDirectory, run_command
from codex_py.config.load import ConfigRequest, load_config
from codex_py.config.schema import Config
from codex_py.errors import UsageError
from codex_py.paths import codex_home
from codex_py.services.models import ModelRow, offered_models
from codex_py.text.sanitize import sanitize_line

_LOCAL: Final = ("ollama", "lmstudio")
_WIDEST_NAME: Final = 60


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py models` with these arguments; give back the exit status."""
    return run_command(models, arguments, name="models")


def models(
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="ID", help="Ask this provider, not the configured one.")
    ] = None,
    oss: Annotated[bool, typer.Option("--oss", help="Ask the server on this machine (Ollama, LM Studio).")] = False,
    local_provider: Annotated[
        str | None, typer.Option("--local-provider", metavar="NAME", help="Which one: ollama or lmstudio.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    overrides: Overrides = None,
    profile: Profile = None,
    cd: WorkingDirectory = None,
) -> int:
    """List the models that the provider offers, with the context window in tokens.

    `*` marks the one that is asked now. What the provider does not say comes from the built-in catalogue; `?` marks
    models that are in neither.
    """
    home = codex_home(os.environ)
    config = _load(home, (cd or Path.cwd()).absolute(), overrides, profile)
    name = provider or _local_name(config, oss, local_provider) or config.model_provider
    offered = asyncio.run(offered_models(config, name, env=os.environ, home=home))
    if offered.configured and offered.rows and not any(row.is_configured for row in offered.rows):
        line = f"note: `{offered.configured}`, which would be asked now, is not among them"
        print(sanitize_line(line), file=sys.stderr)
    _show(offered.rows, name, as_json=as_json)
    return 0


def _load(home: Path, cwd: Path, overrides: Sequence[str] | None, profile: str | None) -> Config:
    loaded = load_config(
        ConfigRequest(home=home, cwd=cwd, env=os.environ, overrides=tuple(overrides or ()), profile=profile)
    )
    for warning in loaded.warnings:
        print(sanitize_line(f"warning: {warning}"), file=sys.stderr)
    return loaded.config


def _local_name(config: Config, oss: bool, chosen: str | None) -> str | None:
    if chosen is not None and chosen not in _LOCAL:
        raise UsageError(f"no local provider `{chosen}`", hint="there are `ollama` and `lmstudio`")
    return chosen or ((config.oss_provider or "ollama") if oss else None)


def _show(rows: Sequence[ModelRow], provider: str, *, as_json: bool) -> None:
    if as_json:
        records = [
            {
                "id": row.id,
                "configured": row.is_configured,
                "known": row.is_known,
                "context_window": row.window,
                "description": row.description,
            }
            for row in rows
        ]
        print(json.dumps({"provider": provider, "models": records}, indent=2))
        return
    if not rows:
        print(f"the provider `{provider}` offers no models", file=sys.stderr)
    width = min(max((len(row.id) for row in rows), default=0), _WIDEST_NAME)
    for row in rows:
        mark = "*" if row.is_configured else " " if row.is_known else "?"
        window = f"{row.window:,}" if row.window else ""
        print(sanitize_line(f"{mark} {row.id:<{width}}  {window:>9}  {row.description}".rstrip()))
