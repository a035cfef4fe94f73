"""`loop_kernel`: compiled loops that threads share without the GIL.

A kernel posts a loop in a slot, wakes as many threads as it may use, works on parts of the loop
itself, and returns when the last part has ended. The other threads of the process wait in
`wait_for_loops`: they look for loops for a microsecond, then sleep until a lock is released.
Where threads had to take the GIL for each part, 16 of them took two milliseconds for any loop.

Locks are those of Python, which need no GIL. A loop never waits for a thread that is not running.
"""

from __future__ import annotations

from functools import WRAPPER_ASSIGNMENTS
from types import FunctionType
from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic

from badacost._utils.inner_kernels import inner
from badacost._utils.kernel_cache import KERNEL, njit

N_SLOTS, MAX_HELPERS, N_WORDS = 64, 255, 8
# The state of all loops of a process has a row for each slot, one for each helping thread, and one
# for their numbers: words of a slot, a thread, and this last row.
USERS, NEXT, N_PARTS, MAX_USERS, FUNCTION, ARGUMENTS, LOCK = range(7)
SLEEPS, LAST = 0, N_SLOTS + MAX_HELPERS
N_HELPERS, N_OPEN, RUN = range(3)
# Flags of a slot, beside its number of users: helpers may begin, it is in use, its caller waits.
OPEN, CLAIMED, WAITS = 1 << 20, 1 << 21, 1 << 22
_LOOKS = 2000  # before a thread sleeps: 1 microsecond for a loop, 10 for the end of its own
_PLACES = ("co_name", "co_qualname", "co_filename", "co_firstlineno")


class Loop(NamedTuple):
    """A loop over ``range(length)`` in parts, see `badacost._utils.parallel.Threads.loop`."""

    state: int  # address of words (LAST + 1, N_WORDS)
    n_threads: int
    length: int
    n_parts: int


_acquire = types.ExternalFunction("PyThread_acquire_lock", types.int32(types.intp, types.int32))
_release = types.ExternalFunction("PyThread_release_lock", types.void(types.intp))
_WORD = ir.IntType(64)


def _place(builder, state, row, word):
    """Pointer to a word of the state."""
    number = builder.add(builder.mul(row, _WORD(N_WORDS)), word)
    return builder.gep(builder.inttoptr(state, _WORD.as_pointer()), [number])


@intrinsic
def _load(_typing, state, row, word):
    """A word of the state."""

    def code(_, builder, sig, args):
        return builder.load_atomic(_place(builder, *args), "seq_cst", 8)

    return signature(types.int64, *[types.int64] * 3), code


@intrinsic
def _store(_typing, state, row, word, value):
    """Set a word of the state, which other threads see once another word is changed."""

    def code(context, builder, sig, args):
        builder.store(args[3], _place(builder, *args[:3]))
        return context.get_dummy_value()

    return signature(types.none, *[types.int64] * 4), code


@intrinsic
def _add(_typing, state, row, word, value):
    """Add to a word of the state; return its former value."""

    def code(_, builder, sig, args):
        return builder.atomic_rmw("add", _place(builder, *args[:3]), args[3], "seq_cst")

    return signature(types.int64, *[types.int64] * 4), code


@intrinsic
def _swap(_typing, state, row, word, expected, value):
    """Replace a word of the state if it is as expected; return whether it was."""

    def code(_, builder, sig, args):
        place = _place(builder, *args[:3])
        return builder.extract_value(builder.cmpxchg(place, *args[3:], "seq_cst", "seq_cst"), 1)

    return signature(types.boolean, *[types.int64] * 5), code


_PART = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), _WORD])


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
    while part < _load(state, slot, N_PARTS):
        _call(_load(state, slot, FUNCTION), _load(state, slot, ARGUMENTS), part)
        part = _add(state, slot, NEXT, 1)


@inner()
def _open_slot(state):
    """A slot whose loop may be helped with, or -1."""
    for slot in range(N_SLOTS if _load(state, LAST, N_OPEN) > 0 else 0):
        users = _load(state, slot, USERS)
        may_join = users & OPEN != 0 and users & (OPEN - 1) < _load(state, slot, MAX_USERS)
        if may_join and _load(state, slot, NEXT) < _load(state, slot, N_PARTS):
            return slot
    return -1


