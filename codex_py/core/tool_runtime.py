"""What tools work with: sandbox, environment, processes, approval rules; and the user's own commands."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.config.files import weak_permissions
from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.context.host_messages import user_shell_item
from codex_py.core.secrets import environment_rules, key_names
from codex_py.core.session_sandbox import allowances_without_effect, make_sandbox
from codex_py.errors import ToolError
from codex_py.paths import is_there
from codex_py.process.env import withheld_by_value
from codex_py.process.manager import ProcessManager
from codex_py.process.profiles import WithheldEnv
from codex_py.process.session import RunningCommand
from codex_py.process.shells import keep_bundled_tools, shell_argv, user_shell
from codex_py.process.spawn import CommandSpec
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.events import CommandFinished, CommandOutput, CommandStarted, Event
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.policy import SandboxPolicy
from codex_py.protocol.status import LiveProcess
from codex_py.protocol.value import Value
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from codex_py.shell.reader import CommandLineReader
from codex_py.text.files import FileHead, FileRefused, read_inside, read_trusted
from codex_py.text.redact import HeldBack, Redactor
from codex_py.text.tokens import truncate_middle
from codex_py.tools import command_runs
from codex_py.tools.approval import Approvals, RuleStore
from codex_py.tools.command_output import LiveOutput
from codex_py.tools.rules import MAX_FILE_BYTES, RuleBook, RuleError, parse_rules

_MAX_FILES: Final = 64
_MAX_TAIL: Final = 2000
_CORRECT: Final = "correct or remove it"
_OR_LEAVE_OUT: Final = f"{_CORRECT}, or start with `--ignore-rules`"


def load_approvals(loaded: LoadedConfig, *, home: Path, cwd: Path, ignore_rules: bool = False) -> Approvals:
    """The rules of the machine, the user and a trusted project, and where a lasting yes is kept.

    With `ignore_rules` only those of the machine count.

    A file that cannot be read might forbid something: it is a fault of the rules, and no command runs. A project's
    rules may ask and forbid; what it would allow is not taken: whoever writes a repository does not decide what runs
    unasked.
    """
    project = loaded.project_root or cwd
    own = home / "rules"
    store = RuleStore(
        always=own / "codex-py" / "default.rules",
        project_file=own / "codex-py" / "projects" / f"{_file_name(project)}.rules",
        project=project,
    )
    reading = _Reading()
    for file in reading.files_in(loaded.system / "rules"):
        reading.own(file)
    if ignore_rules:
        return Approvals(reading.book, store=store, warnings=tuple(reading.warnings))
    reading.remedy = _OR_LEAVE_OUT
    for file in [*reading.files_in(own), store.always, store.project_file]:
        reading.own(file)
    # The layers are those the configuration found trusted; a directory of rules without one beside it counts as well.
    directories = [cwd, *cwd.parents] if loaded.trust == "trusted" else []
    for directory in directories:
        if not directory.is_relative_to(project):
            break
        if (directory / ".codex") != home:
            for file in reading.files_in(directory / ".codex" / "rules"):
                reading.of_project(file, project)
    return Approvals(reading.book, store=store, warnings=tuple(reading.warnings))


class _Reading:
    """Rules and warnings as they come in. `remedy` is what to do about a file with a fault."""

    def __init__(self) -> None:
        self.book = RuleBook()
        self.warnings: list[str] = []
        self.remedy = _CORRECT

    def files_in(self, directory: Path) -> Sequence[Path]:
        """The rules files of a directory in their order; those that cannot be read are a fault."""
        try:
            files = sorted(path for path in directory.iterdir() if path.suffix == ".rules")
        except OSError as error:
            if is_there(directory):
                self._fail(directory, (error.strerror or str(error)).lower())
            return []
        if len(files) > _MAX_FILES:
            self._fail(directory, f"{len(files)} files of rules, of which only {_MAX_FILES} are read")
        return files[:_MAX_FILES]

    def own(self, file: Path) -> None:
        """A file of the user's or of the machine's. One that others can write allows nothing."""
        try:
            book = _parse(read_trusted(file, MAX_FILE_BYTES + 1))
        except (FileRefused, RuleError) as error:
            self._fail(file, str(error))
            return
        weak = weak_permissions(file) if is_there(file) else None
        if weak is not None:
            self.warnings.append(f"what `{file}` would allow is ignored: {weak}")
            book = book.without_allowing()
        self.book = self.book.joined(book)

    def of_project(self, file: Path, root: Path) -> None:
        """A file of a trusted project: only what is stricter counts."""
        try:
            book = _parse(read_inside(root, file, MAX_FILE_BYTES + 1))
        except (FileRefused, RuleError) as error:
            self._fail(file, str(error))
            return
        strict = book.without_allowing()
        if len(strict.rules) < len(book.rules):
            left_out = len(book.rules) - len(strict.rules)
            self.warnings.append(f"`{file}`: {left_out} `allow` left out: a project may only ask and forbid")
        self.book = self.book.joined(RuleBook(strict.rules))

    def _fail(self, path: Path, reason: str) -> None:
        """Rules that cannot be read might forbid what is about to run."""
        fault = f"the rules in `{path}` cannot be used: {reason}; {self.remedy}"
        self.warnings.append(f"no command runs: {fault}")
        self.book = self.book.joined(RuleBook(faults=(fault,)))


def _parse(head: FileHead | None) -> RuleBook:
    if head is None:
        return RuleBook()
    try:
        return parse_rules(head.raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RuleError(f"not UTF-8 (byte {error.start})") from error


def _file_name(project: Path) -> str:
    """A name a person recognises, and that no other project has."""
    name = "".join(letter if letter.isalnum() else "-" for letter in project.name)[:40] or "root"
    return f"{name}-{hashlib.sha256(str(project).encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


class ToolRuntime(Value):
    """Where commands run and live, and what the user has allowed and forbidden of them.

    `allow_partial` is that a sandbox will do which cannot hold everything; `warnings` are about its settings.
    """

    sandbox: Sandbox
    processes: ProcessManager
    approvals: Approvals
    allow_partial: bool = False
    warnings: tuple[str, ...] = ()

    def prepare(self, policy: SandboxPolicy, cwd: Path, command_lines: CommandLineReader) -> None:
        """Find out which sandbox works here. One that does not work is reported by the call that needs it."""
        command_runs.warm_up(command_lines)
        with contextlib.suppress(SandboxUnavailable):
            self.sandbox.prepare(policy, cwd)

    def live_processes(self, redact: Callable[[str], str]) -> tuple[LiveProcess, ...]:
        """The commands that still run, the oldest first, as people are shown them; `redact` takes out the secrets."""
        now = time.monotonic()
        return tuple(
            LiveProcess(
                id=session.id,
                command=redact(session.line),
                cwd=session.cwd,
                seconds=now - session.started,
                tty=session.tty,
                outside=session.outside,
                tail=redact(session.transcript())[-_MAX_TAIL:],
            )
            for session in self.processes.live()
        )


def find_withheld_env(config: Config, env: Mapping[str, str]) -> WithheldEnv:
    """What the profiles of shells must not bring back of the user's variables."""
    rules = environment_rules(config)
    return WithheldEnv(rules, key_names(config) | {*withheld_by_value(env, rules)})


