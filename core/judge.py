"""The policy decision point: from a call to a verdict, by gathering facts first and then deciding purely."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from core.approvals.binding import bind, find_shell
from core.approvals.standing import forbidding, permitting
from core.arguments.ask import asked_by_tool
from core.arguments.command import EXEC_ARGS, command_from
from core.arguments.judge import judge_arguments
from core.arguments.judgement import ArgumentJudgement
from core.arguments.surroundings import Surroundings, surroundings_of
from core.config import Config
from core.elevated.placement import BY_CLIENT, Placed, place, skipping
from core.execsec.client_place import client_directory, without_directory
from core.execsec.decide import ExecJudgement, decide, fallback_allows, together
from core.execsec.deny_rules import spellings
from core.execsec.policy import ExecPolicy, effective
from core.execsec.tighten import in_force
from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.call import EXEC, CommandText, ToolCall
from core.model.command import CommandFacts, Directory, Placement
from core.model.decision import Decision, Effect, Layer, most_telling, strictest
from core.model.elevation import NOT_ELEVATED, Standing
from core.model.plan import Beginning, Binding, BoundCommand, Limits, SandboxPlan, WorkspaceAccess
from core.model.principal import Claims
from core.model.request import Basis
from core.model.session import SessionKey
from core.model.standing import Remembered
from core.model.tightening import Tightening
from core.model.verdict import Verdict
from core.policy.decide import decide as decide_tool
from core.policy.decide import refuse_owner_only
from core.policy.names import normalise
from core.policy.pipeline import resolve
from core.policy.registry import NONE, Plugins
from core.policy.scene import universe_of
from core.policy.toolset import ToolIdentity, ToolSet
from core.ports import NameResolver, Resolver
from core.sandbox.guarantees import may_skip_people, needs_privileges, question
from core.sandbox.plan import host_plan, plan_for, visible
from core.sandbox.protected import hidden_on_host
from core.sandbox.workspace import directory_for
from core.shell.inspect import inspect
from core.shell.parse import Parse, parse
from core.shell.render import SHELL, run_argv, starts_shell
from core.shell.scripts import begins_with, with_scripts

_NOTHING = Remembered()
_NO_ARGUMENTS = ArgumentJudgement()
_NO_PLAN = SandboxPlan("none", "/", (), (), (), network=False, env=(), limits=Limits())
_BY_CLIENT = "the agent's own program runs it"
LOCKED = Decision(
    Layer.APPROVALS,
    Effect.DENY,
    "Sayso is locked: nothing runs until the operator unlocks it",
    "locked",
    "sayso lock",
)
REVOKED = Decision(
    Layer.APPROVALS,
    Effect.DENY,
    "the agent's token was revoked; it may ask again with a new one",
    "revoked",
    "sayso agent revoke",
)


@dataclass(frozen=True, slots=True)
class Site:
    """What is true of this machine: absolute paths, and the accounts of runs where the daemon is root.

    Elsewhere they run as `own_account`, the daemon's.

    `program` are the directories that Sayso is run from, `shown` what every run may see. `unheld` says why
    runs on the host cannot be held from Sayso's own state here; None where they are.
    """

    state_dir: str
    workspace_root: str
    homes: tuple[str, ...]
    home: str
    protected: tuple[str, ...] = ()
    account: str | None = None
    host_account: str | None = None
    own_account: str = ""
    program: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    unheld: str | None = None
    workspaces: tuple[str, ...] = ()  # of all agents, and the directory of those that Sayso makes


@dataclass(frozen=True, slots=True)
class Case:
    """A call with all facts gathered: what would run, as what, where, under which policy.

    `unheld` is what follows from it that a run on the host cannot be held. `basis` is what was noted before
    they were gathered, where something is to be started by it.
    """

    call: ToolCall
    tool: Decision
    placed: Placed
    bound: BoundCommand
    binding: Binding
    facts: CommandFacts | None = None
    policy: ExecPolicy | None = None
    problem: Decision | None = None
    arguments: ArgumentJudgement = _NO_ARGUMENTS
    unheld: Decision | None = None
    basis: Basis | None = None


class Judge:
    """Decides calls under one configuration; the only things it touches are the resolvers."""

    def __init__(
        self,
        config: Config,
        site: Site,
        resolver: Resolver,
        names: NameResolver,
        plugins: Callable[[], Plugins] = lambda: NONE,
        parse: Parse = parse,
    ) -> None:
        self.config = config
        self.site = site
        self._resolver = resolver
        self._names = names
        self.plugins = plugins
        self._parse = parse
        self.tools = lru_cache(maxsize=512)(self._tools)
        self._policy = lru_cache(maxsize=512)(self._effective)
        self._plan = lru_cache(maxsize=512)(self._laid_out)
        self._surroundings = lru_cache(maxsize=512)(self._surrounded)

    def examine(self, call: ToolCall, standing: Standing = NOT_ELEVATED, *, look_up: bool = True) -> Case:
        """Gather the facts of a call; without `look_up` no host name is looked up."""
        tool_name = normalise(call.tool)
        tool = decide_tool(self.toolset(call.session, call.claims), tool_name)
        if tool_name != EXEC:
            return self._client_case(call, tool, self._names if look_up else None)
        asked = asked_by_tool(EXEC, self._around(call))
        placed = place(self.config, call, standing)
        command = call.command or command_from(call)
        if command is None:
            why = "exec takes one command, as a line or a list of words, and at most one absolute cwd"
            if unknown := sorted(call.args.keys() - EXEC_ARGS):
                why = f"exec has an argument that is not judged here: {unknown[0]!r}; leave it out"
            nothing = _exec_problem("exec.no-command", why)
            return _case(call, tool, placed, self._bound(call, CommandText(), placed, _NO_PLAN, "/"), nothing)
        plan = self._plan(call.session, placed.placement, command.timeout_s, self.site.unheld)
        cwd, problem = self._cwd(command, plan, placed.placement)
        policy = self._policy(call.agent, placed.placement)
        path = tuple(dict(plan.env).get("PATH", "").split(":"))
        files = self._resolver.for_one_command()
        facts = inspect(command, cwd=cwd, path=path, resolver=files, parse=self._parse)
        facts = with_scripts(facts, files, path, command.env)
        privileges = needs_privileges(facts, asked_for=command.new_privileges)
        if privileges and placed.placement is Placement.HOST:
            plan = self._plan(call.session, placed.placement, command.timeout_s, privileges)
        bound = self._bound(call, command, placed, plan, cwd or "", facts)
        problem = problem or (without_directory(facts) if cwd is None else _no_shell(bound, facts))
        problem = problem or _no_privileges(command, placed)
        arguments = ArgumentJudgement((asked,) if asked else ())
        unheld = question(plan, placed, policy, self.config.exec, privileges=privileges is not None)
        return Case(call, tool, placed, bound, bind(bound), facts, policy, problem, arguments, unheld)

    def toolset(self, session: SessionKey, claims: Claims) -> ToolSet:
        """Return the tools of a session, those of plugins that are registered by now too."""
        return self.tools(ToolIdentity.of(session, claims, self.plugins()))

    def verdict(self, case: Case, remembered: Remembered = _NOTHING) -> Verdict:
        """Decide a case: every layer answers, the strictest holds, all of them are the trace.

        Only a standing permission or elevated full makes the answer milder: from a question to a yes, never
        from a no.
        """
        owners = refuse_owner_only(self.config, case.call.agent, case.call.tool)
        trace: list[Decision] = [case.tool, *([owners] if owners else [])]
        judgement: ExecJudgement | None = None
        if case.facts is not None and case.policy is not None:
            judgement = self._judged(case, case.facts, case.policy, remembered)
            trace += judgement.decisions
        if case.policy is not None or case.problem is not None:
            trace.append(case.placed.decision)
        trace += case.arguments.decisions
        trace += [each for each in (case.problem, case.unheld) if each]
        forbidden = _forbidden(case, remembered)
        trace += [forbidden] if forbidden else []
        trace += [LOCKED] if remembered.locked else []
        permitted = permitting(remembered.permission, trace)
        skipped = skipping(case.placed, strictest(trace).effect) if may_skip_people(trace) else None
        milder = permitted or skipped
        trace += [milder] if milder else []
        return Verdict(
            milder or most_telling(trace, judgement.decisions if judgement else ()),
            tuple(trace),
            case.placed.placement,
            case.facts,
            judgement.satisfied_by if judgement else (),
            _offered(judgement.always, case) if judgement else AlwaysOffer(),
            remembered.permission if permitted else None,
            case.arguments.constraints,
            judgement.entries if judgement else (),
            self._account(case),
        )

    def _account(self, case: Case) -> str | None:
        if case.placed.placement is Placement.CLIENT:
            return None
        return case.bound.plan.user or self.site.own_account

    def _judged(
        self, case: Case, facts: CommandFacts, policy: ExecPolicy, remembered: Remembered
    ) -> ExecJudgement:
        """Judge under the configured policy, and under each that is stated beside it."""
        judgements = [
            decide(
                facts,
                each,
                remembered.learned,
                case.placed.placement,
                env=case.bound.env,
                seen_before=remembered.seen_before,
            )
            for each in in_force(policy, case.call, remembered.tightenings)
        ]
        return together(judgements)

    def fallback_allows(
        self, case: Case, learned: Sequence[AllowlistEntry], beside: Sequence[Tightening] = ()
    ) -> bool:
        """Tell whether a question nobody answered becomes a yes, by `askFallback`."""
        if case.facts is None or case.policy is None or case.problem is not None:
            return False
        others = (case.tool, case.placed.decision, *case.arguments.decisions, *filter(None, (case.unheld,)))
        if any(decision.effect is not Effect.ALLOW for decision in others):
            return False
        return all(
            fallback_allows(case.facts, each, learned, case.placed.placement, case.bound.env)
            for each in in_force(case.policy, case.call, beside)
        )

    def _tools(self, identity: ToolIdentity) -> ToolSet:
        return resolve(self.config, identity)

    def _effective(self, agent: str, placement: Placement) -> ExecPolicy:
        own = (self.site.state_dir, *self.site.protected)
        return effective(
            self.config,
            agent,
            placement,
            home=self.site.home,
            protected_paths=own,
            workspaces=self.site.workspaces,
        )

    def _client_case(self, call: ToolCall, tool: Decision, names: NameResolver | None) -> Case:
        around = self._around(call)
        arguments = _NO_ARGUMENTS
        if tool.effect is Effect.ALLOW:
            arguments = judge_arguments(call, around, self._resolver, names)
        plain = self._bound(call, CommandText(), BY_CLIENT, _NO_PLAN, around.cwd)
        bound = replace(plain, real_paths=_real_paths(arguments))
        return replace(_case(call, tool, BY_CLIENT, bound, None), arguments=arguments)

    def _around(self, call: ToolCall) -> Surroundings:
        """Tell where the arguments of a call are judged: relative paths start from its cwd."""
        around = self._surroundings(call.session)
        if plugins := self.plugins():
            identity = ToolIdentity.of(call.session, call.claims, plugins)
            around = replace(around, universe=universe_of(self.config, identity))
        return replace(around, cwd=call.cwd) if call.cwd else around

    def _surrounded(self, session: SessionKey) -> Surroundings:
        return surroundings_of(
            self.config,
            session.agent,
            workspace=self._workspace(session),
            home=self.site.home,
            protected=(self.site.state_dir, *self.site.protected),
        )

    def _workspace(self, session: SessionKey) -> str:
        agent = self.config.agent(session.agent)
        scope = agent.sandbox.scope or self.config.sandboxing.scope
        access = agent.sandbox.workspace_access or self.config.sandboxing.workspace_access
        own = None if access is WorkspaceAccess.NONE else agent.workspace
        return own or directory_for(self.site.workspace_root, scope, session)

    def _laid_out(
        self, session: SessionKey, placement: Placement, timeout_s: float | None, unheld: str | None
    ) -> SandboxPlan:
        if placement is not Placement.SANDBOX:
            return host_plan(
                self.config.exec,
                own=(self.site.state_dir, *self.site.protected),
                program=self.site.program,
                shown=self.site.shown,
                workspace=self._workspace(session),
                account=self.site.host_account,
                unheld=_BY_CLIENT if placement is Placement.CLIENT else unheld,
                timeout_s=timeout_s,
            )
        return plan_for(
            self.config.sandboxing,
            self.config.agent(session.agent).sandbox,
            self.config.exec,
            state_dir=self.site.state_dir,
            protected=self.site.protected,
            hidden=(*self.site.homes, *self.site.workspaces),
            workspace=self._workspace(session),
            account=self.site.account,
            timeout_s=timeout_s,
        )

    def _cwd(
        self, command: CommandText, plan: SandboxPlan, placement: Placement
    ) -> tuple[str | None, Decision | None]:
        if placement is Placement.CLIENT:
            return client_directory(command, self._resolver)
        if command.cwd is None:
            return plan.workspace, None
        real = self._resolver.real_directory(command.cwd)
        if real is not None and _shown(plan, real, placement):
            return real, None
        if command.cwd_preferred:
            return plan.workspace, None
        why = "is not visible in a run on the host"
        if placement is Placement.SANDBOX:
            why = "is not visible in the sandbox (sandboxing.readable)"
        why = "is not a directory" if real is None else why
        reason = f"cwd {command.cwd} {why}; the session's workspace is {plan.workspace}"
        return plan.workspace, _exec_problem("exec.cwd", reason)

    def _bound(
        self,
        call: ToolCall,
        command: CommandText,
        placed: Placed,
        plan: SandboxPlan,
        cwd: str,
        facts: CommandFacts | None = None,
    ) -> BoundCommand:
        stdin = None if command.stdin is None else hashlib.sha256(command.stdin).hexdigest()
        segments = facts.segments if facts else ()
        executables = dict.fromkeys(each for segment in segments for each in segment.executables)
        scripts = dict.fromkeys(each for segment in segments for each in segment.scripts)
        return BoundCommand(
            agent=call.agent,
            session=str(call.session),
            canonical=facts.canonical if facts else _canonical_call(call),
            cwd=cwd,
            env=tuple(sorted(command.env)),
            stdin=stdin,
            placement=placed.placement,
            plan=plan,
            executables=tuple(executables),
            scripts=tuple(scripts),
            run_by=find_shell(run_argv(facts), self._resolver) if facts else None,
            begins_with=begins_with(facts) if facts else Beginning(),
            directories=self._directories(facts, cwd) if facts else (),
        )

    def _directories(self, facts: CommandFacts, cwd: str) -> tuple[Directory, ...]:
        if any(each.path == cwd for each in facts.directories):
            return facts.directories
        own = self._resolver.directory(cwd)
        return (own, *facts.directories) if own else facts.directories


def _shown(plan: SandboxPlan, directory: str, placement: Placement) -> bool:
    if placement is Placement.SANDBOX:
        return visible(plan, directory)
    return plan.unheld is not None or not hidden_on_host(directory)


def _case(
    call: ToolCall, tool: Decision, placed: Placed, bound: BoundCommand, problem: Decision | None
) -> Case:
    return Case(call, tool, placed, bound, bind(bound), problem=problem)


def _real_paths(arguments: ArgumentJudgement) -> tuple[tuple[str, str], ...]:
    """Take from the terms where each path leads, so that a yes holds for that file alone."""
    terms = [dict(term.values) for term in arguments.constraints if term.kind == "real-path"]
    return tuple((str(term["path"]), str(term["realPath"])) for term in terms)


def _forbidden(case: Case, remembered: Remembered) -> Decision | None:
    if not remembered.deny_rules:
        return None
    commands = {rule.command for rule in remembered.deny_rules}
    spelled = commands.intersection(spellings(case.facts)) if case.facts else frozenset[str]()
    return forbidding(remembered.deny_rules, {case.bound.canonical} | spelled)


def _offered(always: AlwaysOffer, case: Case) -> AlwaysOffer:
    """Withhold Always where another rule would ask all the same."""
    if case.unheld is not None and case.unheld.effect is Effect.ASK:
        return AlwaysOffer(why="nothing is remembered of a run that is not held")
    others = (case.placed.decision, *case.arguments.decisions)
    asks = next((each for each in others if each.effect is Effect.ASK), None)
    if asks is not None:
        return AlwaysOffer(why=f"{asks.reason}, so remembering would change nothing")
    return always


def _exec_problem(rule: str, reason: str) -> Decision:
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, rule)


def _no_shell(bound: BoundCommand, facts: CommandFacts) -> Decision | None:
    if bound.run_by is not None or not starts_shell(run_argv(facts)):
        return None
    reason = f"there is no {SHELL}, which would run this line; install it, or ask for one program alone"
    return _exec_problem("exec.no-shell", reason)


def _no_privileges(command: CommandText, placed: Placed) -> Decision | None:
    if not command.new_privileges or placed.placement is Placement.HOST:
        return None
    reason = (
        "no command gets new privileges in the sandbox; ask for the host with --elevated, or leave it out"
    )
    return _exec_problem("exec.new-privileges", reason)


def _canonical_call(call: ToolCall) -> str:
    return f"{normalise(call.tool)} {json.dumps(dict(call.args), sort_keys=True, ensure_ascii=True)}"
