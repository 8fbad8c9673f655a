"""The shape of the program, checked: who imports whom, sizes, names, and what a module may not do.

Each rule is a function from a module to its findings; the second half of the file plants a violation for each.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1] / "codex_py"

# A package may import itself, the free modules, and whatever is listed.
ALLOWED: Final[dict[str, set[str]]] = {
    "protocol": set(),
    "text": set(),
    "config": {"protocol", "text"},
    "model": {"protocol", "text", "config"},
    "auth": {"protocol", "text", "model"},
    "offline": {"protocol", "text"},
    "process": {"protocol", "text", "config"},
    "sandbox": {"protocol"},
    "patch": {"text"},
    "shell": {"protocol", "text"},
    "skills": {"protocol", "text", "shell"},
    "plugins": {"protocol", "text", "skills"},
    "rollout": {"protocol", "text", "patch"},
    "context": {"protocol", "text", "skills"},
    "tools": {"protocol", "text", "process", "sandbox", "shell", "patch", "skills"},
    "core": {
        "protocol",
        "text",
        "config",
        "model",
        "auth",
        "plugins",
        "skills",
        "rollout",
        "context",
        "tools",
        "process",
        "sandbox",
        "shell",
    },
    "mcp": {
        "protocol",
        "text",
        "config",
        "model",
        "auth",
        "plugins",
        "skills",
        "process",
        "context",
        "tools",
        "core",
    },
    "telemetry": {"protocol", "core"},
    "hooks": {"protocol", "text", "config", "plugins", "skills", "process", "context", "rollout", "tools", "core"},
    "subagents": {"protocol", "text", "config", "model", "skills", "rollout", "context", "tools", "core"},
    "services": {
        "protocol",
        "text",
        "config",
        "model",
        "auth",
        "skills",
        "plugins",
        "hooks",
        "subagents",
        "rollout",
        "context",
        "tools",
        "process",
        "sandbox",
        "core",
    },
    "checkpoints": {"protocol", "text", "config", "rollout", "shell", "core", "services"},
    "render": {"protocol", "text", "rollout"},
    "ui": {"protocol", "text", "config", "core", "services", "render", "rollout", "skills"},
    "exec": {"protocol", "text", "config", "core", "render", "rollout"},
    "server": {"protocol", "text", "config", "core", "services", "rollout", "render"},
    "batch": {"protocol", "text", "config", "model", "services", "skills"},
    "cli": {
        "protocol",
        "text",
        "config",
        "context",
        "core",
        "services",
        "auth",
        "plugins",
        "render",
        "rollout",
        "skills",
        "mcp",
        "hooks",
        "checkpoints",
        "sandbox",
        "model",
        "ui",
        "exec",
        "server",
        "batch",
    },
}
# The core knows these by the protocols of `core/ports.py`; the one module that imports them puts sessions together.
FEATURES: Final = {"telemetry", "checkpoints", "hooks", "mcp", "offline", "services", "subagents"}
COMPOSITION_ROOT: Final = "core/build.py"
FREE: Final = {"errors", "paths", "programs", "log", "replace_file"}

MAX_LINES: Final = 400
MAX_LINES_OF_LISTED: Final = 500
# Tables and parsers that are clearer in one piece.
LISTED: Final[set[str]] = set()
MAX_FUNCTION_LINES: Final = 60
MAX_PARAMETERS: Final = 6
MAX_PUBLIC_METHODS: Final = 15

# Typer reads the options of a command off the parameters of one function.
COMMAND_LINES: Final = {
    ("cli/config.py", "config"),
    ("cli/login.py", "login"),
    ("cli/mcp_trust.py", "trust"),
    ("cli/models.py", "models"),
    ("cli/checkpoints.py", "rewind"),
    ("cli/sessions.py", "list_stored"),
    ("cli/skills.py", "diagnose"),
    ("cli/skills.py", "search_skills"),
    ("cli/skills.py", "show_skill"),
    ("cli/skills_report.py", "report_skills"),
    ("cli/skills_test.py", "test_skill"),
    ("cli/skills_install.py", "install_skills"),
    ("cli/skills_install.py", "update_skills"),
}

# What happens while a module is imported, and has to: an interrupt ends the console script before there is anything to
# tell, and the library's fork server can only import.
AT_IMPORT: Final = {"cli/entry.py", "cli/preloaded.py"}

# Imports that wait for their first use: (module, what it imports there).
LAZY: Final = {
    # Only where a login is kept elsewhere than in its file, or can be renewed.
    ("auth/login_store.py", "keyring"),
    ("core/model_setup.py", "codex_py.auth.renewal"),
    # Only where the caller asks for a form of the answer.
    ("core/answer_schema.py", "jsonschema"),
    # Only with --offline.
    ("core/build.py", "codex_py.offline.server"),
    # Only for who exports traces.
    ("core/build.py", "codex_py.telemetry.session"),
    # Only for who has hooks, and for who is notified.
    ("core/build.py", "codex_py.hooks.session"),
    ("core/build.py", "codex_py.hooks.after_turn"),
    # Only for who changes files.
    ("core/build.py", "codex_py.checkpoints.session"),
    # What draws, for prompt_toolkit; what shows events, for rich and pygments, once the prompt is on the screen.
    ("cli/repl.py", "codex_py.ui.repl.app"),
    ("cli/repl.py", "codex_py.ui.repl.lines"),
    ("cli/repl.py", "codex_py.ui.repl.screen_session"),
    # For rich: only for who looks at a batch.
    ("cli/batch.py", "codex_py.batch.live_table"),
    # Only when a file is changed.
    ("config/edit.py", "tomlkit"),
    ("tools/apply_patch.py", "codex_py.tools.patching"),
    # Only where `sandbox.deny_read` has wildcards.
    ("sandbox/unreadable.py", "pathspec"),
    # Only when a command is judged, or read for the skill it uses.
    ("shell/reader.py", "codex_py.shell.reading"),
    # Only with an MCP server; the SDK once one is started, and the validator once one asks the user.
    ("core/build.py", "codex_py.mcp.build"),
    ("mcp/connections.py", "codex_py.mcp.connection"),
    ("mcp/elicitation.py", "jsonschema"),
    # Only when a tool is called: beside the end of the answer that calls it.
    ("core/build.py", "codex_py.core.tool_runtime"),
    # Only for who has installed skills.
    ("core/build.py", "codex_py.services.skill_trust"),
    # Only where the list is short of skills.
    ("core/session_skills.py", "codex_py.core.skill_finder"),
    # Only when a skill is named or used.
    ("core/skill_requests.py", "codex_py.core.skill_runs"),
    # Only when an agent is started or looked for.
    ("core/build.py", "codex_py.subagents.spawner"),
    # Only when a skill has changed.
    ("skills/service.py", "codex_py.skills.scan"),
    ("text/frontmatter.py", "yaml"),
    # Only where tokens are shown.
    ("text/tokenizer.py", "tiktoken"),
    # Only when a tool is called.
    ("tools/view_image.py", "codex_py.tools.picture"),
}

# The boundaries where anything may be caught: a tool, a listener, a hook, an MCP server's start, the program.
CATCH_ALL: Final = {
    "tools/registry.py",
    "core/listeners.py",
    "hooks/engine.py",
    "mcp/connections.py",
    "cli/main.py",
}

_MUTABLE_CALLS: Final = {
    "list",
    "dict",
    "set",
    "bytearray",
    "defaultdict",
    "deque",
    "OrderedDict",
    "Counter",
    "ContextVar",
}
_BANNED_MODULE: Final = re.compile(r"^_*(utils?|helpers?|common|misc|.*_(utils|helpers|part\d+|mixin))$")
_BANNED_FUNCTION: Final = re.compile(r"^_*((handle|process|do)_\w+|data|info|obj|utils|helper)$")
# A name that a library's interface fixes.
_FIXED_FUNCTIONS: Final = {"handle_async_request"}
_BANNED_CLASS: Final = re.compile(r"(Mixin|Helper|Utils)$")
# Words that say nothing to a newcomer, anywhere in a name that we declare; DESIGN.md says what stands for them.
_PRIVATE_WORDS: Final = frozenset(
    "told tell tells teller telling tale news saying sayings narrator desk door doors seat seats ground slot room "
    "house hands kin vault shelf elders story said given asked wish wishes wished brought fed carried kept late "
    "errand journey sitting voice deed lookout guard later arena trial soak sip sips folder folders adopt learn "
    "relieve anew".split()
)
# As a whole name; in a longer one they may be part of a common word, and some name fields of wire formats.
_VAGUE_NAMES: Final = frozenset(("one", "thing", "place", "variables"))
_EXTREMES: Final = re.compile(r"_?(MOST|LEAST|LONGEST)_")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class Module:
    """A source file; `name` is its path below the package, with slashes."""

    name: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def package(self) -> str:
        """Its package; for a module beside the packages its own name."""
        return self.name.split("/")[0].removesuffix(".py")

    @property
    def dotted(self) -> str:
        return "codex_py." + self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    @cached_property
    def inner_imports(self) -> list[tuple[str, ast.Import | ast.ImportFrom]]:
        """The imports inside functions, each with the name of the innermost function around it."""
        imports = [node for node in self.nodes if isinstance(node, ast.Import | ast.ImportFrom) and node.col_offset]
        around = [[f.name for f in self.functions if f.lineno < n.lineno <= (f.end_lineno or 0)] for n in imports]
        return [(names[-1], node) for names, node in zip(around, imports, strict=True) if names]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    found = [Module(path.relative_to(ROOT).as_posix(), path.read_text()) for path in sorted(ROOT.rglob("*.py"))]
    # A million objects that all stay: the collector would look at them again and again.
    gc.disable()
    try:
        assert all(module.nodes for module in found)
    finally:
        gc.freeze()
        gc.enable()
    return found


# The rules


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Dotted names of what the imports among the nodes bring in; from `from a import b` it is `a.b`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def foreign_packages(module: Module) -> Iterator[str]:
    for name in imported(module.nodes):
        head, _, rest = name.partition(".")
        if head == "":
            yield f"relative import `{name}`"
        if head != "codex_py":
            continue
        package = rest.split(".")[0]
        if package in FREE or package == module.package or package == "__version__":
            continue
        if module.name == COMPOSITION_ROOT and package in FEATURES:
            continue
        if package not in ALLOWED.get(module.package, set()):
            yield f"`{module.package}` must not import `{package}`"


def unknown_package(module: Module) -> Iterator[str]:
    if module.package not in ALLOWED.keys() | FREE | {"__init__", "__main__"}:
        yield f"`{module.package}` is not a package of DESIGN.md"


def long_module(module: Module) -> Iterator[str]:
    limit = MAX_LINES_OF_LISTED if module.name in LISTED else MAX_LINES
    if (lines := module.source.count("\n")) > limit:
        yield f"{lines} lines"


def long_function(module: Module) -> Iterator[str]:
    for function in module.functions:
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > MAX_FUNCTION_LINES:
            yield f"`{function.name}` has {lines} lines"


def many_parameters(module: Module) -> Iterator[str]:
    for function in module.functions:
        if (module.name, function.name) in COMMAND_LINES:
            continue
        given = function.args
        names = [argument.arg for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
        if (count := len([name for name in names if name not in ("self", "cls")])) > MAX_PARAMETERS:
            yield f"`{function.name}` has {count} parameters"


def wide_class(module: Module) -> Iterator[str]:
    for node in module.classes:
        methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
        if (count := len({name for name in methods if not name.startswith("_")})) > MAX_PUBLIC_METHODS:
            yield f"`{node.name}` has {count} public methods"


def import_inside_function(module: Module) -> Iterator[str]:
    for function, node in module.inner_imports:
        for name in imported([node]):
            target = name if name.startswith("codex_py.") else name.split(".")[0]
            if not any((module.name, part) in LAZY for part in (target, target.rpartition(".")[0])):
                yield f"`{function}` imports `{target}`"


def banned_name(module: Module) -> Iterator[str]:
    parts = module.name.removesuffix(".py").split("/")
    yield from (f"module `{part}`" for part in parts if _BANNED_MODULE.match(part))
    own = (node.name for node in module.functions if node.name not in _FIXED_FUNCTIONS)
    yield from (f"function `{name}`" for name in own if _BANNED_FUNCTION.match(name))
    yield from (f"class `{node.name}`" for node in module.classes if _BANNED_CLASS.search(node.name))


def private_word(module: Module) -> Iterator[str]:
    """Names of ours with a word that only we would understand."""
    names = {name for node in module.nodes for name in _declared(node)}
    for name in sorted(names | {part.removesuffix(".py") for part in module.name.split("/")}):
        words = {word.lower() for word in _WORDS.findall(name)}
        if words & _PRIVATE_WORDS or name in _VAGUE_NAMES or _EXTREMES.match(name):
            yield f"name `{name}`"


def _declared(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case _:
            return


def catches_everything(module: Module) -> Iterator[str]:
    if module.name in CATCH_ALL:
        return
    for node in module.nodes:
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = {"BaseException"} if node.type is None else {ast.unparse(part) for part in _alternatives(node.type)}
        raises_again = isinstance(node.body[-1], ast.Raise)
        if "Exception" in caught or ("BaseException" in caught and not raises_again):
            yield f"line {node.lineno} catches everything"


def _alternatives(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def silenced_checker(module: Module) -> Iterator[str]:
    return comments_with(module, r"type:\s*ignore|pyright:\s*(ignore|basic)")


def unfinished(module: Module) -> Iterator[str]:
    return comments_with(module, r"\b(TODO|FIXME|XXX|HACK)\b|[-=#*]{5,}")


def comments_with(module: Module, pattern: str) -> Iterator[str]:
    if not re.search(pattern, module.source):
        return  # most have no such text at all, and telling comments from strings takes long
    for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
        if token.type == tokenize.COMMENT and re.search(pattern, token.string):
            yield f"line {token.start[0]}: `{token.string}`"


def no_docstring(module: Module) -> Iterator[str]:
    if module.tree.body and not ast.get_docstring(module.tree):
        yield "no docstring"


def mutable_module_value(module: Module) -> Iterator[str]:
    for node in module.tree.body:
        if isinstance(node, ast.Assign):
            targets, value, final = node.targets, node.value, False
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value, final = [node.target], node.value, "Final" in ast.unparse(node.annotation)
        else:
            continue
        name = ast.unparse(targets[0])
        if not final and name != "__all__" and _is_mutable(value):
            yield f"`{name}` can change"


def _is_mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).split(".")[-1].split("[")[0] in _MUTABLE_CALLS
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def works_at_import(module: Module) -> Iterator[str]:
    if module.name in AT_IMPORT:
        return
    for node in module.tree.body:
        is_call = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
        if is_call or isinstance(node, ast.For | ast.While | ast.With):
            yield f"line {node.lineno} does something at import"


def global_statement(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Global):
            yield f"line {node.lineno}: `global {', '.join(node.names)}`"


RULES: Final[list[Callable[[Module], Iterator[str]]]] = [
    foreign_packages,
    unknown_package,
    long_module,
    long_function,
    many_parameters,
    wide_class,
    import_inside_function,
    banned_name,
    private_word,
    catches_everything,
    silenced_checker,
    unfinished,
    no_docstring,
    mutable_module_value,
    works_at_import,
    global_statement,
]


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Every way back to a node already on the path."""
    found: list[list[str]] = []
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> None:
        if node in path:
            found.append([*path[path.index(node) :], node])
            return
        if node in done:
            return
        for target in sorted(edges.get(node, set())):
            visit(target, [*path, node])
        done.add(node)

    for start in sorted(edges):
        visit(start, [])
    return found


