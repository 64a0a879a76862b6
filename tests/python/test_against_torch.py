"""Operators on random inputs against PyTorch: values, dtypes, shapes, strides, and errors.

A row has an operator, its kinds of arguments and the dtypes. Random shapes include sizes of 0 and
1; layouts are contiguous, permuted, stepped, expanded or a slice.
"""

import random

import pytest

torch = pytest.importorskip("torch")

from operator_cases import (  # noqa: E402
    ALL,
    COMPLEX,
    REAL,
    WHOLE,
    clone_strided,
    compare,
    make,
    run,
    to_lamella,
)

DRAWS = 12
EXACT = [torch.bool] + WHOLE


class Draw:
    """Random arguments; the same ones for the same seed."""

    def __init__(self, seed, dtypes):
        self.random = random.Random(seed)
        self.dtypes = dtypes
        self.dtype = self.random.choice(dtypes)
        self.shape = self.a_shape()

    def a_shape(self):
        sizes = self.random.choices([0, 1, 2, 3, 4], [1, 2, 4, 4, 3], k=self.random.randint(0, 4))
        return tuple(sizes)

    def values(self, shape, dtype):
        high = self.random.choice([1, 4, 10])
        return make(*shape, dtype=dtype, low=-high, high=high, seed=self.random.randrange(10**6))

    def layout(self, shape, dtype=None, written=False):
        dtype = dtype or self.dtype
        kinds = ["plain", "permuted", "stepped", "slice"] + ([] if written else ["expanded"])
        kind = self.random.choice(kinds) if shape else "plain"
        if kind == "plain" or 0 in shape:
            return self.values(shape, dtype)
        dim = self.random.randrange(len(shape))
        if kind == "permuted":
            order = self.random.sample(range(len(shape)), len(shape))
            base = self.values([shape[d] for d in order], dtype)
            return base.permute([order.index(d) for d in range(len(shape))])
        if kind == "stepped":
            longer = shape[:dim] + (shape[dim] * 2 + 1,) + shape[dim + 1 :]
            return self.values(longer, dtype)[(slice(None),) * dim + (slice(1, None, 2),)]
        if kind == "expanded":
            return self.values(shape[:dim] + (1,) + shape[dim + 1 :], dtype).expand(shape)
        return self.values((2, *shape), dtype)[1]

    def tensor(self):
        return self.layout(self.shape)

    def other(self):
        """One that broadcasts with the first, mostly, and may be of another dtype."""
        shape = tuple(1 if self.random.random() < 0.3 else n for n in self.shape)
        shape = shape[self.random.randint(0, len(shape)) :] if self.random.random() < 0.3 else shape
        if self.random.random() < 0.05:
            shape = (7, *shape[1:])
        dtype = self.random.choice(self.dtypes) if self.random.random() < 0.3 else self.dtype
        return self.layout(shape, dtype)

    def number(self):
        return self.random.choice([0, 1, 2, 3, -1, 1.5, -2.5, True])

    def dim(self):
        """A dimension; now and then one that is not there."""
        n = max(len(self.shape), 1)
        return self.random.randint(-n, n - 1) if self.random.random() < 0.9 else n

    def dims(self):
        chosen = self.random.sample(range(len(self.shape)), self.random.randint(0, len(self.shape)))
        return [d - len(self.shape) if self.random.random() < 0.3 else d for d in chosen]

    def flag(self):
        return self.random.random() < 0.5

    def sizes(self, count):
        return [self.random.choice([0, 1, 2, 3, 4, 5]) for _ in range(count)]


def unary(d):
    return [d.tensor()]


def binary(d):
    return [d.tensor(), d.other()]


def with_number(d):
    return [d.tensor(), d.number()]


def in_place(d):
    return [d.layout(d.shape, written=True), d.other()]


def along(d):
    return [d.tensor(), d.dim()]


def reduced(d):
    return [d.tensor(), d.dims(), d.flag()]


def softmax(d):
    return [d.tensor(), d.dim(), False]


def flipped(d):
    return [d.tensor(), d.dims()]


def swapped(d):
    return [d.tensor(), d.dim(), d.dim()]


def permuted(d):
    return [d.tensor(), d.random.sample(range(len(d.shape)), len(d.shape))]


def several(d):
    return [[d.tensor() for _ in range(d.random.randint(1, 3))], d.dim()]


def chosen(d):
    return [d.layout(d.shape, torch.bool), d.tensor(), d.other()]


def matrices(d):
    x, y, z = d.sizes(3)
    return [d.layout((x, y)), d.layout((y if d.random.random() < 0.95 else y + 1, z))]


def batches(d):
    b, x, y, z = d.sizes(4)
    return [d.layout((b, x, y)), d.layout((b, y, z))]


