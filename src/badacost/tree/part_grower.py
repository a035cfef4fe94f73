"""Trees from sums over the parts of a training set: the same as from `TreeGrower`, bit by bit.

The samples are elsewhere. For each level the parts are asked once: they divide the nodes of the
level before, and send the histograms of the lighter one of two siblings; the other's is the
difference to that of their parent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, IndexArray
from badacost.threads import Threads
from badacost.tree import growth_kernels, part_kernels, split_kernels
from badacost.tree.binning import BinMapper
from badacost.tree.forest import Tree
from badacost.tree.grower import Gain, Growth, Space, kernel_limits
from badacost.tree.histogram_kernels import Data
from badacost.tree.part import Answer, Question, Splits

Ask = Callable[[dict[int, Question]], dict[int, Answer]]
Steps = Generator[Question, Answer, Splits]
_MAX_KEPT_BYTES = 2**30  # of histograms that are kept for subtraction
_FINEST = 2.0**-52


@dataclass(frozen=True, eq=False)
class Planned:
    """A tree to grow: number of sums, whether they are rows of numbers, the gain, and a seed."""

    n_columns: int
    of_rows: bool
    gain: Gain
    seed: int = 0


class PartGrower:
    """Grows trees, several at a time, on parts that answer questions."""

    def __init__(self, mapper: BinMapper, growth: Growth, threads: Threads | None = None):
        self.mapper, self.growth = mapper, growth
        self.threads = threads or Threads()
        n_codes = mapper.n_bins + mapper.has_missing
        if n_codes.max() > 256:
            raise ValueError("Trees on parts need bins of one byte: choose at most 256 bins.")
        nothing = np.empty((len(n_codes), 0), np.uint8)
        self.data = Data(nothing, mapper.n_bins, n_codes, mapper.has_missing, mapper.categorical)

    def grow(self, planned: dict[int, Planned], ask: Ask) -> dict[int, tuple[Tree, FloatArray]]:
        """Grow trees together; each comes with the sums of its nodes (n_nodes, C)."""
        growing = {key: _Growth(self, plan).run() for key, plan in planned.items()}
        grown: dict[int, tuple[Tree, FloatArray]] = {}
        questions = {key: next(steps) for key, steps in growing.items()}
        while questions:
            answers = ask(questions)
            questions = {}
            for key, answer in answers.items():
                try:
                    questions[key] = growing[key].send(answer)
                except StopIteration as done:
                    grown[key] = done.value
        return grown


class _Sources(NamedTuple):
    """Where the histograms of nodes come from: an answer, or what it leaves of a parent's."""

    given: Any  # (n_asked, n_features, ...)
    places: list[int]  # of each node, or of its sibling
    parents: list[Any]  # None where the node itself was asked for

    def fill(self, out: Any, first: int, last: int) -> None:
        """Work out the histograms of the features first..last."""
        for here, place, parent in zip(out, self.places, self.parents, strict=True):
            if parent is None:
                here[first:last] = self.given[place, first:last]
            else:
                np.subtract(parent[first:last], self.given[place, first:last], here[first:last])


class _Jobs(NamedTuple):
    """Nodes to search, and their histograms, which threads work out as they search."""

    nodes: IndexArray
    features: IndexArray
    cells: FloatArray
    counts: IndexArray | None
    sources: list[tuple[Any, _Sources]]


