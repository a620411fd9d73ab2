"""The arguments of a call, judged: files, addresses, and what is put to a person."""

from __future__ import annotations

from core.arguments.ask import asked_by_tool
from core.arguments.carried import judge_carried_addresses
from core.arguments.files import judge_files
from core.arguments.judgement import ArgumentJudgement
from core.arguments.process import judge_process
from core.arguments.surroundings import Surroundings
from core.arguments.web import judge_web
from core.model.call import ToolCall
from core.ports import NameResolver, Resolver


def judge_arguments(
    call: ToolCall, surroundings: Surroundings, resolver: Resolver, names: NameResolver | None
) -> ArgumentJudgement:
    """Judge what a call brings along; no decision where no rule concerns it.

    Pure but for what the resolvers look at. Without `names` hosts are judged by their names alone: to look
    one up gives away what an agent wrote into it.
    """
    asked = asked_by_tool(call.tool, surroundings)
    return (
        ArgumentJudgement((asked,) if asked else ())
        + judge_files(call.tool, call.args, surroundings, resolver)
        + judge_process(call.tool, call.args)
        + judge_web(call.tool, call.args, surroundings.web, names)
        + judge_carried_addresses(call.tool, call.args, surroundings.web, names)
    )
