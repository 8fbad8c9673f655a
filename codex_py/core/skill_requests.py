"""The skills a message names, put before the model, and the variables they lack, asked for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from codex_py.core.compaction import Compaction
from codex_py.core.history import History
from codex_py.core.listeners import Listeners, Questions
from codex_py.core.secrets import Secrets
from codex_py.core.session_services import SessionServices
from codex_py.core.session_skills import MissingVariable, SessionSkills, SkillsToInject
from codex_py.core.skill_options import SkillOptionsInForce
from codex_py.core.tool_runs import ToolRuns
from codex_py.core.turn_context import texts_of
from codex_py.errors import CodexError
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.events import CommandStarted, Event, SkillUsed
from codex_py.protocol.items import Message, ResponseItem, message
from codex_py.protocol.ops import SkillInput, TextInput, UserInput
from codex_py.protocol.questions import SecretQuestion, answer_text
from codex_py.protocol.value import Value
from codex_py.skills.mentions import NAME
from codex_py.skills.model import Skill
from codex_py.skills.natural import find_named, may_name, without_parts
from codex_py.skills.paths import fits_paths
from codex_py.skills.usage import UseWay
from codex_py.text.sanitize import sanitize_line
from codex_py.text.tokens import counted_bytes, estimate_tokens
from codex_py.tools.spec import SkillCall

_APP_LINK: Final = rf"\[\${NAME}\][ \t]*\(app://[^)\s]*\)"


class SkillRequests(Value):
    """The services needed to load the skills that a user names."""

    services: SessionServices
    options: SkillOptionsInForce
    history: History
    compaction: Compaction
    secrets: Secrets
    questions: Questions
    listeners: Listeners
    runs: ToolRuns
    add_item: Callable[[ResponseItem], None]

    @property
    def skills(self) -> SessionSkills:
        """The skills of the session."""
        return self.services.skills

    async def inject(self, inputs: Sequence[UserInput]) -> None:
        """Put the skills the user named before the model, after what they lack was asked for.

        Connectors that are named have their tools shown from the next request on.
        """
        slugs = self._name_connectors(inputs)
        requested = SkillsToInject()
        named = self._named_in_words(inputs)
        ways: dict[Path, UseWay] = {item.path: "picked" for item in inputs if isinstance(item, SkillInput)}
        if self.skills.settings.natural_names == "on":
            clear = [fit[0] for fit in named if len(fit) == 1]
            inputs = (*inputs, *(SkillInput(skill.name, skill.path) for skill in clear))
            for skill in clear:
                ways.setdefault(skill.path, "natural")
            named = [fit for fit in named if len(fit) > 1]
            for fit in named:
                self.listeners.warn(_open_name(fit))
        if any(map(_may_name_a_skill, inputs)):
            mentions = _load_mentions().mentions
            requested = mentions.read_named_skills(
                self.skills.catalog, self.skills.settings, inputs, connector_slugs=slugs
            )
        for notice in requested.notices:
            self.listeners.warn(notice)
        roots = self.skills.settings.roots
        for failed in requested.failed:
            way, project = ways.get(failed.path, "named"), str(roots.project_root or roots.cwd)
            self.skills.ledger.note_failure(failed.name, failed.scope, failed.path, way, project=project)
        await self.provide([requested])
        requested = await self._with_results(requested, texts_of(inputs))
        self._name_linked_connectors(requested)
        await self._suggest(inputs, requested.skills, [skill for fit in named for skill in fit])
        self._note(requested, "explicit", ways)
        for item, references in zip(requested.items, requested.references, strict=True):
            self.history.append(item, *([references] if references else []))
        if any(requested.references):
            self.runs.join()

    def _named_in_words(self, inputs: Sequence[UserInput]) -> list[tuple[Skill, ...]]:
        """For each name in the user's own words, the skills it matches, usually one. Pasted text is ignored."""
        mode, catalog = self.skills.settings.natural_names, self.skills.catalog
        texts = [item for item in inputs if isinstance(item, TextInput) and may_name(item.text)]
        if mode == "off" or not texts:
            return []
        skills = catalog.enabled() if mode == "on" else catalog.listed()
        found = [
            tuple(skill for skill in skills if skill.name in name.names)
            for item in texts
            for name in find_named(
                without_parts(item.text, [(part.start, part.end) for part in item.elements]),
                {skill.name for skill in skills},
            )
        ]
        return [fit for fit in found if fit]

    async def _suggest(self, inputs: Sequence[UserInput], requested: Sequence[Skill], named: Sequence[Skill]) -> None:
        """Append what points the model to skills for a message: those it names in words, and those its list cuts."""
        texts, rendered = texts_of(inputs), self.skills.rendered
        if not (texts and rendered and (named or self.skills.hides_descriptions)):
            return
        try:
            finder, catalog = self.skills.load_finder(), self.skills.catalog
        except CodexError as error:
            self.listeners.warn_once(str(error))
            return
        injected = {skill.canonical_path for skill in requested}
        injected |= finder.find_loaded(catalog.listed(), self.history.items)
        named = [skill for skill in named if skill.canonical_path not in injected]
        found: Sequence[Skill] = ()
        if self.skills.hides_descriptions and self.skills.settings.suggestions:
            shown = {
                share.skill.canonical_path
                for share in rendered.report.shares
                if share.listed and share.shown == share.length
            }
            files, project, text = self.compaction.files_edited(), Path(finder.project), "\n".join(texts)

            def may_suggest(skill: Skill) -> bool:
                is_new = skill.canonical_path not in injected and skill.canonical_path not in shown
                return is_new and fits_paths(skill.options.paths, text, files, project)

            try:
                found = await asyncio.to_thread(finder.find, catalog, text, may_suggest)
            except CodexError as error:
                self.listeners.warn_once(str(error))
        if named or found:
            item, suggested = finder.suggest(found, named)
            self.history.append(item)
            for event in suggested:
                self.listeners.emit(event)

    async def search(self, query: str, skill: str | None, limit: int) -> str:
        """The answer of the tool `skill_search`. Raises `ToolError`."""
        catalog, mentions = self.skills.catalog, _load_mentions().mentions
        found = mentions.for_a_model(mentions.find_skill(catalog, skill)) if skill else None
        return await asyncio.to_thread(self.skills.load_finder().search, catalog, query, found, limit)

    def is_searchable(self) -> bool:
        """Whether the model is offered that tool: its list hides skills, or a skill has more to read than its text."""
        return self.skills.hides_descriptions or any(
            skill.has_references and skill.scope != "system" for skill in self.skills.catalog.listed()
        )

    async def use(self, call: SkillCall) -> str:
        """A skill that the model asks for by its name, as the output of that call, with what it lacks provided.

        Raises `ToolError` for a skill that it may not have, or that cannot be read.
        """
        mentions = _load_mentions().mentions
        text, requested = mentions.read_called_skill(self.skills.catalog, self.skills.settings, call)
        for notice in requested.notices:
            self.listeners.warn(notice)
        own = requested.items
        requested = await self._with_results(requested, (call.arguments,))
        if requested.items != own:
            [item] = requested.items
            view = item.view()
            text = view.text if isinstance(view, Message) else text
        self._name_linked_connectors(requested)
        # Noted with its items, so that a compaction in the middle of the turn keeps it.
        self._note(requested, "read")
        await self.provide([requested])
        for references in filter(None, requested.references):
            self.add_item(references)
        return text

    async def _with_results(self, requested: SkillsToInject, texts: Sequence[str]) -> SkillsToInject:
        """The skills with what those have come to that run as a subagent, or run commands."""
        if not any(skill.options.fork or skill.options.dynamic for skill in requested.skills):
            return requested
        runs = _load_mentions().SkillRuns(self.runs, self.options, self.listeners.warn_once)
        items, references = list(requested.items), list(requested.references)
        for position, (skill, arguments) in enumerate(zip(requested.skills, requested.arguments, strict=True)):
            if skill.options.fork and self.services.parent_session is None:
                answer = await runs.answer_of(skill, arguments or "\n".join(texts))
                if answer is not None:
                    items[position], references[position] = message("user", answer), None
                    continue
            # What the skill permits counts for its own commands too.
            self.options.apply(skill)
            if skill.options.dynamic and (text := await runs.text_of(skill, arguments)) is not None:
                items[position] = message("user", text)
        return requested.replace(items=tuple(items), references=tuple(references))

    async def provide(self, requested: Sequence[SkillsToInject]) -> None:
        """Provide what skills lack, as far as the user agrees: variables, then servers. The project's come first."""
        warn = self.listeners.warn_once
        has_started = await self.services.mcp.clients.ask_about_project(self.questions.ask, warn)
        for request in requested:
            for variable in request.missing:
                await self._ask_for_variable(variable)
        if needs := [need for request in requested for need in request.servers]:
            await self.services.mcp.connected().provide(
                needs, ask=self.questions.ask if self.services.tools.can_ask else None, warn=warn
            )
        if has_started or needs:
            self.runs.join()

    def _note(
        self,
        requested: SkillsToInject,
        use_type: Literal["explicit", "read"],
        ways: Mapping[Path, UseWay] | None = None,
    ) -> None:
        """Emit events for the skills, and record what comes with them; `ways` are those of skills not mentioned."""
        known = ways or {}
        for skill, item, more in zip(requested.skills, requested.items, requested.references, strict=True):
            way = known.get(skill.path, known.get(skill.canonical_path, "named" if use_type == "explicit" else "model"))
            size = counted_bytes(item.encoded) + (counted_bytes(more.encoded) if more else 0)
            applied = self.options.apply(skill)
            if use_type == "explicit" and skill.options.fork and self.services.parent_session is not None:
                # The session that started this one for the skill has noted the use.
                continue
            for use in self.skills.note_use(skill, use_type, way=way, tokens=estimate_tokens(size)):
                self.listeners.emit(use.replace(applied=applied))
        self.secrets.add_values(requested.granted)
        self.compaction.note_skills(requested.items)

    def uses_in(self, event: Event) -> list[SkillUsed]:
        """The uses that a command of the model is about to make, with the options of the skill that it reads.

        A command that reads several skills looks for one, and uses none of them yet.
        """
        if not isinstance(event, CommandStarted) or event.by_user:
            return []
        uses = self.skills.note_uses_in(event)
        read = [use for use in uses if use.kind == "read"]
        skill = self.skills.catalog.by_path(read[0].path) if len(read) == 1 else None
        applied = self.options.apply(skill) if skill else ()
        return [use.replace(applied=applied) if use in read else use for use in uses]

    def _name_connectors(self, inputs: Sequence[UserInput]) -> frozenset[str]:
        """Ask for the connectors a message names; gives back the names that therefore mean no skill."""
        named = self.services.mcp.clients.name_connectors(texts_of(inputs), self.history.items, self.skills.catalog)
        for notice in named.notices:
            self.listeners.warn(notice)
        if named.slugs:
            self.runs.join()
        return named.slugs

    def _name_linked_connectors(self, requested: SkillsToInject) -> None:
        """Show the tools of the connectors that skills link to, as links in a message do."""
        views = [item.view() for item in requested.items if b"app://" in item.encoded]
        texts = [view.text for view in views if isinstance(view, Message)]
        links = [link[0] for text in texts for link in re.finditer(_APP_LINK, text)]
        if links:
            named = self.services.mcp.clients.name_connectors(links, self.history.items, self.skills.catalog)
            for notice in named.notices:
                self.listeners.warn(notice)
            self.runs.join()

    async def _ask_for_variable(self, missing: MissingVariable) -> None:
        """Ask for a variable, once a session; where nobody can be asked, say so and go on."""
        if self.secrets.was_requested(missing.name):
            return
        if self.services.tools.can_ask and self.skills.settings.asks_for_variables:
            question = SecretQuestion(uuid7(), missing.name, missing.skill, missing.why)
            value = answer_text(await self.questions.ask(question))
            self.secrets.add_values({missing.name: value}, typed=True)
        if not self.secrets.has(missing.name):
            self.listeners.warn_once(missing.warning)
        elif not self.secrets.is_hidden(missing.name):
            self.listeners.warn_once(f"`{missing.name}` is too short to be hidden in what commands and the model say")


def _open_name(fit: Sequence[Skill]) -> str:
    names = ", ".join(f"`${sanitize_line(skill.name)}` ({skill.scope})" for skill in fit)
    return f"the message names {len(fit)} skills in the same words, so that none is used: {names}"


def _may_name_a_skill(item: UserInput) -> bool:
    return isinstance(item, SkillInput) or (isinstance(item, TextInput) and "$" in item.text)


def _load_mentions():
    """Import the module that reads skills."""
    from codex_py.core import skill_runs  # most messages name no skill

    return skill_runs
