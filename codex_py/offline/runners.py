"""Deciding how a project's tests are run, from what lies in its folder. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final, NamedTuple

from codex_py.offline.manifests import json_object, make_targets, toml_table
from codex_py.offline.pattern import Pattern
from codex_py.protocol.encoding import as_object

PYTHONS: Final = (".venv/bin/python", "venv/bin/python", "python3", "python")
_PYTHON_TEST: Final = Pattern(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
_NODE_TEST: Final = Pattern(r"\.(?:test|spec)\.[cm]?[jt]sx?$|(?:^|/)(?:tests?|__tests__)/[^/]*\.[cm]?js$")
_NO_NPM_TEST: Final = "no test specified"
# By a file in the folder; the first that is there decides, after the runners that need more than a look at a name.
_BY_FILE: Final = (
    ("mvnw", "./mvnw -q test", "Maven"),
    ("pom.xml", "mvn -q test", "Maven"),
    ("gradlew", "./gradlew test", "Gradle"),
    ("build.gradle", "gradle test", "Gradle"),
    ("build.gradle.kts", "gradle test", "Gradle"),
    ("mix.exs", "mix test", "ExUnit"),
    (".rspec", "bundle exec rspec", "RSpec"),
    ("phpunit.xml", "vendor/bin/phpunit", "PHPUnit"),
    ("phpunit.xml.dist", "vendor/bin/phpunit", "PHPUnit"),
    ("Package.swift", "swift test", "swift test"),
    ("deno.json", "deno test", "deno test"),
)
_SCRIPTS: Final = ("scripts/test", "script/test", "bin/test", "test.sh", "run_tests.sh", "runtests.sh", "run-tests.sh")


class Surroundings(NamedTuple):
    """What was seen. `names` are the root's entries and those of its script folders as paths; `pythons` maps each
    interpreter to whether it has pytest; `libraries` maps test files to what they import of pytest and unittest."""

    names: frozenset[str]
    texts: Mapping[str, str]
    test_files: tuple[str, ...]
    libraries: Mapping[str, frozenset[str]]
    pythons: Mapping[str, bool]


class Runner(NamedTuple):
    """`retry` is the command for a sandbox in which nothing can be written, where there is one."""

    name: str
    command: str
    why: str
    retry: str = ""


class NoRunner(NamedTuple):
    """The project has tests that cannot be run here."""

    why: str


def choose_runner(seen: Surroundings, *, tool: str = "", target: str = "") -> Runner | NoRunner | None:
    """The runner asked for by name when it fits, else the first that fits; None when nothing looks like tests."""
    found = [fit for fit in (_python(seen, target, tool), *_others(seen, target)) if fit is not None]
    if tool:
        named = [fit for fit in found if isinstance(fit, Runner) and tool in fit.command.split()]
        named += [fit for fit in found if isinstance(fit, Runner) and tool in fit.command]
        if named:
            return named[0]
        if any(isinstance(fit, Runner) for fit in found) and tool in ("pytest", "cargo", "go test", "jest", "vitest"):
            return NoRunner(f"nothing here is set up for `{tool}`")
    usable = [fit for fit in found if isinstance(fit, Runner)]
    return usable[0] if usable else (found[0] if found else None)


def _python(seen: Surroundings, target: str, tool: str) -> Runner | NoRunner | None:
    config = _pytest_config(seen)
    files = [file for file in seen.test_files if _PYTHON_TEST.search(file)]
    if not config and not files:
        return None
    python = next(iter(seen.pythons), None)
    if python is None:
        return NoRunner("there are Python tests, but no Python interpreter was found to run them")
    uses = {file: seen.libraries.get(file, frozenset()) for file in files}
    for_pytest = config or next((f"`{file}`" for file, libraries in uses.items() if "pytest" in libraries), "")
    for_unittest = next((file for file, libraries in uses.items() if "unittest" in libraries), "")
    with_pytest = next((python for python, has in seen.pythons.items() if has), None)
    if tool == "unittest" and files:
        return Runner("unittest", _unittest_command(seen, python, files, target), "asked for")
    if with_pytest and (for_pytest or not all("unittest" in libraries for libraries in uses.values())):
        return _pytest(with_pytest, target, for_pytest or f"`{files[0]}`")
    if for_unittest and not for_pytest:
        return Runner("unittest", _unittest_command(seen, python, files, target), f"`{for_unittest}` uses unittest")
    return NoRunner(
        f"the tests here are for pytest ({for_pytest or f'`{files[0]}`'}), and {_listed(seen)} cannot import it: "
        f"install it, for example `{python} -m pip install pytest`"
    )


def _listed(seen: Surroundings) -> str:
    return " and ".join(f"`{python}`" for python in seen.pythons)


def _pytest_config(seen: Surroundings) -> str:
    pyproject = toml_table(seen.texts.get("pyproject.toml", ""))
    if "pytest" in as_object(pyproject.get("tool")):
        return "`[tool.pytest]` in `pyproject.toml`"
    for file, section in (("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]")):
        if section in seen.texts.get(file, ""):
            return f"`{section}` in `{file}`"
    return next(
        (f"`{file}`" for file in ("pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py") if file in seen.names), ""
    )


def _pytest(python: str, target: str, why: str) -> Runner:
    wanted = ""
    if target:
        wanted = f" {shlex.quote(target)}" if "/" in target or "." in target else f" -k {shlex.quote(target)}"
    command = f"{_quiet(python)} -m pytest -p no:cacheprovider --tb=short -rfE --continue-on-collection-errors{wanted}"
    # Capturing by file descriptor needs a temporary file, which a read-only sandbox does not give.
    return Runner("pytest", command, why, f"{command} --capture=sys")


def _quiet(python: str) -> str:
    return f"PYTHONDONTWRITEBYTECODE=1 {python}"


def _unittest_command(seen: Surroundings, python: str, files: list[str], target: str) -> str:
    base = f"{_quiet(python)} -m unittest"
    if target.endswith(".py"):
        return f"{base} {shlex.quote(target)}"
    name = f" -k {shlex.quote(target)}" if target and "/" not in target else ""
    folders = {file.rpartition("/")[0] for file in files}
    pattern = "" if any(file.rpartition("/")[2].startswith("test") for file in files) else " -p '*_test.py'"
    top = min(folders, key=lambda folder: (folder.count("/"), folder))
    first = top.split("/", 1)[0]
    if not top or f"{first}/__init__.py" in seen.names:
        start = f" -s {shlex.quote(first)} -t ." if top else ""
        return f"{base} discover{start}{pattern}{name}"
    return f"{base} discover -s {shlex.quote(top)}{pattern}{name}"


def _others(seen: Surroundings, target: str) -> list[Runner | NoRunner | None]:
    return [_node(seen), _cargo(seen, target), _go(seen, target), *_by_file(seen), _make(seen), _script(seen)]


def _node(seen: Surroundings) -> Runner | None:
    files = [file for file in seen.test_files if _NODE_TEST.search(file)]
    if "package.json" not in seen.names:
        return Runner("node:test", "node --test", f"`{files[0]}`") if files else None
    script = as_object(json_object(seen.texts.get("package.json", "")).get("scripts")).get("test")
    if isinstance(script, str) and script.strip() and _NO_NPM_TEST not in script:
        manager = next(
            (
                name
                for lock, name in (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun run"))
                if lock in seen.names
            ),
            "npm",
        )
        return Runner("npm script", f"CI=1 {manager} test", "the `test` script in `package.json`")
    return Runner("node:test", "node --test", f"`{files[0]}`") if files else None


def _cargo(seen: Surroundings, target: str) -> Runner | None:
    if "Cargo.toml" not in seen.names:
        return None
    name = f" {shlex.quote(target)}" if target and "." not in target and "/" not in target else ""
    return Runner("cargo", f"cargo test --no-fail-fast{name}", "`Cargo.toml`")


def _go(seen: Surroundings, target: str) -> Runner | None:
    if "go.mod" not in seen.names:
        return None
    folder = f"./{target.strip('./')}/..." if "/" in target and "." not in target else "./..."
    return Runner("go", f"go test -v {shlex.quote(folder)}", "`go.mod`")


def _by_file(seen: Surroundings) -> list[Runner]:
    return [Runner(name, command, f"`{file}`") for file, command, name in _BY_FILE if file in seen.names][:1]


def _make(seen: Surroundings) -> Runner | None:
    for file in ("Makefile", "makefile", "GNUmakefile"):
        targets = make_targets(seen.texts.get(file, ""))
        for target in ("test", "tests", "check"):
            if target in targets:
                return Runner("make", f"make {target}", f"the target `{target}` in `{file}`")
    return None


def _script(seen: Surroundings) -> Runner | None:
    script = next((name for name in _SCRIPTS if name in seen.names), None)
    return (
        Runner("script", f"sh {script}" if script.endswith(".sh") else f"./{script}", f"`{script}`") if script else None
    )