def load_tool_runtime(
    loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str], ignore_rules: bool = False
) -> ToolRuntime:
    """Reads the `.rules` files; `ignore_rules` leaves them out."""
    return ToolRuntime(
        sandbox=make_sandbox(loaded, home=home, env=env),
        processes=ProcessManager(find_withheld_env(loaded.config, env)),
        approvals=load_approvals(loaded, home=home, cwd=cwd, ignore_rules=ignore_rules),
        allow_partial=loaded.config.sandbox.allow_partial,
        warnings=tuple(allowances_without_effect(loaded, home=home, env=env)),
    )


_MAX_SECONDS: Final = 3600.0
_STOPPED: Final = -1


class UserShellContext(Value):
    """The context of a user's command. `redactor` takes secrets out of what it printed; `output_tokens` caps that."""

    cwd: Path
    env: Mapping[str, str]
    output_tokens: int
    redactor: Redactor


class _Ended(NamedTuple):
    output: str
    exit_code: int | None


class UserShellCommand:
    """One command. `stop` may be called at any time."""

    def __init__(self, command: str, context: UserShellContext, emit: Callable[[Event], None]) -> None:
        self._command = command
        self._context = context
        self._emit = emit
        self._call_id = uuid7()
        self._session: RunningCommand | None = None
        self._held = HeldBack()
        self._is_stopped = False

    def stop(self) -> None:
        """Kill it, or do not even start it."""
        self._is_stopped = True
        if self._session is not None:
            self._session.kill()

    async def run(self, processes: ProcessManager) -> ResponseItem:
        """Run it to its end, an hour at most, and give what the model reads of it."""
        began = time.monotonic()
        self._emit(CommandStarted(self._call_id, self._command, self._context.cwd, by_user=True))
        ended = _Ended("", None)
        try:
            ended = _Ended("", None) if self._is_stopped else await self._wait(processes)
        finally:
            seconds = time.monotonic() - began
            output = self._context.redactor.redact(ended.output)
            self._emit_end(output, ended.exit_code, seconds)
        shown = truncate_middle(output, self._context.output_tokens)
        code = _STOPPED if ended.exit_code is None else ended.exit_code
        return user_shell_item(self._command, shown, exit_code=code, seconds=seconds)

    async def _wait(self, processes: ProcessManager) -> _Ended:
        try:
            session = self._session = await processes.start(self._spec())
        except ToolError as error:
            return _Ended(str(error), 127)
        live = LiveOutput(session, self._call_id, self._emit_live)
        try:
            ended = await session.wait(_MAX_SECONDS)
            if not ended:
                self._is_stopped = True
            output = session.transcript()
        finally:
            live.end()
            if session.exit_code is None:
                await processes.close(session)
            else:
                processes.forget(session)
        if self._is_stopped:
            return _Ended(f"{output}\n[stopped by the user]".lstrip("\n"), None)
        return _Ended(output, session.exit_code)

    def _spec(self) -> CommandSpec:
        context = self._context
        shell = user_shell(context.env)
        argv = shell_argv(shell, keep_bundled_tools(self._command, shell), login=True)
        return CommandSpec(argv, context.cwd, context.env, outside=True, line=self._command)

    def _emit_live(self, event: Event) -> None:
        if isinstance(event, CommandOutput) and (shown := self._held.feed(event.text, self._context.redactor)):
            self._emit(CommandOutput(event.call_id, shown))

    def _emit_end(self, output: str, exit_code: int | None, seconds: float) -> None:
        self._emit(
            CommandFinished(
                self._call_id,
                self._command,
                self._context.cwd,
                output,
                exit_code,
                seconds,
                "completed" if exit_code == 0 else "failed",
                by_user=True,
            )
        )
