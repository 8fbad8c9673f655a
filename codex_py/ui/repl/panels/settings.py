"""Lists that change settings: the model and its effort, sandbox, approvals, trust in hooks, and the theme."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from codex_py.errors import UserError
from codex_py.protocol.policy import ApprovalPolicy, ApprovalWord, SandboxMode, approval_name
from codex_py.protocol.status import ListedHook
from codex_py.render.theme import THEME_NAMES
from codex_py.services.models import ModelRow, OfferedModels
from codex_py.ui.repl.panels.forms import (
    GUTTER,
    Form,
    FormAsker,
    ListEntry,
    ListForm,
    Option,
    Sheet,
    TextLine,
    needs_text,
    waited_for,
)

_OTHER_MODEL: Final = ""
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
    """A model by its name; `effort` is None where the model's own counts. One that is not `listed` was typed."""

    model: str
    effort: str | None
    listed: bool = True


async def choose_model(
    asker: FormAsker, load: Callable[[], Awaitable[OfferedModels]], *, current: str, effort: str | None
) -> ModelChoice | None:
    """Let the user choose among what the provider offers, or type a name; then the effort.

    When the provider does not list its models, the name is typed.
    """
    listed = False
    try:
        offered = await waited_for(asker, "Models", load(), about="asking the provider for its models…")
    except UserError as error:
        model = await asker.enter(_name_form(current, TextLine(str(error), "warn")))
    else:
        if offered is None:
            return None
        model = await asker.pick(model_listing(offered, current=current))
        listed = model != _OTHER_MODEL
        if not listed:
            model = await asker.enter(
                _name_form("", TextLine(f"any name that `{offered.provider}` knows", "menu.note"))
            )
    if not model:
        return None
    listing = effort_listing(effort if model == current else None)
    chosen = await asker.pick(listing)
    return None if chosen is None else ModelChoice(model, chosen or None, listed)


def model_listing(offered: OfferedModels, *, current: str) -> ListForm[str]:
    """The models as a list, the current one marked and selected."""
    entries = [_model_entry(row, current) for row in offered.rows]
    start = next((index for index, row in enumerate(offered.rows) if row.id == current), 0)
    about = () if any(row.id == current for row in offered.rows) else (TextLine(f"now: {current}", "menu.note"),)
    other = ListEntry(_OTHER_MODEL, "another one…", "by its name", mark=" ")
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


W = TypeVar("W", bound=str)

_SANDBOXES: Final[tuple[tuple[SandboxMode, str, str], ...]] = (
    ("read-only", "look, but write nothing", "Commands read files. They write nothing and have no network."),
    (
        "workspace-write",
        "work in this directory",
        "Commands read files and write below the working directory and the temporary directories. No network, unless "
        "the configuration says so.",
    ),
    (
        "danger-full-access",
        "no sandbox at all",
        "Commands do whatever you could do yourself: write anywhere, use the network, read your keys.",
    ),
)
_APPROVALS: Final[tuple[tuple[ApprovalWord, str, str], ...]] = (
    ("untrusted", "ask before everything except reads", "Only commands known to do no more than read run unasked."),
    (
        "on-request",
        "ask when the model wants out of the sandbox",
        "Commands run in the sandbox unasked. You are asked about what is beyond it, and about dangerous commands.",
    ),
    (
        "on-failure",
        "ask when the sandbox has stopped a command",
        "Commands run in the sandbox unasked; one that was stopped there may run again outside, if you say so.",
    ),
    (
        "never",
        "never ask",
        "Nobody is asked: what the sandbox does not let through fails, and the model is told.",
    ),
)


async def choose_sandbox(asker: FormAsker, current: SandboxMode, allowed: Sequence[SandboxMode]) -> SandboxMode | None:
    """Let the user choose among the modes that the administrator allows."""
    modes = [mode for mode, _, _ in _SANDBOXES]
    entries: tuple[ListEntry[SandboxMode], ...] = tuple(
        _policy_entry(mode, note, about, is_current=mode == current, is_allowed=mode in allowed)
        for mode, note, about in _SANDBOXES
    )
    return await asker.pick(
        ListForm(title="Sandbox: what commands may do", entries=entries, start=modes.index(current), searchable=False)
    )


async def choose_approval(
    asker: FormAsker, current: ApprovalPolicy, allowed: Sequence[ApprovalWord]
) -> ApprovalWord | None:
    """Let the user choose among the policies that the administrator allows."""
    words = [word for word, _, _ in _APPROVALS]
    name = approval_name(current)
    entries: tuple[ListEntry[ApprovalWord], ...] = tuple(
        _policy_entry(word, note, about, is_current=word == name, is_allowed=word in allowed)
        for word, note, about in _APPROVALS
    )
    about = () if name in words else (TextLine("now: a policy of your own, from the configuration", "menu.note"),)
    start = next((index for index, word in enumerate(words) if word == name), 0)
    return await asker.pick(
        ListForm(title="Approvals: when you are asked", entries=entries, about=about, start=start, searchable=False)
    )


