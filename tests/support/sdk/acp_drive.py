"""The same as `acp_drive.mjs`, through the client side of the Python library."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import acp
from acp import schema

Json = dict[str, Any]


class Editor(acp.Client):
    """What an editor offers to an agent, as far as one of ours asks for it."""

    def __init__(self, job: Json) -> None:
        self.job = job
        self.agent: Any = None
        self.session = ""
        self.updates: list[Json] = []
        self.asked: list[Json] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(_shown(update))

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append({"toolCall": _shown(tool_call), "options": [_shown(one) for one in options]})
        if self.job.get("cancelAt") == "permission":
            await self.agent.cancel(session_id=self.session)
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        chosen = schema.AllowedOutcome(outcome="selected", option_id=self.job["choose"])
        return schema.RequestPermissionResponse(outcome=chosen)


def _shown(model: Any) -> Json:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def drive(job: Json) -> Json:
    # An editor implements what its agent asks for.
    editor = Editor(job)  # pyright: ignore[reportAbstractUsage]
    words = (job["command"], *job["args"])
    async with acp.spawn_agent_process(editor, *words, env=job["env"], cwd=job["cwd"]) as (agent, process):
        editor.agent = agent
        greeted = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        editor.session = (await agent.new_session(cwd=job["cwd"], mcp_servers=[])).session_id
        stops: list[str] = []
        for prompt in job["prompts"]:
            ended = await agent.prompt(session_id=editor.session, prompt=[acp.text_block(prompt)])
            stops.append(ended.stop_reason)
    seen = {"updates": editor.updates, "asked": editor.asked, "stops": stops, "status": process.returncode}
    return {"agent": _shown(greeted.agent_info), **seen}


json.dump(asyncio.run(drive(json.load(sys.stdin))), sys.stdout)