class _Growth:
    """One tree: yields questions, and is sent answers."""

    def __init__(self, grower: PartGrower, plan: Planned):
        self.grower, self.gain, self.seed = grower, plan.gain, np.uint64(plan.seed)
        n_features = len(grower.data.n_bins)
        self.width = (0.0,) * plan.n_columns if plan.of_rows else None
        self.limits = kernel_limits(grower.growth, n_features, 2**62)
        self.alike = grower.growth.order == "symmetric"
        self.draws = self.limits.n_drawn < n_features
        self.space = Space(64, plan.n_columns, grower.threads.n_threads, grower.mapper)
        self.lefts = np.empty(self.space.totals.shape)
        self.state = np.zeros(growth_kernels.N_STATES, np.int64)
        self.kept: dict[int, tuple[FloatArray, IndexArray | None]] = {}  # histograms by node

    @property
    def new(self) -> range:
        """Nodes that were added last."""
        return range(self.state[growth_kernels.FIRST], self.state[growth_kernels.LAST])

    def run(self) -> Generator[Question, Answer, tuple[Tree, FloatArray]]:
        """Grow the tree."""
        part_kernels.add_root(self.space.nodes, self.space.totals, self.state)
        pending = Splits()
        while True:
            pending = yield from self._weigh(pending)
            self._set_active(sized=not len(pending.nodes))
            wanted = [node for node in self.new if self.space.nodes[node]["active"]]
            jobs = None
            if wanted:
                jobs = yield from self._ask_sums(pending, wanted)
                pending = Splits()
            elif not self.limits.best_first:
                break
            divided = self._choose(jobs)
            if not len(divided):
                break
            pending = _join(pending, self._splits_of(divided))
        yield from self._end(pending)
        n_nodes = int(self.state[growth_kernels.N_NODES])
        sets = None if self.space.sets is None else self.space.sets[:n_nodes]
        tree = Tree.from_nodes(self.space.nodes[:n_nodes], sets, self.grower.mapper)
        return tree, self.space.totals[:n_nodes].copy()

    def _weigh(self, splits: Splits) -> Steps:
        """Give the new nodes their mass, and light ones a unit of their own.

        Returns the splits that the parts have not heard of yet.
        """
        nodes, totals, new = self.space.nodes, self.space.totals, self.new
        if new.start == 0 and self.width is not None:
            root = np.zeros(1, np.int64)
            answer = yield Question(weighed=root, totalled=root, total_units=np.ones(1))
            nodes[0]["end"], totals[0] = answer.n_weighed[0], answer.totals[0]
        light = self._set_mass()
        if self.width is not None or not light.any():
            return splits
        asked = new.start + np.flatnonzero(light)
        answer = yield Question(splits=splits, weighed=asked)
        self._take_sizes(splits, answer)
        nodes["end"][asked] = nodes["start"][asked] + answer.n_weighed
        some = answer.n_weighed > 0
        asked, n, largest = asked[some], answer.n_weighed[some], answer.largest[some]
        if len(asked):
            units = _powers_above(n * largest.astype(np.float64))
            answer = yield Question(totalled=asked, total_units=units)
            totals[asked] = answer.totals
            self._set_mass()
            units = _powers_above(nodes["mass"][asked])
            answer = yield Question(totalled=asked, total_units=units)
            totals[asked], nodes["unit"][asked] = answer.totals, units
            self._set_mass()
        return Splits()

    def _ask_sums(self, splits: Splits, wanted: list[int]) -> Generator[Question, Answer, _Jobs]:
        """Ask for the histograms of nodes, or of their siblings where these are lighter."""
        nodes = self.space.nodes
        asked: list[int] = []
        for left in self.new[::2]:
            pair = [node for node in (left, left + 1) if node in wanted]
            if pair and self._are_differences(left):
                pair = [left if nodes[left]["mass"] <= nodes[left + 1]["mass"] else left + 1]
            asked += pair
        summed = np.array(asked, np.int64)
        answer = yield Question(
            splits=splits,
            summed=summed,
            units=nodes["unit"][summed],
            features=self._features(summed) if self.draws else None,
            counted=self.limits.min_samples_leaf > 1,
        )
        self._take_sizes(splits, answer)
        self._set_active(sized=True)
        return self._jobs(asked, answer)

    def _are_differences(self, left: int) -> bool:
        """Whether the histograms of a node and its sibling add up to those of their parent."""
        nodes = self.space.nodes
        if left == 0:
            return False
        parent = nodes[left]["sibling"]
        units = nodes["unit"][[parent, left, left + 1]]
        return int(parent) in self.kept and bool((units == units[0]).all())

    def _features(self, asked: IndexArray) -> IndexArray:
        """Features that nodes may use, (n_nodes, n_drawn)."""
        n_features = len(self.grower.data.n_bins)
        drawn = split_kernels.draw_features(
            self.seed, self.space.nodes, asked, self.limits, n_features, self.alike
        )
        chosen = np.nonzero(drawn.T)[1].reshape(drawn.shape[1], -1)
        return np.tile(chosen, (len(asked) // len(chosen), 1))

    def _jobs(self, asked: list[int], answer: Answer) -> _Jobs:
        """The active nodes, the smaller one of two siblings first, with their histograms."""
        nodes, place = self.space.nodes, {node: number for number, node in enumerate(asked)}
        jobs: list[int] = []
        for left in self.new[::2]:
            pair = [left] if left == 0 else [left, left + 1]
            sizes = nodes["end"][pair] - nodes["start"][pair]
            jobs += [pair[k] for k in np.argsort(sizes, kind="stable") if nodes[pair[k]]["active"]]

        places, parents = [], []
        for node in jobs:
            sibling = node + 1 if node % 2 else node - 1  # the root alone has none
            places.append(place[node] if node in place else place[sibling])
            parents.append(None if node in place else self.kept[int(nodes[node]["sibling"])])
        sources: list[tuple[Any, _Sources]] = []

        def of_jobs(given: Any, number: int) -> Any:
            """Histograms, or numbers of samples, of the jobs."""
            if given is None or jobs == asked:
                return given
            found = np.empty((len(jobs), *given.shape[1:]), given.dtype)
            whole = [None if parent is None else parent[number] for parent in parents]
            sources.append((found, _Sources(given, places, whole)))
            return found

        cells, counts = of_jobs(answer.cells, 0), of_jobs(answer.counts, 1)
        chosen = np.array(jobs, np.int64)
        nodes["job"][chosen] = np.arange(len(jobs))
        n_features = len(self.grower.data.n_bins)
        features = np.tile(np.arange(n_features), (len(jobs), 1))
        if self.draws and jobs:
            features = self._features(chosen)
        return _Jobs(chosen, features, cells, counts, sources)

    def _choose(self, jobs: _Jobs | None) -> IndexArray:
        """Search the splits of nodes; return the nodes to be divided."""
        n_needed = 2 * len(self.new) + int(self.state[growth_kernels.N_NODES])
        while n_needed > len(self.space.nodes):
            self.space.enlarge()
            lefts = np.empty(self.space.totals.shape)
            lefts[: len(self.lefts)] = self.lefts
            self.lefts = lefts
        if jobs is None:
            n_cells = int(self.grower.data.n_codes.max()) * self.space.totals.shape[1]
            no_jobs = np.empty(0, np.int64)
            jobs = _Jobs(no_jobs, np.empty((0, 0), np.int64), np.empty((0, 0, n_cells)), None, [])
        space, data = self.space, self.grower.data
        counts = part_kernels.NO_COUNTS if jobs.counts is None else jobs.counts

        def search(part: int, features: tuple[int, int]) -> None:
            for found, source in jobs.sources:
                source.fill(found, *features)
            sets = None if space.found_sets is None else space.found_sets[part]
            part_kernels.search_sums(
                data, self.width, self.gain, self.limits, space.nodes, space.totals, jobs.nodes,
                jobs.features, jobs.cells, counts, *features, space.found[part], sets, self.alike,
            )  # fmt: skip

        threads = self.grower.threads
        n_parts = len(threads.run(search, enumerate(threads.parts(jobs.features.shape[1]))))
        divided = np.empty(len(space.nodes), np.int64)
        n_divided = part_kernels.take_splits(
            data, self.width, self.gain, self.limits, space.nodes, space.totals, self.lefts,
            jobs.features, jobs.cells, space.found, n_parts, space.found_sets, space.sets,
            self.state, divided, self.alike,
        )  # fmt: skip
        self._keep(jobs, divided[:n_divided])
        return divided[:n_divided]

    def _keep(self, jobs: _Jobs, divided: IndexArray) -> None:
        """Keep the histograms of nodes that are divided now or later, unless they are too large."""
        waiting = set(np.flatnonzero(self.space.nodes["waiting"][: self.new.stop]).tolist())
        needed = waiting | set(divided.tolist())
        found = {
            node: (jobs.cells[j], None if jobs.counts is None else jobs.counts[j])
            for j, node in enumerate(jobs.nodes.tolist())
        }
        self.kept = {node: kept for node, kept in (self.kept | found).items() if node in needed}
        n_bytes = sum(cells.nbytes for cells, _ in self.kept.values())
        if self.draws or n_bytes > _MAX_KEPT_BYTES:
            self.kept = {}

    def _splits_of(self, divided: IndexArray) -> Splits:
        nodes, sets = self.space.nodes[divided], self.space.sets
        return Splits(
            divided.copy(),
            nodes["left"].astype(np.int64),
            nodes["feature"].astype(np.int64),
            nodes["position"].astype(np.int64),
            nodes["missing_left"].copy(),
            None if sets is None else sets[divided],
        )

    def _take_sizes(self, splits: Splits, answer: Answer) -> None:
        """Take the numbers of samples of new children."""
        nodes = self.space.nodes
        for child in (0, 1):
            nodes["start"][splits.lefts + child] = 0
            nodes["end"][splits.lefts + child] = answer.sizes[:, child]
        # Values missing at prediction only go the way of the larger child.
        larger_left = answer.sizes[:, 0] >= answer.sizes[:, 1]
        seen = nodes["missing_left"][splits.nodes]
        nodes["missing_left"][splits.nodes] = np.where(answer.missing, seen, larger_left)

    def _end(self, splits: Splits) -> Generator[Question, Answer, None]:
        """Make the last splits, and give sums of labels their last digits."""
        if len(splits.nodes):
            answer = yield Question(splits=splits)
            self._take_sizes(splits, answer)
        if self.width is not None:
            return
        n_nodes = int(self.state[growth_kernels.N_NODES])
        nodes, totals = self.space.nodes[:n_nodes], self.space.totals
        leaves = np.flatnonzero(nodes["left"] == np.arange(n_nodes))
        units = nodes["unit"][leaves].copy()
        sizes = (nodes["end"] - nodes["start"])[leaves].astype(np.float64)
        answer = yield Question(
            leaves=leaves, leaf_units=(units, units * _powers_above(sizes) * _FINEST)
        )
        totals[leaves] = answer.leaf_totals[0] + answer.leaf_totals[1]
        for node in range(n_nodes - 1, -1, -1):
            left = nodes[node]["left"]
            if left != node:
                totals[node] = totals[left] + totals[left + 1]

    def _set_mass(self) -> NDArray[np.bool_]:
        """Set the mass of the new nodes; tell which of them are light."""
        light = np.zeros(len(self.new), bool)
        part_kernels.set_mass(
            self.width, self.gain, self.space.nodes, self.new.start, self.new.stop,
            self.space.totals, light,
        )  # fmt: skip
        return light

    def _set_active(self, *, sized: bool) -> None:
        part_kernels.set_active(
            self.width, self.limits, self.space.nodes, self.space.totals, self.state, self.alike,
            sized,
        )  # fmt: skip


def _join(first: Splits, second: Splits) -> Splits:
    """Splits one after the other."""
    if not len(first.nodes):
        return second
    pairs = zip(first, second, strict=True)
    joined: Any = [None if a is None else np.concatenate([a, b]) for a, b in pairs]
    return Splits(*joined)


def _powers_above(values: NDArray[Any]) -> FloatArray:
    """The smallest powers of two above values."""
    return np.ldexp(1.0, np.frexp(values)[1])
