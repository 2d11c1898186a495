"""Judgements on the cache: reads, the book, the worker's shelf. The predicates behind `properties`.

A judgement that ends in text returns what is wrong, in words and numbers, or the empty string.
"""

from outlives.model.contract import Action
from outlives.model.setup import request_name
from outlives.model.state import ABSENT, FINISHED, State, items_of
from outlives.model.world import World

# --- gather after free ------------------------------------------------------------------------------------------


def nothing_missed(_before: State, _action: Action | None, after: State) -> bool:
    return not after.misses


def read_an_item(before: State, action: Action | None, _after: State) -> bool:
    if action is None or action.name not in ("accept", "reject", "execute") or not before.steps:
        return False
    step = next((step for step in before.steps if step.executed == 0), None)
    if step is None:
        return False
    return any(
        item.start < part.start + part.tokens and item.end > part.start
        for part in step.parts
        for item in items_of(before.setup, before.requests[part.request], part.request)
    )


def missed(state: State) -> str:
    return "; ".join(
        f"the {miss.reader} of {request_name(miss.request)} reads [{miss.low},{miss.high}) and needs item{miss.item} "
        f"[{item.start},{item.end}), whose key {item.key} is not on the worker's shelf"
        for miss in state.misses
        for item in (items_of(state.setup, state.requests[miss.request], miss.request)[miss.item],)
    )


# --- planned means encoded --------------------------------------------------------------------------------------


def shelf_to_come(state: State) -> set[str]:
    """The worker's shelf once every step in flight has executed and the pending notices have arrived."""
    shelf = set(state.shelf)
    for step in state.steps:
        if step.executed == 0:
            shelf = set() if step.clear == 1 else (shelf - set(step.drop)) | set(step.encode)
    return shelf


def _unencoded(state: State) -> list[str]:
    coming = shelf_to_come(state)
    return [entry.key for entry in state.book.entries if entry.key not in coming]


def planned_encoded(_before: State, _action: Action | None, after: State) -> bool:
    return not after.book.entries or after.setup.encoder_decoder == 1 or not _unencoded(after)


def why_unencoded(_before: State, _action: Action | None, after: State) -> str:
    return (
        f"the book has {', '.join(_unencoded(after))}, but no step in flight encodes it and the worker does not hold it"
    )


def planned(before: State, _action: Action | None, after: State) -> bool:
    return after.setup.encoder_decoder == 0 and len(after.steps) > len(before.steps) and bool(after.steps[-1].encode)


# --- slots --------------------------------------------------------------------------------------------------------


def slots(state: State) -> str:
    book = state.book
    held = sum(entry.size for entry in book.entries)
    idle = sum(entry.size for entry in book.entries if entry.key in book.idle)
    wrong = []
    if book.free + held + book.strangers != state.setup.slots:
        wrong.append(
            f"{book.free} free + {held} of entries + {book.strangers} of strangers are not {state.setup.slots} slots"
        )
    if book.reclaimable != book.free + idle:
        wrong.append(f"{book.reclaimable} reclaimable are not {book.free} free + {idle} idle")
    if book.free < 0:
        wrong.append(f"{book.free} slots are free")
    return "; ".join(wrong)


def has_entries(_before: State, _action: Action | None, after: State) -> bool:
    return bool(after.book.entries)


# --- references ---------------------------------------------------------------------------------------------------


def references(state: State) -> str:
    referencing: dict[str, set[int]] = {}
    for number, request in enumerate(state.requests):
        for item in request.references:
            referencing.setdefault(items_of(state.setup, request, number)[item].key, set()).add(number)
    holders = {entry.key: set(entry.holders) for entry in state.book.entries if entry.holders}
    if referencing == holders:
        return ""
    wrong = sorted(key for key in referencing.keys() | holders.keys() if referencing.get(key) != holders.get(key))
    return "; ".join(
        f"{key} is referenced by {_names(referencing.get(key, set()))}, but the book holds it "
        f"for {_names(holders.get(key, set()))}"
        for key in wrong
    )


def _names(numbers: set[int]) -> str:
    return ", ".join(request_name(number) for number in sorted(numbers)) or "nobody"


def has_references(_before: State, _action: Action | None, after: State) -> bool:
    return any(request.references for request in after.requests)


# --- idle queue ---------------------------------------------------------------------------------------------------


def idle(state: State) -> str:
    unreferenced = {entry.key for entry in state.book.entries if not entry.holders}
    if len(set(state.book.idle)) == len(state.book.idle) and set(state.book.idle) == unreferenced:
        return ""
    return f"the idle queue is {list(state.book.idle)}, but the unreferenced entries are {sorted(unreferenced)}"


def has_idle(_before: State, _action: Action | None, after: State) -> bool:
    return bool(after.book.idle)


# --- shelf and book agree -----------------------------------------------------------------------------------------


def shelf_differs(state: State) -> str:
    if any(step.executed == 0 for step in state.steps):
        return ""
    told = set(state.shelf) - set(state.book.evicted)
    book = {entry.key for entry in state.book.entries}
    if state.setup.encoder_decoder == 1:
        # An output is used by the step that encodes it; the worker drops it one pass later.
        book = set(state.book.due)
    # A key that was evicted and entered again before the notice left is in both.
    leaked = sorted(told - book)
    missing = sorted(book - set(state.shelf))
    wrong = []
    if leaked:
        wrong.append(f"the worker still holds {', '.join(leaked)}, which the book has forgotten")
    if missing:
        wrong.append(f"the book has {', '.join(missing)}, which the worker does not hold")
    return "; ".join(wrong)


def drained_with_shelf(_before: State, action: Action | None, after: State) -> bool:
    return action is not None and bool(after.shelf) and all(step.executed == 1 for step in after.steps)


# --- releasing twice ----------------------------------------------------------------------------------------------


def released_twice(world: World, state: State) -> str:
    for number, request in enumerate(state.requests):
        held = (
            request.references
            if state.setup.encoder_decoder == 1
            else range(len(items_of(state.setup, request, number)))
        )
        for item in held:
            book, after = world.rules.release(world, state.setup, state.book, request, number, item)
            if world.rules.release(world, state.setup, book, after, number, item) != (book, after):
                return f"releasing item{item} of {request_name(number)} a second time changes the book again"
    return ""


def released(before: State, _action: Action | None, after: State) -> bool:
    for old, new in zip(before.requests, after.requests, strict=True):
        if old.references is not new.references and set(old.references) - set(new.references):
            return True
    return False


# --- quiescence ---------------------------------------------------------------------------------------------------


def quiet(state: State) -> bool:
    over = all(request.status in (ABSENT, FINISHED) for request in state.requests)
    return over and not state.steps and any(request.status == FINISHED for request in state.requests)


def left_over(state: State) -> str:
    if not quiet(state):
        return ""
    left = []
    for number, request in enumerate(state.requests):
        if request.references or request.counters.placeholders or request.counters.in_flight:
            left.append(f"{request_name(number)} still has references, placeholders or tokens in flight")
    held = [entry.key for entry in state.book.entries if entry.holders]
    if held:
        left.append(f"the book still holds {', '.join(held)}")
    if state.running or state.waiting:
        left.append("a finished request is still in a queue")
    return "; ".join(left)
