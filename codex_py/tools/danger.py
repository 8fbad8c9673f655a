"""Commands that destroy what no undo brings back, wherever in a script they hide.

A guard against accidents: it reads what a script says and cannot know what it computes. The boundary is the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from codex_py.skills.commands import PlainCommand, ReadLimits, Word, plain_commands
from codex_py.text.bash_tree import parse_bash, text_of
from codex_py.tools.destroying import TO_DISK, destroys, is_judged

if TYPE_CHECKING:
    from tree_sitter import Node

# All that fits on a command line.
WHOLE_SCRIPT: Final = ReadLimits(script_bytes=1024 * 1024, quoted_bytes=2 * 1024 * 1024, commands=5000)
_MAX_DEPTH: Final = 150
_MAX_SCRIPTS: Final = 64
_MAX_NODES: Final = 200_000

SHELLS: Final = frozenset(("bash", "sh", "zsh", "dash", "ksh", "fish"))
_INTERPRETERS: Final = frozenset(("python", "python3", "perl", "ruby", "node", "php", "lua", "osascript"))
_FETCHERS: Final = frozenset(("curl", "wget", "fetch", "aria2c", "http", "nc", "ncat", "ftp", "scp"))
# Programs that make readable what was not, with their options that say so.
_DECODERS: Final[Mapping[str, frozenset[str]]] = {
    "base32": frozenset(("-d", "--decode")),
    "base64": frozenset(("-d", "-D", "-di", "--decode")),
    "openssl": frozenset(("-d",)),
    "xxd": frozenset(("-r", "-rp")),
}
_PRINTERS: Final = frozenset(("echo", "printf"))

# Programs that run the command in their arguments, with their options that take a word.
_RUNNERS: Final[Mapping[str, frozenset[str]]] = {
    "busybox": frozenset(),
    "chroot": frozenset(),
    "doas": frozenset(("-u", "-C")),
    "ionice": frozenset(("-c", "-n")),
    "nsenter": frozenset(("-t",)),
    "parallel": frozenset(("-j", "-n", "-N", "-I", "-a", "--jobs")),
    "setsid": frozenset(),
    "toybox": frozenset(),
    "unshare": frozenset(),
    "xargs": frozenset(("-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s", "--max-args", "--max-procs", "--delimiter")),
}
# Programs that run a command somewhere in their arguments, with too many options of their own to know them all.
_WRAPPERS: Final = frozenset(
    "bundle catchsegv chronic coproc dbus-run-session docker expect fakeroot firejail flock kubectl ltrace npx oc perf "
    "pipenv podman poetry proxychains proxychains4 runuser script ssh strace su systemd-run torsocks unbuffer uv "
    "valgrind watch xvfb-run".split()
)
_SEARCHED_WORDS, _MOST_ARGUMENTS = 32, 1000
# Programs whose arguments hold whole scripts.
_SCRIPT_TAKERS: Final = frozenset(
    ("alias", "flock", "parallel", "screen", "script", "ssh", "su", "tmux", "trap", "watch")
)
# Programs that look for files, with their options that run a command on what was found.
_FINDERS: Final[Mapping[str, frozenset[str]]] = {
    "fd": frozenset(("-x", "-X", "--exec", "--exec-batch")),
    "fdfind": frozenset(("-x", "-X", "--exec", "--exec-batch")),
    "find": frozenset(("-exec", "-execdir", "-ok", "-okdir")),
}
_COPIERS: Final = frozenset(("cp", "dd", "mv", "tee", "install"))
# Blanks in disguise.
_BLANKS: Final = re.compile(r"\$IFS\b|\$\{IFS\}")
_DEVICE: Final = re.compile(
    r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|md|loop|k?mem\b|port\b)|/proc/sysrq-trigger"
)

_FROM_PIPE: Final = "it runs what another command prints as a script"
_FETCHED: Final = "it runs what it downloads"
_DECODED: Final = "it runs what it decodes"
_UNREADABLE: Final = "it has more commands, or more tangled ones, than can be judged"


def find_danger(script: str, folder: str, variables: Mapping[str, str]) -> str | None:
    """Why a script is dangerous, as a clause that begins with `it`; None when nothing dangerous is seen in it.

    `folder` and `variables` are what the script would start with.
    """
    return _Search(folder, variables).script(script)


class _Search:
    """One look through a script and the scripts inside it."""

    def __init__(self, folder: str, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._variables = variables
        self._scripts = 0

    def script(self, text: str) -> str | None:
        self._scripts += 1
        text = _BLANKS.sub(" ", text)
        root = parse_bash(text, WHOLE_SCRIPT.script_bytes) if self._scripts <= _MAX_SCRIPTS else None
        if root is None:
            return _UNREADABLE
        commands = plain_commands(text, self._folder, self._variables, limits=WHOLE_SCRIPT)
        if len(commands) >= WHOLE_SCRIPT.commands:
            return _UNREADABLE
        found = (self._command(list(command.words)) for command in commands)
        return next((reason for reason in found if reason), None) or _fetched(commands, text) or self._tree(root)

    def _command(self, words: list[Word]) -> str | None:
        if not words:
            return None
        name = (words[0].text or "").rpartition("/")[2].lower()
        rest = words[1:]
        if name in _FINDERS:
            return self._find(rest, _FINDERS[name])
        if name == "git" and (reason := self._of_git(rest)):
            return reason
        if name in _SCRIPT_TAKERS and (reason := self._first(map(_script_in(name), rest))):
            return reason
        if name in _WRAPPERS and (reason := self._anywhere(rest)):
            return reason
        if name in _RUNNERS:
            inner = _behind_options(rest, _RUNNERS[name])
            if name in ("xargs", "parallel") and inner and _program(inner) == "rm":
                return "it deletes whatever it is given (`xargs rm`)"
            return self._command(inner)
        if name in SHELLS and (quoted := _after(rest, "c")) is not None:
            return self.script(quoted)
        if name in _COPIERS and any(_DEVICE.search(word.text or "") for word in rest):
            return TO_DISK
        # What the reader made of `~` is undone: a whole home is deleted under its name, too.
        home = self._variables.get("HOME")
        return destroys(name, ["~" if word.text == home else word.text or "" for word in rest])

    def _anywhere(self, rest: list[Word]) -> str | None:
        """Why the command is dangerous that begins at any of the first words."""
        for place, word in enumerate(rest[:_SEARCHED_WORDS]):
            name, behind = (word.text or "").rpartition("/")[2], rest[place + 1 : place + _MOST_ARGUMENTS]
            if name in SHELLS and (quoted := _after(behind, "c")) is not None and (reason := self.script(quoted)):
                return reason
            if is_judged(name) and (reason := destroys(name, [one.text or "" for one in behind])):
                return reason
        return None

    def _find(self, rest: list[Word], runs: frozenset[str]) -> str | None:
        for place, word in enumerate(rest):
            if word.text == "-delete":
                return "it deletes whatever it finds (`find -delete`)"
            if word.text in runs:
                inner = rest[place + 1 :]
                if inner and _program(inner) == "rm":
                    return "it deletes whatever it finds (`find -exec rm`)"
                if reason := self._command(inner):
                    return reason
        return None

    def _of_git(self, rest: list[Word]) -> str | None:
        """Why a git command is dangerous for what it has others run."""
        for place, word in enumerate(rest):
            inner = rest[place + 1 :]
            if word.text in ("foreach", "run") and (reason := self._command(_behind_options(inner, frozenset()))):
                return reason
            scripts = inner[:1] if word.text in ("foreach", "--exec", "-x") else []
            if reason := self._first(one.text for one in scripts):
                return reason
        return None

    def _first(self, scripts: Iterator[str | None]) -> str | None:
        return next((reason for text in scripts if text and (reason := self.script(text))), None)

    def _tree(self, root: Node) -> str | None:
        """What only the shape of a script shows: fork bombs, pipes into shells, redirects, scripts fed to a shell."""
        waiting = [(root, 0)]
        seen = 0
        while waiting:
            node, depth = waiting.pop()
            seen += 1
            if depth > _MAX_DEPTH or seen > _MAX_NODES:
                return _UNREADABLE
            if reason := self._node(node):
                return reason
            waiting.extend((child, depth + 1) for child in reversed(node.named_children))
        return None

    def _node(self, node: Node) -> str | None:
        match node.type:
            case "function_definition" if _calls_itself_twice(node):
                return "it starts copies of itself without end (a fork bomb)"
            case "file_redirect" if any(child.type.startswith((">", "&>")) for child in node.children):
                return TO_DISK if _DEVICE.match(text_of(node.named_children[-1]).strip("\"'")) else None
            case "redirected_statement" | "command":
                return self._first(iter(_fed_scripts(node)))
            case "pipeline":
                return self._pipe(node)
            case _:
                return None

    def _pipe(self, node: Node) -> str | None:
        for before, after in zip(node.named_children, node.named_children[1:], strict=False):
            into = self._words(after)
            if not into or not _reads_script(into):
                continue
            source = self._words(before)
            name = _program(source) if source else ""
            if name in _FETCHERS or (_program(into) in SHELLS and name not in (*_PRINTERS, "cat")):
                return _FETCHED if name in _FETCHERS else _FROM_PIPE
            if name in _PRINTERS:
                printed = " ".join(word.text or "" for word in source[1:])
                if reason := self.script(printed.replace("\\n", "\n")):
                    return reason
        return None

    def _words(self, node: Node) -> list[Word]:
        commands = plain_commands(text_of(node), self._folder, self._variables)
        return list(commands[-1].words) if commands else []


def _fetched(found: Sequence[PlainCommand], text: str) -> str | None:
    """A download, or something decoded, and in the same script a shell that is given something unknown, or the file."""
    commands = [[word.text or "" for word in command.words] for command in found]
    fetchers = [words for words in commands if words[0].rpartition("/")[2] in _FETCHERS]
    reason = _FETCHED if fetchers else _DECODED
    if not fetchers and not any(map(_decodes, commands)):
        return None
    named = [word for words in fetchers for word in words[1:] if not word.startswith("-")]
    redirected: list[str] = re.findall(r">\s*([\w./-]+)", text)
    files = {word.rpartition("/")[2] for word in (*named, *redirected)} - {"", "null"}
    for program, *rest in commands:
        name = program.rpartition("/")[2]
        if name in SHELLS | _INTERPRETERS | {"eval", "source", "."}:
            operand = next((word for word in rest if not word.startswith("-")), None)
            if operand == "" or (operand is not None and operand.rpartition("/")[2] in files):
                return reason
        elif "/" in program and name in files:
            return reason
    return None


def _decodes(words: Sequence[str]) -> bool:
    """Whether a command makes a text readable that nobody could read before."""
    options = _DECODERS.get(words[0].rpartition("/")[2])
    return options is not None and not options.isdisjoint(words)


def _program(words: Sequence[Word]) -> str:
    return (words[0].text or "").rpartition("/")[2].lower()


def _script_in(name: str) -> Callable[[Word], str | None]:
    return lambda word: word.text.partition("=")[2] if name == "alias" and word.text else word.text


def _behind_options(words: list[Word], takes_word: frozenset[str]) -> list[Word]:
    """The command behind a runner's options; numbers, as of `-n 1` written apart, are none."""
    while words:
        text = words[0].text or ""
        if text in takes_word:
            words = words[2:]
        elif text.startswith("-") or text.isdigit():
            words = words[1:]
        else:
            break
    return words


