"""Which request is carried out by what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from codex_py.server.app import command_methods, config_methods, skill_methods, thread_methods, turn_methods
from codex_py.server.app.client_context import ClientContext, MethodResult
from codex_py.server.app.list_methods import list_threads
from codex_py.server.params import Params

Method: TypeAlias = Callable[[ClientContext, Params], Awaitable[MethodResult]]

METHODS: Final[Mapping[str, Method]] = {
    "thread/start": thread_methods.start,
    "thread/resume": thread_methods.resume,
    "thread/fork": thread_methods.fork,
    "thread/list": list_threads,
    "thread/loaded/list": thread_methods.loaded,
    "thread/read": thread_methods.read,
    "thread/turns/list": thread_methods.turns_list,
    "thread/name/set": thread_methods.set_name,
    "thread/archive": thread_methods.archive,
    "thread/unarchive": thread_methods.unarchive,
    "thread/delete": thread_methods.delete,
    "thread/unsubscribe": thread_methods.unsubscribe,
    "thread/compact/start": turn_methods.compact,
    "thread/shellCommand": turn_methods.shell,
    "thread/settings/update": turn_methods.update_settings,
    "turn/start": turn_methods.start,
    "turn/steer": turn_methods.steer,
    "turn/interrupt": turn_methods.interrupt,
    "review/start": turn_methods.review,
    "skills/list": skill_methods.list_skills,
    "skills/config/write": skill_methods.write_config,
    "skills/extraRoots/set": skill_methods.set_extra_roots,
    "model/list": config_methods.list_models,
    "config/read": config_methods.read_config,
    "account/read": config_methods.read_account,
    "account/login/start": config_methods.log_in,
    "account/logout": config_methods.log_out,
    "command/exec": command_methods.run,
    "command/exec/write": command_methods.write,
    "command/exec/terminate": command_methods.terminate,
}
