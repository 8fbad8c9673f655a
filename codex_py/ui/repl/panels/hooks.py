"""The hooks of a session, and the user's approval of those that the project and its skills bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from codex_py.protocol.status import ListedHook
from codex_py.ui.repl.panels.forms import GUTTER, FormAsker, ListEntry, ListForm, Option, Sheet, TextLine


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
