"""The process inside a sandbox that runs the command, and ends with its status.

When it ends, the kernel kills every process that is left. Processes that the command started may finish their work
before that: as long as they read or write, and for at most 300 ms.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

# No core dumps, which a handler outside the sandbox would get; and an end to fork bombs. Shells differ in the letter.
# SIGINT is for the command alone. Some shells print how a command was killed; only the command has its stderr.
_SCRIPT: Final = """\
ulimit -c 0; ulimit -u 4096 2>/dev/null || ulimit -p 4096 2>/dev/null
notice=$1; shift; trap : INT; exec %(stderr)d>&2 2>/dev/null
(exec "$@" 2>&%(stderr)d %(stderr)d>&-)
status=$? now= rounds=0 idle=0
PATH=/usr/bin:/bin:$PATH
look() {
    now= names=
    for process in /proc/[0-9]*; do
        case $process in /proc/1 | /proc/$$) continue ;; esac
        in= out=
        { read -r in && read -r out; } <"$process/io"
        read -r name <"$process/comm" && now="$now $process $in $out" names="$names, $name"
    done
}
while before=$now; look; [ -n "$names" ] && [ $rounds -lt 25 ] && [ $idle -lt 8 ]; do
    rounds=$((rounds + 1)) idle=$((idle + 1))
    [ "$now" = "$before" ] || idle=0
    sleep 0.01
done
[ -z "$notice" ] || [ -z "$names" ] || printf '%%s\\n' "$notice${names#, }" >&%(stderr)d
exit $status
"""


def first_process(command: Sequence[str], fds: Collection[int], notice: str) -> tuple[str, ...]:
    """The argument vector that runs `command` and passes `fds` on, as process 1 or its only child.

    `/proc` must be that of its namespace. `notice` begins a line for stderr that names the processes which are stopped
    with the command; empty for no line.
    """
    # A shell can be asked for a descriptor of one digit only.
    script = _SCRIPT % {"stderr": next(number for number in range(3, 10) if number not in fds)}
    return ("/bin/sh", "-c", script, "sh", notice, *command)
