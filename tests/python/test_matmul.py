"""Matrix products against PyTorch: every rank, stride and dtype, small and large."""

import numpy as np
import pytest
from operator_cases import (
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

# Sums of many products differ in their order: relative to the size of the terms.
LOOSE = {
    torch.float16: (1e-2, 0.3),
    torch.bfloat16: (2e-2, 1.0),
    torch.float32: (1e-4, 1e-3),
    torch.complex64: (1e-4, 1e-3),
}


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


def test_the_cpu_with_an_index():
    x = lamella.ones(3, 3, device="cpu:0")
    assert (x @ x).tolist() == [[3.0] * 3] * 3 and x[0].dot(x[0]).item() == 3
    assert lamella.nn.functional.conv2d(x[None, None], x[None, None]).item() == 9
    assert lamella.linalg.inv(2 * lamella.eye(3, device="cpu:0")).diagonal().tolist() == [0.5] * 3
