"""Finding an `apply_patch` call inside a shell command, so that it runs as a patch and not in a shell.

Only a script that is one such call, alone or after one `cd`, is taken; with anything before, after or between it is a
shell's business. Linear in the length of the script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from codex_py.patch.markers import BEGIN, END

_SHELLS: Final = ("bash", "zsh", "sh")
_NAMES: Final = ("apply_patch", "applypatch")
# Patterns, compiled when a command first looks like a patch: this module loads with the first prompt.
_WORD: Final = r"""(?:'(?P<raw>[^']*)'|"(?P<quoted>[^"$`\\]*)"|(?P<bare>(?!-)[\w./+@%:,=-]+))"""
_CD: Final = rf"cd[ \t]+{_WORD}[ \t]*&&[ \t\n]*"
_CALL: Final = r"(?:apply_patch|applypatch)(?:[ \t]*(?=<<)|[ \t]+(?=['\"]))"
# A script in quotes: `bash -lc "…"`, the quotes joined as a shell joins them.
_IN_SHELL: Final = r"""(?:/\S*/)?(?:bash|zsh|sh)[ \t]+-l?c[ \t]+((?:'[^']*'|"[^"$`\\]*")+)"""
_QUOTED: Final = r"""'([^']*)'|"([^"]*)\""""
_HEREDOC: Final = rf"<<(?P<tabs>-?)[ \t]*\\?{_WORD}[ \t]*\n"


class PatchInCommand(NamedTuple):
    """A patch found in a command. `workdir` is the word after `cd`, not yet resolved.

    `explicit` is false when the script is the bare text of a patch with no call around it: nothing may be applied
    then, and the model reads how to call the tool.
    """

    patch: str
    workdir: str | None = None
    explicit: bool = True


def find_patch_in_command(command: str) -> PatchInCommand | None:
    """The patch a shell script consists of, or None when the script is anything else.

    Taken are `apply_patch <<'WORD'` with any word, quoted or not, and `apply_patch 'PATCH'`; before either may stand
    `cd DIRECTORY &&` with one plain or quoted word. All of it may be the script in `bash -lc '…'`. The body is taken as
    it is: a shell would expand nothing in a patch.
    """
    script = command.replace("\r\n", "\n").strip()
    in_shell = BEGIN in script and script.startswith((*_SHELLS, "/"))
    inner = re.fullmatch(_IN_SHELL, script) if in_shell else None
    if inner is not None:
        script = "".join(raw or quoted for raw, quoted in re.findall(_QUOTED, inner[1])).strip()
    if _is_patch(script):
        return PatchInCommand(script, explicit=False)
    if not script.startswith(("cd", *_NAMES)):
        return None
    directory = re.match(_CD, script)
    workdir = _word(directory) if directory else None
    rest = script[directory.end() :] if directory else script
    call = re.match(_CALL, rest)
    if call is None or workdir == "":
        return None
    rest = rest[call.end() :]
    body = _heredoc_body(rest) if rest.startswith("<<") else _quoted_patch(rest)
    return None if body is None else PatchInCommand(body, workdir)


def find_patch_in_argv(argv: Sequence[str]) -> PatchInCommand | None:
    """The same for an argument vector: `apply_patch BODY`, or a shell with `-c` or `-lc` and a script."""
    match list(argv):
        case [name, body] if name in _NAMES:
            return PatchInCommand(body)
        case [shell, "-c" | "-lc", script] if shell.rpartition("/")[2] in _SHELLS:
            return find_patch_in_command(script)
        case [body] if _is_patch(body.strip()):
            return PatchInCommand(body, explicit=False)
        case _:
            return None


def _is_patch(text: str) -> bool:
    return text.startswith(BEGIN) and text.endswith(END)


def _heredoc_body(text: str) -> str | None:
    opening = re.match(_HEREDOC, text)
    if opening is None:
        return None
    end = _word(opening)
    lines = text[opening.end() :].split("\n")
    if opening["tabs"]:
        lines = [line.lstrip("\t") for line in lines]
    # The first line that is the word ends the body; anything after it is another command.
    if end not in lines or lines.index(end) != len(lines) - 1:
        return None
    return "\n".join(lines[:-1]) + "\n"


def _quoted_patch(text: str) -> str | None:
    quoted = re.fullmatch(_WORD, text)
    return None if quoted is None else _word(quoted)


def _word(match: re.Match[str]) -> str:
    return match["raw"] or match["quoted"] or match["bare"] or ""
