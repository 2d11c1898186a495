"""`outlives explain`: everything there is to say about a saved trace, in any format, printed, filed, or opened.

Belongs here: where the report goes. What it says comes from `explained`.
"""

import argparse
import webbrowser
from pathlib import Path

from .command_options import given_of, out_folder
from .explained import explain_file
from .folder import make_folder
from .report import Reporter

__all__ = ["explain_trace"]


def explain_trace(options: argparse.Namespace, formats: tuple[str, ...], reporter: Reporter) -> int:
    """Explain the trace; returns the exit status: 1 where it violates something, else 0. Raises what reading raises."""
    from .report.documents import put_document

    run = explain_file(options.trace, given_of(options))
    stem = Path(options.trace).name.removesuffix(".json").removesuffix(".itf")
    if options.open and "html" not in formats:
        formats = (*formats, "html")
    if not formats or (options.out is None and not options.open):
        reporter.run(run)
        return reporter.finish(run.status)
    folder = Path(options.out) if options.out else make_folder(out_folder(options), "explain")
    for name in formats:
        path = put_document(run, name, folder / stem)
        reporter.wrote(str(path))
        if options.open and name == "html" and not webbrowser.open(path.resolve().as_uri()):
            reporter.say("No browser could be started here: open the file in one.")
    return reporter.finish(run.status)
