"""Progress lines on standard error, for people only.

Belongs here: the one context helper that both reporters use.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from .clean import shown
from .reporter import Advance

__all__ = ["progress_on"]


@contextmanager
def progress_on(stream: TextIO, total: int | None, description: str) -> Iterator[Advance]:
    """A progress line on this stream while the context is open; nothing where the stream is no terminal."""
    if not stream.isatty():
        yield lambda _completed, _text="": None
        return
    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(shown(description), total=total)

        def advance(completed: int, text: str = "") -> None:
            bar.update(task, completed=completed)
            if text:
                bar.console.print(Text(shown(text)))

        yield advance
