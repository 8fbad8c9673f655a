"""A message that mentions a skill which cannot be selected is held back until the user has said what it means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.core.session import Session
from codex_py.protocol.ops import SkillInput
from codex_py.skills.model import Skill
from codex_py.skills.roots import link_base
from codex_py.skills.select import RefusedMention, refused_mentions
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.panels.forms import FormAsker, Option, Sheet, TextLine

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
        Option("", skill.name, index, _describe(skill, show))
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


def _describe(skill: Skill, show: ShowPath) -> str:
    return f"{skill.scope} · {show(skill.path.parent)}"