def _after(words: list[Word], letter: str) -> str | None:
    """The word behind the bundle of short options that has `letter`."""
    for place, word in enumerate(words[:-1]):
        text = word.text or ""
        if text.startswith("-") and not text.startswith("--") and letter in text:
            return words[place + 1].text
    return None


def _reads_script(words: list[Word]) -> bool:
    """Whether a program takes its script from its input."""
    name, rest = _program(words), [word.text or "" for word in words[1:]]
    if name in SHELLS:
        return "-s" in rest or all(word.startswith("-") and "c" not in word.lstrip("-") for word in rest)
    return name in _INTERPRETERS and all(word == "-" for word in rest)


def _fed_scripts(node: Node) -> list[str]:
    """The here-documents and here-strings of a statement that a shell reads."""
    texts: list[str] = []
    for child in node.named_children:
        if child.type == "heredoc_redirect":
            texts += [text_of(part) for part in child.named_children if part.type == "heredoc_body"]
        elif child.type == "herestring_redirect":
            texts += [text_of(part).strip("\"'") for part in child.named_children]
    if not texts:
        return []
    # What reads it may stand before the here-document, or behind a pipe after it: `cat <<END | sh`.
    line = re.sub(r"<<<.*|<<-?\s*\S+", " ", text_of(node).partition("\n")[0])
    commands = [list(command.words) for command in plain_commands(line, "/", {})]
    return texts if any(_program(words) in SHELLS and _reads_script(words) for words in commands) else []


def _calls_itself_twice(function: Node) -> bool:
    """Whether a function calls itself in a pipeline or in the background."""
    name = text_of(function.named_children[0])
    waiting = list(function.named_children[1:])
    while waiting:
        node = waiting.pop()
        waiting.extend(node.named_children)
        if node.type == "pipeline" and any(text_of(child) == name for child in node.named_children):
            return True
        if any(child.type == "&" for child in node.children) and any(text_of(one) == name for one in node.children):
            return True
    return False
