"""The fast search: the same record as `breadth.py`, over models that show their components.

Belongs here: the search over packed states. The tables that stand for the rules are in `tables.py`.

Theory of operation. As in `breadth.py`, in the same order; a state is one integer, going on from it is a look into one
table per move. The rules run only where a table has a gap. For safety against a rule that reads more than it says, the
answers for a sample of states are compared with `next_state` while the search runs.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from outlives.model.contract import Model, Refusal
from outlives.model.errors import BadModel

from .bounds import Bounds, Listener, Meter, seldom_collecting
from .care import Careful, shown
from .checkpoint import Checkpoint
from .components import ComponentModel
from .exploration import Exploration
from .handing_over import HandingOver, Unfit
from .judge import Judge, chosen
from .loop import BundleTable, Loop, written_out
from .outcome import FOUND, NO_PARENT, Tally, compose
from .packed_judge import PackedJudge
from .packing import Packing, TooNarrow
from .tables import Entry, MoveTable, move_tables

if TYPE_CHECKING:
    from .compiled import CompiledSearch

__all__ = ["interned_search"]

_ENGINE = "interned"
_WIDTH = 16
"""Bits that number a component's values at first; a component that needs more gets twice as many."""
_CHUNK = 256
"""States gone on from between two looks at bounds and properties."""
_COMPARE_FIRST = 64
"""Chunks up to this one have their first state compared with the plain rules ..."""
_COMPARE_EVERY = 16
"""... and afterwards every so many-th chunk."""


def interned_search(
    model: Model[Any],
    *,
    bounds: Bounds | None = None,
    listener: Listener | None = None,
    properties: Sequence[str] | None = None,
    checkpoint: Checkpoint | None = None,
    initial: Sequence[Any] | None = None,
    stop_when_found: bool = False,
    compiled: bool | None = None,
    width: int = _WIDTH,
) -> Exploration:
    """As `breadth_first`, for a model that is also a `ComponentModel`; the same record, save seconds and details.

    `compiled`: whether the loops are those that numba compiles (True), Python's (False), or those of Python until it
    is worth while to hand over (None); the details say which it was, and why. `width` is how many bits number a
    component's values at first; where they do not suffice the search begins again with more. Raises `BadModel` also
    where components and `next_state` disagree, `NotInstalled` where `compiled` is True and numba does not work.
    """
    if not isinstance(model, ComponentModel):
        raise BadModel("the model shows no components (split, join, moves, looks); use breadth_first.")
    meter = Meter(bounds or Bounds(), listener)
    saved = None if checkpoint is None else checkpoint.load(model, _ENGINE)
    widths = {name: getattr(model, "component_bits", {}).get(name, width) for name in model.components}
    handing = HandingOver(compiled, meter.bounds, checkpoint is not None)
    with seldom_collecting():
        while True:
            try:
                return _Search(
                    model, meter, properties, widths, checkpoint, saved, initial, stop_when_found, handing
                ).run()
            except TooNarrow as narrow:
                widths[narrow.component] *= 2
            except Unfit as unfit:
                handing.never(str(unfit))


