"""A client of the Agent Client Protocol for tests: drives `codex-py acp`, and holds all it says against the schema."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from acp import schema
from acp.meta import CLIENT_METHODS
from pydantic import BaseModel

from tests.support.home import Place
from tests.support.process import Running, start
from tests.support.rpc_client import Decide, Json, Refused, RpcClient

__all__ = ["Client", "Decide", "Json", "Refused", "acp", "choose", "texts"]

_ANSWERS: Final[Mapping[str, type[BaseModel]]] = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/close": schema.CloseSessionResponse,
    "session/delete": schema.DeleteSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
}
_TOLD: Final[Mapping[str, type[BaseModel]]] = {
    CLIENT_METHODS["session_update"]: schema.SessionNotification,
    CLIENT_METHODS["session_request_permission"]: schema.RequestPermissionRequest,
    CLIENT_METHODS["elicitation_create"]: schema.CreateFormSessionElicitationRequest,
    "$/cancel_request": schema.CancelRequestNotification,
}


class Client(RpcClient):
    """`taken_back` are the requests of the server that it wants no answer to any more."""

    ALWAYS = MappingProxyType({"jsonrpc": "2.0"})

    def __init__(self, running: Running, decide: Decide | None = None) -> None:
        super().__init__(running, decide)
        self.taken_back: list[int] = []
        self._methods: dict[int, str] = {}

    def tell(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def begin(self, method: str, **params: Any) -> int:
        number = super().begin(method, **params)
        self._methods[number] = method
        return number

    @property
    def questions(self) -> list[Json]:
        """What the server has asked so far."""
        return [one["params"] for one in self.requests]

    def open(self, place: Place, **params: Any) -> str:
        """A new session in the place's repository; its id."""
        given: Json = {"cwd": str(place.repo), "mcpServers": [], **params}
        return self.ask("session/new", **given)["sessionId"]

    def prompt(self, session: str, text: str) -> Json:
        return self.answer(self.begin_prompt(session, text))

    def begin_prompt(self, session: str, text: str) -> int:
        return self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def updates(self, *kinds: str, session: str | None = None) -> list[Json]:
        """The updates of these kinds so far, in their order; of all sessions, or of one."""
        told = [one["params"] for one in self.notifications]
        return [
            one["update"]
            for one in told
            if one["update"]["sessionUpdate"] in kinds and session in (None, one["sessionId"])
        ]

    def said(self, kind: str = "agent_message_chunk", *, session: str | None = None) -> str:
        """The text of all chunks so far."""
        return "".join(one["content"]["text"] for one in self.updates(kind, session=session))

    def calls(self, session: str | None = None) -> list[Json]:
        """The tool calls so far, each as its last update left it."""
        calls: dict[str, Json] = {}
        for one in self.updates("tool_call", "tool_call_update", session=session):
            number = one["toolCallId"]
            assert (number in calls) == (one["sessionUpdate"] == "tool_call_update"), one
            calls[number] = calls.get(number, {}) | {key: value for key, value in one.items() if key != "sessionUpdate"}
        return list(calls.values())

    def note(self, message: Json) -> None:
        assert message.pop("jsonrpc") == "2.0"
        method = message.get("method")
        if method is None:
            self._note_answer(message)
        else:
            # Younger than the library.
            if method != CLIENT_METHODS["session_update"] or message["params"]["update"]["sessionUpdate"] != "notice":
                check(_TOLD[method], message["params"])
            if method == "$/cancel_request":
                self.taken_back.append(message["params"]["requestId"])
                return
        super().note(message)

    def _note_answer(self, message: Json) -> None:
        asked = self._methods.pop(message["id"], "")
        if "error" in message:
            check(schema.Error, message["error"])
        elif not asked.startswith("_"):
            # The protocol leaves methods with an underscore to each agent.
            check(_ANSWERS[asked], message["result"])
        if not asked:
            # Not the answer to a request of ours.
            message["id"] = None


def check(model: type[BaseModel], given: Json) -> None:
    """All of it belongs to the published schema: nothing is missing, and nothing is dropped by who reads it."""
    read = model.model_validate(given).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert read == given


def choose(option: str) -> Decide:
    """Always the same option of a request for permission."""
    return lambda _: {"outcome": {"outcome": "selected", "optionId": option}}


def texts(tool_call: Json) -> list[str]:
    """The texts in the content of a tool call."""
    return [one["content"]["text"] for one in tool_call.get("content", []) if one["type"] == "content"]


@contextmanager
def acp(place: Place, *flags: str, decide: Decide | None = None, **capabilities: Any) -> Generator[Client, None, None]:
    """A client with a server that it has greeted. It is killed at the end, unless it was closed before."""
    with start(place, "acp", *flags, stdin="open") as running:
        client = Client(running, decide)
        greeted = client.ask("initialize", protocolVersion=1, clientCapabilities=capabilities)
        assert greeted["protocolVersion"] == 1
        yield client
