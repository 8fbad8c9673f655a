"""Whole request bodies, spelt out: what a test varies, put among what stays the same.

    assert model.requests[0].body == whole_body(place, model.requests[0], user("hi"), skills=skill_list(...))

What is the same in every request and long is kept in `tests/golden`, as it was sent when it was last looked through.
After a change of the base instructions, the tools, or the texts around the skills that was meant:
`python -m tests.support.bodies` writes these files again; the difference is to be read before it is kept.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

import codex_py
from tests.support.fake_responses import FakeResponses, Request, say
from tests.support.home import MODEL, Place, make_place
from tests.support.script import Json
from tests.support.session import watched_session

GOLDEN: Final = Path(__file__).parents[1] / "golden"

PERMISSIONS: Final = (
    "<permissions instructions>\n`sandbox_mode` is `danger-full-access`: there is no sandbox; commands act with all "
    "rights of the user, so weigh each before running it.\nNetwork access is enabled.\nThe approval policy is `never`: "
    "nobody can be asked during this session. Leave out `sandbox_permissions`; a request for more rights is turned "
    "down. When the sandbox stops a command, reach the goal inside it or report what was stopped and what the user can "
    "do about it.\n</permissions instructions>"
)
_ENVIRONMENT: Final = (
    "<environment_context>\n  <cwd>{cwd}</cwd>\n  <shell>bash</shell>\n  <current_date>{date}</current_date>\n"
    "  <timezone>UTC</timezone>\n  <filesystem><workspace_roots><root>{cwd}</root></workspace_roots>"
    '<permission_profile type="disabled"><file_system type="unrestricted" /></permission_profile></filesystem>\n'
    "</environment_context>"
)
_INTRO: Final = (
    "A skill is a directory whose `SKILL.md` teaches one kind of work: instructions, often with scripts, references "
    "and templates next to it. Each line below gives a skill's name, what it is for, and its file."
)
_ALIAS_INTRO: Final = f"{_INTRO} A file begins with the alias of a skill root: put that directory in its place."


def whole_body(
    place: Place,
    request: Request,
    *items: Json,
    skills: str = "",
    cwd: Path | None = None,
    can_ask: bool = False,
    more_tools: Sequence[Json] = (),
) -> Json:
    """The body of a request of a session with full access and without approvals.

    `items` are what follows the first context, `skills` is the list of skills in that. `can_ask` says that somebody
    answers questions. The ids, which are new in every session, are those of the request's headers.
    """
    result = json.loads(request.headers["x-codex-turn-metadata"])
    thread, turn = request.headers["thread-id"], result["turn_id"]
    installation = (place.codex_home / "installation_id").read_text().strip()
    window = f"{thread}:0"
    metadata = {
        "installation_id": installation,
        "session_id": thread,
        "thread_id": thread,
        "agent_name": "/root",
        "turn_id": turn,
        "window_id": window,
        "window_number": 0,
        "request_kind": "turn",
        "root_turn_id": turn,
        "thread_source": "user",
        "model": MODEL,
        "reasoning_effort": "medium",
    }
    return {
        "model": MODEL,
        "instructions": _instructions(),
        "stream": True,
        "input": [
            developer(*filter(None, [skills, PERMISSIONS])),
            environment(request, cwd or place.repo),
            *items,
        ],
        "tools": [*_tools(can_ask=can_ask), *more_tools],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": thread,
        "client_metadata": {
            "root_turn_id": turn,
            "session_id": thread,
            "thread_id": thread,
            "turn_id": turn,
            "x-codex-installation-id": installation,
            "x-codex-turn-metadata": json.dumps(metadata, separators=(",", ":")),
            "x-codex-window-id": window,
        },
    }


SEARCH: Final = json.loads((Path(codex_py.__file__).parent / "tools/skill_search.json").read_text())


def references(skill: Path, *lines: str) -> Json:
    """The table of contents that follows a skill with references."""
    head = f"References of the skill `{skill.parent.name}` in `{skill.parent}`; read what you need:"
    return user("\n".join(["<skill_references>", head, *lines, "</skill_references>"]))


def user(*texts: str) -> Json:
    return _message("user", texts)


def developer(*texts: str) -> Json:
    return _message("developer", texts)


def environment(request: Request, cwd: Path, *, moved: bool = False) -> Json:
    """The message that says where the session works, at first or after it has moved there."""
    text = _ENVIRONMENT.format(cwd=cwd, date=_date_of(request))
    return user(text.replace("  <shell>bash</shell>\n", "") if moved else text)


def said(text: str) -> Json:
    """The model's message that the script said with `say(text)`, as it goes back."""
    return say(text)["item"]


def skill_list(*lines: str, roots: tuple[Path, ...] = ()) -> str:
    """The block that lists skills; with `roots` the lines begin with their aliases, `r0` for the first."""
    table = [f"- `r{number}` = `{root}`" for number, root in enumerate(roots)]
    return "\n".join(
        [
            "<skills_instructions>",
            "## Skills",
            _ALIAS_INTRO if roots else _INTRO,
            *(["### Skill roots", *table] if roots else []),
            "### Available skills",
            *lines,
            "### How to use skills",
            _golden("how_to_use_skills.md").rstrip("\n"),
            "</skills_instructions>",
        ]
    )


def injected(path: Path, name: str = "", text: str | None = None) -> Json:
    """The message with a skill: its file as it is, or `text`; the name is the directory's unless it is given."""
    body = path.read_bytes().decode() if text is None else text
    return user(f"<skill>\n<name>{name or path.parent.name}</name>\n<path>{path}</path>\n{body}\n</skill>")


def _message(role: str, texts: tuple[str, ...]) -> Json:
    content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": content}


def _date_of(request: Request) -> str:
    """The day the request tells: today, or the one that has just ended."""
    result = request.raw.decode().partition("<current_date>")[2].partition("</current_date>")[0]
    assert 0 <= (datetime.now(UTC).date() - datetime.fromisoformat(result).date()).days <= 1
    return result


@cache
def _golden(name: str) -> str:
    return (GOLDEN / name).read_text("utf-8")


def _instructions() -> str:
    return _golden("instructions.md").rstrip("\n")


def _tools(*, can_ask: bool) -> list[Json]:
    tools: list[Json] = json.loads(_golden("tools.json"))
    return [tool for tool in tools if can_ask or tool.get("name") != "request_user_input"]


async def _record(directory: Path) -> None:
    with FakeResponses([say("done")]) as model:
        async with watched_session(make_place(directory), model, can_ask=True) as watched:
            await watched.say("hi")
    [request] = model.requests
    listed, _, rules = request.texts("developer")[0].partition("\n### How to use skills\n")
    texts = {
        "bundled_skills.md": listed.partition("\n### Available skills\n")[2],
        "how_to_use_skills.md": rules.removesuffix("\n</skills_instructions>"),
        "instructions.md": request.body["instructions"],
        "tools.json": json.dumps(request.body["tools"], indent=1, ensure_ascii=False),
    }
    for name, text in texts.items():
        (GOLDEN / name).write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(_record(Path(temporary).resolve() / "place"))
