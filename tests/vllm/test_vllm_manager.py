"""The encoder-cache manager alone: random operations on the real class and on the book, equal after each."""

import random

import pytest
from outlives.invariants.subject.environment import make_request
from outlives.invariants.subject.reading import book_of
from outlives.model.book import allocate, announce, drop_references, emptied, empty_book, hit, make_room, release
from outlives.model.lifetime import Counters
from outlives.model.profiles import PROFILES
from outlives.model.setup import Item, RequestSetup, Setup
from outlives.model.state import RUNNING, Request
from outlives.model.world import World

pytestmark = pytest.mark.vllm

OPERATIONS = 100_000
RUN = 400
"""Operations on one manager, before the next one with other numbers."""


def _setup(choose: random.Random) -> Setup:
    sizes = [choose.randint(1, 4) for _ in range(5)]
    requests = []
    for _ in range(3):
        start, items = 0, []
        for _ in range(choose.randint(1, 4)):
            key = choose.randrange(5)
            items.append(Item(start, sizes[key], f"k{key}", sizes[key]))
            start += sizes[key] + choose.randint(0, 1)
        requests.append(RequestSetup(start + 1, 4, tuple(items)))
    return Setup(tuple(requests), slots=choose.randint(4, 12), budget=8)


class _Both:
    """One real manager and one book, on which the same things are done."""

    def __init__(self, release, world: World, setup: Setup) -> None:
        self.world, self.setup = world, setup
        self.manager = release.classes["EncoderCacheManager"](cache_size=setup.slots)
        self.book = empty_book(setup.slots)
        self.sizes = {item.key: item.size for asked in setup.requests for item in asked.items}
        self.records = [Request(RUNNING, Counters(9, 0, 0, 0, 9)) for _ in setup.requests]
        self.real = [
            make_request(release.classes, setup, number, asked.prompt, asked.outputs, asked.items, False)
            for number, asked in enumerate(setup.requests)
        ]

    def take(self, number: int, item: int, limit: int) -> str:
        """What the gate and the grant do for one item: a hit, or room and an encode, or nothing."""
        subject = self.setup.requests[number].items[item]
        found = hit(self.world, self.book, subject.key, number)
        assert self.manager.check_and_update_cache(self.real[number], item) == (found is not None)
        if found is not None:
            self.book = found
            self._reference(number, item)
            return "hit"
        room = make_room(self.world, self.book, subject.size, 0) if subject.size <= limit else None
        assert self.manager.can_allocate(self.real[number], item, limit, 0) == (room is not None)
        if room is None:
            return "no room"
        evicted = len(room.evicted) > len(self.book.evicted)
        self.book = allocate(self.world, room, subject.key, subject.size, number)
        self.manager.allocate(self.real[number], item)
        self._reference(number, item)
        return "evicted" if evicted else "allocated"

    def _reference(self, number: int, item: int) -> None:
        record = self.records[number]
        self.records[number] = record._replace(references=tuple(sorted({*record.references, item})))

    def let_go(self, number: int, item: int) -> str:
        """One reference goes, held or not."""
        held = item in self.records[number].references
        self.book, self.records[number] = release(self.world, self.setup, self.book, self.records[number], number, item)
        if held:
            self.manager.free_encoder_input(self.real[number], item)
        return "released" if held else "released again"

    def let_all_go(self, number: int) -> str:
        """Every reference of a request goes."""
        self.book, self.records[number] = drop_references(
            self.world, self.setup, self.book, self.records[number], number
        )
        idle = len(self.manager.freeable)
        self.manager.free(self.real[number])
        return self._in_set_order(idle)

    def _in_set_order(self, idle: int) -> str:
        """The manager walks a Python set: where items were referenced again meanwhile, its order is not that of their
        numbers. Of entries that become idle in one call the book takes over the order, and nothing else."""
        real, ours = tuple(self.manager.freeable), self.book.idle
        if real == ours or real[:idle] != ours[:idle] or sorted(real) != sorted(ours):
            return "freed"
        self.book = self.book._replace(idle=real)
        return "freed in another order"

    def tell(self) -> str:
        """The worker is told what was evicted."""
        self.book, told = announce(self.world, self.book)
        assert tuple(self.manager.get_freed_mm_hashes()) == told
        return "announced" if told else "nothing to announce"

    def reset(self) -> str:
        """The cache is emptied."""
        self.book = emptied(self.book, self.setup.slots)
        self.records = [record._replace(references=()) for record in self.records]
        self.manager.reset()
        return "reset"


def test_the_real_manager_and_the_book_are_equal_after_each_operation(release):
    if not release.items_known:
        pytest.skip(f"the manager of {release.version} keeps no items: compared as a whole in test_vllm_conform")
    profile = PROFILES[release.profile]
    world = World(rules=profile.rules, switches=profile.switches, guard=profile.guard)
    choose = random.Random(5)
    met: dict[str, int] = {}
    for done in range(OPERATIONS):
        if done % RUN == 0:
            both = _Both(release, world, _setup(choose))
        number = choose.randrange(3)
        item = choose.randrange(len(both.setup.requests[number].items))
        what = choose.random()
        if what < 0.5:
            name = both.take(number, item, choose.choice((2, 12)))
        elif what < 0.8:
            name = both.let_go(number, item)
        elif what < 0.88:
            name = both.let_all_go(number)
        elif what < 0.995:
            name = both.tell()
        else:
            name = both.reset()
        met[name] = met.get(name, 0) + 1
        assert book_of(_Holder(both.manager), both.sizes, 0, None) == both.book, (done, name)
        references = getattr(both.manager, "request_cached_ids", {})
        assert [set(record.references) for record in both.records] == [
            set(references.get(f"r{place}", ())) for place in range(3)
        ]
    assert met.pop("freed in another order", 0) < met["freed"] / 20
    assert min(met.values()) >= 300, met
    assert met["evicted"] >= 1_000, met


class _Holder:
    """Stands for the scheduler where only its manager is read."""

    def __init__(self, encoder_cache_manager) -> None:
        self.encoder_cache_manager = encoder_cache_manager
