"""The help: signs, commands and keys. Opened by `/help`, and by `?` in an empty input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from codex_py.config.keymap import ACTIONS, format_key
from codex_py.ui.repl.panels.forms import FactSection, FormAsker
from codex_py.ui.repl.slash import SlashCommand

_SIGNS: Final = (
    ("$name", "a skill: its instructions go with your message"),
    ("@path", "a file of this folder"),
    ("/name", "a command at the start of a line, or a skill by its name"),
    ("!command", "run a shell command yourself; the model sees what it printed"),
)
_DIALOGS: Final = (
    ("↑↓ Enter", "select and answer; a letter or a number answers at once"),
    ("Esc", "say no, or close it"),
    ("m", "show all of a long command or patch"),
)


async def show_help(asker: FormAsker, commands: Sequence[SlashCommand], keys: Mapping[str, Sequence[str]]) -> None:
    """Show it until it is closed. `keys` are those of each action, by its name."""
    await asker.read("Help", help_sections(commands, keys))


def help_sections(commands: Sequence[SlashCommand], keys: Mapping[str, Sequence[str]]) -> tuple[FactSection, ...]:
    """The help as a page; each action with the name that it has in the configuration."""
    return (
        FactSection("Write", _SIGNS),
        FactSection(
            "Commands", tuple((f"/{command.name} {command.hint}".strip(), command.purpose) for command in commands)
        ),
        FactSection(
            "Keys, and their names under [tui.keymap]",
            tuple(
                (", ".join(map(format_key, keys.get(action.name, ()))) or "–", f"{action.purpose} ({action.name})")
                for action in ACTIONS
            ),
        ),
        FactSection("In dialogs", _DIALOGS),
    )
