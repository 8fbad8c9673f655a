"""Hooks that are told of something beside the turn, and a turn that waits for hooks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from codex_py.config.load import ConfigRequest, load_config
from codex_py.core.listeners import Listeners
from codex_py.core.ports import HookSession
from codex_py.core.secrets import Secrets, SecretStore
from codex_py.core.session_request import SessionRequest
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import CurrentSettings, ModelSettings, PendingInput, TurnSettings
from codex_py.hooks.dispatcher import SLOW_SECONDS, HookContext, HookDispatcher, HookSignals
from codex_py.hooks.engine import HookEngine
from codex_py.hooks.sources import find_hooks
from codex_py.protocol import events
from codex_py.protocol.policy import ReadOnly
from codex_py.protocol.questions import ChoiceQuestion
from codex_py.rollout.recorder import NullRecorder
from codex_py.text.redact import Redactor
from tests.support.home import Place
from tests.support.hooks import entry, hook_inputs, noting, use_hooks

DONE = events.TurnFailed("t1", "enough")


def signals(place: Place, idle_seconds: float) -> tuple[HookSignals, HookDispatcher]:
    dispatcher = dispatcher_for(place, lambda _: None)
    return HookSignals(dispatcher, idle_seconds=idle_seconds), dispatcher


def dispatcher_for(place: Place, warn: Callable[[str], None], slow_seconds: float = SLOW_SECONDS) -> HookDispatcher:
    loaded = load_config(ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env))
    found = find_hooks(loaded, home=place.codex_home, cwd=place.repo)
    request = SessionRequest(loaded, place.codex_home, place.repo, place.env, "test", "never")
    context = HookContext(request, place.env, "thread")
    dispatcher = HookDispatcher(HookEngine(found), context, slow_seconds=slow_seconds)
    secrets = Secrets(SecretStore(Redactor()))
    listeners = Listeners(secrets, str)
    listeners.add(lambda event: warn(event.message) if isinstance(event, events.Warned) else None)
    current = CurrentSettings(settings(place.repo), lambda _, now: (now, None), lambda _: None)
    transcript = Transcript(NullRecorder(), secrets.redact_bytes)
    dispatcher.session = HookSession(current, PendingInput(), listeners, secrets, transcript)
    return dispatcher


def settings(cwd: Path) -> TurnSettings:
    model = ModelSettings("m", "", None, None, None, None, True, None, 1000)
    return TurnSettings(cwd, model, ReadOnly(), "on-request")


async def after_timers() -> None:
    """Return when every timer that is due by now has rung: they do so in their order."""
    rung = asyncio.Event()
    asyncio.get_running_loop().call_later(0.0, rung.set)
    await rung.wait()


async def test_hooks_that_are_waited_for_long_are_named(place: Place) -> None:
    os.mkfifo(place.repo / "go")
    use_hooks(place, Stop=[entry(f"cat go; : {number}") for number in range(4)])
    told_slow: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    dispatcher = dispatcher_for(place, told_slow.set_result, slow_seconds=0.0)
    running = asyncio.create_task(dispatcher.fire("Stop", {}))
    assert await told_slow == (
        "still waiting for Stop hooks, for 600 s at most: `cat go; : 0`, `cat go; : 1`, `cat go; : 2`, …"
    )
    running.cancel()
    await asyncio.wait([running])


async def test_what_still_goes_on_when_the_user_wants_to_go_is_stopped_and_reported(place: Place) -> None:
    os.mkfifo(place.repo / "begun")
    use_hooks(place, Stop=[entry("echo on > begun; sleep 300", None, **{"async": True})])
    told_of: list[str] = []
    dispatcher = dispatcher_for(place, told_of.append)
    await dispatcher.fire("Stop", {})
    await asyncio.to_thread((place.repo / "begun").read_text)
    waiting = asyncio.create_task(dispatcher.close(None))
    await after_timers()
    dispatcher.stop_waiting()
    await waiting
    assert told_of == ["hooks that nobody waited for had not ended with the session and were stopped"]


async def test_a_user_who_says_nothing_is_waited_for(place: Place) -> None:
    use_hooks(place, Notification=[entry(noting(place), "idle_prompt")])
    hears, dispatcher = signals(place, 0.0)
    hears.note_event(DONE)
    await after_timers()
    await dispatcher.finish()
    [one] = hook_inputs(place)
    assert (one["notification_type"], one["message"]) == ("idle_prompt", "codex-py waits for your input")
    assert (one["transcript_path"], one["permission_mode"]) == (None, "default")


async def test_a_user_who_goes_on_is_not(place: Place) -> None:
    use_hooks(place, Notification=[entry(noting(place))])
    hears, dispatcher = signals(place, 0.0)
    hears.note_event(DONE)
    hears.note_event(events.TurnStarted("t2"))
    await after_timers()
    await dispatcher.finish()
    assert hook_inputs(place) == []


async def test_a_question_of_the_model_is_no_permission(place: Place) -> None:
    use_hooks(place, Notification=[entry(noting(place), "elicitation_dialog")])
    hears, dispatcher = signals(place, 600.0)
    hears.note_event(events.QuestionRaised(ChoiceQuestion("q", "head", "which?", ())))
    await dispatcher.finish()
    assert [one["message"] for one in hook_inputs(place)] == ["codex-py has a question"]


async def test_what_is_still_under_way_in_the_end_is_stopped(place: Place) -> None:
    use_hooks(place, Notification=[entry("sleep 300")])
    hears, dispatcher = signals(place, 600.0)
    hears.note_event(events.QuestionRaised(ChoiceQuestion("q", "head", "which?", ())))
    waiting = asyncio.create_task(dispatcher.close(None))
    await after_timers()
    dispatcher.stop_waiting()
    await waiting
