"""Compiled loops over a tree of boxes, so that boxes that lie apart are never compared.

Boxes are divided in halves, again and again, along the coordinate (x1, y1, x2 or y2) in which they
differ most, down to leaves of at most `_LEAF` boxes. Node 1 is the root, nodes 2k and 2k + 1 are
the halves of node k, and the boxes of a node are neighbours in the order of the tree. A node knows
the limits of the corners, widths and heights of the boxes that were put into it: a query passes
over nodes that it does not touch, and over those whose boxes are too large or too small for it.
Every overlap that decides is computed as `badacost.detection.boxes.overlaps` computes it.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import njit

_LEAF = 8
_DEEPEST = 64  # no tree has as many levels
UNION, SMALLER, FIRST = 0, 1, 2  # what a shared area is divided by
# Limits of sizes are used where rounding cannot matter: far from the smallest numbers there are.
_MIN_AREA, _MIN_THRESHOLD, _ROUNDING = 1e-290, 1e-6, 1.0 - 1e-9


@njit(cache=True, nogil=True)
def _depth(n_boxes):
    """Return the number of divisions above the leaves."""
    depth = 0
    while (n_boxes + (1 << depth) - 1) >> depth > _LEAF:
        depth += 1
    return depth


@njit(cache=True, nogil=True)
def divided(boxes, orders):
    """Return the boxes in the order of the tree.

    `orders` (4, n) are the boxes sorted by each coordinate; the array is used up.
    """
    n = len(boxes)
    right, kept = np.empty(n, np.bool_), np.empty(n, np.int64)
    for level in range(_depth(n)):
        for node in range(1 << level):
            first, last = (node * n) >> level, ((node + 1) * n) >> level
            middle = ((2 * node + 1) * n) >> (level + 1)
            axis, widest = 0, -1.0
            for a in range(4):
                spread = boxes[orders[a, last - 1], a] - boxes[orders[a, first], a]
                if spread > widest:
                    axis, widest = a, spread
            for i in range(first, last):
                right[orders[axis, i]] = i >= middle
            for a in range(4):
                if a == axis:
                    continue
                n_left, n_right = first, 0
                for i in range(first, last):
                    box = orders[a, i]
                    if right[box]:
                        kept[n_right] = box
                        n_right += 1
                    else:
                        orders[a, n_left] = box
                        n_left += 1
                orders[a, n_left:last] = kept[:n_right]
    return orders[0].copy()


@njit(cache=True, nogil=True)
def empty_tree(n_boxes):
    """Return the places of boxes, (n, 4), and the limits of nodes, (n_nodes, 8), without a box."""
    places = np.empty((n_boxes, 4))
    places[:, :2], places[:, 2:] = np.inf, -np.inf  # they share nothing with any box
    nodes = np.empty((2 << _depth(n_boxes), 8))
    nodes[:, :2], nodes[:, 2:4] = np.inf, -np.inf
    nodes[:, 4:6], nodes[:, 6:] = np.inf, -np.inf
    return places, nodes


@njit(cache=True, nogil=True)
def put(box, slot, places, nodes):
    """Put a box at its place in the order of the tree."""
    x1, y1, x2, y2 = box
    if not (x2 - x1) * (y2 - y1) > 0.0:
        return  # it overlaps nothing
    places[slot] = box
    node = _leaf(slot, places, nodes)
    while node:
        limits = nodes[node]
        limits[0], limits[1] = min(limits[0], x1), min(limits[1], y1)
        limits[2], limits[3] = max(limits[2], x2), max(limits[3], y2)
        limits[4], limits[5] = min(limits[4], x2 - x1), min(limits[5], y2 - y1)
        limits[6], limits[7] = max(limits[6], x2 - x1), max(limits[7], y2 - y1)
        node >>= 1


@njit(cache=True, nogil=True)
def _leaf(slot, places, nodes):
    """Return the leaf of a place."""
    n_leaves = len(nodes) >> 1
    return n_leaves + ((slot + 1) * n_leaves - 1) // len(places)


@njit(cache=True, nogil=True, error_model="numpy")
def _overlap(query, places, slot, denominator):
    """Return how much of two boxes is shared, with the roundings of `overlaps`."""
    x1, y1, x2, y2 = query[0], query[1], query[2], query[3]
    u1, v1, u2, v2 = places[slot, 0], places[slot, 1], places[slot, 2], places[slot, 3]
    width, height = min(x2, u2) - max(x1, u1), min(y2, v2) - max(y1, v1)
    if not (width > 0.0 and height > 0.0):
        return 0.0
    shared = width * height
    if not shared > 0.0:
        return 0.0
    area, other = (x2 - x1) * (y2 - y1), (u2 - u1) * (v2 - v1)
    if denominator == UNION:
        return shared / (area + other - shared)
    if denominator == SMALLER:
        return shared / min(area, other)
    return shared / area


@njit(cache=True, nogil=True)
def _reaches(query, limits, threshold, denominator):
    """Whether a box of a node may overlap the query by more than a threshold."""
    width = min(query[2], limits[2]) - max(query[0], limits[0])
    height = min(query[3], limits[3]) - max(query[1], limits[1])
    if not (width > 0.0 and height > 0.0):
        return False
    query_width, query_height = query[2] - query[0], query[3] - query[1]
    area, min_area = query_width * query_height, limits[4] * limits[5]
    if threshold < _MIN_THRESHOLD or area < _MIN_AREA:
        return True
    max_shared = min(width, limits[6]) * min(height, limits[7])
    if denominator == FIRST:
        return max_shared >= area * threshold * _ROUNDING
    if denominator == SMALLER:
        whole = min(area, min_area)
        return whole < _MIN_AREA or max_shared >= whole * threshold * _ROUNDING
    # The overlap by union is at most the ratio of the widths, and that of the heights.
    factor = threshold * _ROUNDING
    return (
        max_shared >= max(area, min_area) * factor
        and query_width >= limits[4] * factor
        and query_height >= limits[5] * factor
    )


@njit(cache=True, nogil=True)
def _any_in(node, query, threshold, denominator, places, nodes, stack):
    """Whether a box of a node overlaps the query by more than a threshold."""
    n, n_leaves = len(places), len(nodes) >> 1
    stack[0], n_waiting = node, 1
    while n_waiting:
        n_waiting -= 1
        node = stack[n_waiting]
        if not _reaches(query, nodes[node], threshold, denominator):
            continue
        if node < n_leaves:
            stack[n_waiting], stack[n_waiting + 1] = 2 * node, 2 * node + 1
            n_waiting += 2
            continue
        leaf = node - n_leaves
        for slot in range(leaf * n // n_leaves, (leaf + 1) * n // n_leaves):
            if _overlap(query, places, slot, denominator) > threshold:
                return True
    return False


@njit(cache=True, nogil=True)
def _is_beaten(query, slot, threshold, denominator, places, nodes, stack):
    """Whether a box of the tree overlaps the query too much, first of all those beside it."""
    node = _leaf(slot, places, nodes)
    if _any_in(node, query, threshold, denominator, places, nodes, stack):
        return True
    while node > 1:
        if _any_in(node ^ 1, query, threshold, denominator, places, nodes, stack):
            return True
        node >>= 1
    return False


@njit(cache=True, nogil=True)
def survivors(boxes, orders, starts, threshold, denominator, greedy):
    """Return which boxes, best first in each group, stay.

    A box is suppressed by those before it in its group: by those that stay if `greedy`, else by
    all of them. `starts` are where groups begin, and `orders` (4, n) sort each of them by each
    coordinate, counted from its start.
    """
    stays = np.ones(len(boxes), np.bool_)
    stack = np.empty(_DEEPEST, np.int64)
    for group in range(len(starts) - 1):
        first, last = starts[group], starts[group + 1]
        if last - first < 2:
            continue
        slots = np.empty(last - first, np.int64)
        for slot, box in enumerate(divided(boxes[first:last], orders[:, first:last].copy())):
            slots[box] = slot
        places, nodes = empty_tree(last - first)
        for i in range(first, last):
            slot = slots[i - first]
            stays[i] = not _is_beaten(boxes[i], slot, threshold, denominator, places, nodes, stack)
            if stays[i] or not greedy:
                put(boxes[i], slot, places, nodes)
    return stays


@njit(cache=True, nogil=True)
def filled_tree(boxes, orders):
    """Return order, places and nodes of a tree of all boxes."""
    order = divided(boxes, orders)
    places, nodes = empty_tree(len(boxes))
    for slot, box in enumerate(order):
        put(boxes[box], slot, places, nodes)
    return order, places, nodes


@njit(cache=True, nogil=True)
def largest(queries, order, places, nodes, denominator):
    """Return the largest overlap of each query, and the box it is with: the last one of equals."""
    n, n_leaves = len(places), len(nodes) >> 1
    values, owners = np.zeros(len(queries)), np.full(len(queries), -1, np.int64)
    stack = np.empty(_DEEPEST, np.int64)
    for i in range(len(queries)):
        query = queries[i]
        stack[0], n_waiting = 1, 1
        while n_waiting:
            n_waiting -= 1
            node = stack[n_waiting]
            if not _reaches(query, nodes[node], values[i], denominator):
                continue
            if node < n_leaves:
                stack[n_waiting], stack[n_waiting + 1] = 2 * node, 2 * node + 1
                n_waiting += 2
                continue
            leaf = node - n_leaves
            for slot in range(leaf * n // n_leaves, (leaf + 1) * n // n_leaves):
                value = _overlap(query, places, slot, denominator)
                if value > 0.0 and (
                    value > values[i] or (value == values[i] and order[slot] > owners[i])
                ):
                    values[i], owners[i] = value, order[slot]
    return values, owners


@njit(cache=True, nogil=True)
def pairs(queries, order, places, nodes, threshold, denominator, starts, boxes, values):
    """Find the boxes that overlap each query by more than a threshold, in the order of the tree.

    Those of query i are written to `boxes` and `values` from ``starts[i]`` on. Without `starts`
    they are only counted. Returns the counts.
    """
    n, n_leaves = len(places), len(nodes) >> 1
    counts = np.zeros(len(queries), np.int64)
    stack = np.empty(_DEEPEST, np.int64)
    for i in range(len(queries)):
        query = queries[i]
        stack[0], n_waiting = 1, 1
        while n_waiting:
            n_waiting -= 1
            node = stack[n_waiting]
            if not _reaches(query, nodes[node], threshold, denominator):
                continue
            if node < n_leaves:
                stack[n_waiting], stack[n_waiting + 1] = 2 * node, 2 * node + 1
                n_waiting += 2
                continue
            leaf = node - n_leaves
            for slot in range(leaf * n // n_leaves, (leaf + 1) * n // n_leaves):
                value = _overlap(query, places, slot, denominator)
                if value > threshold:
                    if len(starts):
                        boxes[starts[i] + counts[i]] = order[slot]
                        values[starts[i] + counts[i]] = value
                    counts[i] += 1
    return counts
