"""The questions of a session, put to the user one after the other and answered.

A question that the session takes back, because its turn has ended, goes away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from codex_py.protocol import events
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ChoiceQuestion,
    McpInstallQuestion,
    PermissionsQuestion,
    ProjectServer,
    ProjectServersQuestion,
    Question,
    SecretQuestion,
)
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.panels.approval import ask_approval
from codex_py.ui.repl.panels.askers import NamedAsker
from codex_py.ui.repl.panels.forms import GUTTER, Form, FormAsker, Option, Sheet, TextLine, needs_text
from codex_py.ui.repl.panels.wording import short_path


class QuestionQueue:
    """Listens to a session and asks the user. Have `run` going for as long as the session.

    `answer` gives an answer, by the question's id, to the session. `is_typing` says whether the user is in the middle
    of a text when a question comes up; `home` is shown as `~`. `on_answered` gets a question and its answers.
    """

    def __init__(
        self,
        asker: FormAsker,
        answer: Callable[[str, str | None], Awaitable[None]],
        *,
        is_typing: Callable[[], bool] = lambda: False,
        home: str = "",
        on_answered: Callable[[str, Sequence[str]], None] = lambda _question, _answers: None,
    ) -> None:
        self._asker = asker
        self._answer = answer
        self._is_typing = is_typing
        self._on_answered = on_answered
        self._home = home
        self._waiting: asyncio.Queue[Question] = asyncio.Queue()
        self._asking: asyncio.Task[str | None] | None = None
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
            self._asking = asyncio.create_task(ask(question, self._asker, home=self._home, armed=armed))
            try:
                # Not `await`: that way a withdrawn question differs from the end of this program.
                await asyncio.wait([self._asking])
                if not self._asking.cancelled():
                    answer = self._asking.result()
                    if isinstance(question, ChoiceQuestion):
                        self._on_answered(question.question, [] if answer is None else [answer])
                    await self._answer(question.id, answer)
            finally:
                self._asking.cancel()
                self._asking = None


async def ask(question: Question, asker: FormAsker, *, home: str = "", armed: bool = True) -> str | None:
    """Put one question to the user; the value of the `Answer` op."""
    asker = NamedAsker(asker, question.agent) if question.agent else asker
    match question:
        case ApprovalQuestion():
            return await ask_approval(question, asker, home=home, armed=armed)
        case PermissionsQuestion():
            return await asker.choose(permissions_sheet(question, home=home), armed=armed)
        case McpInstallQuestion():
            return await asker.choose(install_sheet(question), armed=armed)
        case ProjectServersQuestion():
            return await asker.choose(project_servers_sheet(question, home=home), armed=armed)
        case ChoiceQuestion():
            return await _ask_choice(question, asker, armed=armed)
        case SecretQuestion():
            return await asker.enter(secret_form(question))


def permissions_sheet(question: PermissionsQuestion, *, home: str) -> Sheet[str | None]:
    """Whether commands may do more; only `yes` grants it."""
    wanted = [TextLine("use the network", "strong")] if question.network else []
    wanted += [
        TextLine(sanitize_line(f"write below {short_path(directory, home)}"), "strong") for directory in question.write
    ]
    return Sheet(
        title="Let commands do more for the rest of this turn?",
        subject=tuple(wanted),
        facts=(TextLine(sanitize_line(question.reason), "menu.note", "model: "),) if question.reason else (),
        options=(Option("y", "Yes, until the turn ends", "yes"), Option("n", "No", None)),
        refusal=None,
        default=1,
    )


def install_sheet(question: McpInstallQuestion) -> Sheet[str | None]:
    """Whether MCP servers are added to the configuration."""
    servers = question.servers
    skills = list(dict.fromkeys(skill for server in servers for skill in server.skills))
    title = f"Add the MCP server {servers[0].name}?" if len(servers) == 1 else f"Add {len(servers)} MCP servers?"
    return Sheet(
        title=title,
        subject=tuple(
            TextLine(
                f"{server.transport if len(servers) == 1 else f'{server.name}, {server.transport}'}: {server.target}",
                "strong",
                GUTTER,
            )
            for server in servers
        ),
        facts=(
            TextLine(f"needed by {', '.join(f'${skill}' for skill in skills)}", "menu.note"),
            *(TextLine(line, "warn") for line in _install_effects(question)),
            TextLine("added to your config.toml", "menu.note"),
        ),
        options=(
            Option("y", "Yes, install now", "yes"),
            Option("n", "No, go on without", None),
            Option("d", "Never for this skill" if len(skills) == 1 else "Never for these skills", "never"),
        ),
        refusal=None,
        default=1,
    )


def _install_effects(question: McpInstallQuestion) -> Iterator[str]:
    transports = {server.transport for server in question.servers}
    if "stdio" in transports:
        yield "a command will run on your machine"
    if transports - {"stdio"}:
        yield "an address will be connected to"


def project_servers_sheet(question: ProjectServersQuestion, *, home: str) -> Sheet[str | None]:
    """Whether servers that the project names are started."""
    servers = question.servers
    is_single = len(servers) == 1
    starts = tuple(_start_options(question))
    return Sheet(
        title=f"Start the project's MCP server {servers[0].name}?" if is_single else "Start the project's MCP servers?",
        subject=tuple(
            TextLine(server.target if is_single else f"{server.name}: {server.target}", "strong", GUTTER)
            for server in servers
        ),
        facts=(
            TextLine(sanitize_line(f"named by the files of {short_path(question.project, home)}"), "menu.note"),
            *(line for server in servers for line in _project_server_facts(server, home)),
            TextLine("remembered until what would run changes", "menu.note"),
        ),
        options=(
            *starts,
            Option("n", "No, not in this session", None),
            Option("d", "Never as it is now" if is_single else "Never as they are now", "never"),
        ),
        refusal=None,
        default=len(starts),
    )


def _start_options(question: ProjectServersQuestion) -> Iterator[Option[str | None]]:
    if not question.has_commands:
        yield Option("y", "Yes, start", "yes")
        return
    yield Option("y", "Yes, start in the sandbox", "yes")
    yield Option("w", "Yes, in the sandbox with network access", "network")
    yield Option("o", "Yes, outside the sandbox, as you", "outside")


def _project_server_facts(server: ProjectServer, home: str) -> Iterator[TextLine]:
    if server.changed:
        yield TextLine(f"{server.name} is not what you agreed to before", "warn")
    if server.transport == "stdio":
        yield TextLine(f"{server.name} runs on your machine", "warn")
    else:
        yield TextLine(f"{server.name} is an address that will be connected to", "warn")
    if server.cwd is not None:
        yield TextLine(sanitize_line(f"in {short_path(server.cwd, home)}"), "menu.note")
    if server.passes:
        yield TextLine(sanitize_line(f"gets {', '.join(server.passes)} of your environment"), "warn")
    if server.sets:
        yield TextLine(sanitize_line(f"with {', '.join(server.sets)}"), "menu.note")


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
        title=" · ".join(filter(None, [question.header or "A question", question.count])),
        subject=(TextLine(question.question),),
        options=(*options, Option("", "Write an answer…", -1), Option("", "No answer", None)),
        refusal=None,
        escape="no answer",
        default=len(options) + 1,
    )
