"""Real source files: what a scheduler's own `_free_encoder_inputs` releases, and whether that implies *confirmed*.

Belongs here: `prove_source`, and the modules that it is made of. `files` finds and parses; `classes` and `calls` read;
`lift`, `rewrite`, `allowed` and `sandbox` make a method runnable; `stubs` and `symbolic` run it; `words` and `judge`
ask the solver; `report` says it.

Security: what is judged is executed
------------------------------------
The given files are parsed, never imported; but the method itself, and the methods of its class that it calls, are
compiled and run, on stubs. Before that every node of theirs must be on a whitelist: no import, lambda, nested function
or class, `global`, `try`, `with`, `del`, `yield`, no dunder or private name, no assignment to an attribute. Then each
attribute, call, global name, index and operand goes through a hook that knows only stubs, small plain collections and
a short list of harmless built-ins; the namespace has no built-ins of its own. A run has a budget of steps, a bound on
every number and collection, and a cap on paths, so that endless loops and recursion end as "not judged". This keeps
honest and careless code in reach of nothing, and hostile code as far as we know; it is no substitute for a jail of the
operating system where you judge files from a stranger.
"""

from .calls import CallSite, OtherRelease
from .files import BadSource
from .judge import Smallest
from .prove import METHOD, NoSuchMethod, prove_source
from .report import PROPERTY, FileReport, MethodReport, SourceReport

__all__ = [
    "METHOD",
    "PROPERTY",
    "BadSource",
    "CallSite",
    "FileReport",
    "MethodReport",
    "NoSuchMethod",
    "OtherRelease",
    "Smallest",
    "SourceReport",
    "prove_source",
]
