"""What runs in the background, agents and commands: looked at, and stopped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from codex_py.paths import short_path
from codex_py.protocol.status import AgentState, LiveProcess
from codex_py.render.agents import agent_standing
from codex_py.text.display import first_words, script_and_shell
from codex_py.ui.repl.panels.forms import FactSection, FormAsker, ListEntry, ListForm, Option, Sheet, TextLine
from codex_py.ui.repl.panels.picker import PickerAction, PickerPanel

_TASK_SHOWN: Final = 300
_MESSAGE_SHOWN: Final = 600


async def manage_agents(
    asker: FormAsker,
    agents: Callable[[], Sequence[AgentState]],
    look_into: Callable[[AgentState], None],
    stop: Callable[[str], Awaitable[bool]],
) -> None:
    """Show the agents until that is closed or one is looked into; one that works can be stopped as well."""
    while (chosen := await asker.pick(agents_listing(agents()))) is not None:
        agent = next((agent for agent in agents() if agent.id == chosen), None)
        if agent is None:
            continue
        action = await asker.choose(agent_sheet(agent)) if agent.is_at_work else "look"
        if action == "look":
            look_into(agent)
            return
        if action == "stop":
            await stop(agent.id)


def agents_listing(agents: Sequence[AgentState]) -> ListForm[str]:
    """The agents by their id, those of agents below the one that started them."""
    return ListForm(
        title="Agents",
        entries=tuple(map(_agent_entry, agents)),
        empty="no agent was started in this session",
        enter="look into it",
    )


def agent_sheet(agent: AgentState) -> Sheet[Literal["look", "stop", "leave"]]:
    """The choices for an agent at work."""
    return Sheet(
        title=agent.title[:1].upper() + agent.title[1:],
        subject=(TextLine(first_words(agent.task, _TASK_SHOWN), "strong"),),
        facts=(TextLine(agent_standing(agent), "menu.note"),),
        options=(
            Option("l", "Look into it", "look"),
            Option("s", "Stop", "stop", "with every command it has started"),
            Option("n", "Back", "leave"),
        ),
        refusal="leave",
        escape="back",
    )


def _agent_entry(agent: AgentState) -> ListEntry[str]:
    facts = [agent.role, agent.model, f"{agent.tokens:,} tokens" if agent.tokens else "", agent.cost, agent.id]
    details = [TextLine(" · ".join(filter(None, facts)), "menu.note")]
    if agent.message:
        details.append(TextLine(first_words(agent.message, _MESSAGE_SHOWN), "output"))
    return ListEntry(
        agent.id,
        f"{'  ' * (agent.depth - 1)}{agent.name}: {first_words(agent.task, _TASK_SHOWN)}",
        agent_standing(agent),
        tuple(details),
        mark="●" if agent.is_at_work else " ",
    )


_SHOWN_LINES: Final = 4


async def manage_processes(
    asker: FormAsker,
    processes: Callable[[], tuple[LiveProcess, ...]],
    stop: Callable[[int], Awaitable[bool]],
    *,
    user_home: str,
) -> None:
    """Show what runs, until it is closed or nothing runs any more: one that is chosen is looked at, or stopped."""
    while True:
        listing = running_listing(processes(), user_home=user_home)
        chosen, stops = await _choose_process(asker, listing)
        process = next((process for process in processes() if process.id == chosen), None)
        if chosen is None:
            return
        if process is None:
            continue
        if stops or (asker.show is None and await asker.choose(_stop_sheet(process))):
            await stop(process.id)
            if not processes():
                return
        elif asker.show is not None:
            await asker.read(f"Session {process.id}", (FactSection(_title(process), _output_rows(process)),))


class ProcessesPanel(PickerPanel[int]):
    """The list; `stops` says that the one it is settled with is to be stopped."""

    def __init__(self, listing: ListForm[int]) -> None:
        self.stops = False
        super().__init__(listing, actions=[PickerAction("s", lambda: "stop it", self._stop)])

    def _stop(self) -> None:
        if self.selected is not None:
            self.stops = True
            self.settle(self.selected.value)


async def _choose_process(asker: FormAsker, listing: ListForm[int]) -> tuple[int | None, bool]:
    """The chosen command, and whether it is to be stopped."""
    if asker.show is None:
        return await asker.pick(listing), False
    panel = ProcessesPanel(listing)
    return await asker.show(panel), panel.stops


def _output_rows(process: LiveProcess) -> tuple[tuple[str, str], ...]:
    lines = process.tail.rstrip().split("\n")
    return tuple(("", line) for line in lines) if lines != [""] else (("", "no output yet"),)


def running_listing(processes: tuple[LiveProcess, ...], *, user_home: str) -> ListForm[int]:
    """The commands by their id, the oldest first."""
    return ListForm(
        title="Running in the background",
        entries=tuple(_command_entry(process, user_home) for process in processes),
        searchable=False,
        empty="nothing runs in the background",
        enter="look",
    )


def running_time(seconds: float) -> str:
    """A duration in its two largest units: `42s`, `3m 05s`, `2h 07m`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02}m"


def _command_entry(process: LiveProcess, user_home: str) -> ListEntry[int]:
    facts = [
        f"session {process.id}",
        short_path(process.cwd, user_home),
        "terminal" if process.tty else "",
    ]
    facts.append("outside the sandbox" if process.outside else "")
    tail = "\n".join(process.tail.rstrip().split("\n")[-_SHOWN_LINES:])
    details = [TextLine(" · ".join(filter(None, facts)), "menu.note"), TextLine(tail or "(no output yet)", "output")]
    return ListEntry(process.id, _title(process), running_time(process.seconds), tuple(details), mark="●")


def _title(process: LiveProcess) -> str:
    command = " ".join(script_and_shell(process.command)[0].split())
    return f"{process.agent}: {command}" if process.agent else command


def _stop_sheet(process: LiveProcess) -> Sheet[bool]:
    return Sheet(
        title="Stop this command?",
        subject=(TextLine(script_and_shell(process.command)[0], "strong"),),
        facts=(TextLine("It is killed, with all it has started.", "menu.note"),),
        options=(Option("y", "Yes, stop it", True), Option("n", "No", False)),
        refusal=False,
        default=1,
    )
