"""`codex-py doctor`: tries whether this machine can do what the program needs."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from codex_py import __version__
from codex_py.auth.find_credentials import find_credentials
from codex_py.cli.console import LocalConfig, load_local_config, print_json
from codex_py.cli.typer_command import Json, Overrides, Profile, run_command
from codex_py.config.files import weak_permissions
from codex_py.config.load import LoadedConfig
from codex_py.core.model_setup import configured_provider, login_rules
from codex_py.errors import LoginNeeded, UsageError, UserError
from codex_py.hooks.sources import hook_faults
from codex_py.programs import ProbeResults
from codex_py.protocol.policy import ReadOnly
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from codex_py.sandbox.linux import BACKENDS, Backend, BackendName, make_backend, missing_sandbox, next_steps
from codex_py.sandbox.probes import Outcome, run_probes
from codex_py.services.provider_check import check_provider
from codex_py.text.address import shown_url
from codex_py.text.sanitize import sanitize_line

_OFFLINE: Final = "offline"
_REPORT_IT: Final = "run nothing here that you do not trust, and report this as a bug of codex-py"
# Enough for a short session.
_MIN_FREE_BYTES: Final = 256 * 1024
_MARKS: Final = {True: "ok", False: "FAULT", None: "note"}


class DoctorFinding(NamedTuple):
    """One line of the report. `fine` is None for information that is no fault; `next` says what to do about it."""

    subject: str
    text: str
    fine: bool | None = True
    next: str = ""


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py doctor` with these arguments; give back the exit status, 1 when there is a fault."""
    return run_command(doctor, arguments, name="doctor")


def doctor(
    as_json: Json = False,
    every_backend: Annotated[
        bool, typer.Option("--all", help="Try every way to hold a command, not only the one in use.")
    ] = False,
    provider: Annotated[
        str | None,
        typer.Option("--provider", metavar="ID", help="Make one tiny request to this provider and say what works."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="NAME", help="With --provider: the model to ask.")
    ] = None,
    overrides: Overrides = None,
    profile: Profile = None,
) -> int:
    """Check versions, settings, login and sandbox: a process inside the sandbox tries what commands must not do.

    Without --provider nothing is sent anywhere. The exit status is 1 when something does not work, also when the
    sandbox is incomplete; the last line is the next step.
    """
    if provider is not None:
        return _check_provider(load_local_config(overrides, profile, quiet=True), provider, model, as_json=as_json)
    if model is not None:
        raise UsageError("`--model` needs `--provider`")
    names: tuple[BackendName, ...] = BACKENDS if sys.platform == "linux" else ()
    backends: dict[BackendName, Backend] = {name: make_backend(name, os.environ) for name in names}
    known = ProbeResults()
    failures: dict[BackendName, str | None] = {name: backend.probe((), known) for name, backend in backends.items()}
    working: list[BackendName] = [name for name, failure in failures.items() if failure is None]
    settings, loaded = _settings(overrides, profile)
    accepted = loaded is not None and loaded.config.sandbox.allow_partial
    findings = [_version(), *settings, *_sandbox_findings(failures, backends, accepted=accepted)]
    results: dict[BackendName, list[Outcome]] = {
        name: _probe(name) for name in (working if every_backend else working[:1])
    }
    faults = [finding.next or finding.text for finding in findings if finding.fine is False]
    faults += [_REPORT_IT for outcomes in results.values() for outcome in outcomes if outcome.is_fault]
    steps = [*faults, *(finding.next for finding in findings if finding.next)]
    if as_json:
        print_json({**_as_object(findings, results), "next": steps[0] if steps else None})
    else:
        _show(findings, results)
        if steps:
            print(f"\nnext: {sanitize_line(steps[0])}")
    return 1 if faults else 0


def _check_provider(local: LocalConfig, name: str, model: str | None, *, as_json: bool) -> int:
    if name == _OFFLINE:
        raise UsageError("the offline model has no server to ask")
    config = local.loaded.config
    found = asyncio.run(check_provider(config, name, model=model, env=os.environ, home=local.home))
    if as_json:
        print_json({"provider": name, "capabilities": [capability._asdict() for capability in found]})
    else:
        for capability in found:
            print(f"{_MARKS[capability.works]:<5}  {capability.name:<9}  {sanitize_line(capability.text)}")
    return 1 if any(capability.works is False for capability in found) else 0


def _version() -> DoctorFinding:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return DoctorFinding("version", f"codex-py {__version__}, Python {platform.python_version()}, {system}")


def _settings(overrides: Sequence[str] | None, profile: str | None) -> tuple[list[DoctorFinding], LoadedConfig | None]:
    """Findings about the settings, and the settings if they can be read."""
    try:
        home, cwd, loaded = load_local_config(overrides, profile, quiet=True)
    except UserError as error:
        return [DoctorFinding("settings", str(error), False, error.hint or "")], None
    files = ", ".join(f"`{layer.path}`" for layer in loaded.layers if layer.path is not None)
    warnings = (*loaded.warnings, *hook_faults(loaded, home, cwd))
    findings = [
        _home(home),
        DoctorFinding("settings", f"read from {files}" if files else "defaults (no config file)"),
        *(DoctorFinding("settings", warning, None) for warning in warnings),
        _login(loaded, home),
    ]
    return findings, loaded


