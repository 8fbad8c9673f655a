"""`codex-py models`: lists the models that a provider offers, and what is known about each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from codex_py.cli.console import load_local_config, print_json, print_note
from codex_py.cli.typer_command import Json, Overrides, Profile, WorkingDirectory, run_command
from codex_py.config.schema import Config
from codex_py.errors import UsageError
from codex_py.paths import codex_home
from codex_py.services.models import ModelRow, offered_models
from codex_py.services.price_table import update_table
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
    update: Annotated[
        bool, typer.Option("--update", help="Fetch the newest prices and context windows, and keep them.")
    ] = False,
    source: Annotated[
        str | None, typer.Option("--from", metavar="URL", help="With --update: where to fetch them.")
    ] = None,
    as_json: Json = False,
    overrides: Overrides = None,
    profile: Profile = None,
    cd: WorkingDirectory = None,
) -> int:
    """List the models that the provider offers, with the context window in tokens.

    `*` marks the current model. Values that the provider does not send come from the built-in catalogue; `?` marks
    models that are in neither.
    """
    if source is not None and not update:
        raise UsageError("`--from` goes with `--update`", hint="see `codex-py models --help`")
    if update:
        path, count = update_table(codex_home(os.environ), source)
        print_note(f"the prices of {count:,} models are in `{path}`")
        return 0
    home, _, loaded = load_local_config(overrides, profile, cwd=cd and cd.absolute())
    config = loaded.config
    name = provider or _local_name(config, oss, local_provider) or config.model_provider
    offered = asyncio.run(offered_models(config, name, env=os.environ, home=home))
    if offered.configured and offered.rows and not any(row.is_configured for row in offered.rows):
        print_note(f"note: `{offered.configured}`, which would be asked now, is not among them")
    _show(offered.rows, name, as_json=as_json)
    return 0


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
        print_json({"provider": provider, "models": records})
        return
    if not rows:
        print_note(f"the provider `{provider}` offers no models")
    width = min(max((len(row.id) for row in rows), default=0), _WIDEST_NAME)
    for row in rows:
        mark = "*" if row.is_configured else " " if row.is_known else "?"
        window = f"{row.window:,}" if row.window else ""
        print(sanitize_line(f"{mark} {row.id:<{width}}  {window:>9}  {row.description}".rstrip()))
