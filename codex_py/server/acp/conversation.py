"""One session of a client: its prompts in order, the updates it sends, and how work is cancelled."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.items import Message, ResponseItem
from codex_py.protocol.readable import is_host_text
from codex_py.protocol.usage import TokenUsage
from codex_py.rollout.stored_turns import HostMessage, PastTurn, PastUserMessage, past_turns
from codex_py.server.acp.commands import available_commands, find_command
from codex_py.server.acp.content import Json
from codex_py.server.acp.options import Modes, Options
from codex_py.server.acp.params import Abilities, AcpPrompt
from codex_py.server.acp.questions import SessionQuestions
from codex_py.server.acp.updates import MESSAGE, SessionUpdates
from codex_py.server.messages import INTERNAL_ERROR, RpcError
from codex_py.server.peer import AcpPeer
from codex_py.server.pipes import complain
from codex_py.server.threads import LiveThread
from codex_py.text.display import first_words

_USER_MESSAGE: Final = "user_message_chunk"
_PICTURE: Final = re.compile(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/=]+)")


def replay_turns(turns: Sequence[PastTurn], updates: SessionUpdates) -> Iterator[Json]:
    """The updates for these turns in order; a call is placed where it was made, with its result."""
    for turn in turns:
        for item in turn.items:
            match item.happened:
                case PastUserMessage() as message:
                    yield from _user_message_updates(message, updates)
                case HostMessage():
                    pass
                case event:
                    yield from _event_updates(event, updates)
        if turn.error:
            yield updates.note(f"The turn failed: {turn.error}")
        yield from updates.calls.end_all()


def _user_message_updates(message: PastUserMessage, updates: SessionUpdates) -> Iterator[Json]:
    for address in message.pictures:
        if picture := _PICTURE.fullmatch(address):
            content = {"type": "image", "mimeType": picture[1], "data": picture[2]}
            yield {"sessionUpdate": _USER_MESSAGE, "content": content}
    if message.text and (update := updates.chunks.complete(_USER_MESSAGE, message.text)):
        yield update


def _event_updates(event: events.Event, updates: SessionUpdates) -> Iterator[Json]:
    match event:
        case events.CommandFinished(call_id, command, cwd):
            yield from updates.translate(events.CommandStarted(call_id, command, cwd))
        case events.PatchFinished(call_id, changes):
            yield from updates.translate(events.PatchStarted(call_id, changes))
        case events.ContextCompacted(summary=summary):
            yield updates.note(f"The conversation so far was summed up.\n\n{summary}".strip())
            return
        case _:
            pass
    yield from updates.translate(event)


_Ended: TypeAlias = events.TurnCompleted | events.TurnFailed | events.TurnInterrupted
_MAX_TITLE_LENGTH: Final = 100
# The protocol's stop reasons for turns that failed with these codes.
_STOPS: Final = {
    "content_filter": "refusal",
    "prompt_refused": "refusal",
    "refusal": "refusal",
    "max_output_tokens": "max_tokens",
}


class AcpSession:
    """A session as its client sees it. `hear` must be given every event of its thread."""

    def __init__(self, thread: LiveThread, peer: AcpPeer, abilities: Abilities) -> None:
        self.thread: Final = thread
        self._peer = peer
        settings = thread.session.settings
        self._modes = Modes(thread.loaded, settings)
        self._options = Options(thread.loaded, self._modes)
        loop = asyncio.get_running_loop()
        hides_reasoning = thread.loaded.config.hide_agent_reasoning
        self._updates = SessionUpdates(loop.time, hides_reasoning=hides_reasoning, notices=abilities.notices)
        self._questions = SessionQuestions(
            thread,
            peer,
            updates=self._updates,
            writes=abilities.forms,
            update=self.update,
            is_stopped=lambda: self._is_cancelled,
        )
        self._turns = asyncio.Lock()
        # How often the client has cancelled, and how often it had when the current prompt came.
        self._cancels = self._cancels_before = 0
        self._ended: asyncio.Future[_Ended] | None = None
        self._plan: str | None = None
        self._question: asyncio.Task[bool] | None = None
        self._sent_mode = self._modes.current(settings)
        self._sent_options = self._options.shown(settings)
        self._sent_commands: list[Json] = []
        self._has_title = len(thread.session.history) > 0
        # The title the session gets from the running turn once its message is recorded.
        self._coming_title = ""

    @property
    def is_busy(self) -> bool:
        """Whether a prompt is running."""
        return self._turns.locked()

    @property
    def _is_cancelled(self) -> bool:
        return self._cancels != self._cancels_before

    def state(self) -> Json:
        """The reply to the client when it opens the session."""
        settings = self.thread.session.settings
        self._sent_mode, self._sent_options = self._modes.current(settings), self._options.shown(settings)
        return {"modes": self._modes.state(settings), "configOptions": self._sent_options}

    async def begin(self) -> None:
        """Send the first updates, once the client knows the session."""
        await self.thread.begin()
        self._send_commands()

    async def replay(self) -> None:
        """Replay the stored turns, no faster than the client reads them."""
        async with self._peer.replay_lock:
            await self._peer.caught_up()
            file = self.thread.session.rollout
            turns = await asyncio.to_thread(past_turns, file) if file is not None else ()
            for update in replay_turns(turns, self._updates):
                await self._peer.caught_up()
                self.update(update)

    def update(self, update: Json) -> None:
        """Send the client an update of the session."""
        self._peer.notify("session/update", {"sessionId": self.thread.id, "update": update})

    def show_message(self, text: str) -> None:
        """Show the user a message of the program itself."""
        self.update(self._updates.chunks.whole(MESSAGE, text))

    def send_title(self, title: str) -> None:
        """Send the client the name of the session, which its first message does not replace."""
        self._has_title = True
        self.update({"sessionUpdate": "session_info_update", "title": title})

    def hear(self, event: events.Event) -> None:
        """Handle an event of the session."""
        if isinstance(event, events.CommandOutput | events.McpCallProgress) and self._peer.is_behind:
            # Only shows progress; the whole output follows.
            return
        for update in self._updates.translate(event):
            self.update(update)
        match event:
            case events.QuestionRaised(question):
                self._questions.begin(question)
            case events.QuestionClosed(question_id):
                self._questions.withdraw(question_id)
            case events.SettingsChanged():
                self._send_settings()
            case events.Warned(message):
                complain(f"warning: {message}")
            case events.TurnStarted(_, messages):
                self._plan = None
                self._coming_title = first_words(" ".join(messages), _MAX_TITLE_LENGTH)
            case events.ItemRecorded(item) if self._coming_title and _is_users(item):
                title, self._coming_title = self._coming_title, ""
                if not self._has_title:
                    self.send_title(title)
            case events.PlanProposed(_, plan):
                self._plan = plan
            case events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                self._coming_title = ""
                if self._ended is not None and not self._ended.done():
                    self._ended.set_result(event)
            case _:
                pass

    async def prompt(self, prompt: AcpPrompt) -> Json:
        """Run a prompt after all earlier ones; gives back the answer to the request.

        Raises `RpcError` for a turn that failed, and `UserError` for an input that cannot be read.
        """
        cancels = self._cancels
        async with self._turns:
            self._cancels_before = cancels
            if self._is_cancelled:
                return _stopped("cancelled")
            if (run_command := find_command(prompt, self.thread.session)) is not None:
                stopped = await run_command(self)
                self._send_commands()
                return stopped or _stopped("end_turn")
            return await self.turn(lambda: self.thread.start_turn(prompt.inputs))

    async def turn(self, start: Callable[[], Awaitable[object]]) -> Json:
        """Start a turn and wait for its end, and for the end of the turn that carries out its plan."""
        ended = await self._until_ended(start)
        while isinstance(ended, events.TurnCompleted) and (plan := self._plan) and not self._is_cancelled:
            self._plan = None
            if not await self._accepts(plan):
                break
            ended = await self._until_ended(self.thread.accept_plan)
        self._send_commands()
        return _stopped("cancelled") if self._is_cancelled else self._stop(ended)

    def cancel(self) -> None:
        """Stop the running prompt, and drop those that wait."""
        self._cancels += 1
        if self._question is not None:
            self._question.cancel()
        self.thread.interrupt()

    async def set_mode(self, mode: str) -> None:
        """Change the mode from the next turn on. Raises `UserError`."""
        op = self._modes.change_to(mode)
        self._sent_mode = mode
        await self.thread.session.submit(op)

    async def set_option(self, option: str, value: object) -> list[Json]:
        """Set an option from the next turn on; gives back all options. Raises `UserError`."""
        op = self._options.change(option, value, self.thread.session.settings)
        await self.thread.session.submit(op)
        self._sent_options = self._options.shown(self.thread.session.settings)
        return self._sent_options

    async def _until_ended(self, start: Callable[[], Awaitable[object]]) -> _Ended | None:
        """Start a turn and wait for its last event; None when no turn started."""
        ended = self._ended = asyncio.get_running_loop().create_future()
        try:
            if not await start():
                return None
            if self._is_cancelled:
                # Cancelled before the turn had started.
                self.thread.interrupt()
            await self.thread.idle()
            if not ended.done():
                raise RpcError("the turn ended by a bug in codex-py", code=INTERNAL_ERROR)
            return ended.result()
        finally:
            self._ended = None

    async def _accepts(self, plan: str) -> bool:
        self._question = asyncio.create_task(self._questions.plan_is_accepted(plan))
        try:
            # Not `await`: this way a cancelled question differs from the end of this program.
            await asyncio.wait([self._question])
            return not self._question.cancelled() and self._question.result()
        finally:
            self._question.cancel()
            self._question = None

    def _stop(self, ended: _Ended | None) -> Json:
        match ended:
            case events.TurnInterrupted():
                return _stopped("cancelled")
            case events.TurnFailed(_, message, code) if code in _STOPS:
                self.show_message(message)
                return _stopped(_STOPS[code])
            case events.TurnFailed(_, message):
                raise RpcError(message, code=INTERNAL_ERROR)
            case events.TurnCompleted(_, _, _, usage):
                return {**_stopped("end_turn"), "usage": _usage_payload(usage)}
            case None:
                return _stopped("end_turn")

    def _send_settings(self) -> None:
        settings = self.thread.session.settings
        if (mode := self._modes.current(settings)) != self._sent_mode:
            self._sent_mode = mode
            self.update({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        if (options := self._options.shown(settings)) != self._sent_options:
            self._sent_options = options
            self.update({"sessionUpdate": "config_option_update", "configOptions": options})

    def _send_commands(self) -> None:
        commands = available_commands(self.thread.session)
        if commands != self._sent_commands:
            self._sent_commands = commands
            self.update({"sessionUpdate": "available_commands_update", "availableCommands": commands})


def _is_users(item: ResponseItem) -> bool:
    """Whether it is the user's message; a recorded one has passed the hooks."""
    view = item.view()
    return isinstance(view, Message) and view.role == "user" and not is_host_text(view.text)


def _stopped(reason: str) -> Json:
    return {"stopReason": reason}


def _usage_payload(usage: TokenUsage) -> dict[str, Any]:
    return {
        "totalTokens": usage.total_tokens,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "thoughtTokens": usage.reasoning_output_tokens,
        "cachedReadTokens": usage.cached_input_tokens,
    }
