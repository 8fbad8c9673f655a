"""`/copy`, `/raw`, `/side`: what to do with answers, and an answer beside the conversation."""

from __future__ import annotations

import re
from typing import Final

from codex_py.errors import UserError
from codex_py.protocol.items import Message
from codex_py.render.event import render_answer_aside
from codex_py.text.display import counted
from codex_py.ui.repl.clipboard import copy_text
from codex_py.ui.repl.editor import draft_file
from codex_py.ui.repl.panels.forms import ListEntry, ListForm, waited_for
from codex_py.ui.repl.slash_command import CommandContext, SlashCommand

_MAX_ANSWERS: Final = 200
_TITLE_LENGTH: Final = 80
_FENCED: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


async def _copy(context: CommandContext, words: str) -> None:
    """The last answer, the one before it (`2`), or a block of code of the last answer that has one."""
    answers = answers_of(context)
    if not answers:
        context.output.note("there is no answer to copy yet")
        return
    if words == "code":
        text, what = await _choose_code(context, answers), "code"
        if text is None:
            return
    else:
        number = _number(words, len(answers))
        text, what = answers[number - 1], "the last answer" if number == 1 else f"answer {number} from the end"
    how = await copy_text(text, context.launch.env, context.programs(), context.front.emit)
    context.output.note(f"copied {what}, {len(text):,} characters, {how}")


async def _raw(context: CommandContext, words: str) -> None:
    """Show an answer as it was written, without added margins and line breaks, so that it can be selected."""
    answers = answers_of(context)
    if not answers:
        context.output.note("there is no answer yet")
        return
    number = _number(words, len(answers))
    pager = context.programs().find("less")
    if pager is None:
        raise UserError("there is no `less` to show it in", hint="`/copy` copies it")
    with draft_file(context.launch.home, answers[number - 1] + "\n", ".md") as path:
        await context.front.run_program([pager, str(path)])


async def _side(context: CommandContext, words: str) -> None:
    if not words:
        raise UserError("`/side` needs a question", hint="`/side what does this error mean?`")
    about = f"{words[:_TITLE_LENGTH]}  (Esc goes back)"
    answer = await waited_for(context.asker, "Side question", context.session.side.ask(words), about=about)
    if answer is not None:
        context.output.show(render_answer_aside(words, answer))


def answers_of(context: CommandContext) -> list[str]:
    """The messages of the model, the latest first."""
    found: list[str] = []
    for item in reversed(context.session.history.items):
        view = item.view() if item.type == "message" else None
        if isinstance(view, Message) and view.role == "assistant" and (text := view.text.strip()):
            found.append(text)
        if len(found) == _MAX_ANSWERS:
            break
    return found


def code_blocks(text: str) -> list[str]:
    """The fenced blocks of code in an answer."""
    return [body.rstrip("\n") for _, body in _FENCED.findall(text) if body.strip()]


async def _choose_code(context: CommandContext, answers: list[str]) -> str | None:
    blocks = next((found for answer in answers if (found := code_blocks(answer))), None)
    if blocks is None:
        raise UserError("no answer has a block of code")
    if len(blocks) == 1:
        return blocks[0]
    entries = tuple(
        ListEntry(block, block.strip().splitlines()[0][:_TITLE_LENGTH], counted(len(block.splitlines()), "line"))
        for block in blocks
    )
    return await context.asker.pick(ListForm("Copy which block?", entries, enter="copy"))


def _number(words: str, count: int) -> int:
    """Which answer from the end. Raises `UserError`."""
    if words and not (words.isascii() and words.isdecimal() and 0 < int(words) <= count):
        raise UserError(f"`{words[:40]}` is not the number of an answer: there are {count}", hint="1 is the last one")
    return int(words or 1)


ANSWERS: Final = (
    SlashCommand("copy", "copy the last answer, an earlier one, or its code", _copy, "[N|code]"),
    SlashCommand("raw", "show the last answer as it was written, to select from", _raw, "[N]"),
    SlashCommand("side", "ask something beside the conversation", _side, "QUESTION", needs_words=True, also="btw"),
)
