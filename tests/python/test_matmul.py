"""Matrix products against PyTorch: every rank, stride and dtype, small and large."""

import itertools

import numpy as np
import pytest
from operator_cases import (
    COMPLEX,
    REAL,
    WHOLE,
    check,
    compare,
    error_of,
    make,
    to_lamella,
    torch,
)

import lamella

DTYPES = WHOLE + REAL + COMPLEX
SIZES = [(2, 3, 4), (4, 4, 4), (1, 1, 1), (17, 33, 9), (64, 70, 65), (1, 300, 40)]
SIZES += [(0, 3, 2), (3, 0, 2)]
# Sums of many products differ in their order: relative to the size of the terms.
LOOSE = {
    torch.float16: (1e-2, 0.3),
    torch.bfloat16: (2e-2, 1.0),
    torch.float32: (1e-4, 1e-3),
    torch.complex64: (1e-4, 1e-3),
}


def layouts(rows, columns, dtype, seed):
    yield make(rows, columns, dtype=dtype, seed=seed)
    yield make(columns, rows, dtype=dtype, seed=seed).t()
    yield make(rows, 2 * columns, dtype=dtype, seed=seed)[:, ::2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_mm(dtype, size):
    m, k, n = size
    pairs = itertools.product(layouts(m, k, dtype, 1), layouts(k, n, dtype, 2))
    for a, b in pairs:
        check("mm", a, b, tolerance=LOOSE.get(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_addmm_and_kin(dtype):
    loose = LOOSE.get(dtype)
    for m, k, n in ((3, 4, 5), (40, 30, 50)):
        a, b = make(m, k, dtype=dtype, seed=1), make(k, n, dtype=dtype, seed=2)
        for self in (make(m, n, dtype=dtype), make(n, dtype=dtype), make(m, 1, dtype=dtype)):
            check("addmm", self, a, b, tolerance=loose)
            check("addmm", self, a, b, beta=2, alpha=3, tolerance=loose)
            check("addmm", self, a, b, beta=0, tolerance=loose)
        check("addmv", make(m, dtype=dtype), a, make(k, dtype=dtype), tolerance=loose)
        check("mv", a, make(k, dtype=dtype), tolerance=loose)
        check("mv", b.t(), make(2 * k, dtype=dtype)[::2], tolerance=loose)
        check("dot", make(k, dtype=dtype), make(k, dtype=dtype, seed=3), tolerance=loose)
        stack_a, stack_b = make(2, m, k, dtype=dtype), make(2, k, n, dtype=dtype)
        check("bmm", stack_a, stack_b, tolerance=loose)
        check("bmm", stack_a.transpose(1, 2).contiguous().transpose(1, 2), stack_b, tolerance=loose)
        added = make(2, m, n, dtype=dtype)
        check("baddbmm", added, stack_a, stack_b, beta=1, alpha=2, tolerance=loose)
        check("addbmm", make(m, n, dtype=dtype), stack_a, stack_b, tolerance=loose)


@pytest.mark.parametrize("dtype", WHOLE + REAL, ids=str)
@pytest.mark.parametrize("gelu", [False, True], ids=["relu", "gelu"])
def test_addmm_activation(dtype, gelu):
    if gelu and not dtype.is_floating_point:
        with pytest.raises(RuntimeError, match="expected floating-point matrices for gelu"):
            a = lamella.ones(2, 2, dtype=getattr(lamella, str(dtype).split(".")[1]))
            lamella._addmm_activation(a, a, a, use_gelu=True)
        return
    name, loose = "_addmm_activation", LOOSE.get(dtype)
    for m, k, n in ((3, 4, 5), (40, 30, 50), (0, 3, 2), (3, 0, 2)):
        a, b = make(m, k, dtype=dtype, seed=1), make(k, n, dtype=dtype, seed=2)
        for self in (make(m, n, dtype=dtype), make(n, dtype=dtype), make(m, 1, dtype=dtype)):
            check(name, self, a, b, use_gelu=gelu, tolerance=loose)
            check(name, self, a, b, beta=2, alpha=3, use_gelu=gelu, tolerance=loose)
        for out in (torch.zeros(m, n, dtype=dtype), torch.zeros(n, m, dtype=dtype).t()):
            check(
                f"{name}.out", make(n, dtype=dtype), a, b, use_gelu=gelu, out=out, tolerance=loose
            )


def test_addmm_activation_in_layers():
    self, a, b = lamella.randn(5), lamella.randn(2, 4, 3), lamella.randn(3, 5)
    for gelu in (False, True):

        def product(x, gelu=gelu):
            return lamella._addmm_activation(self, x, b, use_gelu=gelu)

        expected = lamella.stack([product(x) for x in a])
        assert lamella.allclose(lamella.vmap(product)(a), expected, atol=1e-6)
    meta = lamella._addmm_activation(*(x.to("meta") for x in (self, a[0], b)))
    assert meta.is_meta and meta.shape == (4, 5)
    with pytest.raises(RuntimeError, match="_addmm_activation"):  # as PyTorch's, no derivative
        lamella._addmm_activation(self.requires_grad_(), a[0], b).sum().backward()
    ones = make(2, 2, dtype=torch.complex64)
    assert error_of("_addmm_activation", ones, ones, ones) == (
        "_addmm_activation: expected real matrices for relu, got complex64"
    )


def test_vdot_conjugates():
    check("vdot", make(9, dtype=torch.complex64), make(9, dtype=torch.complex64, seed=1))


def test_out_variants_take_any_strides():
    a, b = make(40, 30), make(30, 50)
    for out in (torch.zeros(40, 50), torch.zeros(50, 40).t(), torch.zeros(40, 100)[:, ::2]):
        check("mm.out", a, b, out=out, tolerance=LOOSE[torch.float32])
        check("addmm.out", make(50), a, b, out=out, tolerance=LOOSE[torch.float32])


RANKS = [(3,), (4, 3), (2, 4, 3), (5, 2, 4, 3), (1, 2, 4, 3)]
OTHERS = [(3,), (3, 6), (2, 3, 6), (5, 2, 3, 6), (5, 1, 3, 6)]


@pytest.mark.parametrize("a", RANKS, ids=str)
@pytest.mark.parametrize("b", OTHERS, ids=str)
def test_matmul_broadcasts(a, b):
    check("matmul", make(*a), make(*b, seed=1), strides=False)


def test_large_products():
    loose = (1e-4, 1e-2)
    a, b = make(200, 300), make(300, 150)
    check("mm", a, b, tolerance=loose)
    check("bmm", make(12, 60, 70), make(12, 70, 50), tolerance=loose)
    check("bmm", make(12, 60, 70).transpose(1, 2), make(12, 60, 50), tolerance=loose)
    check("bmm", make(1, 60, 70).expand(4, 60, 70), make(4, 70, 50), tolerance=loose)


@pytest.mark.parametrize("shape", [(4,), (5, 4), (2, 5, 4), (3, 2, 5, 4)], ids=str)
@pytest.mark.parametrize("bias", [None, (6,)], ids=str)
def test_linear(shape, bias):
    check("linear", make(*shape), make(6, 4), None if bias is None else make(*bias))


def test_products_of_vectors():
    check("outer", make(3), make(4))
    check("inner", make(2, 3), make(4, 3))
    check("inner", make(), make(4, 3))
    check("tensordot", make(3, 4, 5), make(4, 3, 2), [1, 0], [0, 1])
    check("kron", make(2, 3), make(4))


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("i,i->", (3,), (3,)),
    ("i,j->ij", (3,), (4,)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij->ji", (2, 3)),
    ("ijk->k", (2, 3, 4)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("b...i,i->b...", (2, 3, 4), (4,)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("ij,ij->i", (2, 3), (2, 3)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case):
    tensors = [make(*shape, seed=i) for i, shape in enumerate(case[1:])]
    check("einsum", case[0], tensors, strides=False, tolerance=(1e-4, 1e-4))


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 4), (5, 1, 7), (20, 30, 40)])
def test_complex32(sizes):
    m, k, n = sizes
    rng = np.random.default_rng(m)

    def whole(*shape):
        return rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)

    def half(array):
        return lamella.tensor(array).to(lamella.complex32)

    def equal(found, expected):
        assert found.dtype is lamella.complex32
        assert found.to(lamella.complex128).tolist() == np.asarray(expected).tolist()

    a, b, c = whole(m, k), whole(k, n), whole(m, n)
    stack = whole(2, m, k)
    equal(half(a) @ half(b), a @ b)
    equal(lamella.mm(half(a.T.copy()).t(), half(b)), a @ b)
    equal(lamella.addmm(half(c), half(a), half(b), beta=2, alpha=1j), 2 * c + 1j * (a @ b))
    equal(lamella.bmm(half(stack), half(np.stack([b, b]))), stack @ b)
    equal(lamella.mv(half(a), half(b[:, 0])), a @ b[:, 0])
    equal(lamella.dot(half(a[0]), half(b[:, 0])), a[0] @ b[:, 0])
    equal(lamella.vdot(half(a[0]), half(b[:, 0])), a[0].conj() @ b[:, 0])
    equal(lamella.matrix_power(lamella.ones(4, 4).to(lamella.complex32), 3), np.full((4, 4), 16))


@pytest.mark.parametrize("name", ["mm", "matmul", "bmm", "dot", "vdot", "mv"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.float8_e4m3fn, torch.float8_e5m2])
def test_refused_dtypes_are_named_by_the_operator(name, dtype):
    shapes = {"bmm": ((1, 2, 2),) * 2, "dot": ((2,),) * 2, "vdot": ((2,),) * 2}
    shapes["mv"] = ((2, 2), (2,))
    operands = [torch.ones(shape).to(dtype) for shape in shapes.get(name, ((2, 2),) * 2)]
    assert error_of(name, *operands).startswith(f"{name}: ")


ERRORS = [
    (("mm", make(2, 4), make(3, 5)), "mm: expected 'mat2' to be of shape [4, *], got [3, 5]"),
    (("mm", make(2), make(2, 3)), "mm: expected 'self' to have 2 dimensions, got [2]"),
    (
        ("mm", make(2, 4), make(4, 5, dtype=torch.float64)),
        "mm: expected 'mat2' to be float32, got float64",
    ),
    (
        ("bmm", make(2, 3, 4), make(3, 4, 5)),
        "bmm: expected 'mat2' to be of shape [2, 4, *], got [3, 4, 5]",
    ),
    (
        ("addmm", make(3), make(2, 4), make(4, 5)),
        "addmm: expected 'self' to be broadcastable to [2, 5], got [3]",
    ),
    (("dot", make(3), make(4)), "dot: expected 'tensor' to be of shape [3], got [4]"),
    (
        ("matmul", make(2, 3, 4), make(2, 5, 6)),
        "matmul: expected 'other' to be of shape [..., 4, *], got [2, 5, 6]",
    ),
    (
        ("linear", make(2, 3), make(5, 4)),
        "linear: expected 'input' to be of shape [..., 4], got [2, 3]",
    ),
]


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors(index):
    call, text = ERRORS[index]
    assert error_of(*call) == text


# ---- out= ----

WRITTEN = {
    "matmul": lambda x, y, out: lamella.matmul(x, y, out=out),
    "inner": lambda x, y, out: lamella.inner(x, y, out=out),
    "diag": lambda x, y, out: lamella.diag(x, out=out),
    "mm": lambda x, y, out: lamella.mm(x, y, out=out),
    "outer": lambda x, y, out: lamella.outer(x[0], y[0], out=out),
    "take_along_dim": lambda x, y, out: lamella.take_along_dim(x, INDEX, 0, out=out),
}
INDEX = lamella.zeros(2, 2, dtype=lamella.int64)


@pytest.mark.parametrize("name", WRITTEN)
def test_out_with_gradients_is_refused(name):
    """Also by operators that are made of others: what these record must not be lost."""
    function = WRITTEN[name]
    plain = lamella.ones(2, 2)
    function(plain, plain, lamella.empty(0))
    wanted = lamella.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError) as error:
        function(wanted, plain, lamella.empty(0))
    assert str(error.value) == (
        f"{name}: expected no argument to require gradients where the result is written to 'out', "
        "got 'self' that does; call it without 'out', or under no_grad()"
    )
    with lamella.no_grad():
        function(wanted, plain, lamella.empty(0))
    out = lamella.empty(0).requires_grad_()
    with pytest.raises(RuntimeError, match="expected no argument to require gradients"):
        function(plain, plain, out)
    with lamella.autograd.forward_ad.dual_level():
        dual = lamella.autograd.forward_ad.make_dual(plain, plain)
        with pytest.raises(RuntimeError, match="expected no argument to require gradients"):
            function(dual, plain, lamella.empty(0))


def test_einsum_with_numbers_for_letters():
    a, b = make(2, 3, 4), make(2, 4, 5)
    for call in (
        lambda m, a, b: m.einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3]),
        lambda m, a, b: m.einsum(a, [..., 1, 2], b, [..., 2, 51]),
        lambda m, a, b: m.einsum(a, [2, 1, 0]),
    ):
        compare(call(lamella, to_lamella(a), to_lamella(b)), call(torch, a, b), strides=False)
    with pytest.raises(ValueError) as error:
        lamella.einsum(lamella.ones(2), [52])
    assert str(error.value) == "einsum: expected numbers of dimensions in [0, 52), got 52"


def test_pinverse_of_a_matrix_without_full_rank():
    compare(lamella.pinverse(lamella.ones(2, 3)), torch.full((3, 2), 1 / 6), strides=False)
