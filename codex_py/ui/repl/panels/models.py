"""Choosing a model and how long it thinks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from codex_py.core.model_choices import ModelRow, OfferedModels
from codex_py.errors import UserError
from codex_py.ui.repl.panels.forms import Form, FormAsker, ListEntry, ListForm, Option, Sheet, TextLine, needs_text
from codex_py.ui.repl.panels.waiting import waited_for

_OTHER: Final = ""
_EFFORTS: Final = (
    ("low", "quick answers, little thought"),
    ("medium", "the usual measure"),
    ("high", "thinks longer, for hard problems"),
    ("xhigh", "thinks longest, where a model offers it"),
    ("max", "as long as it can, where a model offers it"),
    ("minimal", "hardly any thought, where a model offers it"),
    ("none", "none at all, where a model offers it"),
)


class ModelChoice(NamedTuple):
    """A model by its name; `effort` is None where the model's own counts."""

    model: str
    effort: str | None


async def choose_model(
    asker: FormAsker, load: Callable[[], Awaitable[OfferedModels]], *, current: str, effort: str | None
) -> ModelChoice | None:
    """Let the user choose among what the provider offers, or type a name; then the effort.

    When the provider does not list its models, the name is typed.
    """
    try:
        offered = await waited_for(asker, "Models", load(), about="asking the provider for its models…")
    except UserError as error:
        model = await asker.enter(_name_form(current, TextLine(str(error), "warn")))
    else:
        if offered is None:
            return None
        model = await asker.pick(model_listing(offered, current=current))
        if model == _OTHER:
            model = await asker.enter(
                _name_form("", TextLine(f"any name that `{offered.provider}` knows", "menu.note"))
            )
    if not model:
        return None
    listing = effort_listing(effort if model == current else None)
    chosen = await asker.pick(listing)
    return None if chosen is None else ModelChoice(model, chosen or None)


def model_listing(offered: OfferedModels, *, current: str) -> ListForm[str]:
    """The models as a list, the current one marked and selected."""
    entries = [_model_entry(row, current) for row in offered.rows]
    start = next((index for index, row in enumerate(offered.rows) if row.id == current), 0)
    about = () if any(row.id == current for row in offered.rows) else (TextLine(f"now: {current}", "menu.note"),)
    other = ListEntry(_OTHER, "another one…", "by its name", mark=" ")
    return ListForm(
        title=f"Models of {offered.provider}", entries=(*entries, other), about=about, start=start, empty="no model"
    )


def effort_listing(current: str | None) -> ListForm[str]:
    """The efforts as a list, the model's own first."""
    entries = [ListEntry("", "default", "what the model is made for", mark="○" if current else "●")]
    entries += [ListEntry(word, word, note, mark="●" if word == current else "○") for word, note in _EFFORTS]
    start = next((index for index, entry in enumerate(entries) if entry.value == (current or "")), 0)
    return ListForm(title="Reasoning effort", entries=tuple(entries), start=start, searchable=False)


def keep_sheet(choice: ModelChoice, file: str) -> Sheet[bool]:
    """Whether a model that was chosen counts in later sessions too; Enter says no at first."""
    effort = f", effort {choice.effort}" if choice.effort else ""
    return Sheet(
        title="Keep this model as the default?",
        subject=(TextLine(f"{choice.model}{effort}", "strong"),),
        options=(
            Option("y", "Yes, for new sessions too", True, f"written to {file}"),
            Option("n", "No, for this session only", False),
        ),
        refusal=False,
        default=1,
    )


def _model_entry(row: ModelRow, current: str) -> ListEntry[str]:
    notes = [
        row.description,
        f"{row.window:,} tokens" if row.window else "",
        "" if row.is_known else "not in the catalogue",
    ]
    return ListEntry(row.id, row.id, " · ".join(filter(None, notes)), mark="●" if row.id == current else "○")


def _name_form(initial: str, about: TextLine) -> Form:
    return Form("Model", (about,), initial=initial, check=needs_text, enter="use this model")