class _Search:
    """One search and what it has found so far."""

    def __init__(
        self,
        model: Any,
        meter: Meter,
        properties: Sequence[str] | None,
        widths: dict[str, int],
        checkpoint: Checkpoint | None,
        saved: Mapping[str, Any] | None,
        initial: Sequence[Any] | None,
        stop_when_found: bool,
        handing: HandingOver,
    ) -> None:
        self.handing = handing
        self.compiled: CompiledSearch | None = None
        self.stop_when_found = stop_when_found
        self.checkpoint = checkpoint
        self.saved = saved
        self.model = model
        self.careful = Careful(model, initial)
        self.judge = Judge(self.careful, chosen(model.properties(), properties))
        self.meter = meter
        self.tally = Tally()
        self.packing = Packing(model.components, widths)
        self.packed_judge = PackedJudge(model, self.packing, self.judge)
        self.moves = move_tables(self.packing, model, self.packed_judge)
        self.states: list[int] = []
        self.seen: set[int] = set()
        self.outside: set[int] = set()
        """What the boundary looks at, where it says no."""
        self.inside: set[int] = set()
        self.chunks = 0
        self.fired: dict[str, int] = {}
        self.refused: dict[str, dict[str, int]] = {}
        """What a checkpoint brought, or the time before the search was handed over; the tables count the rest."""
        self.bundles: list[BundleTable] = []
        self.names: dict[str, Any] = {}
        """What the loop uses: its globals, so that it and they hold each other until they are cleared."""
        self.halfway = False
        """Inside the step from one consistent record to the next: not to be saved."""

    def run(self) -> Exploration:
        interrupted = False
        try:
            self._begin()
            stopped = self._levels()
        except KeyboardInterrupt:
            stopped, interrupted = "Ctrl-C", True
            if self.compiled is not None:
                self.compiled.settle()
        if self.checkpoint is not None:
            if stopped is None:
                self.checkpoint.remove()
            elif not self.halfway:
                self._save(self.checkpoint)
        fired, refused, self.judge.situations = self._counts()
        self.names.clear()
        return compose(
            self.careful,
            self.judge,
            self.tally,
            self.meter,
            self._state,
            (fired, refused),
            stopped,
            interrupted,
            self._details(),
        )

    def _begin(self) -> None:
        if self.checkpoint is not None and self.saved is not None:
            self._restore(self.checkpoint, self.saved)
            return
        for state in self.careful.initial_states():
            packed = self.packing.pack(self.model.split(state))
            if self.packed_judge.state(packed) != state:
                raise BadModel(f"join(split(state)) is not the state: {shown(state)}.")
            self.seen.add(packed)
            self.states.append(packed)
            self.tally.parents.append(NO_PARENT)
            self.judge.initial(state, len(self.states) - 1)
        self.tally.levels.append(len(self.states))

    def _levels(self) -> str | None:
        """Search until nothing new is found (None) or a bound is met, which is named."""
        tally, bounds = self.tally, self.meter.bounds
        loop, limit = self._loop(), bounds.states or 0
        while tally.done < tally.states:
            if tally.done == tally.end:
                stop = tally.next_level(bounds.depth)
                if stop:
                    return stop
            level = len(tally.levels) - 2
            while tally.done < tally.end:
                if self.compiled is None and self.handing.due(tally.states):
                    self._hand_over()
                done = tally.done
                if self.compiled is None:
                    self.halfway = True
                    self._chunk(loop, min(done + _CHUNK, tally.end), limit)
                    self.halfway = False
                else:
                    for number in self.compiled.chunk(limit):
                        state = self._state(number)
                        if self.careful.within(state):
                            self._same(state, self.compiled.after(number))
                waiting = tally.states - tally.done
                stop = self.meter.look(level, tally.states, tally.transitions, waiting, tally.done - done)
                if self.stop_when_found and self.judge.all_found:
                    return FOUND
                if stop:
                    return stop
                if self.checkpoint is not None and self.checkpoint.due:
                    self._save(self.checkpoint)
            self.meter.tell(level, tally.states, tally.transitions, tally.states - tally.done)
        return None

    def _hand_over(self) -> None:
        """The states and what is known of the rules go to the compiled loops."""
        tables = (self.packing, self.packed_judge, self.moves)
        counts = self._counts()
        try:
            self.compiled = self.handing.over(self.tally.states, self.model, *tables, self.tally, self.states)
        except Unfit as unfit:
            self.handing.never(str(unfit))
            return
        self.fired, self.refused, self.judge.situations = counts
        self.bundles = []
        self.states.clear()
        self.seen.clear()

    def _chunk(self, loop: Loop, end: int, limit: int) -> None:
        """Go on from the states up to number `end`, and judge what is new."""
        tally, states = self.tally, self.states
        first = len(states)
        self._boundary(states[tally.done : end])
        self._compare(states[tally.done])
        tally.done, taken = loop(tally.done, end, limit)
        tally.transitions += taken
        self.packed_judge.new_states(states[first:], first)
        tally.levels[-1] = len(states) - tally.end

    def _save(self, checkpoint: Checkpoint) -> None:
        fired, refused, situations = self._counts()
        content = {
            "packing": self.packing.saved(),
            "states": self.states,
            "tally": self.tally.saved(),
            "judge": {**self.judge.saved(), "situations": situations},
            "fired": fired,
            "refused": refused,
        }
        checkpoint.save(self.model, _ENGINE, content)

    def _restore(self, checkpoint: Checkpoint, saved: Mapping[str, Any]) -> None:
        try:
            repack = self.packing.restore(saved["packing"])
            self.states += [repack(packed) for packed in saved["states"]]
            self.seen.update(self.states)
            self.tally = Tally.restored(saved["tally"])
            self.judge.restore(saved["judge"])
            self.fired, self.refused = dict(saved["fired"]), dict(saved["refused"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise checkpoint.refuse(f"its content does not fit ({type(error).__name__}: {error})") from error
        if not len(self.states) == len(self.seen) == self.tally.states:
            raise checkpoint.refuse("its states are not as many as it counts")
        first = self.careful.initial_states()
        if [self.packed_judge.state(packed) for packed in self.states[: len(first)]] != first:
            raise checkpoint.refuse("the model's initial states are others")
        for number in range(0, self.tally.done, max(1, self.tally.done // 100)):
            self._known_successors(checkpoint, self.states[number])
        self.meter.resumed = len(self.states)

    def _known_successors(self, checkpoint: Checkpoint, packed: int) -> None:
        """A state that was gone on from leads to known states only."""
        if not self.careful.within(self.packed_judge.state(packed)):
            return
        for table in self.moves:
            entry = table.entry(packed)
            if entry is not None and any(table.after(packed, branch) not in self.seen for branch in entry.branches):
                raise checkpoint.refuse(f"one of {', '.join(map(str, entry.actions))} now leads to an unknown state")

    def _loop(self) -> Loop:
        self.names.update(
            {
                "states": self.states,
                "parents": self.tally.parents,
                "seen": self.seen,
                "outside": self.outside,
                "within_mask": self.packed_judge.within_mask,
                "skipped": self._skip,
                "no_successor": self._no_successor,
                "watch": self._watch,
            }
        )
        loop, self.bundles = written_out(self.moves, self.meter.bounds.states is not None, self.names)
        return loop

    def _skip(self, number: int) -> None:  # noqa: ARG002
        self.tally.outside += 1

    def _watch(self, state: int, table: MoveTable, entry: Entry, number: int) -> None:
        """Judge the transitions of a move that its table alone does not decide."""
        for branch, action, watches in zip(entry.branches, entry.actions, entry.watched, strict=True):
            if watches:
                after = table.after(state, branch)
                for watch in watches:
                    watch.see(state, action, after, number)

    def _no_successor(self, state: int, number: int) -> None:
        tally = self.tally
        if not any(entry.refused for table in self.moves if (entry := table.entry(state))):
            tally.ends += 1
            return
        tally.deadlocks += 1
        if tally.deadlock is None:
            tally.deadlock = number

    def _boundary(self, states: Sequence[int]) -> None:
        """Ask the boundary once per value of what it looks at."""
        judge = self.packed_judge
        if judge.within is None:
            for packed in states:
                if not self.careful.within(judge.state(packed)):
                    self.outside.add(packed)
            return
        for key in set(map(judge.within_mask.__and__, states)) - self.inside - self.outside:
            inside = self.careful.within(judge.state(key, judge.within.after))
            (self.inside if inside else self.outside).add(key)

    def _compare(self, packed: int) -> None:
        """Hold the tables' answer for one state against the model's own."""
        self.chunks += 1
        if self.chunks > _COMPARE_FIRST and self.chunks % _COMPARE_EVERY:
            return
        state = self.packed_judge.state(packed)
        if not self.careful.within(state):
            return
        tabled: dict[Any, Any] = {}
        for table in self.moves:
            entry = table.entry(packed)
            if entry is None:
                continue
            tabled.update({one.action: Refusal(one.reason) for one in entry.refused})
            for action, branch in zip(entry.actions, entry.branches, strict=True):
                tabled[action] = self.packed_judge.state(table.after(packed, branch))
        self._same(state, tabled)

    def _same(self, state: Any, tabled: Mapping[Any, Any]) -> None:
        """Raises `BadModel` where the model's own answers for a state are not those of the tables."""
        plain: dict[Any, Any] = dict(self.careful.moves(state))
        if plain != tabled:
            action = min(each for each in {*plain, *tabled} if plain.get(each) != tabled.get(each))
            raise BadModel(
                f"components and next_state disagree on action {action} in state {shown(state)}: by components "
                f"{shown(tabled.get(action, 'not offered'), 200)}, by next_state "
                f"{shown(plain.get(action, 'not offered'), 200)}. A rule may read more than its move says."
            )

    def _state(self, number: int) -> Any:
        """A state by its number."""
        if self.compiled is not None:
            return self.compiled.state(number)
        return self.packed_judge.state(self.states[number])

    def _counts(self) -> tuple[dict[str, int], dict[str, dict[str, int]], dict[str, int]]:
        """What fired, what was refused and why, and the situations, up to now."""
        fired = dict(self.fired)
        refused = {name: dict(reasons) for name, reasons in self.refused.items()}
        situations = dict(self.judge.situations)
        for bundle in self.bundles:
            bundle.settle()
        entries = (entry for table in self.moves for entry in table.values() if entry.visits)
        for entry in entries if self.compiled is None else self.compiled.entries():
            for action in entry.actions:
                fired[action.name] = fired.get(action.name, 0) + entry.visits
            for one in entry.refused:
                reasons = refused.setdefault(one.action.name, {})
                reasons[one.reason] = reasons.get(one.reason, 0) + entry.visits
            for name in entry.situations:
                situations[name] += entry.visits
        return fired, refused, situations

    def _details(self) -> dict[str, Any]:
        compiled = self.compiled
        if compiled is not None:
            packing, calls, entries = compiled.tables.packing, compiled.tables.rule_calls, compiled.tables.remembered
        else:
            packing, calls = self.packing, sum(table.calls for table in self.moves)
            entries = sum(map(len, self.moves)) + (self.moves[0].followers.remembered() if self.moves else 0)
        return {
            "engine": _ENGINE if compiled is None else "compiled",
            "compiled": self.handing.why,
            "components": packing.sizes(),
            "rule_calls": calls,
            "table_entries": entries,
        }
