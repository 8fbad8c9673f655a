"""`codex-py completions`: what a shell needs to complete commands, flags, values, and skill names after a `$`.

Nobody is asked for the values: all of them come from files of this machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from codex_py.cli.commands import command_names
from codex_py.cli.console import load_local_config
from codex_py.cli.exec_parser import exec_parser
from codex_py.cli.options import Parser
from codex_py.cli.repl import terminal_parser
from codex_py.config.schema import BUILT_IN_PROVIDERS, HOSTED_PROVIDERS
from codex_py.core.session_skills import skill_rules, skill_sources
from codex_py.errors import UsageError, UserError
from codex_py.rollout.listing import SessionQuery, list_sessions
from codex_py.services.models import well_known_models
from codex_py.skills.service import SkillService
from codex_py.text.nearest import did_you_mean

_HELP: Final = """usage: codex-py completions [bash|zsh|fish]

Print a script that teaches a shell, bash where none is named, to complete `codex-py`: commands, flags, their values
(models, profiles, providers, sessions, skills, MCP servers), and skill names after a `$`.

  bash  codex-py completions bash > ~/.local/share/bash-completion/completions/codex-py
  zsh   codex-py completions zsh > "${fpath[1]}/_codex-py"
  fish  codex-py completions fish > ~/.config/fish/completions/codex-py.fish

Quote the `$`, which means something to a shell: '$lint or \\$lint. Bash completes it without, too."""

_BASH: Final = r"""# codex-py: completion for bash
_codex_py_type() {
  local before="${COMP_WORDS[COMP_CWORD-1]}"
  case "${COMP_WORDS[COMP_CWORD-2]-} $before" in
@PAIRS@
  esac
  case "$before" in
@SINGLES@
    *) return 1;;
  esac
}
_codex_py() {
  local word="${COMP_WORDS[COMP_CWORD]}" bare last mark='\$'
  bare="${word#[\"\']}"
  last="${bare##* }"
  [[ $word == \'* ]] && mark='$'
  COMPREPLY=()
  if [[ ${last#\\} == '$'* ]]; then
    local name
    while IFS= read -r name; do
      [[ "\$$name" == "${last#\\}"* ]] && COMPREPLY+=("${bare%"$last"}$mark$name")
    done < <(codex-py completions --skills 2>/dev/null)
  elif _codex_py_type; then
    local value
    while IFS= read -r value; do
      [[ $value == "$bare"* ]] && COMPREPLY+=("$(printf %q "$value")")
    done < <(codex-py completions --values "$REPLY" 2>/dev/null)
  elif [[ $word == -* ]]; then
    local flags="@TERMINAL_FLAGS@"
    [[ " ${COMP_WORDS[*]} " == *" exec "* ]] && flags="@EXEC_FLAGS@"
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W "@COMMANDS@" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o bashdefault -F _codex_py codex-py
"""
_ZSH: Final = r"""#compdef codex-py
# codex-py: completion for zsh
_codex_py_type() {
  local before="${words[CURRENT-1]}"
  case "${words[CURRENT-2]} $before" in
@PAIRS@
  esac
  case "$before" in
@SINGLES@
    *) return 1;;
  esac
}
_codex_py() {
  local word="${words[CURRENT]}" mark='\$'
  local bare="${word#[\"\']}"
  local last="${bare##* }"
  [[ $word == \'* ]] && mark='$'
  if [[ ${last#\\} == '$'* ]]; then
    local name wanted="${${last#\\}#\$}"
    local -a found
    for name in "${(@f)$(codex-py completions --skills 2>/dev/null)}"; do
      [[ $name == "$wanted"* ]] && found+=("${bare%"$last"}$mark$name")
    done
    compadd -U -Q -a found
  elif _codex_py_type; then
    local -a values=("${(@f)$(codex-py completions --values $REPLY 2>/dev/null)}")
    compadd -a values
  elif [[ $word == -* ]]; then
    if (( ${words[(I)exec]} )); then
      compadd -- @EXEC_FLAGS@
    else
      compadd -- @TERMINAL_FLAGS@
    fi
  elif (( CURRENT == 2 )); then
    compadd -- @COMMANDS@
  else
    _files
  fi
}
compdef _codex_py codex-py
"""
_FISH: Final = r"""# codex-py: completion for fish
function __codex_py_skills
  set -l before (commandline -ct | string replace -r '^["\']' '' | string replace -r '\\\\?\$[^ $]*$' '')
  for name in (codex-py completions --skills 2>/dev/null)
    echo "$before\$$name"
  end
end
complete -c codex-py -n __fish_use_subcommand -f -a "@COMMANDS@"
complete -c codex-py -n "string match -q -- '*\$*' (commandline -ct)" -f -a "(__codex_py_skills)"
@FISH_FLAGS@
@FISH_VALUES@
"""
_VALUES: Final = ("models", "sessions", "profiles", "skills", "providers", "servers")
_PROFILE: Final = ".config.toml"
_MAX_SESSIONS: Final = 50
# The word before the one that is completed, and the type of its values.
_AFTER_WORD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("-m", "--model"), "models"),
    **dict.fromkeys(("-p", "--profile"), "profiles"),
    **dict.fromkeys(("--provider", "--local-provider"), "providers"),
    **dict.fromkeys(("resume", "fork", "archive", "unarchive", "delete", "rename"), "sessions"),
}
# The same for two words, such as `mcp get`.
_AFTER_WORDS: Final[Mapping[str, str]] = {
    **{f"mcp {verb}": "servers" for verb in ("get", "remove", "test", "login", "logout", "trust")},
    **{f"skills {verb}": "skills" for verb in ("show", "enable", "disable")},
    **{f"sessions {verb}": "sessions" for verb in ("show", "rewind", "archive", "delete", "rename", "export")},
    "exec resume": "sessions",
}
_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def run(arguments: Sequence[str]) -> int:
    """Print the script of a shell, or the names of the skills of this directory."""
    parser = Parser("codex-py completions", description="")
    parser.add_argument("shells", nargs="*")
    parser.add_argument("--skills", action="store_true")
    parser.add_argument("--values", choices=_VALUES)
    if {"-h", "--help"}.intersection(arguments):
        print(_HELP)
        return 0
    options = parser.read(arguments)
    if value_type := "skills" if options.skills else options.values:
        print("\n".join(_completion_values(value_type)))
        return 0
    shell, *others = options.shells or ["bash"]
    if shell not in _SCRIPTS:
        known = ", ".join(f"`{name}`" for name in _SCRIPTS)
        raise UsageError(f"no completions for `{shell}`", hint=did_you_mean(shell, _SCRIPTS) or f"there are {known}")
    if others:
        raise UsageError(f"unexpected argument `{others[0]}`", hint="name one shell")
    print(_filled(_SCRIPTS[shell]), end="")
    return 0


