"""Models drawn at random, with components: for tests that hold the engines of the exhaustive search together.

Belongs here: the generator only. A model is a few finite tables; it is run plainly, by evaluating its moves on whole
states, and by components. About half of them break some property.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from outlives.invariants.explore.components import Branch, Follower, Gate, Look, Move, Refused
from outlives.model.contract import Action, Property, Refusal

__all__ = ["Divided", "RandomModel"]

Values = tuple[int, ...]
_NAMES = ("a", "b", "c", "d")


class RandomModel:
    """Four numbers; moves that read one or two of them, with gates and followers; four properties."""

    def __init__(self, seed: int, size: int = 8) -> None:
        draw = Random(seed)
        self.size = size
        self.components = tuple(draw.sample(_NAMES, 4))
        self._start = tuple(tuple(draw.randrange(size) for _ in _NAMES) for _ in range(draw.choice((1, 1, 2))))
        self._moves = [self._move(draw, f"m{number}") for number in range(draw.randint(3, 5))]
        rare = draw.choice((0, 0, 1, 4))
        self._bad = {name: self._pairs(draw, rare * 2) for name in ("STATE", "STEP", "WHOLE")}
        self._cut = draw.choice((set[int](), set[int](), {draw.randrange(size)}))
        self._looked = draw.sample(_NAMES, 2)
        self._goal = draw.choice((None, draw.randrange(size)))

    # --- drawing ------------------------------------------------------------------------------------------------

    def _pairs(self, draw: Random, count: int) -> set[tuple[int, int]]:
        return {(draw.randrange(self.size), draw.randrange(self.size)) for _ in range(count)}

    def _move(self, draw: Random, name: str) -> Move:
        shuffled = draw.sample(_NAMES, 4)
        reads = tuple(shuffled[: draw.choice((1, 2, 2))])
        written = draw.choice(reads)
        follows = [each for each in shuffled if each != written][: draw.choice((0, 1, 2))]
        keys = [(x, y) for x in range(self.size) for y in range(self.size)]
        table = {key: self._outcomes(draw, name, written) for key in keys}
        steps = {
            each: {
                (note, x): draw.randrange(self.size) if draw.random() < 0.5 else x
                for note in range(3)
                for x in range(self.size)
            }
            for each in follows
        }
        gate = None
        if draw.random() < 0.4:
            shut = draw.randrange(self.size)
            gate = Gate(reads=(shuffled[3],), rule=lambda x: x != shut)

        def follower(each: str) -> Follower:
            return Follower(reads=(each,), writes=(each,), rule=lambda note, x: (steps[each][note, x],))

        return Move(
            names=(name,),
            reads=reads,
            rule=lambda *values: table[values if len(values) == 2 else (values[0], 0)],
            followers=tuple(follower(each) for each in follows),
            gate=gate,
        )

    def _outcomes(self, draw: Random, name: str, written: str) -> list[Branch | Refused]:
        outcomes: list[Branch | Refused] = []
        for to in draw.sample(range(self.size), draw.choice((0, 1, 2, 2))):
            action = Action.of(name, to=to)
            if draw.random() < 0.2:
                outcomes.append(Refused(action, draw.choice(("too-late", "too-early"))))
            else:
                outcomes.append(Branch(action, {written: to}, draw.randrange(3)))
        return outcomes

    # --- the contract, on whole states ----------------------------------------------------------------------------

    def initial_states(self) -> Iterable[Values]:
        return self._start

    def within(self, state: Values) -> bool:
        return state[0] not in self._cut

    def actions(self, state: Values) -> Iterator[Action]:
        for move in self._moves:
            for one in self._of(move, state):
                yield one.action

    def next_state(self, state: Values, action: Action) -> Values | Refusal:
        at = dict(zip(_NAMES, state, strict=True))
        for move in self._moves:
            for one in self._of(move, state):
                if one.action != action:
                    continue
                if isinstance(one, Refused):
                    return Refusal(one.reason)
                after: dict[str, Any] = {**at, **one.writes}
                for each in move.followers:
                    written = each.rule(one.note, *(at[name] for name in each.reads))
                    after.update(zip(each.writes, written, strict=True))
                return tuple(after[name] for name in _NAMES)
        return Refusal("not-offered")

    def _of(self, move: Move, state: Values) -> Sequence[Branch | Refused]:
        at = dict(zip(_NAMES, state, strict=True))
        if move.gate is not None and not move.gate.rule(*(at[name] for name in move.gate.reads)):
            return ()
        return list(move.rule(*(at[name] for name in move.reads)))

    def properties(self) -> Sequence[Property[Values]]:
        x, y = (_NAMES.index(name) for name in self._looked)
        return [
            self._property("STATE", lambda before, after: (after[x], after[y]), "state"),
            self._property("STEP", lambda before, after: (before[x], after[y]), "step"),
            self._property("WHOLE", lambda before, after: (before[0] ^ before[1], after[2]), "step"),
            Property(
                name="ENDS",
                phrase="the fair run does not end at the goal",
                holds=lambda _before, _action, after: after[1] != self._goal,
                explain=lambda before, _action, after: f"from {before} it ends at {after}",
                situation=lambda before, _action, after: before != after,
                situation_phrase="there was something to do",
                kind="progress",
            ),
        ]

    def _property(self, name: str, pair: Any, kind: Any) -> Property[Values]:
        return Property(
            name=name,
            phrase="a pair is not a bad one",
            holds=lambda before, _action, after: pair(before, after) not in self._bad[name],
            explain=lambda before, action, after: f"{action}: {before} to {after}",
            situation=lambda before, action, after: action is not None and action.name == "m1" and after[0] > 2,
            situation_phrase="m1 led above two",
            kind=kind,
        )

    def fair_action(self, state: Values) -> Action | None:
        for one in self._of(self._moves[0], state):
            return one.action
        return None

    def fair_bound(self, state: Values) -> int:
        return 5 + state[0]

    # --- by components --------------------------------------------------------------------------------------------

    def split(self, state: Values) -> tuple[int, ...]:
        at = dict(zip(_NAMES, state, strict=True))
        return tuple(at[name] for name in self.components)

    def join(self, values: tuple[Any, ...]) -> Values:
        at = dict(zip(self.components, values, strict=True))
        return tuple(at[name] for name in _NAMES)

    def moves(self) -> Sequence[Move]:
        return self._moves

    def looks(self) -> Mapping[str, Look]:
        x, y = self._looked
        return {
            "STATE": Look(after=(x, y), test_after=("a",)),
            "STEP": Look(before=(x,), after=(y,), test_after=("a",)),
            "within": Look(after=("a",)),
        }


class Divided(RandomModel):
    """The same model in more moves: two of each name, and followers that hear one place of a note."""

    backwards = False
    """Whether the later half of a move's actions comes first, which no model may do."""

    def moves(self) -> Sequence[Move]:
        return [half for move in super().moves() for half in self._halves(move)]

    def _halves(self, move: Move) -> Sequence[Move]:
        halves = [self._half(move, range(self.size // 2)), self._half(move, range(self.size // 2, self.size))]
        return halves[::-1] if self.backwards else halves

    def _half(self, move: Move, targets: range) -> Move:
        def rule(*values: int) -> Iterator[Branch | Refused]:
            for one in move.rule(*values):
                if one.action.get("to", -1) not in targets:
                    continue
                yield one if isinstance(one, Refused) else one._replace(note=(one.note, -one.note))  # type: ignore[operator]

        def follower(place: int, each: Follower) -> Follower:
            return replace(each, rule=lambda note, x: each.rule((note, -note)[place], x), hears=place)

        return replace(move, rule=rule, followers=tuple(follower(*each) for each in enumerate(move.followers)))