def products(d):
    b, x, y, z = d.sizes(4)
    left = d.random.choice([(y,), (x, y), (b, x, y), (2, 1, x, y)])
    return [d.layout(left), d.layout(d.random.choice([(y,), (y, z), (b, y, z)]))]


def affine(d):
    b, x, y, z = d.sizes(4)
    arguments = [d.layout(d.random.choice([(x, y), (b, x, y)])), d.layout((z, y))]
    return [*arguments, d.layout((z,))] if d.flag() else arguments


def normalized(d):
    x, y = d.random.choice([1, 2, 3]), d.random.choice([2, 3, 4])
    return [d.layout((x, y)), [y], d.layout((y,)), d.layout((y,))]


def looked_up(d):
    rows = d.random.randint(1, 4)
    return [d.layout((rows, 3)), torch.tensor([d.random.randrange(rows) for _ in range(4)])]


def picked(d):
    size = d.shape[0] if d.shape else 1
    index = [
        d.random.randint(-1 if d.random.random() < 0.1 else 0, max(size - 1, 0)) for _ in range(3)
    ]
    return [d.tensor(), 0, torch.tensor(index)]


def sliced(d):
    return [
        d.tensor(),
        d.dim(),
        d.random.randint(-5, 5),
        d.random.randint(-5, 5),
        d.random.randint(1, 3),
    ]


def written_dtype(d):
    return [d.layout(d.shape, written=True), d.layout(d.shape, d.random.choice(ALL))]


FRACTIONS = [torch.float32, torch.float64]
NUMBERS = WHOLE + FRACTIONS
MATRIX = [torch.float32, torch.float64, torch.int64, torch.complex64]

TABLE = [
    (unary, NUMBERS + COMPLEX, "neg abs sgn square positive"),
    (unary, ALL, "clone zeros_like ones_like isnan isinf logical_not ravel squeeze t"),
    (unary, NUMBERS, "sign ceil floor trunc signbit relu"),
    (
        unary,
        EXACT + FRACTIONS,
        "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh"
        " atanh sigmoid sqrt rsqrt reciprocal erf erfc",
    ),
    (
        unary,
        FRACTIONS,
        "silu gelu mish hardswish hardsigmoid softplus elu selu leaky_relu frac round",
    ),
    (unary, EXACT, "bitwise_not"),
    (unary, ALL, "sum all any count_nonzero nonzero argwhere unbind.int"),
    (binary, NUMBERS + COMPLEX, "add.Tensor sub.Tensor mul.Tensor"),
    (binary, FRACTIONS + COMPLEX, "div.Tensor"),
    (binary, NUMBERS, "maximum minimum fmax fmin"),
    (binary, FRACTIONS, "atan2 hypot copysign.Tensor logaddexp xlogy.Tensor heaviside"),
    (binary, ALL, "eq.Tensor ne.Tensor logical_and logical_or logical_xor"),
    (binary, EXACT + FRACTIONS, "lt.Tensor le.Tensor gt.Tensor ge.Tensor"),
    (binary, EXACT, "bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor"),
    (binary, ALL, "equal expand_as"),
    (
        with_number,
        NUMBERS,
        "add.Scalar sub.Scalar mul.Scalar eq.Scalar lt.Scalar ge.Scalar fill.Scalar",
    ),
    (in_place, NUMBERS, "add_.Tensor sub_.Tensor mul_.Tensor copy_"),
    (written_dtype, ALL, "copy_"),
    (along, NUMBERS, "cumsum argmax argmin max.dim min.dim unsqueeze unbind.int"),
    (along, ALL, "squeeze.dim all.dim any.dim"),
    (reduced, ALL, "sum.dim_IntList"),
    (reduced, FRACTIONS, "mean.dim amax"),
    (reduced, NUMBERS, "amin"),
    (softmax, FRACTIONS, "_softmax _log_softmax"),
    (flipped, ALL, "flip squeeze.dims"),
    (swapped, ALL, "transpose.int swapaxes movedim.int flatten.using_ints"),
    (permuted, ALL, "permute"),
    (several, NUMBERS, "cat stack"),
    (chosen, NUMBERS, "where.self"),
    (matrices, MATRIX, "mm matmul"),
    (batches, MATRIX, "bmm"),
    (products, MATRIX, "matmul"),
    (affine, FRACTIONS, "linear"),
    (normalized, FRACTIONS, "layer_norm"),
    (looked_up, REAL + WHOLE, "embedding"),
    (picked, ALL, "index_select"),
    (sliced, ALL, "slice.Tensor"),
]
ROWS = [(name, made, dtypes) for made, dtypes, names in TABLE for name in names.split()]


