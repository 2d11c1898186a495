"""What a run reached of the rules: from the counts of its engines to the record that reports show.

Belongs here: adding the counts up, and what the missing ones are called. How sides of conditions are counted is in
`branches`, which reasons there are in `refusal_reasons`.
"""

from collections.abc import Iterable, Mapping, Sequence

from outlives.model.world import World

from .branches import conditions_of
from .combined import Searches
from .refusal_reasons import refusal_reasons
from .report.reach import Reach

__all__ = ["Refused", "added", "reach_of", "refused_in"]

Refused = Mapping[str, Mapping[str, int]]
"""Action -> reason -> how often."""


def added(counts: Iterable[Refused]) -> dict[str, dict[str, int]]:
    """The sum of several, in alphabetical order."""
    sums: dict[str, dict[str, int]] = {}
    for count in counts:
        for action, reasons in count.items():
            of_action = sums.setdefault(action, {})
            for reason, times in reasons.items():
                of_action[reason] = of_action.get(reason, 0) + times
    return {action: dict(sorted(sums[action].items())) for action in sorted(sums)}


def refused_in(found: Searches) -> list[Refused]:
    """The refusals of searches."""
    return [{name: count.refused for name, count in each.actions.items() if count.refused} for each in found.values()]


def reach_of(
    world: World, actions: Sequence[str], refused: Sequence[Refused], sides: Iterable[int], *, resumed: bool = False
) -> Reach:
    """What a run reached that took these sides (each as bits, of the conditions of `world`), and was refused these.

    `actions` are those of the configuration; `resumed` says that a part of the run was in another process, whose sides
    nobody knows any more.
    """
    conditions = conditions_of(world)
    taken = 0
    for some in sides:
        taken |= some
    given = added(refused)
    seen = {reason for reasons in given.values() for reason in reasons}
    possible = refusal_reasons(actions)
    missing: dict[tuple[str, int], list[bool]] = {}
    for condition, side in conditions.untaken(taken):
        missing.setdefault((condition.key, condition.line), []).append(side)
    untaken = [
        f"{key} (line {line}): never {'asked' if len(never) == 2 else 'true' if never[0] else 'false'}"
        for (key, line), never in missing.items()
    ]
    not_counted = list(conditions.not_counted)
    if resumed:
        not_counted.append("what a search took before it was kept in its checkpoint")
    return Reach(
        sides=2 * len(conditions.each) - sum(map(len, missing.values())),
        of_sides=2 * len(conditions.each),
        reasons=len(seen & set(possible)),
        of_reasons=len(possible),
        untaken=tuple(untaken),
        ungiven=tuple(
            f"{reason} ({', '.join(names)}) was never given" for reason, names in possible.items() if reason not in seen
        ),
        declared=tuple(condition.key for condition in conditions.declared),
        not_counted=tuple(not_counted),
        refused=given,
    )
