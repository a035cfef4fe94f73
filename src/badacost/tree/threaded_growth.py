"""Steps of tree growth that threads share: the search for splits, and the partition of samples.

Sums are exact, and the order of samples is kept, so that a tree does not depend on the division.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from badacost._utils.parallel import PADDING, Threads
from badacost.tree import growth_kernels as kernels
from badacost.tree.growth_kernels import GrowingTree
from badacost.tree.histogram_kernels import AT_ONCE, Data, NodeSamples
from badacost.tree.split_kernels import N_JOBS, Buffers, Limits, search

if TYPE_CHECKING:
    from badacost.tree.grower import Gain

THREADS_FROM = 400_000  # samples times features that are worth threads: about 0.4 ms
_GRAIN = 100_000  # samples times features that are worth a task of their own: about 0.1 ms
_MIN_BLOCK = 16_384  # samples of a node that are partitioned together: about 0.05 ms
_MAX_PARTIAL_BYTES = 2**27
_NO_COUNTS = np.empty((0, 0, 0), np.int64)
Range = tuple[int, int]


def search_in_threads(
    data: Data,
    samples: NodeSamples,
    gain: Gain,
    limits: Limits,
    tree: GrowingTree,
    buffers: Buffers,
    threads: Threads,
) -> int:
    """Search for the splits of a batch; return the number of parts of the features.

    Features are divided among threads. Where these are too few, nodes are divided as well or, if
    most samples are in few nodes, the samples: their partial histograms are filled first.
    """
    jobs = tree.jobs[: tree.state[N_JOBS]]
    nodes = tree.nodes[jobs]
    sizes = np.where(nodes["sibling"] < 0, nodes["end"] - nodes["start"], 0)
    (_, n_used), (_, n_columns) = tree.features.shape, tree.totals.shape
    n_tasks = int(min(threads.max_parts, sizes.sum() * n_used // _GRAIN))
    n_blocks = -(-n_used // AT_ONCE)
    n_parts = max(1, min(n_blocks, n_tasks, len(tree.found)))
    cuts = np.minimum(np.arange(n_parts + 1) * n_blocks // n_parts * AT_ONCE, n_used)
    n_more = -(-n_tasks // n_parts)
    ranges = [(0, len(jobs))]
    if n_more > 1:
        ranges = [] if limits.symmetric else _divided_jobs(nodes, sizes, n_more)
    if not ranges:
        ranges = [(0, len(jobs))]
        n_cells = int(data.n_codes.max()) * n_columns
        n_most = max(1, _MAX_PARTIAL_BYTES // (8 * len(jobs) * n_used * n_cells))
        numbers = range(min(n_more, n_most), min(2 * n_more, n_most) + 1)
        # The number for which threads wait least for the last of them.
        n_more = min(numbers, key=lambda n: -(-n * n_blocks // threads.n_threads) / n)
        if n_more > 1:
            partial = np.empty((n_more, len(jobs), n_used, n_cells))
            places = np.flatnonzero(nodes["sibling"] < 0)
            features = tree.features[:1] if limits.symmetric else tree.features
            loop = threads.loop(n_more * n_blocks, 1, n_more * n_blocks)
            kernels.fill(
                loop, data, samples, tree.nodes, jobs[places], places, features, n_columns,
                partial, _NO_COUNTS,
            )  # fmt: skip
            tree = tree._replace(partial=partial)
    tasks = [(p, cuts[p], cuts[p + 1], *some) for some in ranges for p in range(n_parts)]
    loop = threads.loop(len(tasks), 1)
    search(loop, data, samples, gain, limits, tree, np.array(tasks), buffers)
    return n_parts


def _divided_jobs(nodes: NDArray[np.void], sizes: NDArray[np.int64], n_ranges: int) -> list[Range]:
    """Ranges of jobs with about equal numbers of samples; none if a node has too many of them.

    Siblings stay together, since histograms of one are subtracted from those of the other.
    """
    filled = np.cumsum(np.append(0, sizes))
    starts = np.flatnonzero(np.append(True, nodes["parent"][1:] != nodes["parent"][:-1]))
    wanted = np.searchsorted(filled, filled[-1] * np.arange(n_ranges) / n_ranges)
    cuts = starts[np.searchsorted(starts, wanted, side="right") - 1]
    ends = np.unique([0, *cuts, len(nodes)])
    is_even = np.diff(filled[ends]).max() <= 2 * filled[-1] / n_ranges
    return list(pairwise(ends.tolist())) if is_even else []


def partition_in_threads(
    data: Data,
    samples: NodeSamples,
    scratch: NodeSamples,
    gain: Gain,
    limits: Limits,
    tree: GrowingTree,
    threads: Threads,
) -> None:
    """Split nodes: threads partition blocks of their samples, then join the sides of the blocks."""
    splits = tree.jobs[: tree.state[N_JOBS]]
    starts = tree.nodes["start"][splits]
    sizes = tree.nodes["end"][splits] - starts
    rows = max(_MIN_BLOCK, int(sizes.sum()) // (2 * threads.n_threads - 2))
    counts = np.maximum(-(-sizes // rows), 1)  # blocks of each node
    first = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(len(splits)), counts)
    place, count = np.arange(len(owner)) - first[owner], counts[owner]
    blocks = np.zeros(len(owner), kernels.BLOCK)
    blocks["node"] = splits[owner]
    blocks["start"] = starts[owner] + sizes[owner] * place // count
    blocks["end"] = starts[owner] + sizes[owner] * (place + 1) // count
    _, n_columns = tree.totals.shape
    sums = np.empty((2 * len(blocks), n_columns + PADDING))

    loop = threads.loop(len(blocks), 1)
    kernels.partition_blocks(loop, data, samples, scratch, tree, blocks, sums)
    n_left, n_right = blocks["middle"] - blocks["start"], blocks["end"] - blocks["middle"]
    middles = starts + np.add.reduceat(n_left, first)
    for side, begins, n in (("left", starts, n_left), ("right", middles, n_right)):
        before = np.cumsum(n) - n
        blocks[side] = begins[owner] + before - before[first][owner]
    several = blocks[count > 1]
    for back in (False, True):
        loop = threads.loop(len(several), 1)
        kernels.move_blocks(loop, samples, scratch, several, back)
    sides = sums[:, :n_columns].reshape(len(blocks), -1)
    children = np.add.reduceat(sides, first, axis=0)
    left = int(tree.state[kernels.N_NODES])
    tree.totals[left : left + 2 * len(splits)] = children.reshape(2 * len(splits), -1)
    missing = np.logical_or.reduceat(blocks["missing"], first)
    kernels.add_children(gain, limits, tree, middles, missing)
