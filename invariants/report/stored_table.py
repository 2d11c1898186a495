"""The table guard x assumptions as `outlives table` last judged it, for reports of runs that do not judge it.

Belongs here: reading it, and saying where it is from. `python docs/refresh.py --table` judges it anew and stores it.
"""

import json
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from .content import DataTable

__all__ = ["row_words", "stored_tables"]

_FROM = "as outlives table judged it with version {version}; not judged in this run"


@cache
def _stored() -> dict[str, Any]:
    text = (resources.files(__package__) / "assets" / "table.json").read_text(encoding="utf-8")
    stored: dict[str, Any] = json.loads(text)
    return stored


def stored_tables() -> tuple[DataTable, ...]:
    """Guards down, assumptions across: items inside the prompt, and anywhere."""
    stored = _stored()
    said = _FROM.format(version=stored["outlives"])
    tables = []
    for name, table in stored["tables"].items():
        columns = tuple(table["rows"][0])
        rows = tuple(tuple(row[column] for column in columns) for row in table["rows"])
        made = DataTable(name=name, title=table["title"], columns=columns, rows=rows, legend=tuple(table["legend"]))
        tables.append(replace(made, title=f"{made.title} ({said})"))
    return tuple(tables)


def row_words(guard: str) -> str:
    """The row of one guard, for items inside the prompt: `A1-A4 proved (pe); A1 UNSAFE 6! (be); ...`; empty for a guard
    that is not in the table."""
    table = stored_tables()[0]
    row = next((row for row in table.rows if row[0] == guard), None)
    if row is None:
        return ""
    cells = "; ".join(
        f"{column} {' '.join(cell.split())}" for column, cell in zip(table.columns[1:], row[1:], strict=True)
    )
    return f"guard {guard} under each assumption relaxed, {_FROM.format(version=_stored()['outlives'])}: {cells}"
