"""What a client lets the user choose in a session: the mode, the model, and how long it thinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from codex_py.config.load import LoadedConfig
from codex_py.config.sections import REASONING_EFFORT
from codex_py.core.model_choices import known_models
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import UserError
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.server.acp.content import Json
from codex_py.server.acp.modes import Modes

_DEFAULT: Final = "default"
_SHOWN: Final = 80


class Options:
    """The options of one session."""

    def __init__(self, loaded: LoadedConfig, modes: Modes) -> None:
        self._config = loaded.config
        self._modes = modes

    def shown(self, settings: TurnSettings) -> list[Json]:
        """All of them, with what is chosen."""
        model, effort = settings.model.model, settings.model.effort
        modes = [
            {"value": mode["id"], "name": mode["name"], "description": mode["description"]}
            for mode in self._modes.offered()
        ]
        return [
            _select("mode", "Mode", "mode", self._modes.current(settings), modes),
            _select("model", "Model", "model", model, _values(self._models(model))),
            _select(
                "thought_level",
                "Reasoning effort",
                "thought_level",
                effort or _DEFAULT,
                _values(self._efforts(effort)),
            ),
        ]

    def change(self, option: str, value: object, settings: TurnSettings) -> OverrideTurnContext:
        """What gives an option a value. Raises `UserError` for what is not offered."""
        shown = next((choice for choice in self.shown(settings) if choice["id"] == option), None)
        if shown is None:
            raise UserError(
                f"there is no option `{option[:_SHOWN]}`", hint="there are `mode`, `model`, `thought_level`"
            )
        if not isinstance(value, str) or value not in [choice["value"] for choice in shown["options"]]:
            raise UserError(f"`{str(value)[:_SHOWN]}` is no value of the option `{option}`")
        match option:
            case "mode":
                return self._modes.change_to(value)
            case "model":
                return OverrideTurnContext(model=value)
            case _:
                return OverrideTurnContext(effort="" if value == _DEFAULT else value)

    def _models(self, current: str) -> Sequence[str]:
        known = known_models(self._config)
        return known if current in known else (current, *known)

    def _efforts(self, current: str | None) -> Sequence[str]:
        words = (_DEFAULT, *REASONING_EFFORT.words)
        return words if current is None or current in words else (*words, current)


def _select(name: str, title: str, category: str, current: str, options: Sequence[Json]) -> Json:
    return {
        "id": name,
        "name": title,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": list(options),
    }


def _values(words: Sequence[str]) -> list[Json]:
    return [{"value": word, "name": word} for word in words]
