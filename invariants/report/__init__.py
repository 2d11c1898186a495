"""Reports: what engines found, as data (`content`, `story`) and in words (`terminal`, `json_report`).

`explain` makes a `Violation` of a trace, `Run` holds a whole run, and a `Reporter` (`reporter_for`) shows them. Data
flows one way: results and traces come in, nothing here changes a verdict.
"""

from .content import EXIT_WORDS, Cell, DataTable, Run, Violation, explain
from .reporter import Reporter, reporter_for
from .story import Event, Story, tell

__all__ = [
    "EXIT_WORDS",
    "Cell",
    "DataTable",
    "Event",
    "Reporter",
    "Run",
    "Story",
    "Violation",
    "explain",
    "reporter_for",
    "tell",
]
