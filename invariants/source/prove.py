"""`prove_source`: from paths to a report. The order of work, and nothing else, belongs here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from outlives.model.lifetime import GUARDS

from ..verdict import Verdict
from .calls import CallSite, OtherRelease, call_sites, other_releases
from .classes import ClassIndex, ClassSource
from .files import BadSource, SourceGroup, gather
from .judge import Judgement, encoder_decoder_branch, judge
from .report import FileReport, MethodReport, SourceReport
from .sandbox import Programs
from .symbolic import Method, Unjudged

__all__ = ["METHOD", "NoSuchMethod", "prove_source"]

METHOD: Final = "_free_encoder_inputs"


class NoSuchMethod(BadSource):
    """None of the given files has the method."""


def prove_source(paths: Sequence[str | Path]) -> SourceReport:
    """Judge `_free_encoder_inputs` of every class in the given files and vLLM package folders.

    A folder may be an installed or unpacked `vllm` package or the folder that holds it; its scheduler files are read.
    What is judged is executed, on stubs only (see the package's docstring). Raises `BadSource` for a path that cannot
    be read, and `NoSuchMethod` where no given file has the method.
    """
    groups = gather(paths)
    files = tuple(report for group in groups for report in _group(group))
    if not any(file.methods for file in files):
        named = ", ".join(str(path) for path in paths[:5]) + (", ..." if len(paths) > 5 else "")
        raise NoSuchMethod(f"no class in {named} has a method {METHOD}; give the file of the scheduler that frees.")
    return SourceReport(files=files)


def _group(group: SourceGroup) -> list[FileReport]:
    index = ClassIndex(group)
    programs = Programs()
    sites = call_sites(group, METHOD)
    methods = [
        _method(index, item, programs, tuple(site for site in sites if _may_call(index, site, item)))
        for item in index.with_method(METHOD)
    ]
    others = other_releases(group, index, programs.code.keys(), METHOD)
    return [_file(str(file.path), methods, others) for file in group.files]


def _may_call(index: ClassIndex, site: CallSite, item: ClassSource) -> bool:
    """Whether a call can mean this class's method: on `self`, only from a class of the same family."""
    caller = site.function.rpartition(".")[0]
    if not site.on_self or not caller:
        return True
    callers = [other for other in index.classes if other.name == caller.rpartition(".")[2]]
    return not callers or any(item in index.line_of(other) or other in index.line_of(item) for other in callers)


def _file(path: str, methods: Sequence[MethodReport], others: Sequence[OtherRelease]) -> FileReport:
    return FileReport(
        file=path,
        methods=tuple(method for method in methods if method.file == path),
        not_judged=tuple(other for other in others if other.file == path),
    )


def _method(index: ClassIndex, item: ClassSource, programs: Programs, sites: tuple[CallSite, ...]) -> MethodReport:
    path = str(item.path)
    function = item.methods.get(METHOD)
    if function is None:
        line = item.assigned[METHOD].lineno
        why = f"{path}:{line}: {METHOD} is assigned there, not defined."
        return _unknown(item, line, why, line, sites)
    method = Method(index, item, function, programs)
    try:
        found = judge(method)
    except Unjudged as error:
        return _unknown(item, function.lineno, str(error), error.line, sites)
    try:
        branch = encoder_decoder_branch(method)
    except Unjudged as error:
        branch = f"unknown ({error})"
    return MethodReport(
        owner=item.name,
        method=METHOD,
        file=path,
        line=function.lineno,
        verdict=found.verdict,
        condition=found.condition,
        words=found.words,
        guard=_guard(found, sites),
        same_condition=found.guards,
        look_ahead=found.look_ahead,
        encoder_decoder=branch,
        calls=sites,
        smallest=found.smallest,
        alone=found.alone,
        problem=_reservation(found, path),
        problem_line=found.stops_at,
    )


def _unknown(
    item: ClassSource, line: int, why: str, problem_line: int | None, sites: tuple[CallSite, ...]
) -> MethodReport:
    return MethodReport(
        owner=item.name,
        method=METHOD,
        file=str(item.path),
        line=line,
        verdict=Verdict.UNKNOWN,
        calls=sites,
        problem=why,
        problem_line=problem_line,
    )


def _guard(found: Judgement, sites: Sequence[CallSite]) -> str | None:
    """The guard whose condition and call site these are; None where there is none, or more than one site."""
    places = {site.site for site in sites}
    if len(places) > 1:
        return None
    fitting = [name for name in found.guards if not places or GUARDS[name].site in places]
    return fitting[0] if len(fitting) == 1 else None


def _reservation(found: Judgement, path: str) -> str:
    told = [found.why] if found.why else []
    if found.stops_at is not None:
        told.append(f"{path}:{found.stops_at} raises for some numbers; judged where it does not.")
    return " ".join(told)
