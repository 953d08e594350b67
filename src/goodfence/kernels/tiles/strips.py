"""Sums of dense columns, 8 bits a rating, in vector registers: written for LLVM, as numba has no words for these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, types, uintp
from numba.extending import intrinsic, overload
from numba.np.numpy_support import as_dtype

from goodfence.arrays import AnyFloats, AnyIntegers
from goodfence.kernels import inner

WIDTH = 128  # columns of a strip: the bytes of one item that are summed at a time
UNROLL = 4  # items summed in one turn of the loop, in two pairs; segments are padded to a multiple of it

_LANES = 32
_I8, _I16, _I32, _I64 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
_BYTES = ir.VectorType(_I8, _LANES)


def add_strips(
    sums: AnyIntegers, strips: AnyIntegers, strip: int, items: AnyIntegers, start: int, count: int, value: Any
) -> None:
    """Add `value` times the strips of `items[start:start + count]` to one row of sums.

    `strips` is (strips, items, WIDTH), 8 bits; `count` is a multiple of UNROLL; the sum of the strips fits 8 bits.
    """
    first = strip * WIDTH
    total = strips[strip, items[start : start + count]].sum(axis=0, dtype=sums.dtype)
    sums[first : first + WIDTH] += value * total


@overload(add_strips)
def _compiled_add_strips(sums: Any, strips: Any, strip: Any, items: Any, start: Any, count: Any, value: Any) -> Any:
    def add(sums: Any, strips: Any, strip: Any, items: Any, start: Any, count: Any, value: Any) -> None:
        _add_strips(  # type: ignore[call-arg]  # numba passes the first argument itself
            uintp(sums.ctypes.data + strip * WIDTH * sums.itemsize),
            uintp(strips.ctypes.data + strip * strips.strides[0]),
            uintp(items.ctypes.data + start * items.itemsize),
            uintp(count),
            value,
        )

    return add


@intrinsic
def _add_strips(_context: Any, out: Any, strip: Any, items: Any, count: Any, value: Any) -> Any:
    """Do what `add_strips` says; all but count and value are addresses."""
    signature = types.void(types.uintp, types.uintp, types.uintp, types.uintp, value)

    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        out, strip, items, count, value = arguments
        kinds = [_BYTES] * (WIDTH // _LANES)
        totals = emit_sums(builder, kinds, items, count, lambda number: _emit_strip(builder, strip, number))
        _emit_scaled_add(builder, out, totals, value)
        return context.get_dummy_value()

    return signature, emit


LANES = 32  # columns whose similarities are compared at a time


def reaching(sums: AnyIntegers, inverses: AnyFloats, start: int, least: Any) -> int:
    """Return which of `LANES` columns have `sums * inverses` of at least `least`, as the bits of a number."""
    part = slice(start, start + LANES)
    flags = sums[part].astype(np.float32) * inverses[part] >= least
    return sum(1 << lane for lane in np.flatnonzero(flags).tolist())


@inner
def lowest_bit(mask: Any) -> int:
    """Return the place of the lowest bit of a number that is not 0: the exponent of that bit."""
    number = np.uint64(mask)
    return int((np.float64(number & (~number + np.uint64(1))).view(np.uint64) >> np.uint64(52)) - np.uint64(1023))


@overload(reaching)
def _compiled_reaching(sums: Any, inverses: Any, start: Any, least: Any) -> Any:
    zero = as_dtype(sums.dtype).type(0)

    def reach(sums: Any, inverses: Any, start: Any, least: Any) -> Any:
        first, other = sums.ctypes.data + start * sums.itemsize, inverses.ctypes.data + start * inverses.itemsize
        return _reaching(uintp(first), uintp(other), float32(least), zero)  # type: ignore[call-arg]

    return reach


@intrinsic
def _reaching(_context: Any, sums: Any, inverses: Any, least: Any, zero: Any) -> Any:
    """Do what `reaching` says; the first two are addresses, `zero` has the type of a sum."""
    signature = types.uint64(types.uintp, types.uintp, types.float32, zero)

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        first, other, least, zero = arguments
        floats = ir.VectorType(ir.FloatType(), LANES)
        whole = builder.load(builder.inttoptr(first, ir.VectorType(zero.type, LANES).as_pointer()))
        inverse = builder.load(builder.inttoptr(other, floats.as_pointer()))
        whole.align, inverse.align = zero.type.width // 8, 4
        product = builder.fmul(builder.uitofp(whole, floats), inverse)
        flags = builder.fcmp_ordered(">=", product, spread(builder, floats, least))
        return builder.zext(builder.bitcast(flags, ir.IntType(LANES)), _I64)

    return signature, emit


def spread(builder: Any, wide: Any, value: Any) -> Any:
    """Emit a vector of one value."""
    one = builder.insert_element(ir.Constant(wide, ir.Undefined), value, ir.Constant(_I32, 0))
    lanes = ir.Constant(ir.VectorType(_I32, wide.count), [0] * wide.count)
    return builder.shuffle_vector(one, ir.Constant(wide, ir.Undefined), lanes)


def emit_sums(builder: Any, kinds: list[Any], items: Any, count: Any, emit_row: Callable[[Any], list[Any]]) -> Any:
    """Emit a loop over `count` item numbers; return registers of these kinds, what `emit_row` emits summed."""
    before = builder.block
    loop = builder.function.append_basic_block("sum_items")
    after = builder.function.append_basic_block("use_sums")
    builder.branch(loop)
    builder.position_at_end(loop)
    turn, sums = builder.phi(_I64), [builder.phi(kind) for kind in kinds]
    numbers = builder.inttoptr(builder.add(items, builder.mul(turn, ir.Constant(_I64, 2))), _I16.as_pointer())
    rows = []
    for step in range(UNROLL):
        number = builder.load(builder.gep(numbers, [ir.Constant(_I32, step)]))
        rows.append(emit_row(builder.zext(number, _I64)))
    adds = [builder.fadd if isinstance(kind.element, ir.FloatType) else builder.add for kind in kinds]
    totals = [add(total, add(add(a, b), add(c, d))) for add, total, a, b, c, d in zip(adds, sums, *rows, strict=True)]
    following = builder.add(turn, ir.Constant(_I64, UNROLL))
    for register, total in zip([turn, *sums], [following, *totals], strict=True):
        register.add_incoming(ir.Constant(register.type, None), before)
        register.add_incoming(total, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, count), loop, after)
    builder.position_at_end(after)
    return totals


def _emit_strip(builder: Any, strip: Any, number: Any) -> list[Any]:
    """Emit the loads of one item's strip."""
    start = builder.add(strip, builder.mul(number, ir.Constant(_I64, WIDTH)))
    return [emit_load(builder, start, _BYTES, register) for register in range(WIDTH // _LANES)]


def emit_load(builder: Any, address: Any, kind: Any, register: int = 0) -> Any:
    """Emit the load of one of the registers that begin at an address."""
    part = builder.load(builder.gep(builder.inttoptr(address, kind.as_pointer()), [ir.Constant(_I32, register)]))
    part.align = 1
    return part


def _emit_scaled_add(builder: Any, out: Any, totals: list[Any], value: Any) -> None:
    """Emit out[:WIDTH] += value * totals, in the element type of `value`."""
    wide = ir.VectorType(value.type, _LANES)
    factor = spread(builder, wide, value)
    target = builder.inttoptr(out, wide.as_pointer())
    for register, total in enumerate(totals):
        place = builder.gep(target, [ir.Constant(_I32, register)])
        old = builder.load(place)
        old.align = 2
        scaled = builder.mul(builder.zext(total, wide), factor)
        store = builder.store(builder.add(old, scaled), place)
        store.align = 2