def _completion_values(value_type: str) -> list[str]:
    """Every value of a type, one a line of a shell; a broken configuration offers none."""
    try:
        return [value for value in _find_values(value_type) if value.isprintable()]
    except (UserError, OSError):
        return []


def _find_values(value_type: str) -> Iterable[str]:
    home, cwd, loaded = load_local_config(quiet=True)
    match value_type:
        case "models":
            return well_known_models(loaded.config)
        case "sessions":
            # Those of this directory, the newest first, by their names where they have one.
            return [session.name or session.id for session in list_sessions(home, SessionQuery(cwd))[:_MAX_SESSIONS]]
        case "profiles":
            return sorted(path.name.removesuffix(_PROFILE) for path in home.glob(f"*{_PROFILE}"))
        case "skills":
            sources = skill_sources(loaded, home=home, cwd=cwd, env=os.environ)
            catalog = SkillService(home / "cache" / "skills").catalog(sources, skill_rules(loaded))
            return sorted({skill.name for skill in catalog.enabled() if skill.user_invocable})
        case "providers":
            return sorted({*BUILT_IN_PROVIDERS, *HOSTED_PROVIDERS, *loaded.config.model_providers})
        case _:
            return sorted({*loaded.config.mcp_servers, *loaded.project_mcp_servers})


def _filled(script: str) -> str:
    terminal, exec_flags = _flags(terminal_parser()), _flags(exec_parser())
    fish = [f"complete -c codex-py -l {flag.removeprefix('--')}" for flag in terminal if flag.startswith("--")]
    script = script.replace("@PAIRS@", _cases(_AFTER_WORDS)).replace("@SINGLES@", _cases(_AFTER_WORD))
    script = script.replace("@FISH_VALUES@", "\n".join(_fish_values()))
    filled = script.replace("@COMMANDS@", " ".join(command_names())).replace("@TERMINAL_FLAGS@", " ".join(terminal))
    return filled.replace("@EXEC_FLAGS@", " ".join(exec_flags)).replace("@FISH_FLAGS@", "\n".join(fish))


def _cases(types: Mapping[str, str]) -> str:
    """The branches of a `case` of the shell that sets `REPLY` to the type of the value."""
    by_type: dict[str, list[str]] = {}
    for words, value_type in types.items():
        by_type.setdefault(value_type, []).append(f'"{words}"')
    return "\n".join(f"    {'|'.join(words)}) REPLY={value_type}; return 0;;" for value_type, words in by_type.items())


def _fish_values() -> Iterator[str]:
    for words, value_type in {**_AFTER_WORDS, **_AFTER_WORD}.items():
        condition = f"string match -qr -- '(^| ){words} *$' (commandline -cp | string replace -r '[^ ]*$' '')"
        yield f'complete -c codex-py -n "{condition}" -f -a "(codex-py completions --values {value_type} 2>/dev/null)"'


def _flags(parser: Parser) -> list[str]:
    return sorted(set(parser.flags()))