def module_edges(modules: list[Module]) -> dict[str, set[str]]:
    """Which module imports which: at its top, inside of functions, and for the type checker."""
    known = {module.dotted for module in modules}
    edges: dict[str, set[str]] = {}
    for module in modules:
        names = set(imported(module.nodes))
        targets = {name if name in known else name.rpartition(".")[0] for name in names}
        edges[module.dotted] = (targets & known) - {module.dotted, "codex_py"}
    return edges


# The program


def test_every_module_keeps_the_rules(modules: list[Module]) -> None:
    # All at once: a module is parsed for the first of them, which takes longer than to ask them all.
    findings = [f"{module.name}: {finding}" for module in modules for rule in RULES for finding in rule(module)]
    assert not findings, "\n" + "\n".join(findings)


def test_the_plan_of_the_packages_has_no_cycle() -> None:
    assert cycles(ALLOWED) == []


def test_no_module_imports_its_importer(modules: list[Module]) -> None:
    assert cycles(module_edges(modules)) == []


def test_the_program_keeps_its_shape(modules: list[Module]) -> None:
    """What the imports were brought down to, so that it does not grow again."""
    blocks = sum(
        isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for module in modules
        for node in module.tree.body
    )
    inner = sum(len(module.inner_imports) for module in modules)
    lengths = sorted(lines for m in modules if (lines := m.source.count("\n")) > 3)
    assert (blocks <= 5, inner <= 28, len(lengths) <= 540, lengths[len(lengths) // 2] >= 120) == (True,) * 4


def test_public_classes_have_names_of_their_own(modules: list[Module]) -> None:
    names = [node.name for module in modules for node in module.classes if not node.name.startswith("_")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


@pytest.mark.parametrize(("package", "most"), [("offline", 1500), ("shell", 1800)])
def test_a_package_of_rules_stays_small(package: str, most: int) -> None:
    modules = [path for path in (ROOT / package).glob("*.py") if path.name != "__init__.py"]
    lines = sum(len(path.read_text().splitlines()) for path in modules)
    assert (len(modules) <= 10, lines <= most) == (True, True)


def test_the_lists_name_only_what_is_there(modules: list[Module]) -> None:
    names = {module.name for module in modules}
    stale = {module for module, _ in LAZY if module not in names} | (LISTED - names) | (AT_IMPORT - names)
    functions = [(module.name, function) for module in modules for function in module.functions]
    known = {(module, function.name) for module, function in functions}
    stale |= {f"{module}: {function}" for module, function in COMMAND_LINES - known}
    packages = {path.name for path in ROOT.iterdir() if path.is_dir()}
    stale |= {name for name in CATCH_ALL if name not in names and name.split("/")[0] in packages}
    late = {(module.name, name) for module in modules for _, node in module.inner_imports for name in imported([node])}
    for module, target in LAZY:
        if not any(name == module and (found + ".").startswith(target + ".") for name, found in late):
            stale.add(f"{module} imports {target}")
    assert not stale


# The rules at work

_SEVEN: Final = "a, b, c, d, e, f, g"
_METHODS: Final = "\n".join(f"    def m{number}(self): ..." for number in range(16))
_LONG: Final = "def f():\n" + "    x = 1\n" * 60


@pytest.mark.parametrize(
    ("rule", "name", "source", "finding"),
    [
        (foreign_packages, "model/a.py", "from codex_py.core.turn import x", "`model` must not import `core`"),
        (foreign_packages, "model/a.py", "import codex_py.core.turn", "`model` must not import `core`"),
        (foreign_packages, "model/a.py", "from codex_py import core", "`model` must not import `core`"),
        (foreign_packages, "core/turn.py", "from codex_py.hooks.session import x", "`core` must not import `hooks`"),
        (foreign_packages, "core/a.py", "from codex_py.subagents import roles", "`core` must not import `subagents`"),
        (foreign_packages, "paths.py", "from codex_py.text import x", "`paths` must not import `text`"),
        (foreign_packages, "model/a.py", "def f():\n    from codex_py.ui import x", "`model` must not import `ui`"),
        (foreign_packages, "model/a.py", "from . import x", "relative import `..x`"),
        (unknown_package, "attic/a.py", "", "`attic` is not a package of DESIGN.md"),
        (long_module, "text/a.py", "x = 1\n" * 401, "401 lines"),
        (long_function, "text/a.py", _LONG, "`f` has 61 lines"),
        (many_parameters, "text/a.py", f"def f({_SEVEN}): ...", "`f` has 7 parameters"),
        (many_parameters, "text/a.py", f"class A:\n    async def f(self, *, {_SEVEN}): ...", "`f` has 7 parameters"),
        (wide_class, "text/a.py", f"class A:\n{_METHODS}", "`A` has 16 public methods"),
        (import_inside_function, "text/a.py", "def f():\n    import yaml.loader", "`f` imports `yaml`"),
        (
            import_inside_function,
            "text/a.py",
            "class A:\n    async def f(self):\n        from codex_py.text.b import x",
            "`f` imports `codex_py.text.b.x`",
        ),
        (banned_name, "text/utils.py", "", "module `utils`"),
        (banned_name, "text/turn_helpers.py", "", "module `turn_helpers`"),
        (banned_name, "text/a.py", "def handle_event(): ...", "function `handle_event`"),
        (banned_name, "text/a.py", "def _do_it(): ...", "function `_do_it`"),
        (banned_name, "text/a.py", "async def process_line(): ...", "function `process_line`"),
        (banned_name, "text/a.py", "class SaveMixin: ...", "class `SaveMixin`"),
        (private_word, "text/told.py", "", "name `told`"),
        (private_word, "text/a.py", "def tell_user(): ...", "name `tell_user`"),
        (private_word, "text/a.py", "class LateInput: ...", "name `LateInput`"),
        (private_word, "text/a.py", "def f(given): ...", "name `given`"),
        (private_word, "text/a.py", "x = [one for one in y]", "name `one`"),
        (private_word, "text/a.py", "self.kept_files = x", "name `kept_files`"),
        (private_word, "text/a.py", "match x:\n    case [*said]: ...", "name `said`"),
        (private_word, "text/a.py", "_MOST_LINES = 3", "name `_MOST_LINES`"),
        (catches_everything, "text/a.py", "try: ...\nexcept Exception: ...", "line 2 catches everything"),
        (catches_everything, "text/a.py", "try: ...\nexcept (OSError, Exception): ...", "line 2 catches everything"),
        (catches_everything, "text/a.py", "try: ...\nexcept: ...", "line 2 catches everything"),
        (catches_everything, "text/a.py", "try: ...\nexcept BaseException:\n    x = 1", "line 2 catches everything"),
        (silenced_checker, "text/a.py", "x = y  # type: ignore[name]", "line 1: `# type: ignore[name]`"),
        (silenced_checker, "text/a.py", "x = y  # pyright: ignore", "line 1: `# pyright: ignore`"),
        (unfinished, "text/a.py", "# TODO later", "line 1: `# TODO later`"),
        (unfinished, "text/a.py", "# ------- part two", "line 1: `# ------- part two`"),
        (no_docstring, "text/a.py", "x = 1", "no docstring"),
        (mutable_module_value, "text/a.py", "CACHE = {}", "`CACHE` can change"),
        (mutable_module_value, "text/a.py", "CACHE: dict[str, int] = dict()", "`CACHE` can change"),
        (mutable_module_value, "text/a.py", "names = [x for x in 'abc']", "`names` can change"),
        (mutable_module_value, "text/a.py", "c = collections.defaultdict[str, int](int)", "`c` can change"),
        (mutable_module_value, "text/a.py", "v = ContextVar('v')", "`v` can change"),
        (works_at_import, "text/a.py", "print(1)", "line 1 does something at import"),
        (works_at_import, "text/a.py", "for x in y: ...", "line 1 does something at import"),
        (global_statement, "text/a.py", "def f():\n    global x, y", "line 2: `global x, y`"),
    ],
)
def test_a_rule_finds_a_violation(
    rule: Callable[[Module], Iterator[str]], name: str, source: str, finding: str
) -> None:
    assert list(rule(Module(name, source))) == [finding]


@pytest.mark.parametrize(
    "source",
    [
        '"""A module."""\n\nfrom codex_py.errors import UserError\nfrom codex_py.text.b import x\n',
        '"""A module."""\n\nNAMES: Final = {"a": 1}\nPAIRS = (1, 2)\n__all__ = ["x"]\n',
        '"""A module."""\n\ntry: ...\nexcept BaseException:\n    close()\n    raise\n',
        '"""A module."""\n\ndef f(self, a, b, *, c, d, e, f): ...\n',
        '"""A module."""\n\nif __name__ == "__main__":\n    main()\n',
        "",
    ],
)
def test_a_good_module_has_no_findings(source: str) -> None:
    module = Module("text/a.py", source)
    assert [finding for rule in RULES for finding in rule(module)] == []


def test_cycles_are_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c", "a"]]
    modules = [
        Module("text/a.py", "from codex_py.text.b import x"),
        Module("text/b.py", "from codex_py.text import a\nfrom codex_py.text import c"),
        Module("text/c.py", "if TYPE_CHECKING:\n    from codex_py.text.a import x"),
    ]
    assert cycles(module_edges(modules)) == [
        ["codex_py.text.a", "codex_py.text.b", "codex_py.text.a"],
        ["codex_py.text.a", "codex_py.text.b", "codex_py.text.c", "codex_py.text.a"],
    ]


def test_python_is_started_without_the_modules_of_the_current_directory(modules: list[Module]) -> None:
    started = [found for module in modules for found in re.findall(r"\(?\[?sys\.executable, (\S+)", module.source)]
    assert started
    assert [option for option in started if option not in ('"-I",', '"-P",')] == []


def test_every_dependency_says_from_which_version_on() -> None:
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    users = [*project["dependencies"], *(wanted for name, of in extras.items() if name != "dev" for wanted in of)]
    # Without one, the oldest version that was ever published would do.
    assert [wanted for wanted in users if not re.match(r"[\w.-]+>=\d", wanted)] == []
