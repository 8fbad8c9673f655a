#!/usr/bin/env python3
"""Find a project's test command, run it once, and print what failed in few lines.

Exit status 0 when tests ran, whether they passed or not (the last line says which); 2 when there was nothing to run.
Usage: run_tests.py [--plan] [--timeout SECONDS] [--in DIRECTORY] [-- COMMAND …]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, NamedTuple

HEAD_LINES = 20
TAIL_LINES = 60
MAX_FAILURES = 40
MAX_OUTPUT = 4_000_000
FAILURES = re.compile(
    r"^(?:FAILED |ERROR )(?P<pytest>\S+::\S+.*|\S+\.py\b.*)$"
    r"|^(?:FAIL|ERROR): (?P<unittest>\S+ \(.+\))$"
    r"|^\s*--- FAIL: (?P<go>\S+)"
    r"|^test (?P<rust>\S+) \.\.\. FAILED$"
    r"|^\s*(?:●|✕|×) (?P<js>\S.*)$"
    r"|^not ok \d+ -? ?(?P<tap>.+)$"
    r"|^rspec (?P<rspec>\S+:\d+)"
    r"|^\s*(?P<place>[\w./-]+\.\w+:\d+(?::\d+)?: (?:error|fatal error)\b.*)$"
    r"|^(?P<rustc>error(?:\[E\d+\])?: .+)$",
    re.MULTILINE,
)


class Plan(NamedTuple):
    """A command and the reason it was chosen."""

    argv: list
    reason: str


def main() -> int:
    options = parse_arguments()
    directory = Path(options.directory)
    if not directory.is_dir():
        print(f"error: not a directory: {directory}", file=sys.stderr)
        return 2
    plan = Plan(options.command, "given") if options.command else choose(directory)
    if plan is None:
        print("No test command was found. Look in the README and the CI files, then: run_tests.py -- COMMAND")
        return 2
    print(f"command: {shlex.join(plan.argv)}\nbecause: {plan.reason}", flush=True)
    if options.plan:
        return 0
    if shutil.which(plan.argv[0]) is None and not (directory / plan.argv[0]).is_file():
        print(f"result: cannot run, `{plan.argv[0]}` is not installed")
        return 2
    return report(*run(plan.argv, directory, options.timeout))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Find and run a project's tests, and sum up what failed.")
    parser.add_argument("--plan", action="store_true", help="print the command, do not run it")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="default: 600")
    parser.add_argument("--in", dest="directory", default=".", metavar="DIRECTORY", help="the project (default: here)")
    parser.add_argument("command", nargs="*", help="the command, behind `--`")
    return parser.parse_args()


def choose(directory: Path) -> Plan | None:
    """The first that fits; what the project's own files say goes before what they let one guess."""
    for rule in (by_node, by_python, by_cargo, by_go, by_jvm, by_ruby, by_others, by_make):
        plan = rule(directory)
        if plan:
            return plan
    return None


def by_node(directory: Path) -> Plan | None:
    try:
        test = json.loads(read(directory / "package.json"))["scripts"]["test"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(test, str) or "no test specified" in test:
        return None
    locks = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))
    tool = next((name for lock, name in locks if (directory / lock).exists()), "npm")
    return Plan([tool, "run", "test"], f"`package.json` has the script `test`: {test}")


