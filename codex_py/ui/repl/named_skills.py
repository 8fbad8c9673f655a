"""The skills that a message names: in words, shown below the input while it is typed, and by mentions.

A message with a mention that selects no skill is held back until the user has said what it means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples

from codex_py.core.mentions import invocable
from codex_py.core.session import Session
from codex_py.protocol.ops import SkillInput
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.natural import MAX_CHARS, NaturalName, find_named, may_name
from codex_py.skills.roots import link_base
from codex_py.skills.select import RefusedMention, refused_mentions
from codex_py.text.display import cell_width, cut_to_cells
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.input import Composer
from codex_py.ui.repl.panels.forms import FormAsker, Option, Sheet, TextLine

# Looking at thousands of names takes longer than a key may.
_PAUSE_SECONDS: Final = 0.08


class _Named(NamedTuple):
    """A name in words, and the skills it fits; with more than one none is taken."""

    name: NaturalName
    skills: tuple[Skill, ...]


class NamedSkills:
    """Finds the names shortly after each change of the input. `mode` is the setting `skills.natural_names`."""

    def __init__(
        self,
        composer: Composer,
        catalog: Callable[[], SkillCatalog],
        mode: Literal["off", "suggest", "on"],
    ) -> None:
        self._composer = composer
        self._catalog = catalog
        self._mode = mode
        self._looked_at = ""
        self._found: tuple[_Named, ...] = ()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_shown(self) -> bool:
        """Whether there is something to show; the names in a text that has just changed are found a moment later."""
        text = self._text()
        if text != self._looked_at and self._timer is None:
            if may_name(text):
                self._timer = asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._look_after_pause)
            else:
                self._looked_at, self._found = text, ()
        return bool(self._found) and text == self._looked_at

    @property
    def can_mention(self) -> bool:
        """Whether `mention` would change the input."""
        self._look()
        return any(len(found.skills) == 1 for found in self._found)

    def mention(self) -> None:
        """Turn the first name that fits one skill into a mention of it."""
        self._look()
        clear = next((found for found in self._found if len(found.skills) == 1), None)
        if clear is not None:
            skill = clear.skills[0]
            self._composer.insert_skill(skill.name, skill.path, instead_of=clear.name.written)

    def fragments(self, width: int) -> StyleAndTextTuples:
        """The row: each skill, and the key that mentions the first."""
        pieces: list[tuple[str, str]] = []
        hint = "" if self._mode == "on" else "Tab names it"
        for found in self._found:
            names = " or ".join(f"${sanitize_line(skill.name)}" for skill in found.skills)
            note = "which one?" if len(found.skills) > 1 else hint
            pieces += [("class:skill", f"◆ {names}"), ("class:menu.note", f" · {note}  " if note else "  ")]
            hint = ""
        row: StyleAndTextTuples = [("", "  ")]
        left = width - 2
        for style, text in pieces:
            shown = cut_to_cells(text, max(0, left))
            row.append((style, shown))
            left -= cell_width(shown)
        return row

    def _text(self) -> str:
        """The typed message; empty for a command, a note and a line for the shell."""
        text = self._composer.text
        return "" if self._mode == "off" or text.startswith(("!", "/", "#")) else text[:MAX_CHARS]

    def _look_after_pause(self) -> None:
        self._timer = None
        self._look()
        get_app().invalidate()

    def _look(self) -> None:
        text = self._text()
        if text == self._looked_at:
            return
        catalog = self._catalog()
        offered = catalog.enabled() if self._mode == "on" else catalog.listed()
        can_be_named = {skill.path for skill in invocable(catalog)}
        skills = [skill for skill in offered if skill.path in can_be_named and f"${skill.name}" not in text]
        found = find_named(text, {skill.name for skill in skills})
        fits = (_Named(name, tuple(skill for skill in skills if skill.name in name.names)) for name in found)
        self._looked_at, self._found = text, tuple(fits)


ShowPath: TypeAlias = Callable[[Path], str]

_MAX_CHOICES: Final = 8
_AS_IT_IS: Final = -1


def mentions_refused(session: Session, message: Composed) -> tuple[RefusedMention, ...]:
    """The mentions of a message that select no skill. Text pasted as a chip does not count."""
    if "$" not in message.typed:
        return ()
    return refused_mentions(
        session.skills.catalog,
        message.typed,
        user_home=session.skills.settings.roots.user_home,
        structured=[item for item in message.inputs if isinstance(item, SkillInput)],
        connector_slugs=session.mcp.connector_slugs(),
        base=link_base(session.skills.settings.roots),
    )


async def settle_mentions(
    asker: FormAsker, message: Composed, refused: tuple[RefusedMention, ...], show: ShowPath
) -> Composed | None:
    """The message with every mention as the user means it; None to go back to the message."""
    for mention in refused:
        choice = await asker.choose(mention_sheet(mention, show))
        if choice is None:
            return None
        if choice != _AS_IT_IS:
            skill = mention.choices[choice]
            message = message.naming(mention.written, skill.name, skill.path)
    return message


def mention_sheet(mention: RefusedMention, show: ShowPath) -> Sheet[int | None]:
    """The skills by their index, -1 to send the message as it is; None goes back to it."""
    options: list[Option[int | None]] = [
        Option("", skill.name, index, f"{skill.scope} · {show(skill.path.parent)}")
        for index, skill in enumerate(mention.choices[:_MAX_CHOICES])
    ]
    return Sheet(
        title=f"Which skill is ${mention.written}?" if options else f"${mention.written} selects no skill",
        subject=(TextLine(_reason(mention), "warn"),),
        options=(
            *options,
            Option("s", "Send it without a skill", _AS_IT_IS),
            Option("b", "Back to the message", None),
        ),
        refusal=None,
        escape="back to the message",
        default=0 if options else 1,
    )


def _reason(mention: RefusedMention) -> str:
    """Why nothing is selected, without the choices, which are the answers."""
    if not mention.choices:
        return mention.reason
    if all(skill.name == mention.written for skill in mention.choices):
        return f"{len(mention.choices)} skills have this name."
    return "No skill has this name."
