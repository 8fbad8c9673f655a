"""The cost of stored sessions, by request and added up by day, model, repository or skill."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.errors import UserError
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.usage import Spending, TokenUsage
from codex_py.rollout.files import archived_files, session_files
from codex_py.rollout.format import REQUEST_COST, SessionMeta, read_usage
from codex_py.rollout.records import MAX_LINE, RolloutRecord, decode_record, open_stored, read_head, read_meta
from codex_py.text.files import read_lines

Grouping: TypeAlias = Literal["day", "model", "repo", "skill"]
# The price of a request that nobody has priced: provider, model, usage, moment.
PriceRequest: TypeAlias = Callable[[str, str, TokenUsage, datetime], float | None]

_NO_SKILL: Final = "(no skill)"
_SKILL_NAME: Final = re.compile(r"<skill>\s*<name>([^<]{1,200})</name>")
_WANTED: Final = frozenset({REQUEST_COST.encode(), b"turn_context", b"event_msg", b"response_item"})


class PaidRequest(NamedTuple):
    """One answered request. `repo` is the address of the repository, else the directory; `skills` those of its turn."""

    when: datetime
    model: str
    repo: str
    skills: tuple[str, ...]
    usage: TokenUsage
    spending: Spending


class CostRow(NamedTuple):
    """The cost of the requests of one group. A request of several skills is divided equally between them."""

    name: str
    requests: float
    input_tokens: float
    cached_input_tokens: float
    output_tokens: float
    usd: float
    unpriced: float


def read_requests(home: Path, *, since: datetime | None, price: PriceRequest) -> Iterator[PaidRequest]:
    """The requests of all sessions, archived ones and those of agents too; a file that cannot be read has none."""
    for files in (session_files(home), archived_files(home)):
        for path in files:
            try:
                if since is None or path.stat().st_mtime >= since.timestamp():
                    yield from (found for found in _requests_in(path, price) if since is None or found.when >= since)
            except (OSError, UserError):
                continue


def group_costs(requests: Iterable[PaidRequest], by: Grouping) -> list[CostRow]:
    """A row for each group: days in order, all others with what cost most first."""
    sums: dict[str, CostRow] = {}
    for request in requests:
        names = _names_of(request, by)
        for name in names:
            row, share = sums.get(name) or CostRow(name, 0, 0, 0, 0, 0.0, 0), 1 / len(names)
            sums[name] = CostRow(
                name,
                row.requests + request.spending.requests * share,
                row.input_tokens + request.usage.input_tokens * share,
                row.cached_input_tokens + request.usage.cached_input_tokens * share,
                row.output_tokens + request.usage.output_tokens * share,
                round(row.usd + request.spending.usd * share, 12),
                row.unpriced + request.spending.unpriced * share,
            )
    if by == "day":
        return sorted(sums.values())
    return sorted(sums.values(), key=lambda row: (-row.usd, -row.input_tokens, row.name))


def _names_of(request: PaidRequest, by: Grouping) -> tuple[str, ...]:
    match by:
        case "day":
            return (request.when.astimezone().date().isoformat(),)
        case "model":
            return (request.model or "?",)
        case "repo":
            return (request.repo or "?",)
        case "skill":
            return request.skills or (_NO_SKILL,)


class _Reader:
    """Follows the records of one session."""

    def __init__(self, meta: SessionMeta, price: PriceRequest) -> None:
        self._meta = meta
        self._price = price
        self._repo = (meta.git.repository_url if meta.git else None) or meta.cwd
        self._model = ""
        self._skills: tuple[str, ...] = ()
        self._total = TokenUsage()
        # Tokens that no record has priced yet: of a program that does not, or a version before this was written down.
        self._open: tuple[datetime, TokenUsage] | None = None

    def read(self, record: RolloutRecord) -> Iterator[PaidRequest]:
        payload = record.payload
        when = _moment(record.timestamp)
        match record.record_type, payload.get("type"):
            case "turn_context", _:
                self._model = str(payload.get("model") or "")
            case "event_msg", "task_started":
                self._skills = ()
            case "event_msg", "token_count" if when is not None:
                yield from self.rest()
                self._note_total(payload, when)
            case "response_item", "message" if payload.get("role") == "user":
                self._skills += tuple(name for name in _skills_in(payload) if name not in self._skills)
            case "request_cost", _ if when is not None:
                self._open = None
                usage = read_usage(payload.get("usage"))
                spending = Spending.from_record(payload.get("cost"))
                yield PaidRequest(when, str(payload.get("model") or ""), self._repo, self._skills, usage, spending)
            case _:
                pass

    def rest(self) -> Iterator[PaidRequest]:
        """The request that is known by its tokens alone."""
        if self._open is None:
            return
        (when, usage), self._open = self._open, None
        usd = self._price(self._meta.model_provider, self._model, usage, when)
        spending = Spending(1, usage.total_tokens, usd or 0.0, int(usd is None))
        yield PaidRequest(when, self._model, self._repo, self._skills, usage, spending)

    def _note_total(self, payload: Mapping[str, Any], when: datetime) -> None:
        total = read_usage(as_object(payload.get("info")).get("total_token_usage"))
        usage = _difference(total, self._total)
        self._total = total
        if usage.total_tokens > 0:
            self._open = (when, usage)


def _requests_in(path: Path, price: PriceRequest) -> Iterator[PaidRequest]:
    with open_stored(path) as stream:
        meta = read_meta(path, stream.readline(MAX_LINE))
        # What a fork has taken over of its parent was paid for there.
        begins = _moment(meta.timestamp) if meta.forked_from_id else None
        reader = _Reader(meta, price)
        for line in read_lines(stream, limit=MAX_LINE):
            head = read_head(line)
            if head is None or head["type"] not in _WANTED or (record := decode_record(line, 0)) is None:
                continue
            for found in reader.read(record):
                if begins is None or found.when >= begins:
                    yield found
        yield from (found for found in reader.rest() if begins is None or found.when >= begins)


def _skills_in(payload: Mapping[str, Any]) -> list[str]:
    texts = [as_object(part).get("text") for part in as_list(payload.get("content"))]
    return [name.strip() for text in texts if isinstance(text, str) for name in _SKILL_NAME.findall(text[:1000])]


def _difference(after: TokenUsage, before: TokenUsage) -> TokenUsage:
    names = TokenUsage.__match_args__
    return TokenUsage(*(max(0, getattr(after, name) - getattr(before, name)) for name in names))


def _moment(stamp: str) -> datetime | None:
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
