"""`loop_kernel`: compiled loops that threads share without the GIL.

A kernel posts a loop in a slot, wakes as many threads as it may use, works on parts of the loop
itself, and returns when the last part has ended. The other threads of the process wait in
`wait_for_loops`: they look for loops for some microseconds, then sleep until a lock is released.
Where threads had to take the GIL for each part, 16 of them took two milliseconds for any loop.

Locks are those of Python, which need no GIL. A loop never waits for a thread that is not running.
"""

from __future__ import annotations

from functools import WRAPPER_ASSIGNMENTS
from types import FunctionType
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from badacost._utils.inner_kernels import inner
from badacost._utils.kernel_cache import KERNEL, njit

N_SLOTS, MAX_HELPERS, N_WORDS = 64, 255, 8
# The state of all loops of a process has a row for each slot, one for each helping thread, and one
# for their numbers: words of a slot, a thread, and this last row.
USERS, NEXT, N_PARTS, MAX_USERS, FUNCTION, ARGUMENTS, LOCK = range(7)
SLEEPS, LAST = 0, N_SLOTS + MAX_HELPERS
N_HELPERS, N_OPEN = 0, 1
# Flags of a slot, beside its number of users: helpers may begin, it is in use, its caller waits.
OPEN, CLAIMED, WAITS = 1 << 20, 1 << 21, 1 << 22
_LOOKS = 2000  # for a loop, or for its end, before a thread sleeps: some 10 microseconds


_PLACES = ("co_name", "co_qualname", "co_filename", "co_firstlineno")


class Loop(NamedTuple):
    """A loop over ``range(length)`` in parts, see `badacost._utils.parallel.Threads.loop`."""

    state: NDArray[np.int64]  # (LAST + 1, N_WORDS)
    n_threads: int
    length: int
    n_parts: int


_acquire = types.ExternalFunction("PyThread_acquire_lock", types.int32(types.intp, types.int32))
_release = types.ExternalFunction("PyThread_release_lock", types.void(types.intp))


def _place(context, builder, array_type, args):
    """Pointer to an entry of an array, from the array, a row and a column."""
    array = context.make_array(array_type)(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, array_type, array, list(args[1:3]))


@intrinsic
def _load(_typing, state, row, word):
    """A word of the state."""

    def code(context, builder, sig, args):
        return builder.load_atomic(_place(context, builder, sig.args[0], args), "seq_cst", 8)

    return signature(types.int64, state, *[types.int64] * 2), code


@intrinsic
def _add(_typing, state, row, word, value):
    """Add to a word of the state; return its former value."""

    def code(context, builder, sig, args):
        place = _place(context, builder, sig.args[0], args)
        return builder.atomic_rmw("add", place, args[3], "seq_cst")

    return signature(types.int64, state, *[types.int64] * 3), code


@intrinsic
def _swap(_typing, state, row, word, expected, value):
    """Replace a word of the state if it is as expected; return whether it was."""

    def code(context, builder, sig, args):
        place = _place(context, builder, sig.args[0], args)
        result = builder.cmpxchg(place, *args[3:], "seq_cst", "seq_cst")
        return builder.extract_value(result, 1)

    return signature(types.boolean, state, *[types.int64] * 4), code


_PART = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), ir.IntType(64)])


@intrinsic
def _call(_typing, function, arguments, part):
    """Call the function of a loop on a part."""

    def code(context, builder, sig, args):
        function = builder.inttoptr(args[0], _PART.as_pointer())
        builder.call(function, [builder.inttoptr(args[1], _PART.args[0]), args[2]])
        return context.get_dummy_value()

    return signature(types.none, *[types.int64] * 3), code


@inner()
def _take_parts(state, slot):
    """Work on parts of a loop until all are taken."""
    part = _add(state, slot, NEXT, 1)
    while part < state[slot, N_PARTS]:
        _call(state[slot, FUNCTION], state[slot, ARGUMENTS], part)
        part = _add(state, slot, NEXT, 1)


@inner()
def _open_slot(state):
    """A slot whose loop may be helped with, or -1."""
    for slot in range(N_SLOTS if _load(state, LAST, N_OPEN) > 0 else 0):
        users = _load(state, slot, USERS)
        may_join = users & OPEN != 0 and users & (OPEN - 1) < state[slot, MAX_USERS]
        if may_join and _load(state, slot, NEXT) < state[slot, N_PARTS]:
            return slot
    return -1


@inner()
def _help(state, slot):
    """Work on a loop, if it is still open."""
    users = _add(state, slot, USERS, 1)
    if users & OPEN != 0 and users & (OPEN - 1) < state[slot, MAX_USERS]:
        _take_parts(state, slot)
    # The last one to leave wakes the caller, if it waits.
    if _add(state, slot, USERS, -1) == WAITS + 1 and _swap(state, slot, USERS, WAITS, CLAIMED):
        _release(state[slot, LOCK])