def attempt(module, name, args):
    try:
        return run(module, name, args, {}), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize(
    "name, made, dtypes", ROWS, ids=[f"{name}-{made.__name__}" for name, made, _ in ROWS]
)
def test_agrees(name, made, dtypes):
    lamella = pytest.importorskip("lamella")
    succeeded = 0
    for seed in range(DRAWS):
        args = made(Draw(f"{name} {seed}", dtypes))
        theirs = [clone_strided(a) for a in args]
        ours = [to_lamella(clone_strided(a)) for a in args]
        expected, their_error = attempt(torch, name, theirs)
        got, our_error = attempt(lamella, name, ours)
        case = f"{name}, draw {seed}"
        assert (their_error is None) == (our_error is None), (case, their_error, our_error)
        if their_error is not None:
            continue
        succeeded += 1
        compare(got, expected, False, case, tolerance=loose(expected))
        assert steps(got) == steps(expected), (case, "strides")
        for mine, other in zip(ours, theirs):
            if isinstance(other, torch.Tensor):
                compare(mine, other, True, f"{case}: argument")
    assert succeeded >= DRAWS // 4, "few draws are valid calls"


def steps(result):
    """The strides that say where elements are."""
    if isinstance(result, (list, tuple)):
        return [steps(item) for item in result]
    if not hasattr(result, "stride") or result.numel() == 0:
        return None
    return [stride for size, stride in zip(result.shape, result.stride()) if size > 1]


def loose(expected):
    """Sums in another order differ by more than one rounding."""
    kind = expected.dtype if isinstance(expected, torch.Tensor) else None
    return {torch.float32: (1e-5, 1e-5), torch.complex64: (2e-5, 2e-5)}.get(kind)


def same(f):
    """f(module) gives the same by PyTorch and by Lamella."""
    import lamella

    compare(f(lamella), f(torch), True)


def test_numbers_wrap_to_narrow_integers():
    same(lambda m: m.ones(2, dtype=m.uint8) + 300)
    same(lambda m: m.ones(2, dtype=m.int8) - 129)


def test_sums_to_bool_convert_each_element():
    same(lambda m: m.sum(m.tensor([0.5, 0.25]), dtype=m.bool))
    same(lambda m: m.sum(m.tensor([0j, 1j]), dtype=m.bool))
    same(lambda m: m.prod(m.tensor([0.5, 0.25]), dtype=m.bool))


def test_arange_counts_before_it_rounds_except_in_int64():
    same(lambda m: m.arange(0, 2.5, dtype=m.int32))
    same(lambda m: m.arange(0, 2.5, dtype=m.int64))


def test_methods_whose_tensor_is_not_the_first_argument_of_the_function():
    kept = [True, False, True]
    same(lambda m: m.arange(3).where(m.tensor(kept), m.zeros(1, dtype=m.int64)))
    same(lambda m: m.arange(3.0).where(m.tensor(kept), -1))
    same(lambda m: m.arange(3.0).where(other=m.ones(2, 1), condition=m.tensor(kept)))
    same(lambda m: m.tensor([0.5, 2.0]).polygamma(1))


def test_functions_give_tuples_of_tensors():
    for made in (
        lambda m: m.arange(5).split(2),
        lambda m: m.chunk(m.arange(5), 2),
        lambda m: m.where(m.tensor([True, False])),
        lambda m: m.nonzero(m.tensor([[1, 0], [2, 3]]), as_tuple=True),
        lambda m: m.meshgrid(m.arange(2), m.arange(3), indexing="ij"),
        lambda m: m.broadcast_tensors(m.ones(2, 1), m.ones(3)),
    ):
        import lamella

        assert type(made(lamella)) is type(made(torch)) is tuple
        same(made)
    same(lambda m: m.einsum("ij,jk->ik", m.ones(2, 3), m.ones(3, 4)))
    same(lambda m: tuple(m.broadcast_shapes((2, 1), (3,), 1)))


def test_outputs_of_cat_may_be_of_another_dtype():
    same(lambda m: m.cat([m.arange(2)], out=m.empty(0, dtype=m.int16)))


def test_a_value_with_leading_ones_fits_an_index():
    def assigned(m):
        x = m.arange(4.0)
        x[x > 1] = m.tensor([[9.0]])
        x[m.tensor([0, 1])] = m.ones(1, 1, 2)
        return x

    same(assigned)


def test_index_add_without_dimensions_takes_one_index():
    import lamella

    with pytest.raises(RuntimeError) as caught:
        lamella.tensor(1).index_add(0, lamella.tensor([0, 0]), lamella.tensor(5))
    assert str(caught.value) == (
        "index_add: expected 'index' to have one element for a 'self' without dimensions, got 2"
    )