def _policy_entry(value: W, note: str, about: str, *, is_current: bool, is_allowed: bool) -> ListEntry[W]:
    return ListEntry(
        value,
        value,
        note,
        (TextLine(about, "menu.note"),),
        mark="●" if is_current else "○",
        blocked="" if is_allowed else "not allowed on this machine",
    )


WITHOUT_SANDBOX: Final = Sheet(
    title="Run without a sandbox?",
    subject=(
        TextLine("Commands can then change or delete anything that you can, and send anything anywhere.", "warn"),
    ),
    options=(Option("y", "Yes, until the end of this session", True), Option("n", "No", False)),
    refusal=False,
    default=1,
)


_THEME_NOTES: Final = {
    "auto": "follow the terminal",
    "dark": "for a dark background",
    "light": "for a light background",
    "mono": "no colours: weight and slant only",
}


async def choose_theme(asker: FormAsker, current: str, preview: Callable[[str], None]) -> str | None:
    """Let the user choose; `preview` draws in a theme, and gets the current one back when none is chosen."""
    entries = tuple(
        ListEntry(name, name, _THEME_NOTES.get(name, ""), mark="●" if name == current else "○") for name in THEME_NAMES
    )
    start = THEME_NAMES.index(current) if current in THEME_NAMES else 0
    listing = ListForm(title="Theme", entries=entries, start=start, searchable=False)
    chosen: str | None = None
    try:
        chosen = await asker.pick(listing, on_move=preview)
    finally:
        if chosen is None:
            preview(current)
    return chosen


async def manage_hooks(
    asker: FormAsker, hooks: Callable[[], Sequence[ListedHook]], trust: Callable[[bool, ListedHook], None]
) -> None:
    """Show the hooks until that is closed; choosing one of the project's, or a skill's, asks about all of those."""
    while (chosen := await asker.pick(hooks_listing(hooks()))) is not None:
        own = [hook for hook in hooks() if hook.asks and hook.skill == chosen.skill]
        if own and chosen.asks:
            agrees = await asker.choose(trust_sheet(own))
            if agrees is not None:
                trust(agrees, chosen)


def hooks_listing(hooks: Sequence[ListedHook]) -> ListForm[ListedHook]:
    """The hooks in the order they count."""
    return ListForm(
        title="Hooks",
        entries=tuple(map(_entry, hooks)),
        empty="no hooks are configured",
        enter="trust or distrust",
    )


def trust_sheet(hooks: Sequence[ListedHook]) -> Sheet[bool | None]:
    """All that a project or a skill would run, and whether it may."""
    title = f"Run the hooks of the {hooks[0].source}?" if hooks[0].skill else "Run the project's hooks?"
    waits = not all(hook.runs for hook in hooks)
    yes = Option[bool | None]("y", "Yes, run them as they are now", value=True, note="a change needs another yes")
    no = Option[bool | None]("n", "No, run none of them", value=False)
    return Sheet[bool | None](
        title=title,
        subject=tuple(line for number, hook in enumerate(hooks, 1) for line in _question_lines(number, hook)),
        facts=tuple(TextLine(line, "menu.note") for line in _where(hooks)),
        options=(yes, no),
        refusal=None,
        default=1 if waits else 0,
        escape="leave it as it is",
    )


def _question_lines(number: int, hook: ListedHook) -> Iterator[TextLine]:
    yield TextLine(f"{number}. {_moment(hook)}: {hook.command}", "strong", GUTTER)
    if hook.changed:
        yield TextLine("  it, or a file it names, is not what you agreed to before", "warn")
    if hook.outside:
        yield TextLine("  it runs outside the sandbox, as you agreed", "warn")


def _where(hooks: Sequence[ListedHook]) -> Iterator[str]:
    free = sum(hook.outside for hook in hooks)
    if free < len(hooks):
        yield f"{'The others' if free else 'They'} run like this session's commands, in its sandbox."
        if not any(hook.skill for hook in hooks):
            yield "`codex-py hooks trust --outside N` lets hook N run outside the sandbox."


def _entry(hook: ListedHook) -> ListEntry[ListedHook]:
    closes = ("a failure is a no",) if hook.fail_closed else ()
    isolation = "outside the sandbox" if hook.outside else "in the sandbox of this session"
    facts = (isolation, f"at most {hook.seconds:g} s", *closes, f"{hook.source}, in {hook.where}")
    return ListEntry(
        hook,
        f"{_moment(hook)}: {hook.command}",
        "" if hook.runs else "changed since you trusted it" if hook.changed else "not trusted",
        (TextLine(hook.command, "output", GUTTER), TextLine(" · ".join(facts), "menu.note")),
        mark="●" if hook.runs else " ",
        blocked="" if hook.asks else f"hooks of the layer {hook.source} need no approval",
        words=f"{hook.source} {hook.where}",
    )


def _moment(hook: ListedHook) -> str:
    return f"{hook.event} {hook.matcher}" if hook.matcher else hook.event