@njit(**KERNEL)
def wait_for_loops(state, helper):
    """Work on loops for ever, as the helping thread of a number."""
    row, n_looks = N_SLOTS + helper, 0
    while True:
        slot = _open_slot(state)
        if slot >= 0:
            _help(state, slot)
            n_looks = 0
        elif n_looks < _LOOKS:
            n_looks += 1
        else:
            _add(state, row, SLEEPS, 1)
            # The caller of a loop that was opened meanwhile may not have seen that this one sleeps.
            if _open_slot(state) < 0 or not _swap(state, row, SLEEPS, 1, 0):
                _acquire(state[row, LOCK], 1)
            n_looks = 0


@inner()
def _run(state, n_threads, n_parts, function, arguments):
    """Run a loop with the help of other threads."""
    slot = 0
    while n_threads > 1 and slot < N_SLOTS and not _swap(state, slot, USERS, 0, CLAIMED):
        slot += 1
    if n_threads == 1 or n_parts == 1 or slot == N_SLOTS:
        for part in range(n_parts):
            _call(function, arguments, part)
        return
    state[slot, NEXT], state[slot, N_PARTS], state[slot, MAX_USERS] = 0, n_parts, n_threads - 1
    state[slot, FUNCTION], state[slot, ARGUMENTS] = function, arguments
    _add(state, slot, USERS, OPEN - CLAIMED)
    _add(state, LAST, N_OPEN, 1)
    n_wanted = (n_threads if n_threads < n_parts else n_parts) - 1
    for row in range(N_SLOTS, N_SLOTS + state[LAST, N_HELPERS]):
        if n_wanted > 0 and _load(state, row, SLEEPS) == 1 and _swap(state, row, SLEEPS, 1, 0):
            _release(state[row, LOCK])
            n_wanted -= 1
    _take_parts(state, slot)
    _add(state, LAST, N_OPEN, -1)
    _add(state, slot, USERS, WAITS - OPEN)
    for _ in range(_LOOKS):
        if _swap(state, slot, USERS, WAITS, 0):
            return
    _acquire(state[slot, LOCK], 1)
    _add(state, slot, USERS, -CLAIMED)


def _inner_call(context, builder, kernel, call, args):
    """Call a compiled function that raises no errors."""
    compiled = kernel.overloads[call.args]
    context.active_code_library.add_linking_library(compiled.library)
    context.call_internal_no_propagate(builder, compiled.fndesc, call, args)


@intrinsic
def _parallel_for(typing, loop, kernel, arguments):
    """Call ``kernel(*arguments, part, first, last)`` for each part of a loop, in any order."""
    index = types.int64
    given = (*arguments.types, index, index, index)
    call = kernel.get_call_type(typing, given, {})
    run = typing.resolve_value_type(_run)
    run_call = run.get_call_type(typing, (loop.types[0], *[index] * 4), {})

    def code(context, builder, sig, args):
        fields = [builder.extract_value(args[0], k) for k in range(4)]
        state, n_threads, length, n_parts = fields
        values = [builder.extract_value(args[2], k) for k in range(len(arguments.types))]
        values += [length, n_parts]
        block = cgutils.alloca_once(builder, ir.LiteralStructType([v.type for v in values]))
        for k, value in enumerate(values):
            builder.store(value, cgutils.gep_inbounds(builder, block, 0, k))
        module = builder.module
        function = ir.Function(module, _PART, module.get_unique_name("badacost_part"))
        function.linkage = "internal"
        inside, (pointer, part) = ir.IRBuilder(function.append_basic_block()), function.args
        pointer = inside.bitcast(pointer, block.type)
        places = [cgutils.gep_inbounds(inside, pointer, 0, k) for k in range(len(values))]
        *values, length, parts = map(inside.load, places)
        after = inside.add(part, ir.Constant(part.type, 1))
        cuts = [inside.sdiv(inside.mul(length, p), parts) for p in (part, after)]
        typed = zip([*values, part, *cuts], given, call.args, strict=True)
        casted = [context.cast(inside, value, a, b) for value, a, b in typed]
        _inner_call(context, inside, kernel.dispatcher, call, casted)
        inside.ret_void()
        addresses = [builder.ptrtoint(p, ir.IntType(64)) for p in (function, block)]
        _inner_call(context, builder, _run, run_call, [state, n_threads, n_parts, *addresses])
        return context.get_dummy_value()

    return signature(types.none, loop, kernel, arguments), code


def loop_kernel(body):
    """Compile a loop, for calls ``kernel(loop, ...)``, whose parts threads share.

    The function is called for each part of the `Loop`, in any order, with the other arguments and
    ``part, first, last``: the number of the part, and its range. It returns nothing. Arguments are
    arrays, numbers and tuples of them.
    """
    compiled = inner()(body)

    def template(loop, *arguments):
        _parallel_for(loop, compiled, arguments)

    # The name and the place of a kernel are those of its body, as for the cache on disk.
    places = {name: getattr(body.__code__, name) for name in _PLACES}
    code = template.__code__.replace(**places)
    kernel = FunctionType(code, template.__globals__, closure=template.__closure__)
    for name in WRAPPER_ASSIGNMENTS:
        setattr(kernel, name, getattr(body, name))
    return njit(**KERNEL)(kernel)
