"""From a conversation to the next reply: the rule for its intent, played as far as its results go."""

from __future__ import annotations

from typing import Final

from codex_py.offline.about import about, greet
from codex_py.offline.conversation import Conversation
from codex_py.offline.find import find
from codex_py.offline.intent import About, Find, Greet, Intent, Plan, Run, RunTests, Tour, choose_intent
from codex_py.offline.plan import make_plan
from codex_py.offline.play import Reply, Say, play
from codex_py.offline.replace import replace
from codex_py.offline.replacement import Replace
from codex_py.offline.run import run
from codex_py.offline.schema import fit
from codex_py.offline.script import Script
from codex_py.offline.skill import follow
from codex_py.offline.tests import run_tests
from codex_py.offline.tour import tour
from codex_py.protocol.encoding import encode_json

_LONGEST_ANSWER: Final = 24_000
# How a host asks for a summary of a conversation that has grown too long.
_HANDOFF: Final = "The conversation above is about to be replaced by a summary"
_SUMMARY: Final = (
    "The rules keep nothing of a conversation and so can sum up nothing. What counts is what the user says next and the"
    " files as they are now."
)


def answer(conversation: Conversation) -> Reply:
    """The next reply; the same conversation always gets the same one."""
    script = follow(conversation) if conversation.skills else _script(conversation)
    reply = play(script, conversation)
    if not isinstance(reply, Say):
        return reply
    text = reply.text if len(reply.text) <= _LONGEST_ANSWER else _shortened(reply.text)
    if conversation.schema is None:
        return Say(text)
    return Say(encode_json(fit(conversation.schema, text)).decode())


def _script(conversation: Conversation) -> Script:
    if conversation.prompt.startswith(_HANDOFF):
        return _told(_SUMMARY)
    wish: Intent = choose_intent(conversation.prompt) if conversation.prompt else Greet()
    match wish:
        case Tour():
            return tour(conversation, wish)
        case Find():
            return find(wish)
        case RunTests():
            return run_tests(conversation, wish)
        case Run():
            return run(wish, conversation.cwd)
        case Replace():
            return replace(wish)
        case Plan():
            return make_plan(conversation, wish)
        case About():
            return _told(about())
        case Greet():
            return _told(greet())


def _told(text: str) -> Script:
    """A script that needs no tool."""
    yield from ()
    return text


def _shortened(text: str) -> str:
    half = _LONGEST_ANSWER // 2
    return f"{text[:half]}\n…\n{text[-half:]}"
