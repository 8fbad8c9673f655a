"""The flags that managing commands share, each declared once; `options` has those of commands that start a session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("-c", "--config", metavar="KEY=VALUE", help="Set a configuration key; the value is TOML, else text."),
]
StrictConfig: TypeAlias = Annotated[bool, typer.Option("--strict-config", help="Stop at an unknown configuration key.")]
Profile: TypeAlias = Annotated[
    str | None,
    typer.Option("-p", "--profile", metavar="NAME", help="Add the settings of $CODEX_HOME/NAME.config.toml."),
]
WorkingDirectory: TypeAlias = Annotated[
    Path | None, typer.Option("-C", "--cd", metavar="DIR", help="Work in this directory.")
]
IgnoreUserConfig: TypeAlias = Annotated[
    bool, typer.Option("--ignore-user-config", help="Leave $CODEX_HOME/config.toml out.")
]
