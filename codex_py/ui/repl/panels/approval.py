"""The question whether a command may run, or a patch be written: what it is, why it is asked, and the answers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from typing import Final, Literal, TypeAlias

from codex_py.protocol.questions import ApprovalQuestion, ApprovalReply, ApprovalScope
from codex_py.text.sanitize import sanitize_line
from codex_py.text.shell_line import script_and_shell
from codex_py.ui.repl.panels.forms import Asker, Form, Line, Option, Sheet, needs_text
from codex_py.ui.repl.panels.wording import short_path

_Answer: TypeAlias = ApprovalScope | Literal["no", "say"]

_MOST_FILES: Final = 6
_PATCH_STYLES: Final = {"+": "diff.add", "-": "diff.remove", "@": "diff.hunk", "*": "diff.path"}


async def ask_approval(question: ApprovalQuestion, asker: Asker, *, home: str, armed: bool = True) -> str | None:
    """The answer to give to the session; None for a no. `home` is shown as `~`."""
    sheet = approval_sheet(question, home=home)
    while True:
        match await asker.choose(sheet, armed=armed):
            case "no":
                return None
            case "say":
                message = await asker.enter(_message_form())
                if message is not None:
                    return ApprovalReply(message=message).written()
            case "once" | "session" as scope:
                return scope
            case "always" if question.server:
                return "always"
            case "project" | "always" as scope:
                typed = await asker.enter(_pattern_form(question, scope))
                if typed is not None:
                    return ApprovalReply(scope, tuple(shlex.split(typed))).written()
        # Back from the line to type in: the question has been noticed.
        armed = True


def approval_sheet(question: ApprovalQuestion, *, home: str) -> Sheet[_Answer]:
    """The question with its answers; Enter says no at first."""
    options = (*_scopes(question), *_REFUSALS)
    if question.server:
        title = f"Call this tool of the MCP server {question.server}?"
    elif question.files:
        title = "Write this patch outside the sandbox?" if question.outside else "Write this patch?"
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


_REFUSALS: Final[tuple[Option[_Answer], ...]] = (
    Option("n", "No", "no"),
    Option("e", "No, and tell the model why", "say"),
)


def _subject(question: ApprovalQuestion) -> Iterator[Line]:
    if question.server:
        yield Line(question.command, "strong")
        return
    if not question.files:
        yield Line(script_and_shell(question.command)[0], "strong")
        return
    for line in question.command.split("\n"):
        yield Line(line, _PATCH_STYLES.get(line[:1], ""))


def _facts(question: ApprovalQuestion, home: str) -> Iterator[Line]:
    if question.files:
        shown = [short_path(file, home) for file in question.files[:_MOST_FILES]]
        more = len(question.files) - len(shown)
        yield Line("changes " + ", ".join(shown) + (f" and {more} more" if more else ""), "menu.note")
    elif not question.server:
        shell = script_and_shell(question.command)[1]
        yield Line(f"in {short_path(question.cwd, home)}" + (f", by {shell}" if shell else ""), "menu.note")
    yield Line(f"why: {question.reason}", "warn" if question.outside else "menu.note")
    if question.justification:
        # On one line, so that no part of it passes for a fact of ours.
        yield Line(f"model: {sanitize_line(question.justification)}", "menu.note")


def _scopes(question: ApprovalQuestion) -> Iterator[Option[_Answer]]:
    again = "the same files" if question.files else "exactly this command"
    pattern = f"{shlex.join(question.pattern)} …"
    if question.server:
        again = pattern = "all calls of this tool"
    options: dict[ApprovalScope, Option[_Answer]] = {
        "once": Option("y", "Yes, this once", "once"),
        "session": Option("s", "Yes, and for the rest of this session", "session", again),
        "project": Option("p", "Yes, and from now on in this project", "project", pattern),
        "always": Option("a", "Yes, and from now on everywhere", "always", pattern),
    }
    return (options[scope] for scope in question.scopes)


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
        (Line(f"Commands like that are not asked about any more. Fewer words allow more.{outside}", "menu.note"),),
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
