"""A client of a server of ours over pipes, one JSON message a line: what those of both protocols share."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from tests.support.process import Finished, Running

Json: TypeAlias = dict[str, Any]
Decide: TypeAlias = Callable[[Json], "Json | None"]


class Refused(Exception):
    """The server's error to a request."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RpcClient:
    """`decide` answers what the server asks, with the result of that request; None leaves it open.

    `notifications` and `requests` of the server are those so far, `errors` what it says of no request.
    """

    # What every message has.
    ALWAYS: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, running: Running, decide: Decide | None = None) -> None:
        self.running: Final = running
        self.decide: Decide = decide or (lambda _: None)
        self.notifications: list[Json] = []
        self.requests: list[Json] = []
        self.errors: list[Json] = []
        self._taken = 0
        self._count = 0
        self._answers: dict[int, Json] = {}
        self._unsent: list[bytes] | None = None

    @contextmanager
    def in_one_write(self) -> Generator[None]:
        """Send everything that is written inside together, at the end."""
        self._unsent = []
        yield
        raw, self._unsent = b"".join(self._unsent), None
        self.write(raw)

    def write(self, raw: bytes) -> None:
        """Whatever a client may write."""
        if self._unsent is not None:
            self._unsent.append(raw)
            return
        pipe = self.running.popen.stdin
        assert pipe is not None
        pipe.write(raw)
        pipe.flush()

    def send(self, message: Json) -> None:
        self.write(json.dumps({**self.ALWAYS, **message}).encode() + b"\n")

    def begin(self, method: str, **params: Any) -> int:
        """Send a request; its answer is what `answer` waits for."""
        self._count += 1
        self.send({"id": self._count, "method": method, "params": params})
        return self._count

    def answer(self, number: int) -> Json:
        """The result of a request. Raises `Refused` for an error."""
        self.wait(lambda: number in self._answers)
        message = self._answers.pop(number)
        if error := message.get("error"):
            raise Refused(error["code"], error["message"])
        return message["result"]

    def ask(self, method: str, **params: Any) -> Json:
        return self.answer(self.begin(method, **params))

    def reply(self, request: Json, result: Json) -> None:
        """Answer a request of the server."""
        self.send({"id": request["id"], "result": result})

    def wait(self, condition: Callable[[], bool]) -> None:
        """Take what the server says until the condition holds."""

        def holds(_: Running) -> bool:
            self.take()
            return condition()

        self.running.wait_until(holds)

    def close(self) -> Finished:
        """Close the input, and wait for the end of the process."""
        self.running.close_stdin()
        finished = self.running.wait()
        self.take()
        assert not finished.has_traceback, finished.err
        return finished

    def take(self) -> None:
        """Hear every message that has come."""
        *lines, _ = self.running.stdout_from(self._taken).split(b"\n")
        for line in lines:
            self._taken += len(line) + 1
            message: Json = json.loads(line)
            assert message, line
            self.note(message)

    def note(self, message: Json) -> None:
        """One message of the server."""
        if "method" in message and "id" in message:
            self.requests.append(message)
            if (result := self.decide(message)) is not None:
                self.reply(message, result)
        elif "method" in message:
            self.notifications.append(message)
        elif isinstance(message["id"], int):
            self._answers[message["id"]] = message
        else:
            self.errors.append(message["error"])
