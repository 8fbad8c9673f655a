"""The first run: how to reach a model where there is no key and no login yet, chosen by the user and stored."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.config.edit import set_value
from codex_py.config.schema import Config
from codex_py.errors import UserError
from codex_py.services.first_run import (
    LocalServer,
    find_local_servers,
    has_default_model,
    keys_in_environment,
    models_to_choose,
    usual_model,
)
from codex_py.services.login import KeyedProvider, keyed_providers
from codex_py.ui.repl.launch import LaunchContext, LaunchHost
from codex_py.ui.repl.panels.forms import Form, FormAsker, ListEntry, ListForm, Option, Sheet, TextLine, needs_text


class _UseKey(NamedTuple):
    """Use the key that the environment has for this provider."""

    provider: KeyedProvider


FirstChoice: TypeAlias = _UseKey | LocalServer | Literal["browser", "code", "key", "local", "offline", "quit"]
RunProgram: TypeAlias = Callable[[Sequence[str]], Awaitable[int]]

# Without `-P` it would load modules of the directory it starts in.
_LOGIN: Final = (sys.executable, "-P", "-m", "codex_py.cli.main", "login")
_SUBJECT: Final = (
    TextLine("A coding agent for your terminal. It needs a model to talk to, and there is no key or login yet."),
    TextLine("How do you want to begin?"),
)
_NO_SERVER: Final = Sheet(
    title="No local server answers",
    subject=(
        TextLine("Start one, then look again: `ollama serve`, the server of LM Studio (`lms server start`), or"),
        TextLine("`llama-server -m MODEL.gguf` of llama.cpp."),
    ),
    options=(Option("a", "Look again", True), Option("b", "Back", False)),
    refusal=False,
    escape="back",
)


class Ways(NamedTuple):
    """The keys and servers on this machine, and the logins that the settings allow (`method` None: any)."""

    keys: tuple[KeyedProvider, ...]
    servers: tuple[LocalServer, ...]
    over_ssh: bool
    method: Literal["chatgpt", "api"] | None


def welcome_sheet(ways: Ways) -> Sheet[FirstChoice]:
    """The question how to begin: what is found comes first, as what needs no more than one key."""
    options: list[Option[FirstChoice]] = []

    def offer(key: str, label: str, choice: FirstChoice, note: str = "") -> None:
        options.append(Option(key, label, choice, note))

    for key in ways.keys:
        offer("", f"Use {key.variable}", _UseKey(key), f"{key.name}; the key is in your environment")
    for server in ways.servers:
        offer("", f"Use {server.name}", server, _about(server))
    found = len(options)
    if ways.method != "api":
        # Over ssh the browser is on another machine, and a code works with it.
        note = "shows the address; its browser comes back to this machine" if ways.over_ssh else "opens your browser"
        offer("b", "Sign in with ChatGPT", "browser", note)
        offer("d", "Sign in with a code", "code", "for machines without a browser")
    offer("k", "Paste an API key", "key", "OpenAI, Anthropic, …; kept on this machine, for you alone")
    if not ways.servers:
        offer("l", "Use a local model", "local", "Ollama, LM Studio or llama.cpp; none answers now")
    offer("o", "Look around offline", "offline", "built-in rules, no AI, nothing leaves this machine")
    offer("q", "Quit", "quit")
    default = 1 if ways.over_ssh and not found and ways.method != "api" else 0
    return Sheet("Welcome to codex-py", _SUBJECT, tuple(options), refusal="quit", escape="quit", default=default)


def _about(server: LocalServer) -> str:
    count = len(server.models)
    models = "no model yet" if not count else server.models[0] if count == 1 else f"{count} models"
    return f"{models} at {server.address}"


async def reach_a_model(
    asker: FormAsker, host: LaunchHost, launch: LaunchContext, run_program: RunProgram, *, over_ssh: bool
) -> bool:
    """Let the user choose how to reach one, and set that up; False when they want to leave."""
    return await _FirstRun(asker, host, launch).run(run_program, over_ssh=over_ssh)


class _FirstRun:
    def __init__(self, asker: FormAsker, host: LaunchHost, launch: LaunchContext) -> None:
        self._asker = asker
        self._host = host
        self._launch = launch

    @property
    def _config(self) -> Config:
        return self._launch.loaded.config

    async def run(self, run_program: RunProgram, *, over_ssh: bool) -> bool:
        method = self._config.forced_login_method
        env = self._launch.env
        while True:
            # OpenAI's key would have been used, and its absence is why this is asked.
            keys = tuple(key for key in keys_in_environment(env) if key.id != self._config.model_provider)
            servers = await find_local_servers(self._config, env)
            choice = await self._asker.choose(welcome_sheet(Ways(keys, servers, over_ssh, method)))
            match choice:
                case "quit":
                    return False
                case "offline":
                    self._host.use("offline")
                    return True
                case "local":
                    await self._asker.choose(_NO_SERVER)
                case "key":
                    if await self._enter_key():
                        return True
                case "browser":
                    if await run_program(_LOGIN) == 0:
                        return self._use_openai()
                case "code":
                    if await run_program([*_LOGIN, "--device-auth"]) == 0:
                        return self._use_openai()
                case _UseKey(provider):
                    if await self._use_provider(provider):
                        return True
                case LocalServer():
                    if await self._use_server(choice):
                        return True

    async def _enter_key(self) -> bool:
        entries = tuple(ListEntry(each, each.name, each.variable, words=each.id) for each in keyed_providers())
        provider = await self._asker.pick(ListForm("Whose key?", entries))
        if provider is None:
            return False
        about = f"It is what {provider.variable} would hold. It is not shown while you type."
        form = Form(f"API key of {provider.name}", (TextLine(about),), hidden=True, check=_check_key, enter="keep it")
        key = await self._asker.enter(form)
        if key is None:
            return False
        await _save_key(provider, key, self._launch.env)
        return await self._use_provider(provider)

    def _use_openai(self) -> bool:
        config = self._config
        if config.model_provider != "openai":
            # A model that is configured is one of the other provider.
            self._keep("openai", usual_model("openai", config, self._launch.env) if config.model else None)
        return True

    async def _use_provider(self, provider: KeyedProvider) -> bool:
        """Ask a provider from now on; False when the user goes back instead of choosing a model."""
        if provider.id == "openai":
            return self._use_openai()
        config, env = self._config, self._launch.env
        if has_default_model(provider.id, config):
            model = None
        elif not (model := usual_model(provider.id, config, env)):
            names = await models_to_choose(provider.id, config, env=env, home=self._launch.home)
            if not (model := await self._choose_model(provider.name, names)):
                return False
        self._keep(provider.id, model)
        return True

    async def _use_server(self, server: LocalServer) -> bool:
        model = server.models[0] if len(server.models) == 1 else None
        # The usual model of Ollama and LM Studio can be fetched.
        must_choose = model is None and (server.models or server.provider not in ("ollama", "lmstudio"))
        if must_choose and not (model := await self._choose_model(server.name, server.models)):
            return False
        self._keep(server.provider, model)
        return True

    async def _choose_model(self, provider: str, names: Sequence[str]) -> str | None:
        if not names:
            about = (TextLine(f"{provider} does not list its models here."),)
            return await self._asker.enter(Form(f"Which model of {provider}?", about, check=needs_text))
        entries = tuple(ListEntry(name, name) for name in names)
        return await self._asker.pick(ListForm(f"Which model of {provider}?", entries))

    def _keep(self, provider: str, model: str | None) -> None:
        """Use it now and from now on; where the settings cannot be written it counts for this run."""
        path = self._launch.home / "config.toml"
        with suppress(UserError):
            set_value(path, ("model_provider",), provider)
            if model:
                set_value(path, ("model",), model)
        self._host.use(provider, model)


def _check_key(text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text:
        return "a key is one line of visible ASCII characters"
    return needs_text(text)


async def _save_key(provider: KeyedProvider, key: str, env: Mapping[str, str]) -> None:
    """Store the key as `codex-py login` does."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(*_LOGIN, "--with-api-key", "--provider", provider.id),
        stdin=pipe,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=pipe,
        env=dict(env),
    )
    _, complaint = await process.communicate(key.encode() + b"\n")
    if process.returncode:
        raise UserError(f"the key could not be saved: {complaint.decode(errors='replace').strip()[:500]}")
