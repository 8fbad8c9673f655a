"""Skills for a session to find, and short talks in which they are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.ops import TextInput, UserInput, UserTurn
from tests.support.fake_responses import FakeResponses, Request, say
from tests.support.home import Place
from tests.support.session import watched_session

NO_BUNDLED: Final = "[skills.bundled]\nenabled = false\n"

# A message, or what happens between two of them.
Move: TypeAlias = "str | Sequence[UserInput] | Callable[[], object]"


class Talk(NamedTuple):
    """One request a message; what the user was warned of, and which skills were noted as used."""

    requests: list[Request]
    warnings: list[str]
    uses: list[events.SkillUsed]

    @property
    def last(self) -> Request:
        """The last request, which has all that was told before it."""
        return self.requests[-1]


async def talk(place: Place, *moves: Move, top: str = "", bundled: str = NO_BUNDLED, **session: Any) -> Talk:
    """A session in which the model answers each message with `answer 1`, `answer 2` and so on."""
    messages = [move for move in moves if not callable(move)]
    with FakeResponses(*([say(f"answer {number}")] for number in range(1, len(messages) + 1))) as model:
        async with watched_session(place, model, f"{top}{bundled}", **session) as watched:
            for move in moves:
                if callable(move):
                    move()
                else:
                    value = (TextInput(move),) if isinstance(move, str) else tuple(move)
                    await watched.session.submit(UserTurn(value))
    warnings = watched.warnings
    return Talk(model.requests, warnings, watched.of(events.SkillUsed))


def skill_text(name: str, description: str = "does things", *, more: str = "", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}\n"


def add_skill(root: Path, name: str, text: str | bytes | None = None) -> Path:
    """A skill in a directory of its name below a root; gives back its file."""
    path = root / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = skill_text(name) if text is None else text
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def add_metadata(skill: Path, text: str) -> None:
    """The `agents/openai.yaml` of a skill."""
    path = skill.parent / "agents/openai.yaml"
    path.parent.mkdir()
    path.write_text(text)


def repo_root(place: Place) -> Path:
    """Where a repository keeps its skills."""
    return place.repo / ".agents/skills"


def own_root(place: Place) -> Path:
    """Where a user keeps theirs."""
    return place.home / ".agents/skills"


def root_of_known_length(place: Place) -> Path:
    """A root for `[skills] roots`, of 240 characters: what is left for the list depends on the length of its roots."""
    return place.home / "x".ljust(240 - len(f"{place.home}/"), "x")


def line(path: Path, description: str = "does things") -> str:
    """The line of a skill in the list that the model gets."""
    return f"- {path.parent.name}: {description} (file: {path})"
