"""A second worked example, with nothing of encoder caches in it: a prefix tree of KV blocks with locks, as SGLang has.

Requests walk down a tree of token blocks, lock the way to their node, and unlock it when they end; what is not locked
is evicted leaf by leaf, least recently used first. `RadixCache()` keeps its promises; `RadixCache(fault=...)` plants
`leaf-only` (only the last node of a way is locked, so a parent may go under its child's reader), `unlock-once` (an
unlock on the way up stops at the first shared node) or `parents-too` (eviction takes inner nodes). Only
`outlives.model.contract` is used: the engines know no more of caches than that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from outlives.model import Action, ActionTable, Choice, Property, Range, Refusal

__all__ = ["FAULTS", "RadixCache", "Tree"]

Way = tuple[int, ...]
"""A node, by the tokens that lead to it; the root is ()."""
PROMPTS: Mapping[str, Way] = {"ab": (0, 1), "ac": (0, 2), "a": (0,), "b": (1,)}
FAULTS = ("leaf-only", "unlock-once", "parents-too")
_CAPACITY = 3


@dataclass(frozen=True, slots=True)
class Tree:
    """The nodes, least recently used first, each with its count of locks; and who is running on which node."""

    nodes: tuple[tuple[Way, int], ...] = ()
    running: tuple[tuple[int, Way], ...] = ()
    """(request, node), sorted by request."""

    def locks(self, way: Way) -> int:
        """Locks on a node; -1 where it is not cached."""
        return dict(self.nodes).get(way, -1)


class RadixCache:
    """Two requests over a tree with room for three blocks."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    @property
    def action_table(self) -> ActionTable:
        """Arguments by action."""
        request = Range(0, 1)
        return {"admit": {"request": request, "prompt": Choice(tuple(PROMPTS))}, "finish": {"request": request},
                "evict": {"blocks": Range(1, 2)}}  # fmt: skip

    def initial_states(self) -> Iterable[Tree]:
        """Nothing is cached, nobody runs."""
        return [Tree()]

    def actions(self, state: Tree) -> Iterator[Action]:
        """Everything: what makes no sense is refused."""
        for request in (0, 1):
            for prompt in PROMPTS:
                yield Action.of("admit", request=request, prompt=prompt)
            yield Action.of("finish", request=request)
        for blocks in (1, 2):
            yield Action.of("evict", blocks=blocks)

    def next_state(self, state: Tree, action: Action) -> Tree | Refusal:
        """Admission makes room and locks a way, the end unlocks it, pressure evicts."""
        request = int(action.get("request", 0))
        if action.name == "evict":
            after = self._evicted(state, int(action.get("blocks", 1)))
            return after if after != state else Refusal("nothing-to-evict")
        node = dict(state.running).get(request)
        if action.name == "finish":
            return Refusal("not-running") if node is None else self._finished(state, request, node)
        if node is not None:
            return Refusal("runs-already")
        return self._admitted(state, request, PROMPTS[str(action.get("prompt", "a"))])

    def _admitted(self, state: Tree, request: int, node: Way) -> Tree | Refusal:
        ways = [node[:length] for length in range(1, len(node) + 1)]
        held = [way for way in ways if state.locks(way) >= 0]
        locked = self._locked(state, held)  # first what is there, so that making room does not take it
        room = self._evicted(locked, len(locked.nodes) + len(ways) - len(held) - _CAPACITY)
        if len(room.nodes) + len(ways) - len(held) > _CAPACITY:
            return Refusal("no-room")
        new = tuple((way, 0) for way in ways if way not in held)
        both = replace(room, nodes=room.nodes + new)
        both = self._locked(both, [way for way in ways if way not in held])
        used = tuple(sorted(both.nodes, key=lambda each: each[0] in ways))  # the way is the most recently used
        return replace(both, nodes=used, running=tuple(sorted((*both.running, (request, node)))))

    def _locked(self, state: Tree, ways: Sequence[Way]) -> Tree:
        if self.fault == "leaf-only":
            ways = ways[-1:]
        return replace(state, nodes=tuple((way, locks + (way in ways)) for way, locks in state.nodes))

    def _finished(self, state: Tree, request: int, node: Way) -> Tree:
        ways = [node[:length] for length in range(len(node), 0, -1)]
        if self.fault == "unlock-once":
            shared = [place for place, way in enumerate(ways) if state.locks(way) > 1]
            ways = ways[: shared[0]] if shared else ways
        nodes = tuple((way, max(0, locks - (way in ways))) for way, locks in state.nodes)
        return Tree(nodes, tuple(each for each in state.running if each[0] != request))

    def _evicted(self, state: Tree, blocks: int) -> Tree:
        nodes = list(state.nodes)
        for _ in range(max(0, blocks)):
            parents = {way[:-1] for way, _ in nodes}
            inner = self.fault == "parents-too"
            gone = next((each for each in nodes if each[1] == 0 and (inner or each[0] not in parents)), None)
            if gone is None:
                break
            nodes.remove(gone)
        return replace(state, nodes=tuple(nodes))

    def properties(self) -> Sequence[Property[Tree]]:
        """What a prefix cache promises."""
        return [
            Property(
                name="WAY-STAYS",
                phrase="every block on the way of a running request is cached",
                holds=lambda _before, _action, after: not _missing(after),
                explain=lambda _before, _action, after: (
                    f"request {_missing(after)[0][0]} runs on "
                    f"{_missing(after)[0][1]}, and a block of its way is not cached"
                ),
                situation=lambda _before, action, after: bool(after.running) and action is not None,
                situation_phrase="something happened while a request ran",
            ),
            Property(
                name="LOCKS-COUNT",
                phrase="a block's locks are the running requests whose way leads through it",
                holds=lambda _before, _action, after: all(locks == _users(after, way) for way, locks in after.nodes),
                explain=lambda _before, _action, after: next(
                    f"{way} has {locks} locks, and {_users(after, way)} requests use it"
                    for way, locks in after.nodes
                    if locks != _users(after, way)
                ),
                situation=lambda _before, _action, after: len(after.running) == 2,
                situation_phrase="two requests ran",
            ),
            Property(
                name="TREE-HANGS-TOGETHER",
                phrase="the parent of every cached block is cached",
                holds=lambda _before, _action, after: not _orphans(after),
                explain=lambda _before, _action, after: f"{_orphans(after)[0]} is cached without its parent",
                situation=lambda before, _action, after: len(after.nodes) < len(before.nodes),
                situation_phrase="a block was evicted",
            ),
        ]

    def within(self, state: Tree) -> bool:
        """There are few states, unless locks leak: then a block with more locks than requests is far enough."""
        return all(locks <= 2 for _, locks in state.nodes)


def _missing(state: Tree) -> list[tuple[int, Way]]:
    return [
        (request, node)
        for request, node in state.running
        if any(state.locks(node[:length]) < 0 for length in range(1, len(node) + 1))
    ]


def _users(state: Tree, way: Way) -> int:
    return sum(node[: len(way)] == way for _, node in state.running)


def _orphans(state: Tree) -> list[Way]:
    return [way for way, _ in state.nodes if len(way) > 1 and state.locks(way[:-1]) < 0]
