"""Faults of one's own, as `docs/faults.md` uses them: none of them is in the catalogue."""

from outlives.model import lifetime
from outlives.model.faults import Fault, one_request
from outlives.model.lifetime import Counters
from outlives.model.world import Rules


def keep_one_promise(c: Counters, isolate: int) -> Counters:
    """A preempted request keeps one of its placeholders."""
    after = lifetime.preempt(c, isolate)
    return after._replace(placeholders=min(1, c.placeholders))


# A record: what it breaks and where it shows first are stated, and checked.
promise_survives_preemption = Fault(
    name="promise-survives-preemption",
    phrase="a preempted request keeps one of its placeholders",
    breaks="PLACEHOLDERS-KEPT",
    scope=one_request(prompt=1, outputs=2, depth=2),
    actions=5,
    rules={"preempt": keep_one_promise},
)


class SlowReset(Rules):
    """A subclass of `Rules`: each static method takes the place of the released rule of its name."""

    @staticmethod
    def reset(c: Counters, isolate: int) -> Counters:
        """A prefix-cache reset forgets what is in flight."""
        return lifetime.reset(c, isolate)._replace(stale=0)
