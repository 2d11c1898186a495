"""When a search is handed over to the compiled loops, and why not: a policy that costs nothing before it is due.

Belongs here: the conditions, and the one import of the compiled search. Numba takes a third of a second to import, and
some ten seconds to compile the loops where no earlier run left them on disk; a small search must not wait for that.
"""

import importlib.util
import os
from typing import TYPE_CHECKING, Any

from outlives.model.errors import OutlivesError

from .bounds import Bounds
from .care import told

if TYPE_CHECKING:
    from .compiled import CompiledSearch

__all__ = ["FORBIDDEN", "HandingOver", "NotInstalled", "Unfit"]

FORBIDDEN = "OUTLIVES_NO_NUMBA"
"""Set (and not 0) in the environment: no search is handed over unless its caller insists."""
_AFTER = 25_000
"""States known when a search is handed over: in Python a quarter of a second's work."""
_AFTER_UNCACHED = 500_000
"""Likewise, where the loops have yet to be compiled."""


class NotInstalled(OutlivesError):
    """The compiled search was insisted on, and numba is not there or does not work."""


class Unfit(Exception):
    """A search that does not fit the compiled loops; says why. Never leaves this package."""


class HandingOver:
    """Decides for one search. `why` says at any time why the search was not handed over (or from where on it was).

    `compiled`: None hands over when it is worth it, False never, True at once. Raises `NotInstalled` for True without
    numba. A search that is kept in a checkpoint stays in Python: what is kept there are the records of that engine.
    """

    def __init__(self, compiled: bool | None, bounds: Bounds, kept: bool) -> None:
        self._insisted = compiled is True
        self._states = bounds.states
        self._next: int | None = 0 if compiled else _AFTER
        self.why = "no: the search is small"
        if compiled is False:
            self.never("not wanted")
        elif kept:
            self.never("a checkpoint is kept")
        elif not self._insisted and os.environ.get(FORBIDDEN, "0") not in ("", "0"):
            self.never(f"{FORBIDDEN} is set")
        elif self._insisted:
            self._import()

    def never(self, why: str) -> None:
        """Go on in Python, whatever comes."""
        self._next = None
        self.why = f"no: {why}"

    def due(self, states: int) -> bool:
        """Whether to hand over now, with so many states known."""
        if self._next is None or states < self._next:
            return False
        if self._insisted:
            return True
        if self._states is not None and self._states < states + _AFTER:
            self.never("the bound on states is near")
            return False
        module = self._import()
        if module is None:
            return False
        if states < _AFTER_UNCACHED and not module.kept():
            self._next = _AFTER_UNCACHED
            return False
        return True

    def over(self, states: int, *arguments: Any) -> "CompiledSearch":
        """The search, handed over. Raises `Unfit`."""
        module = self._import()
        assert module is not None
        search: CompiledSearch = module.CompiledSearch(*arguments)
        self.why = f"from {states:,} states on"
        return search

    def _import(self) -> Any:
        """The compiled search, or None (and why not)."""
        try:
            if importlib.util.find_spec("numba") is None:
                raise ImportError("numba is not installed")
            from . import compiled

            if not compiled.works():
                raise ImportError("numba is told not to compile (NUMBA_DISABLE_JIT)")
        except Exception as error:  # a numba that does not go with this numpy, or with this machine, may raise anything
            why = str(error) if isinstance(error, ImportError) else told(error)
            if self._insisted:
                raise NotInstalled(f"the compiled search cannot run: {why}. Install outlives[fast].") from error
            self.never(why)
            return None
        return compiled