def by_python(directory: Path) -> Plan | None:
    settings = "".join(read(directory / name) for name in ("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini"))
    tests = [path for top in ("tests", "test", ".") for path in sorted((directory / top).glob("test*.py"))]
    configured = (
        re.search(r"(?m)^\[(tool\.)?pytest|^\[tool:pytest|^\[pytest", settings) or (directory / "conftest.py").exists()
    )
    if not (tests or configured or (settings and (directory / "tests").is_dir())):
        return None
    python = python_of(directory)
    reason = "it has Python tests"
    if configured or uses_pytest(tests) or has_pytest(python):
        return Plan([*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"], f"{reason} for pytest")
    start = "tests" if (directory / "tests").is_dir() and not list(directory.glob("test*.py")) else "."
    return Plan(
        [*python, "-m", "unittest", "discover", "-s", start, "-t", "."], f"{reason}, and pytest is not installed"
    )


def python_of(directory: Path) -> list[str]:
    """The project's own interpreter, else the one that people get."""
    for name in (".venv/bin/python", "venv/bin/python"):
        if (directory / name).exists():
            return [name]
    if (directory / "uv.lock").exists() and shutil.which("uv"):
        return ["uv", "run", "python"]
    if (directory / "poetry.lock").exists() and shutil.which("poetry"):
        return ["poetry", "run", "python"]
    return ["python3"] if shutil.which("python3") else [sys.executable]


def uses_pytest(tests: list[Path]) -> bool:
    return any(re.search(r"(?m)^\s*(import|from) pytest\b", read(path)) for path in tests[:20])


def has_pytest(python: list[str]) -> bool:
    if len(python) > 1:
        return True
    try:
        check = [*python, "-c", "import importlib.util as u; raise SystemExit(u.find_spec('pytest') is None)"]
        return subprocess.run(check, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def by_cargo(directory: Path) -> Plan | None:
    return Plan(["cargo", "test"], "there is a `Cargo.toml`") if (directory / "Cargo.toml").is_file() else None


def by_go(directory: Path) -> Plan | None:
    return Plan(["go", "test", "./..."], "there is a `go.mod`") if (directory / "go.mod").is_file() else None


def by_jvm(directory: Path) -> Plan | None:
    if (directory / "pom.xml").is_file():
        return Plan(["./mvnw" if (directory / "mvnw").is_file() else "mvn", "-q", "test"], "there is a `pom.xml`")
    if list(directory.glob("build.gradle*")):
        return Plan(["./gradlew" if (directory / "gradlew").is_file() else "gradle", "test"], "it is built with Gradle")
    return None


def by_ruby(directory: Path) -> Plan | None:
    if (directory / "spec").is_dir() and (directory / "Gemfile").is_file():
        return Plan(["bundle", "exec", "rspec"], "there are `spec/` and a `Gemfile`")
    return Plan(["rake", "test"], "there is a `Rakefile`") if (directory / "Rakefile").is_file() else None


def by_others(directory: Path) -> Plan | None:
    if (directory / "mix.exs").is_file():
        return Plan(["mix", "test"], "there is a `mix.exs`")
    if list(directory.glob("*.sln")) or list(directory.glob("*.csproj")):
        return Plan(["dotnet", "test"], "it is a .NET project")
    if (directory / "Package.swift").is_file():
        return Plan(["swift", "test"], "there is a `Package.swift`")
    if (directory / "deno.json").is_file():
        return Plan(["deno", "test"], "there is a `deno.json`")
    return None


def by_make(directory: Path) -> Plan | None:
    for file, tool in (("justfile", "just"), ("Makefile", "make")):
        found = re.search(r"(?m)^(test|tests|check)(?: [\w=\"'-]*)*:(?!=)", read(directory / file))
        if found:
            return Plan([tool, found[1]], f"`{file}` has `{found[1]}`")
    return None


def read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace") if path.is_file() else ""
    except OSError:
        return ""


def run(argv: list[str], directory: Path, timeout: float) -> tuple[str, int | None, float]:
    """The output of a command with its errors in between, its exit status (None: out of time), and the seconds."""
    env = {**os.environ, "CI": os.environ.get("CI", "true"), "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    started = time.monotonic()
    # A file and not a pipe: what the tests leave running must not keep this waiting.
    with scratch_file() as output:
        process = subprocess.Popen(
            argv, cwd=directory, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        except BaseException:
            stop(process)
            raise
        if status is None:
            stop(process)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - MAX_OUTPUT))
        return output.read().decode("utf-8", "replace"), status, time.monotonic() - started


def scratch_file() -> IO[bytes]:
    """In memory where that is possible: a sandbox may allow no file at all."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("tests"), "w+b")
    return tempfile.TemporaryFile()


def stop(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    process.wait()


def report(output: str, status: int | None, seconds: float) -> int:
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", output).replace("\r\n", "\n")
    text = "".join(char if char in "\n\t" or char.isprintable() else "?" for char in text)
    lines = text.rstrip().split("\n")
    print(f"exit status: {'stopped, out of time' if status is None else status}, after {seconds:.1f} s")
    if status == 0:
        print("output, the last lines:")
        print("\n".join("  " + line for line in lines[-8:]))
        print("result: all tests passed")
        return 0
    failures = list(dict.fromkeys(" ".join(filter(None, found.groups())) for found in FAILURES.finditer(text)))
    if failures:
        print(f"failed ({len(failures)}):")
        print("\n".join(f"  {failure[:200]}" for failure in failures[:MAX_FAILURES]))
    cut = len(lines) - HEAD_LINES - TAIL_LINES
    shown = lines if cut <= 0 else [*lines[:HEAD_LINES], f"[… {cut} lines left out …]", *lines[-TAIL_LINES:]]
    print("output:")
    print("\n".join("  " + line[:300] for line in shown))
    print("result: out of time" if status is None else "result: tests failed" if failures else "result: it failed")
    return 0


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
