"""The steps of random HLO programs: each adds values, or nothing if no values fit."""

from __future__ import annotations

import math

from hlo_random_writer import BITS, COMPLEX, FLOATS, INTEGERS, TYPES, Sizes, Value, Writer, listed

STEEP = "exponential exponential-minus-one log log-plus-one sqrt rsqrt cbrt tan".split()
JUMPS = "floor ceil sign round-nearest-even round-nearest-afz".split()
SMOOTH = "tanh sine cosine logistic erf".split()


class Steps(Writer):
    def operand(self) -> Value:
        """More often a float: they have the most operations."""
        return (self.chosen(FLOATS) if self.chance(0.5) else None) or self.pick(self.values)

    def unary(self) -> None:
        v = self.operand()
        if v.type == "pred":
            self.add("pred", v.sizes, f"not({v.name})", v.exact)
        elif v.type in COMPLEX:
            kind = self.pick(["real", "imag", "negate", "abs"])
            part = "f32" if v.type == "c64" else "f64"
            element = v.type if kind == "negate" else part
            self.add(element, v.sizes, f"{kind}({v.name})", v.exact and kind != "abs")
        elif v.type in FLOATS:
            exact = ["abs", "negate"] + (JUMPS if v.exact else [])
            kind = self.pick(exact + SMOOTH + (STEEP if v.exact else []))
            self.add(v.type, v.sizes, f"{kind}({v.name})", v.exact and kind in exact)
        else:
            kind = self.pick("not popcnt count-leading-zeros abs negate sign".split())
            if v.type[0] == "u" and kind in ("abs", "sign"):
                kind = "not"
            self.add(v.type, v.sizes, f"{kind}({v.name})", v.exact)

    def binary(self) -> None:
        v = self.operand()
        other = self.like(v.type, v.sizes)
        exact = v.exact and other.exact
        always = "add subtract multiply".split()
        if v.type == "pred":
            kind = self.pick("and or xor".split())
        elif v.type in COMPLEX:
            kind, exact = self.pick(always), False
        elif v.type in FLOATS:
            steep = "power atan2 remainder".split() if exact else []
            basic = [*always, "maximum", "minimum"] + (["divide"] if exact else [])
            kind = self.pick(basic + steep)
            # Sums of the smallest floats may be kept wider.
            exact = exact and kind in basic and v.type in ("f32", "f64")
        else:
            kind = self.pick(
                "add subtract multiply divide remainder maximum minimum and or xor power "
                "shift-left shift-right-logical shift-right-arithmetic".split()
            )
        self.add(v.type, v.sizes, f"{kind}({v.name}, {other.name})", exact)

    def truth(self, sizes: Sizes) -> Value:
        v = self.chosen([*FLOATS, *INTEGERS, "pred"], exact=True)
        if v is None or v.sizes != sizes:
            return self.like("pred", sizes, exact=True)
        other = self.like(v.type, v.sizes, exact=True)
        direction = self.pick("LT GE EQ NE GT LE".split())
        return self.add("pred", sizes, f"compare({v.name}, {other.name}), direction={direction}")

    def compare(self) -> None:
        v = self.pick(self.values)
        self.truth(v.sizes)

    def select(self) -> None:
        v = self.pick(self.values)
        other, which = self.like(v.type, v.sizes), self.truth(v.sizes)
        self.add(
            v.type, v.sizes, f"select({which.name}, {other.name}, {v.name})",
            v.exact and other.exact,
        )  # fmt: skip

    def clamp(self) -> None:
        v = self.chosen([*FLOATS, *INTEGERS])
        if v is not None:
            low, high = self.constant(v.type, -2, 0), self.constant(v.type, 0, 2)
            self.add(v.type, v.sizes, f"clamp({low.name}, {v.name}, {high.name})", v.exact)

    def convert(self) -> None:
        v = self.chosen([*FLOATS, *INTEGERS, "pred"])
        if v is None:
            return
        to = self.pick([*FLOATS, *INTEGERS, "pred"] if v.exact else FLOATS)
        self.add(to, v.sizes, f"convert({v.name})", v.exact)

    def bits(self) -> None:
        v = self.chosen([*FLOATS, *INTEGERS], exact=True)
        if v is not None:
            same = [t for t in (*FLOATS, *INTEGERS) if BITS[t] == BITS[v.type]]
            to = self.pick([t for t in same if t in INTEGERS])
            # Bits of a NaN are not determined.
            if v.type in INTEGERS:
                self.add(to, v.sizes, f"bitcast-convert({v.name})")
            else:
                quiet = self.add("pred", v.sizes, f"compare({v.name}, {v.name}), direction=EQ")
                some = self.constant(v.type)
                zero = self.add(v.type, v.sizes, f"broadcast({some.name}), dimensions={{}}")
                kept = self.add(v.type, v.sizes, f"select({quiet.name}, {v.name}, {zero.name})")
                self.add(to, v.sizes, f"bitcast-convert({kept.name})")

    def complex(self) -> None:
        v = self.chosen(("f32", "f64"))
        if v is not None:
            other = self.like(v.type, v.sizes)
            to = "c64" if v.type == "f32" else "c128"
            self.add(to, v.sizes, f"complex({v.name}, {other.name})", v.exact and other.exact)

    def precision(self) -> None:
        v = self.chosen(("f32", "f64"), exact=True)
        if v is not None:
            bits = f"exponent_bits={self.number(4, 8)}, mantissa_bits={self.number(2, 10)}"
            self.add(v.type, v.sizes, f"reduce-precision({v.name}), {bits}")

    def transpose(self) -> None:
        v = self.pick(self.values)
        order = [int(n) for n in self.random.permutation(len(v.sizes))]
        made = tuple(v.sizes[n] for n in order)
        self.add(v.type, made, f"transpose({v.name}), dimensions={{{listed(order)}}}", v.exact)

    def reverse(self) -> None:
        v = self.pick(self.values)
        if v.sizes:
            along = self.number(0, len(v.sizes) - 1)
            self.add(v.type, v.sizes, f"reverse({v.name}), dimensions={{{along}}}", v.exact)

    def slice(self) -> None:
        v = self.pick(self.values)
        parts, made = [], []
        for size in v.sizes:
            start = self.number(0, max(0, size - 1))
            stop = max(self.number(start, size), min(start + 1, size))
            stride = self.number(1, 2)
            parts.append(f"[{start}:{stop}:{stride}]")
            made.append((stop - start + stride - 1) // stride)
        if v.sizes:
            self.add(v.type, tuple(made), f"slice({v.name}), slice={{{', '.join(parts)}}}", v.exact)

    def pad(self) -> None:
        v = self.pick(self.values)
        parts, made = [], []
        for size in v.sizes:
            low, high, inner = self.number(-1, 2), self.number(-1, 2), self.number(0, 1)
            whole = size + low + high + max(0, size - 1) * inner
            if whole < 0:
                low, high, inner, whole = 0, 0, 0, size
            parts.append(f"{low}_{high}_{inner}")
            made.append(whole)
        if v.sizes:
            value = self.constant(v.type)
            self.add(
                v.type, tuple(made), f"pad({v.name}, {value.name}), padding={'x'.join(parts)}",
                v.exact,
            )  # fmt: skip

    def reduce(self) -> None:
        v = self.pick(self.values)
        if not v.sizes:
            return
        numbers = range(len(v.sizes))
        along = [n for n in numbers if self.chance(0.6)] or [self.pick(list(numbers))]
        made = tuple(s for n, s in enumerate(v.sizes) if n not in along)
        kinds = ["add", "maximum", "minimum", "multiply", "odd"]
        if v.type == "pred":
            kinds = ["and", "or"]
        elif v.type in COMPLEX:
            kinds = ["add"]
        elif v.type in INTEGERS:
            kinds = [k for k in [*kinds, "and", "xor"] if k != "odd"]
        kind = self.pick(kinds)
        exact = v.exact and (v.type in (*INTEGERS, "pred") or kind in ("maximum", "minimum"))
        # The order of a combination that is none of numbers is left open, and products overflow.
        if kind == "odd" and math.prod(v.sizes[n] for n in along) > 40:
            kind = "add"
        if kind == "multiply" and v.type not in INTEGERS:
            kind = "maximum"
        if kind == "odd":
            kind, exact = "add", False
        start = self.constant(v.type, 0, 1)
        self.add(
            v.type, made, f"reduce({v.name}, {start.name}), dimensions={{{listed(along)}}}, "
            f"to_apply={self.module.combiner(kind, v.type)}", exact,
        )  # fmt: skip

    def windows(self) -> None:
        v = self.chosen([*FLOATS, *INTEGERS], rank=(1, 2, 3))
        if v is None or 0 in v.sizes:
            return
        size, stride, pads, made = [], [], [], []
        for length in v.sizes:
            low, high = self.number(0, 1), self.number(0, 1)
            size.append(self.number(1, min(3, length + low + high)))
            stride.append(self.number(1, 2))
            pads.append(f"{low}_{high}")
            made.append((length + low + high - size[-1]) // stride[-1] + 1)
        kind = self.pick(["add", "maximum", "minimum"])
        window = f"size={'x'.join(map(str, size))} stride={'x'.join(map(str, stride))}"
        start = self.constant(v.type, 0, 0) if kind == "add" else self.constant(v.type)
        self.add(
            v.type, tuple(made), f"reduce-window({v.name}, {start.name}), "
            f"window={{{window} pad={'x'.join(pads)}}}, "
            f"to_apply={self.module.combiner(kind, v.type)}",
            v.exact and (kind != "add" or v.type in INTEGERS),
        )  # fmt: skip

    def broadcast(self) -> None:
        v = self.pick(self.values)
        rank = len(v.sizes)
        if rank < 4:
            at = self.number(0, rank)
            made = (*v.sizes[:at], self.number(1, 4), *v.sizes[at:])
            kept = listed(n if n < at else n + 1 for n in range(rank))
            self.add(v.type, made, f"broadcast({v.name}), dimensions={{{kept}}}", v.exact)

    def reshape(self) -> None:
        v = self.pick(self.values)
        if v.sizes:
            whole = math.prod(v.sizes)
            made = self.pick([(whole,), (1, whole), (*v.sizes, 1), (*v.sizes[1:], v.sizes[0])])
            self.add(v.type, made, f"reshape({v.name})", v.exact)

    def concatenate(self) -> None:
        v = self.pick(self.values)
        if v.sizes:
            along = self.number(0, len(v.sizes) - 1)
            other = self.like(v.type, v.sizes)
            made = tuple(2 * s if n == along else s for n, s in enumerate(v.sizes))
            self.add(
                v.type, made, f"concatenate({v.name}, {other.name}), dimensions={{{along}}}",
                v.exact and other.exact,
            )  # fmt: skip

    def update(self) -> None:
        v = self.pick(self.values)
        if not v.sizes:
            return
        made = tuple(self.number(0, s) for s in v.sizes)
        kind = self.pick(["s32", "s64", "u32"])
        starts = ", ".join(self.start(kind).name for _ in v.sizes)
        if self.chance(0.5):
            self.add(
                v.type, made,
                f"dynamic-slice({v.name}, {starts}), dynamic_slice_sizes={{{listed(made)}}}",
                v.exact,
            )  # fmt: skip
        else:
            update = self.like(v.type, made)
            self.add(
                v.type, v.sizes, f"dynamic-update-slice({v.name}, {update.name}, {starts})",
                v.exact and update.exact,
            )  # fmt: skip

    def start(self, kind: str) -> Value:
        found = self.chosen((kind,), exact=True, rank=(0,))
        return found if found is not None and self.chance(0.5) else self.constant(kind, -1, 4)

    def dot(self) -> None:
        v = self.chosen([*FLOATS, *COMPLEX, "s32", "s64", "u32"], rank=(2, 3))
        if v is None:
            return
        exact = v.type in INTEGERS and v.exact
        if len(v.sizes) == 2:
            over, free = self.number(0, 1), self.number(1, 4)
            other = self.like(v.type, (v.sizes[over], free))
            made, how = (v.sizes[1 - over], free), f"lhs_contracting_dims={{{over}}}"
            how += ", rhs_contracting_dims={0}"
        else:
            other = self.like(v.type, v.sizes)
            made = (v.sizes[0], v.sizes[1], v.sizes[1])
            how = (
                "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
                "rhs_contracting_dims={2}"
            )
        self.add(v.type, made, f"dot({v.name}, {other.name}), {how}", exact and other.exact)

    def convolution(self) -> None:
        v = self.chosen(("f32", "f64", "bf16", "f16"), rank=(3,))
        if v is None or 0 in v.sizes:
            return
        batch, features, length = v.sizes
        size, out = self.number(1, min(3, length)), self.number(1, 3)
        low, high, stride = self.number(0, 1), self.number(0, 1), self.number(1, 2)
        kernel = self.like(v.type, (out, features, size))
        if low + high > 0:
            kernel = self.finite(kernel)
        made = (batch, out, (length + low + high - size) // stride + 1)
        self.add(
            v.type, made, f"convolution({v.name}, {kernel.name}), "
            f"window={{size={size} stride={stride} pad={low}_{high}}}, dim_labels=bf0_oi0->bf0",
            False,
        )  # fmt: skip

    def finite(self, v: Value) -> Value:
        """Zero where it is no finite number. A kernel over padding is such: a product of infinity
        and a zero of padding is not a number to one way of calculating, and left out by another."""
        is_finite = self.add("pred", v.sizes, f"is-finite({v.name})", v.exact)
        zero = self.add(v.type, (), "constant(0)")
        zeros = self.add(v.type, v.sizes, f"broadcast({zero.name}), dimensions={{}}")
        how = f"select({is_finite.name}, {v.name}, {zeros.name})"
        return self.add(v.type, v.sizes, how, v.exact)

    def index(self) -> None:
        v = self.pick(self.values)
        if v.sizes:
            element = self.pick([t for t in TYPES if t != "pred"])
            along = self.number(0, len(v.sizes) - 1)
            self.add(element, v.sizes, f"iota(), iota_dimension={along}")

    def sort(self) -> None:
        keys = self.chosen(INTEGERS, exact=True, rank=(1, 2))
        if keys is None:
            return
        along = self.number(0, len(keys.sizes) - 1)
        how = f"dimensions={{{along}}}, is_stable=true, to_apply="
        if self.chance(0.5):
            order = self.module.combiner("less", keys.type)
            self.add(keys.type, keys.sizes, f"sort({keys.name}), {how}{order}")
            return
        other = self.like(self.pick(TYPES), keys.sizes)
        order = self.module.pair_order(keys.type, other.type)
        pair = self.line(
            f"({keys.shape}, {other.shape})", f"sort({keys.name}, {other.name}), {how}{order}"
        )
        self.add(keys.type, keys.sizes, f"get-tuple-element({pair}), index=0")
        self.add(other.type, other.sizes, f"get-tuple-element({pair}), index=1", other.exact)

    def indices(self, count: int) -> Value:
        kind = self.pick(["s32", "s64", "u32"])
        found = [v for v in self.values if v.type == kind and v.sizes == (count,) and v.exact]
        if found:
            return self.pick(found)
        numbers = listed(self.number(0 if kind[0] == "u" else -1, 5) for _ in range(count))
        return self.add(kind, (count,), f"constant({{{numbers}}})")

    def gather(self) -> None:
        v = self.chosen(rank=(1, 2, 3))
        if v is None or 0 in v.sizes:
            return
        along, count = self.number(0, len(v.sizes) - 1), self.number(1, 5)
        at = self.indices(count)
        rest = [s for n, s in enumerate(v.sizes) if n != along]
        taken = [1 if n == along else s for n, s in enumerate(v.sizes)]
        self.add(
            v.type, (count, *rest), f"gather({v.name}, {at.name}), "
            f"offset_dims={{{listed(range(1, len(v.sizes)))}}}, collapsed_slice_dims={{{along}}}, "
            f"start_index_map={{{along}}}, index_vector_dim=1, slice_sizes={{{listed(taken)}}}",
            v.exact,
        )  # fmt: skip

    def scatter(self) -> None:
        v = self.chosen([*FLOATS, *INTEGERS], rank=(1, 2, 3))
        if v is None or 0 in v.sizes:
            return
        along, count = self.number(0, len(v.sizes) - 1), self.number(1, 5)
        at = self.indices(count)
        rest = [s for n, s in enumerate(v.sizes) if n != along]
        update = self.like(v.type, (count, *rest))
        kind = self.pick(["add", "maximum", "last"])
        self.add(
            v.type, v.sizes, f"scatter({v.name}, {at.name}, {update.name}), "
            f"update_window_dims={{{listed(range(1, len(v.sizes)))}}}, "
            f"inserted_window_dims={{{along}}}, scatter_dims_to_operand_dims={{{along}}}, "
            f"index_vector_dim=1, to_apply={self.module.combiner(kind, v.type)}",
            v.exact and update.exact and (kind != "add" or v.type in INTEGERS),
        )  # fmt: skip

    def bits_of_chance(self) -> None:
        element, count = self.pick(["u32", "u64", "u8", "u16"]), self.number(1, 9)
        state = self.add("u64", (2,), f"constant({{{self.number(0, 2**40)}, {self.number(0, 9)}}})")
        algorithm = self.pick(["rng_three_fry", "rng_philox"])
        pair = self.line(
            f"(u64[2], {element}[{count}])",
            f"rng-bit-generator({state.name}), algorithm={algorithm}",
        )
        self.add("u64", (2,), f"get-tuple-element({pair}), index=0")
        self.add(element, (count,), f"get-tuple-element({pair}), index=1")

    def fourier(self) -> None:
        v = self.chosen(COMPLEX, rank=(1, 2))
        if v is not None and 0 not in v.sizes:
            kind = self.pick(["FFT", "IFFT"])
            self.add(
                v.type, v.sizes, f"fft({v.name}), fft_type={kind}, fft_length={{{v.sizes[-1]}}}",
                False,
            )  # fmt: skip

    def barrier(self) -> None:
        v, other = self.pick(self.values), self.pick(self.values)
        both = self.line(f"({v.shape}, {other.shape})", f"tuple({v.name}, {other.name})")
        if self.chance(0.3):
            both = self.line(f"({v.shape}, {other.shape})", f"opt-barrier({both})")
        self.add(other.type, other.sizes, f"get-tuple-element({both}), index=1", other.exact)

    STEPS = (
        "unary unary unary binary binary binary binary compare select clamp convert bits complex "
        "precision transpose reverse slice pad reduce reduce windows broadcast reshape concatenate "
        "update dot convolution index sort gather scatter bits_of_chance fourier barrier"
    ).split()
