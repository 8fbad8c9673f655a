"""The command of the user's that prints a provider's token."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from codex_py.auth.find_credentials import MAX_TOKEN, check_key
from codex_py.errors import UserError
from codex_py.model.providers import Provider
from codex_py.programs import program_finder

# A command that has ended may have left something running that holds its output open.
_LOOK_SECONDS: Final = 0.05


def run_token_command(provider: Provider, env: Mapping[str, str]) -> str:
    """Run the provider's token command and give back what it prints; raises `UserError` for anything else.

    The command runs outside the sandbox, and so do the programs it starts: none of them is one that commands may write.

    At most 64 KiB are read, for as long as `auth_timeout` says.
    """
    command = provider.auth_command[0]
    try:
        printed, status = _printed_by(provider, env)
    except TimeoutError:
        reason = f"no answer within {provider.auth_timeout:g} s"
    except OSError as error:
        reason = str(error.strerror or error).lower()
    except ValueError as error:
        reason = str(error)
    else:
        token = check_key(printed.decode("utf-8", "replace"), f"the output of `{command}`") if status == 0 else ""
        if token:
            return token
        reason = f"it ended with status {status}" if status else "it printed nothing"
    hint = f"see `model_providers.{provider.id}.auth` in config.toml"
    raise UserError(f"cannot get a token from `{command}`: {reason}", hint=hint)


def _printed_by(provider: Provider, env: Mapping[str, str]) -> tuple[bytes, int]:
    """What the command prints, and its exit status; raises `TimeoutError`, and `ValueError` for too much."""
    deadline = time.monotonic() + provider.auth_timeout
    programs = provider.auth_programs or program_finder(env, Path.cwd())
    name, *arguments = provider.auth_command
    process = subprocess.Popen(
        [programs.find_chosen(name, f"`model_providers.{provider.id}.auth`"), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=provider.auth_cwd,
        env={**env, "PATH": programs.trusted_path()},
    )
    with process:
        try:
            assert process.stdout is not None
            printed = _read(process, process.stdout.fileno(), deadline)
            return printed, process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
        finally:
            # Does nothing to one that has ended.
            process.kill()


def _read(process: subprocess.Popen[bytes], descriptor: int, deadline: float) -> bytes:
    printed = bytearray()
    poll = select.poll()
    poll.register(descriptor)
    while (left := deadline - time.monotonic()) > 0:
        has_ended = process.poll() is not None
        if not poll.poll(min(left, _LOOK_SECONDS) * 1000):
            if has_ended:
                return bytes(printed)
            continue
        chunk = os.read(descriptor, MAX_TOKEN)
        printed += chunk
        if not chunk:
            return bytes(printed)
        if len(printed) > MAX_TOKEN:
            raise ValueError("it printed more than 64 KiB")
    raise TimeoutError
