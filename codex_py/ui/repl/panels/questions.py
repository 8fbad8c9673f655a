"""The questions of a session, put to the user one after the other and answered.

A question that the session takes back, because its turn has ended, goes away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

from codex_py.paths import short_path
from codex_py.protocol import events
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ChoiceQuestion,
    McpInstallQuestion,
    PermissionsQuestion,
    ProjectServersQuestion,
    Question,
    QuestionAnswer,
    SecretQuestion,
)
from codex_py.render.questions import (
    NO_ANSWER,
    WRITE_ANSWER,
    QuestionWording,
    choice_title,
    word_install,
    word_permissions,
    word_project_servers,
)
from codex_py.render.theme import Theme
from codex_py.ui.repl.panels.approval import ask_approval
from codex_py.ui.repl.panels.askers import NamedAsker
from codex_py.ui.repl.panels.forms import GUTTER, Form, FormAsker, Option, Sheet, TextLine, needs_text


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
    yield TextLine(
        "Kept in memory for this session only; the model does not see it. Esc goes on without it.", "menu.note"
    )


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
