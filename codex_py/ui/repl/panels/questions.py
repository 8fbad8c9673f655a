"""The questions of a session, put to the user one after the other and answered: approvals, choices, secrets, servers.

A question that the session takes back, because its turn has ended, goes away.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Final, Literal, TypeAlias

from codex_py.paths import short_path
from codex_py.protocol import events
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ApprovalReply,
    ApprovalScope,
    ChoiceQuestion,
    McpInstallQuestion,
    PermissionsQuestion,
    ProjectServersQuestion,
    Question,
    QuestionAnswer,
    SecretQuestion,
)
from codex_py.render.entry import to_fragments
from codex_py.render.patch import render_proposal
from codex_py.render.questions import (
    MEMORY_NOTE,
    NO_ANSWER,
    WRITE_ANSWER,
    QuestionWording,
    choice_title,
    word_install,
    word_permissions,
    word_project_servers,
    word_scopes,
)
from codex_py.render.theme import Theme
from codex_py.text.display import script_and_shell
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.panels.askers import NamedAsker
from codex_py.ui.repl.panels.forms import GUTTER, Form, FormAsker, Option, Row, Sheet, TextLine, needs_text
from codex_py.ui.repl.panels.frame import MAX_CHARACTERS


class QuestionQueue:
    """Listens to a session and asks the user. Have `run` going for as long as the session.

    `answer` gives an answer, by the question's id, to the session. `is_typing` says whether the user is in the middle
    of a text when a question comes up; `home` is shown as `~`. With a `theme` patches are drawn as diffs.
    `on_answered` gets a question and its answers.
    """

    def __init__(
        self,
        asker: FormAsker,
        answer: Callable[[str, QuestionAnswer | None], Awaitable[None]],
        *,
        is_typing: Callable[[], bool] = lambda: False,
        home: str = "",
        theme: Callable[[], Theme] | None = None,
        on_answered: Callable[[str, Sequence[str]], None] = lambda _question, _answers: None,
    ) -> None:
        self._asker = asker
        self._answer = answer
        self._is_typing = is_typing
        self._on_answered = on_answered
        self._home = home
        self._theme = theme
        self._waiting: asyncio.Queue[Question] = asyncio.Queue()
        self._asking: asyncio.Task[QuestionAnswer | None] | None = None
        self._asking_agent = ""

    @property
    def waiting(self) -> int:
        """How many questions come after the one that is asked."""
        return self._waiting.qsize()

    def note_event(self, event: events.Event) -> None:
        """Take a question up, or take all back when their turn is over."""
        match event:
            case events.QuestionRaised(question):
                self._waiting.put_nowait(question)
            case events.TurnCompleted() | events.TurnFailed():
                # Agents may go on, and wait for their answers.
                self.withdraw("")
            case events.TurnInterrupted():
                self.withdraw()
            case events.AgentChanged(agent) if not agent.is_at_work:
                self.withdraw(agent.name)
            case _:
                pass

    def withdraw(self, agent: str | None = None) -> None:
        """Forget the questions that wait, and take away the one that is asked.

        With `agent` only those of the agent of that name, with an empty one only those of the session itself.
        """
        waiting = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        for question in waiting:
            if agent is not None and question.agent != agent:
                self._waiting.put_nowait(question)
        if self._asking is not None and (agent is None or self._asking_agent == agent):
            self._asking.cancel()

    async def run(self) -> None:
        """Ask what comes in, until this is cancelled."""
        while True:
            # Whoever has just answered one looks at the next, whatever stands in the input.
            follows = not self._waiting.empty()
            question = await self._waiting.get()
            armed = follows or not self._is_typing()
            self._asking_agent = question.agent
            self._asking = asyncio.create_task(
                ask(question, self._asker, home=self._home, armed=armed, theme=self._theme)
            )
            try:
                # Not `await`: that way a withdrawn question differs from the end of this program.
                await asyncio.wait([self._asking])
                if not self._asking.cancelled():
                    answer = self._asking.result()
                    if isinstance(question, ChoiceQuestion):
                        self._on_answered(question.question, [answer] if isinstance(answer, str) else [])
                    await self._answer(question.id, answer)
            finally:
                self._asking.cancel()
                self._asking = None


async def ask(
    question: Question,
    asker: FormAsker,
    *,
    home: str = "",
    armed: bool = True,
    theme: Callable[[], Theme] | None = None,
) -> QuestionAnswer | None:
    """Put one question to the user."""
    asker = NamedAsker(asker, question.agent) if question.agent else asker
    show_path = partial(short_path, home=home)
    match question:
        case ApprovalQuestion():
            return await ask_approval(question, asker, home=home, armed=armed, theme=theme)
        case PermissionsQuestion():
            return await asker.choose(_sheet(word_permissions(question, show_path), gutter=""), armed=armed)
        case McpInstallQuestion():
            return await asker.choose(_sheet(word_install(question)), armed=armed)
        case ProjectServersQuestion():
            return await asker.choose(_sheet(word_project_servers(question, show_path)), armed=armed)
        case ChoiceQuestion():
            return await _ask_choice(question, asker, armed=armed)
        case SecretQuestion():
            return await asker.enter(secret_form(question))


def _sheet(wording: QuestionWording, *, gutter: str = GUTTER) -> Sheet[str | None]:
    """A question as a sheet; Enter says no at first."""
    facts = [TextLine(fact.text, "warn" if fact.is_warning else "menu.note") for fact in wording.facts]
    if wording.justification:
        facts.append(TextLine(wording.justification, "menu.note", "model: "))
    return Sheet(
        title=wording.title,
        subject=tuple(TextLine(line, "strong", gutter) for line in wording.subject),
        facts=tuple(facts),
        options=tuple(Option(choice.key, choice.label, choice.value, choice.note) for choice in wording.choices),
        refusal=None,
        default=next(index for index, choice in enumerate(wording.choices) if choice.value is None),
    )


def secret_form(question: SecretQuestion) -> Form:
    """A hidden line for the value of a variable."""
    return Form(
        f"${question.skill} needs {question.name}",
        tuple(_about_secret(question)),
        hidden=True,
        check=needs_text,
        enter="use it",
    )


def _about_secret(question: SecretQuestion) -> Iterator[TextLine]:
    if question.why:
        yield TextLine(question.why)
    yield TextLine(f"{MEMORY_NOTE} Esc goes on without it.", "menu.note")


async def _ask_choice(question: ChoiceQuestion, asker: FormAsker, *, armed: bool) -> str | None:
    sheet = choice_sheet(question)
    while True:
        index = await asker.choose(sheet, armed=armed)
        if index is None:
            return None
        if index >= 0:
            return question.options[index].label
        typed = await asker.enter(Form(question.question, check=needs_text, enter="answer"))
        if typed is not None:
            return typed
        armed = True


def choice_sheet(question: ChoiceQuestion) -> Sheet[int | None]:
    """The options by their index, -1 for an answer of the user's own; None leaves it open."""
    options: list[Option[int | None]] = [
        Option("", option.label, index, option.description) for index, option in enumerate(question.options)
    ]
    return Sheet(
        title=choice_title(question),
        subject=(TextLine(question.question),),
        options=(*options, Option("", WRITE_ANSWER, -1), Option("", NO_ANSWER, None)),
        refusal=None,
        escape="no answer",
        default=len(options) + 1,
    )


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
