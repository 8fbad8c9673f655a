"""Everything else: a plan from the words of the prompt and a look at the files, and what a real model is for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator
from typing import Final

from codex_py.offline.about import CONNECT
from codex_py.offline.conversation import Conversation
from codex_py.offline.intent import Plan
from codex_py.offline.listing import find_place, list_files
from codex_py.offline.pattern import Pattern
from codex_py.offline.quotes import sketch
from codex_py.offline.result import Result
from codex_py.offline.script import Outline, Request, Script, ask, look_at_all
from codex_py.offline.text import clip, count, ticked

_MOST_FILES: Final = 6
_I: Final = re.IGNORECASE
# The first kind of work whose words a prompt has.
_KINDS: Final = (
    (
        Pattern(r"^\W*(?:(?:please|can you|could you) )*(?:explain|why|what|how|describe|compare|understand)\b", _I),
        (
            "Read {where}",
            "Follow the calls from the entry point to there",
            "Write down what happens, with file and line",
        ),
    ),
    (
        Pattern(r"\b(?:fix|bugs?|crash\w*|broken|debug|fails?|failing|repair|regression)\b", _I),
        (
            "Reproduce the problem with the smallest command or test that shows it",
            "Find the cause in {where}",
            "Change the code at the cause, and nothing else",
            "Add a test that failed before",
        ),
    ),
    (
        Pattern(r"\b(?:tests?|coverage)\b", _I),
        (
            "Read how the tests here are written",
            "List the behaviours of {where} that no test checks",
            "Write one test for each",
        ),
    ),
    (
        Pattern(r"\b(?:document\w*|docs?|readme|comments?|docstrings?|changelog)\b", _I),
        (
            "Read what is documented already",
            "Read {where} for what is missing or no longer true",
            "Write it in the same voice, and try every command shown",
        ),
    ),
    (
        Pattern(r"\b(?:fast\w*|slow\w*|optimi[sz]\w*|performance|speed|memory|profil\w*)\b", _I),
        (
            "Measure before changing anything",
            "Find where the time or memory goes in {where}",
            "Change the costliest place and measure again",
        ),
    ),
    (
        Pattern(r"\b(?:refactor\w*|clean ?up|simplif\w*|restructur\w*|extract|split|rename|move|tidy)\b", _I),
        (
            "Make sure tests cover what must stay as it is",
            "Read {where} and note who uses it",
            "Change it in small steps, running the tests after each",
        ),
    ),
    (
        Pattern(r"\b(?:upgrade|update|bump|migrat\w*|port|convert|dependenc\w+)\b", _I),
        (
            "Read the notes of what changes",
            "Find every use in {where}",
            "Change them together, and run everything that checks the project",
        ),
    ),
    (
        Pattern(r"\b(?:review|audit|security|vulnerab\w*|critique)\b", _I),
        (
            "Read {where} whole, and what was changed there last",
            "Note each problem with file, line and consequence",
            "Rank the notes by what they would cost",
        ),
    ),
    (
        Pattern(r"\b(?:add|implement|create|build|write|make|support|introduce|develop|generate|new)\b", _I),
        (
            "Read {where} for how such things are done here",
            "Decide the smallest change that gives what is asked",
            "Write it in the style around it",
            "Add tests for it, bad input included",
        ),
    ),
)
_ANY: Final = (
    "Find out what exactly is asked, and what would show that it is done",
    "Read {where}",
    "Make the change in small steps",
)
_LAST: Final = "Run the project's tests and checks, and look at the whole difference"
_STOP_LIST: Final = """
about add adds after all also and any are because been before but can code could create does each file files fix
for from function get give have here how implement into its just like make makes more must need needs new not
now one only our please project refactor repo repository should show so some such support test tests than that
the their them then there these they this those to update use used uses using want was way what when where which
while who why will with without work write would you your
"""
_STOP_WORDS: Final = frozenset(_STOP_LIST.split())
_NOT_ENGLISH: Final = "My rules read English only, so I may have missed what you asked. "


def make_plan(conversation: Conversation, wish: Plan) -> Script:
    """Look which files the prompt's words point to, lay out steps, and say what is not going to happen."""
    if "exec_command" in conversation.tools:
        relevant, total = yield from _relevant(conversation.prompt)
    else:
        relevant, total = [], None
    steps = plan_steps(conversation.prompt, relevant)
    if "update_plan" in conversation.tools:
        yield from ask(Outline(steps))
    return _answer(conversation.prompt, wish, steps, relevant, total)


def _answer(prompt: str, wish: Plan, steps: tuple[str, ...], relevant: list[str], total: int | None) -> str:
    language = "" if wish.english else _NOT_ENGLISH
    asked = f"“{clip(prompt, 100)}”" if prompt else "An empty message"
    listed = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    parts = [
        f"{language}{asked} needs judgement, and I am fixed rules without any: nothing was changed. What I "
        f"can give is a plan.",
        listed,
    ]
    if relevant:
        parts.append(f"Files your words point to: {', '.join(map(ticked, relevant))}.")
    elif total is not None:
        parts.append(
            f"None of the {count(total, 'file')} here stands out by your words."
            if total
            else "There are no files here yet."
        )
    return "\n\n".join([*parts, f"Carrying it out takes a real model, which reads, decides and writes. {CONNECT}"])


def plan_steps(prompt: str, relevant: list[str]) -> tuple[str, ...]:
    """Steps for the first kind of work the prompt names. Pure."""
    words = sketch(prompt).text[:4000]
    steps = next((steps for kind, steps in _KINDS if kind.search(words)), _ANY)
    where = ", ".join(ticked(path) for path in relevant[:3]) or "the code it touches"
    return (*(step.format(where=where) for step in steps), _LAST)


def _relevant(prompt: str) -> Generator[tuple[Request, ...], tuple[Result, ...], tuple[list[str], int]]:
    """Files whose path has the prompt's words, best first, and how many files there are."""
    place = yield from find_place()
    listing = yield from list_files(place, None)
    words = key_words(prompt)
    scores = Counter[str]()
    for path in listing.paths:
        lowered = path.lower()
        scores[path] = sum(2 if word in lowered.rpartition("/")[2] else 1 for word in words if word in lowered)
    best = [path for path, score in scores.most_common(_MOST_FILES) if score]
    if not best and words:
        best = yield from _by_content(words)
    return best, listing.total


def _by_content(words: list[str]) -> Generator[tuple[Request, ...], tuple[Result, ...], list[str]]:
    (found,) = yield from look_at_all(
        [
            f"rg -l -i --color=never --fixed-strings {' '.join(f'-e {word}' for word in words[:4])} . | sort | "
            f"head -n {_MOST_FILES}"
        ]
    )
    return [line.removeprefix("./") for line in found.lines] if found.ok and "not found" not in found.text else []


def key_words(prompt: str) -> list[str]:
    """The telling words of a prompt, lower case, plain letters only; quoted names count too."""
    drawn = sketch(prompt)
    words = re.findall(r"[a-z][a-z0-9_]{2,40}", f"{drawn.text[:4000]} {' '.join(drawn.quoted)[:1000]}".lower())
    return list(dict.fromkeys(word for word in words if word not in _STOP_WORDS))[:12]
