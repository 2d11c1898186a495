"""A cache with leases in thirty lines, as `docs/own-scheduler.md` builds it from an empty file; it has a fault."""

from typing import NamedTuple

from outlives.model import Action, Property, Refusal


class Cache(NamedTuple):
    order: tuple[int, ...] = ()  # the keys that are cached, least recently used first
    leases: tuple[tuple[int, int], ...] = ()  # (who reads, which key)


LEASED_STAYS = Property(
    name="LEASED-STAYS",
    phrase="what somebody reads is cached",
    holds=lambda before, action, after: all(key in after.order for _, key in after.leases),
    explain=lambda before, action, after: f"{after.order} is cached, and {after.leases} are leased",
    situation=lambda before, action, after: len(after.order) == 2,
    situation_phrase="the cache was full",
)


class LeaseCache:
    def initial_states(self):
        return [Cache()]

    def actions(self, state):
        return [Action.of(name, reader=r, key=k) for name in ("open", "close") for r in (0, 1) for k in (0, 1, 2)]

    def next_state(self, state, action):
        lease = action.get("reader", 0), action.get("key", 0)
        if (action.name == "close") is not (lease in state.leases):
            return Refusal("no-such-lease" if action.name == "close" else "leased-already")
        if action.name == "close":
            return state._replace(leases=tuple(each for each in state.leases if each != lease))
        order = (*(key for key in state.order if key != lease[1]), lease[1])
        return Cache(order[-2:], (*state.leases, lease))  # room for two: the oldest goes, whoever reads it

    def properties(self):
        return [LEASED_STAYS]

    def within(self, state):
        return True
