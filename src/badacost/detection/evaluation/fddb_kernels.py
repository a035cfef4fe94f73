"""Compiled loops of the FDDB protocol: pixels that regions share, and the best assignment."""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import njit


@njit(cache=True, nogil=True)
def shared_pixels(first, second, tops, n_rows, starts, left, right):
    """Return how many pixels the regions `first` and `second` of each pair share.

    Region i has ``n_rows[i]`` rows from ``tops[i]`` on, and the spans from ``starts[i]`` to
    ``starts[i + 1]`` of `left` and `right`: one for each row, or one for all of them.
    """
    shared = np.zeros(len(first), np.int64)
    for pair in range(len(first)):
        a, b = first[pair], second[pair]
        top, bottom = max(tops[a], tops[b]), min(tops[a] + n_rows[a], tops[b] + n_rows[b])
        if bottom <= top:
            continue
        step_a, step_b = starts[a + 1] - starts[a] > 1, starts[b + 1] - starts[b] > 1
        n_same = 1
        if not (step_a or step_b):
            n_same, bottom = bottom - top, top + 1
        for row in range(top, bottom):
            i = starts[a] + row - tops[a] if step_a else starts[a]
            j = starts[b] + row - tops[b] if step_b else starts[b]
            shared[pair] += n_same * max(min(right[i], right[j]) - max(left[i], left[j]) + 1, 0)
    return shared


@njit(cache=True, nogil=True)
def assign(new, starts, rows, columns, values, pairs_of, rows_of, row_duals, column_duals, *work):
    """Assign `new` rows as well, so that the sum of values of pairs is greatest.

    Pairs of `rows` and `columns` have positive `values` and are sorted by row, those of row i from
    ``starts[i]`` on. `pairs_of` rows and `rows_of` columns are the assignment, -1 for none. The
    cost of a pair, ``-value - row_dual - column_dual``, is 0 if it is assigned, and not negative
    if its row was added before. No dual is positive. `work` is that of `empty_work`.

    D. F. Crouse, On implementing 2D rectangular assignment algorithms, 2016.
    """
    lengths, through, reached, is_done = work
    for row in new:
        end, length, n_reached, n_done = _shortest_path(
            row, starts, columns, values, rows_of, row_duals, column_duals, *work
        )
        row_duals[row] += length
        for column in reached[:n_done]:
            row_duals[rows_of[column]] += length - lengths[column]
            column_duals[column] -= length - lengths[column]
        # The path ends at a column that was free or, if it is negative, at a row that stays alone.
        last = -1 - end if end < 0 else rows[through[end]]
        pair = -1 if end < 0 else through[end]
        while True:
            given_up, pairs_of[last] = pairs_of[last], pair
            if pair >= 0:
                rows_of[columns[pair]] = last
            if last == row:
                break
            pair = through[columns[given_up]]
            last = rows[pair]
        for column in reached[:n_reached]:
            lengths[column], through[column], is_done[column] = np.inf, -1, False


@njit(cache=True, nogil=True)
def empty_work(n_columns):
    """Return what paths need: lengths to columns, their last pairs, columns reached, and done."""
    return (
        np.full(n_columns, np.inf),
        np.full(n_columns, -1, np.int64),
        np.empty(n_columns, np.int64),
        np.zeros(n_columns, np.bool_),
    )


@njit(cache=True, nogil=True)
def _shortest_path(
    row,
    starts,
    columns,
    values,
    rows_of,
    row_duals,
    column_duals,
    lengths,
    through,
    reached,
    is_done,
):
    """Search the cheapest path, by Dijkstra's algorithm, to a free column or a row left alone.

    Returns its end (-1 - i for row i left alone), its length, and how many columns were reached
    and done: the first ones of `reached`.
    """
    n_reached = n_done = 0
    length, alone, length_alone = 0.0, -1, np.inf
    while True:
        if length - row_duals[row] < length_alone:
            alone, length_alone = row, length - row_duals[row]
        for pair in range(starts[row], starts[row + 1]):
            column = columns[pair]
            longer = length - values[pair] - row_duals[row] - column_duals[column]
            if through[column] < 0:
                reached[n_reached] = column
                n_reached += 1
            if longer < lengths[column] and not is_done[column]:
                lengths[column], through[column] = longer, pair
        # The nearest column; of equally near ones one that is free, else a row left alone.
        place, nearest, is_free = -1, np.inf, False
        for k in range(n_done, n_reached):
            column = reached[k]
            if lengths[column] < nearest or (lengths[column] == nearest and rows_of[column] < 0):
                place, nearest, is_free = k, lengths[column], rows_of[column] < 0
        if length_alone < nearest or (length_alone == nearest and not is_free):
            return -1 - alone, length_alone, n_reached, n_done
        column = reached[place]
        if is_free:
            return column, nearest, n_reached, n_done
        reached[place], reached[n_done] = reached[n_done], column
        n_done += 1
        is_done[column] = True
        row, length = rows_of[column], nearest
