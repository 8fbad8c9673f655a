"""The question whether a command may run, or a patch be written: what it is, why it is asked, and the answers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Final, Literal, TypeAlias

from codex_py.paths import short_path
from codex_py.protocol.questions import ApprovalQuestion, ApprovalReply, ApprovalScope, QuestionAnswer
from codex_py.render.entry import to_fragments
from codex_py.render.patch import render_proposal
from codex_py.render.questions import word_scopes
from codex_py.render.theme import Theme
from codex_py.text.display import script_and_shell
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.panels.drawing import MAX_CHARACTERS
from codex_py.ui.repl.panels.forms import GUTTER, Form, FormAsker, Option, Row, Sheet, TextLine, needs_text

_Answer: TypeAlias = ApprovalScope | Literal["no", "say"]

_MODEL: Final = "model: "
_MAX_FILES: Final = 6
_PATCH_STYLES: Final = {"+": "diff.add", "-": "diff.remove", "@": "diff.hunk", "*": "diff.path"}


async def ask_approval(
    question: ApprovalQuestion,
    asker: FormAsker,
    *,
    home: str,
    armed: bool = True,
    theme: Callable[[], Theme] | None = None,
) -> QuestionAnswer | None:
    """The answer to give to the session; None for a no. `home` is shown as `~`. With a `theme` a patch is a diff."""
    sheet = approval_sheet(question, home=home)
    if theme is not None and question.files:
        sheet = sheet._replace(draw=_draw_diff(question, theme))
    while True:
        match await asker.choose(sheet, armed=armed):
            case "no":
                return None
            case "say":
                message = await asker.enter(_message_form())
                if message is not None:
                    return ApprovalReply(message=message)
            case "once" | "session" as scope:
                return scope
            case "always" if question.server:
                return "always"
            case "project" | "always" as scope:
                typed = await asker.enter(_pattern_form(question, scope))
                if typed is not None:
                    return ApprovalReply(scope, tuple(shlex.split(typed)))
        # Back from the line to type in: the question has been noticed.
        armed = True


def approval_sheet(question: ApprovalQuestion, *, home: str) -> Sheet[_Answer]:
    """The question with its answers; Enter says no at first."""
    options = (*_scopes(question), *_REFUSALS)
    if question.server:
        title = f"Call this tool of the MCP server {question.server}?"
    elif question.files:
        title = _patch_title(question)
    else:
        title = "Run this outside the sandbox?" if question.outside else "Run this command?"
    return Sheet(
        title=title,
        subject=tuple(_subject(question)),
        facts=tuple(_facts(question, home)),
        options=options,
        refusal="no",
        default=len(options) - len(_REFUSALS),
    )


def _patch_title(question: ApprovalQuestion) -> str:
    if not question.outside:
        return "Write this patch?"
    return "Write in the read-only sandbox?" if "read-only" in question.reason else "Write outside of the workspace?"


def _draw_diff(question: ApprovalQuestion, theme: Callable[[], Theme]) -> Callable[[int, int | None], list[Row]]:
    """The diff of each file behind a gutter, drawn once for each size."""
    drawn: dict[tuple[int, int | None, Theme], list[Row]] = {}

    def draw(width: int, max_rows: int | None) -> list[Row]:
        look = (width, max_rows, theme())
        if look not in drawn:
            entry = render_proposal(question, max_rows)
            rows = to_fragments(entry, width=max(1, width - len(GUTTER)), theme=look[2])
            drawn[look] = [[("class:menu.note", GUTTER), *row] for row in rows]
        return drawn[look]

    return draw


_REFUSALS: Final[tuple[Option[_Answer], ...]] = (
    Option("n", "No", "no"),
    Option("e", "No, and tell the model why", "say"),
)


def _subject(question: ApprovalQuestion) -> Iterator[TextLine]:
    if question.server:
        yield from _quoted(question.command, lambda _: "strong")
    elif not question.files:
        yield from _quoted(script_and_shell(question.command)[0], lambda _: "strong")
    else:
        yield from _quoted(question.command, lambda line: _PATCH_STYLES.get(line[:1], ""))


def _quoted(text: str, style_of: Callable[[str], str]) -> Iterator[TextLine]:
    """The whole text behind a gutter, so that no line looks like the panel's own; runs of blank lines are counted."""
    for style, group in groupby(text.split("\n"), lambda line: style_of(line) if line.strip() else None):
        lines = list(group)
        if style is None and len(lines) > 1:
            yield TextLine(f"({len(lines)} blank lines)", "menu.note")
            continue
        block = "\n".join(lines)
        # In pieces, as no more than so much of one text is drawn.
        for start in range(0, max(1, len(block)), MAX_CHARACTERS):
            yield TextLine(block[start : start + MAX_CHARACTERS], style or "", GUTTER)


def _facts(question: ApprovalQuestion, home: str) -> Iterator[TextLine]:
    """What is known about it, each fact on a line: no part of a file's name or of the model's words passes for one."""
    if question.files:
        shown = [short_path(file, home) for file in question.files[:_MAX_FILES]]
        more = len(question.files) - len(shown)
        yield _fact("changes " + ", ".join(shown) + (f" and {more} more" if more else ""))
    elif not question.server:
        shell = script_and_shell(question.command)[1]
        yield _fact(f"in {short_path(question.cwd, home)}" + (f", by {shell}" if shell else ""))
    yield _fact(f"why: {question.reason}", "warn" if question.outside else "menu.note")
    if question.justification:
        yield _fact(question.justification)._replace(gutter=_MODEL)


def _fact(text: str, style: str = "menu.note") -> TextLine:
    return TextLine(sanitize_line(text), style)


def _scopes(question: ApprovalQuestion) -> Iterator[Option[_Answer]]:
    for scope, choice in zip(question.scopes, word_scopes(question), strict=True):
        yield Option(choice.key, choice.label, scope, choice.note)


def _message_form() -> Form:
    return Form(
        "No: what should the model do instead?",
        check=needs_text,
        enter="say no and send this",
    )


def _pattern_form(question: ApprovalQuestion, scope: ApprovalScope) -> Form:
    where = "in this project" if scope == "project" else "everywhere"
    outside = " They run outside the sandbox." if question.outside else ""
    return Form(
        f"Allow {where} what begins with these words",
        (TextLine(f"Commands like that are not asked about any more. Fewer words allow more.{outside}", "menu.note"),),
        initial=shlex.join(question.pattern),
        check=partial(pattern_complaint, question.pattern),
        enter="run it and keep this",
    )


def pattern_complaint(offered: tuple[str, ...], text: str) -> str:
    """What is wrong with a pattern as it was edited: it has to begin like the one that was offered."""
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        return "a quote is not closed"
    if not words:
        return "at least one word is needed"
    shared = min(len(words), len(offered))
    if words[:shared] != offered[:shared]:
        return f"it has to begin like this command: `{shlex.join(offered)}`"
    return ""