def _home(home: Path) -> DoctorFinding:
    if weakness := weak_permissions(home / "config.toml"):
        return DoctorFinding("home", weakness, False)
    existing = next(path for path in (home, *home.parents) if path.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        disk = os.statvfs(existing)
        if disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES:
            text = f"the disk of `{home}` is full: sessions, logins and settings are not kept"
            return DoctorFinding("home", text, False, "make room on it, or set CODEX_HOME to a directory elsewhere")
        return DoctorFinding("home", f"`{home}`")
    text = f"`{home}` cannot be written: sessions, logins and settings are not kept"
    return DoctorFinding("home", text, False, "make it writable, or set CODEX_HOME to a directory that is")


def _login(loaded: LoadedConfig, home: Path) -> DoctorFinding:
    config = loaded.config
    if config.model_provider == _OFFLINE:
        return DoctorFinding("login", "none is needed for the offline model")
    try:
        provider = configured_provider(config, os.environ)
        about = f"`{provider.id}` at {shown_url(provider.base_url)}"
        if provider.auth_command:
            return DoctorFinding("login", f"{about}: a command gives the key; it was not run", None)
        login = find_credentials(provider, env=os.environ, home=home, rules=login_rules(config))
        source, about = login.source, f"`{provider.id}` at {shown_url(login.base_url or provider.base_url)}"
    except LoginNeeded as error:
        # Not a fault: the offline model needs no key.
        return DoctorFinding("login", str(error), None, error.hint or "")
    except UserError as error:
        return DoctorFinding("login", str(error), False, error.hint or "")
    return DoctorFinding("login", f"{about}: key from {source}" if source else f"{about}: no key is sent")


def _sandbox_findings(
    failures: Mapping[BackendName, str | None], backends: Mapping[BackendName, Backend], *, accepted: bool
) -> Iterator[DoctorFinding]:
    if sys.platform != "linux":
        try:
            used = Sandbox(os.environ).backend_name(ReadOnly(), Path.cwd())
            yield DoctorFinding("sandbox", f"{used}: in use; the probes are for Linux and were not run")
        except SandboxUnavailable as error:
            yield DoctorFinding("sandbox", str(error), False)
        return
    reasons = [failure for failure in failures.values() if failure is not None]
    first = next((name for name, failure in failures.items() if failure is None), None)
    for name, failure in failures.items():
        if failure is not None:
            yield DoctorFinding("sandbox", f"{name}: {failure}", None)
        elif name != first:
            yield DoctorFinding("sandbox", f"{name}: would work too")
        else:
            yield _in_use(name, backends[name].shortfall, reasons, accepted=accepted)
    if first is None:
        text = missing_sandbox(reasons, partial=False)
        yield DoctorFinding("sandbox", text, False, next_steps(reasons, partial=False))


def _in_use(name: BackendName, shortfall: str | None, reasons: Sequence[str], *, accepted: bool) -> DoctorFinding:
    if shortfall is None:
        return DoctorFinding("sandbox", f"{name}: in use")
    if accepted:
        return DoctorFinding("sandbox", f"{name}: in use, as `sandbox.allow_partial` accepts; {shortfall}", None)
    return DoctorFinding("sandbox", f"{name}: incomplete; {shortfall}", False, next_steps(reasons, partial=True))


def _probe(name: BackendName) -> list[Outcome]:
    try:
        return run_probes(os.environ, name)
    except SandboxUnavailable as error:
        return [Outcome(str(error), None)]


def _show(findings: Sequence[DoctorFinding], results: Mapping[BackendName, Sequence[Outcome]]) -> None:
    for finding in findings:
        print(f"{_MARKS[finding.fine]:<5}  {finding.subject:<8}  {sanitize_line(finding.text)}")
    for name, outcomes in results.items():
        print(f"\nprobes inside the sandbox ({name}), each of which should be denied:")
        for outcome in outcomes:
            print(f"  {sanitize_line(_line(outcome))}")
        denied = sum(outcome.refusal is not None for outcome in outcomes)
        others = ", ".join(outcome.name for outcome in outcomes if outcome.refusal is None)
        print(f"{denied} of {len(outcomes)} denied" + (f"; not denied: {sanitize_line(others)}" if others else ""))


def _line(outcome: Outcome) -> str:
    if outcome.refusal is not None:
        return f"denied   {outcome.name}  ({outcome.refusal})"
    if outcome.limit is not None:
        return f"limit    {outcome.name}  ({outcome.limit})"
    return f"ALLOWED  {outcome.name}"


def _as_object(
    findings: Sequence[DoctorFinding], results: Mapping[BackendName, Sequence[Outcome]]
) -> dict[str, object]:
    return {
        "findings": [finding._asdict() for finding in findings],
        "probes": {
            name: [{**outcome._asdict(), "fault": outcome.is_fault} for outcome in outcomes]
            for name, outcomes in results.items()
        },
    }
