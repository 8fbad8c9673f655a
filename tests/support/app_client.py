"""A client of the app-server for tests: a real process of `codex-py app-server`, and all it says."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

import pytest

from codex_py.protocol.encoding import as_list, as_object
from tests.support.fake_responses import call
from tests.support.home import Place
from tests.support.process import start
from tests.support.rpc_client import Decide, Json, Refused, RpcClient

__all__ = ["AppClient", "Decide", "Json", "Refused", "app_server"]

CLIENT: Final = "test_client"


class AppClient(RpcClient):
    """A client of the app-server."""

    def introduce(self, name: str = CLIENT, **capabilities: Any) -> Json:
        """`initialize`, and that it was understood."""
        about = {"name": name, "title": "Test", "version": "1.0"}
        result = self.ask("initialize", clientInfo=about, capabilities={"experimentalApi": True, **capabilities})
        self.send({"method": "initialized"})
        return result

    def open(self, place: Place, **params: Any) -> str:
        """A new thread in the place's repository; its id."""
        given = {"cwd": str(place.repo), "sandbox": "danger-full-access", "approvalPolicy": "never", **params}
        return self.ask("thread/start", **given)["thread"]["id"]

    def begin_turn(self, thread: str, text: str, **params: Any) -> str:
        """The id of a new turn."""
        said = [{"type": "text", "text": text}]
        return self.ask("turn/start", threadId=thread, input=said, **params)["turn"]["id"]

    def turn(self, thread: str, text: str, **params: Any) -> Json:
        """A whole turn, as its end tells it."""
        return self.ended(self.begin_turn(thread, text, **params))

    def ended(self, turn: str) -> Json:
        """Wait for the end of a turn."""
        return self.next("turn/completed", lambda params: params["turn"]["id"] == turn)["turn"]

    def next(self, method: str, fits: Callable[[Json], bool] = lambda _: True) -> Json:
        """The first notification of this kind that fits, waited for."""
        self.wait(lambda: any(map(fits, self.notified(method))))
        return next(filter(fits, self.notified(method)))

    def next_request(self, method: str, count: int = 1) -> Json:
        """The request of the server of this kind, the last of so many, waited for."""

        def found() -> list[Json]:
            return [one for one in self.requests if one["method"] == method]

        self.wait(lambda: len(found()) >= count)
        return found()[count - 1]

    def notified(self, method: str) -> list[Json]:
        """The parameters of all notifications of this kind so far."""
        self.take()
        return [one["params"] for one in self.notifications if one["method"] == method]

    def items(self, kind: str) -> list[Json]:
        """The items of this type that have ended so far."""
        return [one["item"] for one in self.notified("item/completed") if one["item"]["type"] == kind]

    def warnings(self) -> list[str]:
        return [one["message"] for one in self.notified("warning")]


@contextmanager
def app_server(
    place: Place, *arguments: str, decide: Decide | None = None, name: str | None = CLIENT, **capabilities: Any
) -> Generator[AppClient]:
    """A running server with a client that has introduced itself, unless it has no name."""
    with start(place, "app-server", *arguments, stdin="open") as running:
        client = AppClient(running, decide)
        if name is not None:
            client.introduce(name, **capabilities)
        yield client


def deciding(**decisions: Json) -> Decide:
    """Answers by the last word of the method: `deciding(requestApproval={"decision": "accept"})`."""

    def decide(request: Json) -> Json | None:
        return decisions.get(str(request["method"]).rpartition("/")[2])

    return decide


def shape_of(value: object, name: str = "") -> set[str]:
    """The paths of all fields in a message, lists as `[]`."""
    if isinstance(value, dict):
        return {
            path for key, inner in as_object(cast("object", value)).items() for path in shape_of(inner, f"{name}.{key}")
        } or {name}
    if isinstance(value, list):
        return {path for inner in as_list(cast("object", value)) for path in shape_of(inner, f"{name}[]")} or {name}
    return {name}


def refusal(client: AppClient, method: str, **params: Any) -> tuple[int, str]:
    """The code and the message a request is refused with."""
    with pytest.raises(Refused) as refused:
        client.ask(method, **params)
    return refused.value.code, str(refused.value)


def command(call_id: str, cmd: str, **arguments: Any) -> Json:
    """A call that runs a command."""
    return call(call_id, "exec_command", {"cmd": cmd, "login": False, **arguments})
