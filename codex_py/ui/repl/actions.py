"""What the session's own keys do: edit, attach, unfold, read it all, plan mode, help."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.render.entry import Flow
from codex_py.render.theme import Theme
from codex_py.render.transcript import render_items
from codex_py.ui.repl.desktop import clipboard_picture, draft_file, edit_text
from codex_py.ui.repl.input import Composer
from codex_py.ui.repl.slash_command import CommandContext
from codex_py.ui.repl.turns import SideTasks

_FOLDED: Final = (
    events.CommandFinished,
    events.PatchFinished,
    events.PatchRejected,
    events.McpCallFinished,
    events.ToolCallFinished,
    events.ReasoningDone,
)

_MAX_FOLDED: Final = 20


class Actions:
    """A listener of the session, which knows what can be unfolded, and the actions by their names."""

    def __init__(
        self,
        context: CommandContext,
        composer: Composer,
        *,
        tasks: SideTasks,
        look: Callable[[], tuple[int, Theme]],
        run_command: Callable[[str], None],
    ) -> None:
        self._context = context
        self._composer = composer
        self._tasks = tasks
        self._look = look
        self._run_command = run_command
        # The last one at the end. Each may hold all that a command has printed.
        self._folded: deque[events.Event] = deque(maxlen=_MAX_FOLDED)

    def note_event(self, event: events.Event) -> None:
        """Remember what can be unfolded."""
        if isinstance(event, _FOLDED):
            self._folded.append(event)

    def by_name(self) -> Mapping[str, Callable[[], object]]:
        """The action of each key, by name."""
        return {
            "edit": lambda: self._tasks.start(self._edit()),
            "paste_image": lambda: self._tasks.start(self._paste_image()),
            "transcript": lambda: self._tasks.start(self._read_transcript()),
            "expand": self._expand,
            "plan_mode": lambda: self._run_command("plan"),
            "raw": lambda: self._run_command("raw"),
            "help": lambda: self._run_command("help"),
            "rewind": lambda: self._run_command("rewind"),
        }

    def _expand(self) -> None:
        """Show whole what came last, and the next time what came before it."""
        if self._folded:
            self._context.output.event(self._folded.pop(), expanded=True)
        else:
            self._context.output.note("there is nothing to unfold; Ctrl-T shows all of the session")

    async def _edit(self) -> None:
        before = self._composer.chips.expand(self._composer.text)
        context = self._context
        try:
            after = await edit_text(
                before, context.front.run_program, context.programs(), context.launch.env, home=context.launch.home
            )
        except UserError as error:
            context.output.fail(str(error), hint=error.hint)
            return
        if after is None:
            self._context.output.fail("no editor could be started", hint="set EDITOR")
        elif after != before:
            self._composer.set_text(after)

    async def _paste_image(self) -> None:
        picture = await clipboard_picture(self._context.launch.env, self._context.programs(), self._context.launch.home)
        if picture is None:
            self._context.output.note("there is no picture in the clipboard that can be read from here")
        else:
            self._composer.attach(picture)

    async def _read_transcript(self) -> None:
        """The whole session, unfolded, in a pager."""
        width, theme = self._look()
        session, flow = self._context.session, Flow()
        entries = list(render_items(session.history.items, cwd=self._context.cwd, expanded=True))
        if not entries:
            self._context.output.note("nothing was said in this session yet")
            return
        lines = [line for entry in entries for line in flow.lines(entry, width=width, theme=theme)]
        pager = self._context.programs().find("less")
        if pager is None:
            self._context.output.fail("there is no `less` to read it in", hint="`codex-py sessions show` prints it")
            return
        with draft_file(self._context.launch.home, "\n".join(lines) + "\n", ".txt") as path:
            await self._context.front.run_program([pager, "-R", "-S", "+G", str(path)])