@inner()
def _help(state, slot):
    """Work on a loop, if it is still open."""
    users = _add(state, slot, USERS, 1)
    if users & OPEN != 0 and users & (OPEN - 1) < _load(state, slot, MAX_USERS):
        _take_parts(state, slot)
    # The last one to leave wakes the caller, if it waits.
    if _add(state, slot, USERS, -1) == WAITS + 1 and _swap(state, slot, USERS, WAITS, CLAIMED):
        _release(_load(state, slot, LOCK))


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
                _acquire(_load(state, row, LOCK), 1)
            n_looks = 0


@njit(**KERNEL)
def run(state, n_threads, n_parts, function, arguments):
    """Run a loop with the help of other threads, or alone if all slots are taken."""
    slot = 0
    while slot < N_SLOTS and not _swap(state, slot, USERS, 0, CLAIMED):
        slot += 1
    if slot == N_SLOTS:
        for part in range(n_parts):
            _call(function, arguments, part)
        return
    _store(state, slot, NEXT, 0)
    _store(state, slot, N_PARTS, n_parts)
    _store(state, slot, MAX_USERS, n_threads - 1)
    _store(state, slot, FUNCTION, function)
    _store(state, slot, ARGUMENTS, arguments)
    _add(state, slot, USERS, OPEN - CLAIMED)
    _add(state, LAST, N_OPEN, 1)
    n_wanted = (n_threads if n_threads < n_parts else n_parts) - 1
    for row in range(N_SLOTS, N_SLOTS + _load(state, LAST, N_HELPERS)):
        if n_wanted > 0 and _load(state, row, SLEEPS) == 1 and _swap(state, row, SLEEPS, 1, 0):
            _release(_load(state, row, LOCK))
            n_wanted -= 1
    _take_parts(state, slot)
    _add(state, LAST, N_OPEN, -1)
    _add(state, slot, USERS, WAITS - OPEN)
    for _ in range(_LOOKS):
        if _swap(state, slot, USERS, WAITS, 0):
            return
    _acquire(_load(state, slot, LOCK), 1)
    _add(state, slot, USERS, -CLAIMED)


@intrinsic
def _parallel_for(typing, loop, kernel, arguments):
    """Call ``kernel(*arguments, part, first, last)`` for each part of a loop, in any order."""
    given = (*arguments.types, *[types.int64] * 3)
    call = kernel.get_call_type(typing, given, {})

    def code(context, builder, sig, args):
        state, n_threads, length, n_parts = (builder.extract_value(args[0], k) for k in range(4))
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
        ends = part, inside.add(part, _WORD(1))
        cuts = [inside.sdiv(inside.mul(length, end), parts) for end in ends]
        typed = zip([*values, part, *cuts], given, call.args, strict=True)
        casted = [context.cast(inside, value, a, b) for value, a, b in typed]
        compiled = kernel.dispatcher.overloads[call.args]
        context.active_code_library.add_linking_library(compiled.library)
        context.call_internal_no_propagate(inside, compiled.fndesc, call, casted)
        inside.ret_void()
        with builder.if_else(builder.icmp_signed("==", n_parts, _WORD(1))) as (alone, together):
            with alone:
                builder.call(function, [builder.bitcast(block, _PART.args[0]), _WORD(0)])
            with together:  # not linked, which would compile it once more for each kernel
                run_types, call_conv = [types.int64] * 5, context.call_conv
                run_type = call_conv.get_function_type(types.none, run_types).as_pointer()
                address = builder.load(_place(builder, state, _WORD(LAST), _WORD(RUN)))
                addresses = [builder.ptrtoint(p, _WORD) for p in (function, block)]
                call_conv.call_function(
                    builder, builder.inttoptr(address, run_type), types.none, run_types,
                    [state, n_threads, n_parts, *addresses],
                )  # fmt: skip
        return context.get_dummy_value()

    return signature(types.none, loop, kernel, arguments), code


def address_of_run() -> int:
    """Address of the compiled `run`; what helping threads run is compiled too."""
    wait_for_loops.compile(signature(types.none, *[types.int64] * 2))
    run.compile(signature(types.none, *[types.int64] * 5))
    (compiled,) = run.overloads.values()
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


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
