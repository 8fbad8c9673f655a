"""What a batch has come to: counts, `report.csv`, `report.html`, and `predictions.jsonl` of evaluations."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.batch.records import LOG, PATCH, TRANSCRIPT, OutputDirectory, TaskRecord
from codex_py.batch.tasks import Task
from codex_py.protocol.encoding import encode_json
from codex_py.replace_file import replace_file
from codex_py.text.credentials import masked_url
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line

_COLUMNS: Final = (
    *("id", "status", "code", "verdict", "repo", "ref", "files_changed", "commit", "attempts"),
    *("cost_usd", "seconds", "transcript", "patch", "message"),
)
_STYLE: Final = """
:root{color-scheme:light dark;--fg:#1f2328;--bg:#fff;--dim:#656d76;--line:#d0d7de;--bad:#cf222e;--good:#1a7f37}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--dim:#8b949e;--line:#30363d;--bad:#ff7b72;
--good:#3fb950}}
body{margin:0 auto;padding:1rem;max-width:80rem;color:var(--fg);background:var(--bg);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem .8rem;color:var(--dim)}dd{margin:0}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid var(--line);padding:.25rem .5rem;
text-align:left;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}a{color:inherit}
.failed,.fail{color:var(--bad)}.ok,.pass{color:var(--good)}.pending{color:var(--dim)}
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


class Totals(NamedTuple):
    """The counts of a batch. `failed` is by code; a task that the judge has failed is `ok`, and in `rejected`."""

    tasks: int
    ok: int
    failed: Mapping[str, int]
    pending: int
    rejected: int
    cost_usd: float
    unpriced: int

    def in_words(self) -> str:
        """One line on the outcome."""
        codes = ", ".join(f"{count} {code}" for code, count in self.failed.items())
        parts = [f"{self.ok} of {self.tasks} tasks done"]
        parts += [f"{sum(self.failed.values())} failed ({codes})"] if self.failed else []
        parts += [f"{self.pending} not done"] if self.pending else []
        parts += [f"{self.rejected} failed by the judge"] if self.rejected else []
        unpriced = f" and {self.unpriced} of unknown price" if self.unpriced else ""
        return "; ".join([*parts, f"${self.cost_usd:.4f}{unpriced}"])

    def as_json(self) -> dict[str, Any]:
        """The fields of the last event."""
        return {**self._asdict(), "failed": dict(self.failed), "cost_usd": round(self.cost_usd, 6)}


def count_records(records: Mapping[str, TaskRecord]) -> Totals:
    """The totals of the records of all tasks."""
    values = records.values()
    failed = Counter(record.code for record in values if record.status == "failed")
    return Totals(
        tasks=len(records),
        ok=sum(record.status == "ok" for record in values),
        failed=dict(sorted(failed.items(), key=lambda pair: (-pair[1], pair[0]))),
        pending=sum(record.status == "pending" for record in values),
        rejected=sum(record.verdict == "fail" for record in values),
        cost_usd=sum(record.cost_usd or 0.0 for record in values),
        unpriced=sum(record.cost_usd is None and record.status != "pending" for record in values),
    )


def write_reports(out: OutputDirectory, tasks: Sequence[Task], records: Mapping[str, TaskRecord]) -> list[Path]:
    """Write the reports; gives their paths. Raises `OSError`."""
    contents = {"report.csv": _csv(out, tasks, records), "report.html": _html(out, tasks, records)}
    if any(task.is_evaluation for task in tasks):
        contents["predictions.jsonl"] = b"".join(_predictions(out, tasks, records))
    for name, content in contents.items():
        replace_file(out.path / name, content)
    return [out.path / name for name in contents]


def _row(out: OutputDirectory, task: Task, record: TaskRecord) -> dict[str, Any]:
    there = {name: (out.path / task.id / name).is_file() for name in (TRANSCRIPT, PATCH)}
    return {
        "id": task.id,
        **record._asdict(),
        "repo": masked_url(task.repo) if "://" in task.repo else task.repo,
        "ref": task.ref,
        "transcript": f"{task.id}/{TRANSCRIPT}" if there[TRANSCRIPT] else "",
        "patch": f"{task.id}/{PATCH}" if there[PATCH] else "",
    }


def _csv(out: OutputDirectory, tasks: Sequence[Task], records: Mapping[str, TaskRecord]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for task in tasks:
        row = _row(out, task, records[task.id])
        # Spreadsheets would take it for a formula.
        row["message"] = f"'{row['message']}" if row["message"][:1] in tuple("=+-@") else row["message"]
        writer.writerow(row)
    return text.getvalue().encode(errors="replace")


def _html(out: OutputDirectory, tasks: Sequence[Task], records: Mapping[str, TaskRecord]) -> bytes:
    totals = count_records(records)
    facts = {
        "Tasks": f"{totals.tasks:,}",
        "Done": f"{totals.ok:,}",
        "Failed": ", ".join(f"{count:,} {code}" for code, count in totals.failed.items()) or "0",
        "Not done": f"{totals.pending:,}",
        "Failed by the judge": f"{totals.rejected:,}",
        "Cost": f"${totals.cost_usd:,.4f}" + (f", {totals.unpriced:,} of unknown price" if totals.unpriced else ""),
    }
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    head = ("Task", "Status", "Judge", "Changes", "Cost", "Time", "Attempts", "Transcript", "Message")
    rows = "\n".join(_html_row(out, task, records[task.id]) for task in tasks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>codex-py batch</title><style>{_STYLE}</style></head><body>\n<h1>codex-py batch</h1>\n"
        f"<dl>{listed}</dl>\n"
        f"<table><thead><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr></thead><tbody>\n{rows}\n"
        "</tbody></table></body></html>\n"
    ).encode(errors="replace")


def _html_row(out: OutputDirectory, task: Task, record: TaskRecord) -> str:
    row = _row(out, task, record)
    status = f"{record.status}: {record.code}" if record.status == "failed" else record.status
    changes = counted(record.files_changed, "file")
    if row["patch"]:
        changes = f'<a href="{escape(row["patch"])}">{changes}</a>'
    transcript = f'<a href="{escape(row["transcript"])}">transcript</a>' if row["transcript"] else ""
    if (out.path / task.id / LOG).is_file():
        transcript += f' <a href="{escape(task.id)}/{LOG}">log</a>'
    title = escape(sanitize_line(f"{row['repo']} {task.ref}".strip()))
    cost = "?" if record.cost_usd is None else f"${record.cost_usd:.4f}"
    return (
        f'<tr><td title="{title}">{escape(task.id)}</td><td class="{record.status}">{escape(status)}</td>'
        f'<td class="{record.verdict}">{record.verdict}</td><td>{changes}</td><td class="n">{cost}</td>'
        f'<td class="n">{record.seconds:.1f} s</td><td class="n">{record.attempts}</td><td>{transcript}</td>'
        f"<td>{escape(sanitize_line(record.message))}</td></tr>"
    )


def _predictions(out: OutputDirectory, tasks: Sequence[Task], records: Mapping[str, TaskRecord]) -> Iterator[bytes]:
    """The lines that SWE-bench takes: one for each task that has ended."""
    for task in tasks:
        if not task.is_evaluation or records[task.id].status == "pending":
            continue
        try:
            patch = (out.path / task.id / PATCH).read_bytes().decode(errors="replace")
        except OSError:
            patch = ""
        model = f"codex-py/{out.read_model(task)}".rstrip("/")
        yield encode_json({"instance_id": task.id, "model_name_or_path": model, "model_patch": patch}) + b"\n"
