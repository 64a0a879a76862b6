"""lamella.vmap against torch.func.vmap: arguments, results, indexing, writes, errors."""

import threading
from collections import namedtuple

import numpy as np
import pytest
from vmap_testing import arrays, close, same

import lamella
from lamella import vmap

torch = pytest.importorskip("torch")

Pair = namedtuple("Pair", ["first", "second"])
X, W, B = arrays((3, 4, 5), (4, 5), (5, 3))
INDEX = np.array([[0, 2], [1, 1], [3, 0]])

# ---- Arguments and results

CALLS = {
    "one": lambda m, x, w, b: m.vmap(lambda a: a * 2)(x),
    "shared": lambda m, x, w, b: m.vmap(lambda a, c: a * c, in_dims=(0, None))(x, w),
    "another dimension": lambda m, x, w, b: m.vmap(lambda a: a + w[:3, :4], in_dims=2)(x),
    "negative dimension": lambda m, x, w, b: m.vmap(lambda a: a.sin(), in_dims=-1)(x),
    "mixed dimensions": lambda m, x, w, b: m.vmap(lambda a, c: a + c, in_dims=(0, 1))(x, b),
    "nest of inputs": lambda m, x, w, b: m.vmap(
        lambda d, c: d["a"] * d["b"][0] + c, in_dims=({"a": 0, "b": None}, 1)
    )({"a": x, "b": [w]}, b),
    "named tuple": lambda m, x, w, b: m.vmap(lambda p: p.first * p.second)(Pair(x, x + 1)),
    "not a tensor": lambda m, x, w, b: m.vmap(lambda a, k: a * k, in_dims=(0, None))(x, 3),
    "keyword": lambda m, x, w, b: m.vmap(lambda a, c: a * c)(x, c=w),
    "out_dims": lambda m, x, w, b: m.vmap(lambda a: a * 2, out_dims=2)(x),
    "negative out_dims": lambda m, x, w, b: m.vmap(lambda a: a * 2, out_dims=-1)(x),
    "tuple out_dims": lambda m, x, w, b: m.vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(x),
    "one in a tuple": lambda m, x, w, b: m.vmap(lambda a: a * 2, out_dims=(1,))(x),
    "nest of outputs": lambda m, x, w, b: m.vmap(lambda a: {"u": a, "v": [a[0], a.sum()]})(x),
    "the same for all": lambda m, x, w, b: m.vmap(lambda a: (w, a))(x),
    "None in out_dims": lambda m, x, w, b: m.vmap(lambda a: (w, a), out_dims=(None, 1))(x),
    "nested": lambda m, x, w, b: m.vmap(
        m.vmap(lambda a, c: a * c.sum(), in_dims=(1, None)), in_dims=(0, None), out_dims=1
    )(x, w),
    "nested, inner alone": lambda m, x, w, b: m.vmap(lambda a: m.vmap(lambda c: c + 1)(w) * a)(x),
    "chunks": lambda m, x, w, b: m.vmap(lambda a: (a * 2, a.sum()), chunk_size=2)(x),
    "chunks elsewhere": lambda m, x, w, b: m.vmap(
        lambda a: a * 2, in_dims=1, out_dims=1, chunk_size=3
    )(x),
    "no examples": lambda m, x, w, b: m.vmap(lambda a: (a * 2).sum(0))(x[:0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    same(CALLS[name], X, W, B)


# ---- Bodies

BODIES = {
    "x[0]": lambda m, a, w, i: a[0],
    "x[:, 1]": lambda m, a, w, i: a[:, 1],
    "x[..., None, 1:3]": lambda m, a, w, i: a[..., None, 1:3],
    "x[i]": lambda m, a, w, i: a[i],
    "shared[i]": lambda m, a, w, i: w[i],
    "x[:, i]": lambda m, a, w, i: a[:, i],
    "rows": lambda m, a, w, i: sum(row * k for k, row in enumerate(a)),
    "T": lambda m, a, w, i: a.T @ a,
    "matmul": lambda m, a, w, i: a @ w.T,
    "unbind": lambda m, a, w, i: a.unbind(1),
    "split": lambda m, a, w, i: a.split(2),
    "cat": lambda m, a, w, i: m.cat([a, w], 1),
    "stack": lambda m, a, w, i: m.stack([w, a, a], 1),
    "where": lambda m, a, w, i: m.where(a > 0.5, a, w),
    "einsum": lambda m, a, w, i: m.einsum("ij,ij->i", a, w),
    "softmax": lambda m, a, w, i: m.nn.functional.softmax(a, -1),
    "layer_norm": lambda m, a, w, i: m.nn.functional.layer_norm(a, (5,)),
    "linear": lambda m, a, w, i: m.nn.functional.linear(a, w),
    "conv1d": lambda m, a, w, i: m.nn.functional.conv1d(a[None], w[:2][None].repeat(3, 2, 1)),
    "cross_entropy": lambda m, a, w, i: m.nn.functional.cross_entropy(a, m.tensor([0, 1, 2, 3])),
    "new_zeros": lambda m, a, w, i: a.new_zeros(2).add_(a.sum()),
    "zeros_like": lambda m, a, w, i: m.zeros_like(a).add_(a),
    "numbers": lambda m, a, w, i: a.sum() * 2.5 + 1,
    "reductions": lambda m, a, w, i: (
        a.var(),
        a.std(1),
        a.mean(),
        a.norm(),
        a.max(0)[0],
        a.max(),
        a.argmax(),
        a.any(),
        a.prod(0),
        a.logsumexp(0),
        a.sum(keepdim=True, dim=(0, 1)),
        a.amax(),
        a.sum((0, -1)),
    ),
    "of scalars": lambda m, a, w, i: (
        a[0, 0].sum(),
        a[0, 0].amax(keepdim=True, dim=0),
        a[0, 0].argmax(),
        m.softmax(a[0, 0], 0),
        a[0, 0].cumsum(0),
        a[0, 0].view(m.int64),
    ),
    "view in another dtype": lambda m, a, w, i: a.clone().view(m.int16),
    "batch_norm with shared statistics": lambda m, a, w, i: (
        m.nn.functional.batch_norm(a, w[0], w[1].exp()),
        m.ops.aten._native_batch_norm_legit(a, None, None, w[0], w[1].exp(), False, 0.1, 1e-5)[0],
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name):
    def program(m, x, w, i):
        return m.vmap(lambda a, k: BODIES[name](m, a, w, k))(x, i)

    same(program, X, W, INDEX)


def test_an_example_s_number_is_an_index():
    table = lamella.arange(6.0).view(3, 2)
    at = lamella.tensor([2, 0])
    assert vmap(lambda i: table[i])(at).tolist() == [[4, 5], [0, 1]]
    assert vmap(lambda i: table[:, i // 2])(at).tolist() == [[1, 3, 5], [0, 2, 4]]
    assert vmap(lambda i: table[i, i // 2])(at).tolist() == [5, 0]
    with pytest.raises(IndexError) as error:
        vmap(lambda i: table[i])(at + 3)
    assert str(error.value) == "index: expected 'index' in [-3, 2], got 5"
    assert table.to("meta")[lamella.tensor(0, device="meta")].shape == (2,)


def test_writes():
    def program(m, x, w):
        def write(a):
            a = a.clone()
            a[0] = 1
            a[:, 1] = w[:, 0]
            a[1:3] *= 2
            a.view(-1)[::3] += w.sum()
            a += w
            return a

        return m.vmap(write)(x)

    same(program, X, W)


def test_writes_reach_the_argument():
    x = lamella.zeros(3, 2)
    vmap(lambda a, b: a.add_(b))(x, lamella.ones(3, 2))
    vmap(lambda a: a[0].mul_(5))(x)
    assert x.tolist() == [[5, 1]] * 3


def test_out_argument():
    out = lamella.zeros(3, 4)
    x = lamella.rand(3, 4, dtype=lamella.float64)
    out = out.double()
    vmap(lambda a, o: lamella.sin(a, out=o))(x, out)
    close(out, torch.from_numpy(x.numpy()).sin())
    with pytest.raises(RuntimeError) as error:
        vmap(lambda a: lamella.sin(a, out=lamella.zeros(4)))(x)
    assert str(error.value) == (
        "sin: expected 'out', which is written, to be batched under vmap, because 'self' is: one "
        "tensor cannot hold a result for each of 3 examples; use the operator that returns a new "
        "tensor, or let vmap batch 'out' as well"
    )


@pytest.mark.parametrize("dims", [(), (2,)])
@pytest.mark.parametrize("plain", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize("batched", ["float32", "float64", "int32", "int64", "bool", "complex64"])
def test_promotion_asks_the_examples(batched, plain, dims):
    """Under vmap, examples without dimensions promote weakly, as 0-d tensors do."""

    def program(m, x, y):
        return (
            m.vmap(lambda a: a + y)(x),
            m.vmap(lambda a: a + y.reshape(-1)[0])(x),
            m.vmap(lambda a: a * 2.5)(x),
            m.vmap(lambda a: m.where(a > a, a, y))(x) if batched[0] != "c" else y,
        )

    x = np.ones((3,), batched)
    ours = program(lamella, lamella.from_numpy(x), lamella.from_numpy(np.ones(dims, plain)))
    one = lamella.from_numpy(np.ones((), batched))
    y = lamella.from_numpy(np.ones(dims, plain))
    wanted = [one + y, one + y.reshape(-1)[0], one * 2.5]
    for found, example in zip(ours, wanted):
        assert found.dtype == example.dtype and found.shape[1:] == example.shape
    if batched[0] != "c":
        assert ours[3].dtype == lamella.where(one > 1, one, y).dtype


# ---- What a batched tensor shows


def test_a_batched_tensor_shows_one_example():
    seen = []

    def look(a):
        seen.append((a.shape, a.dim(), a.numel(), len(a), a.stride(), a.dtype, a.is_contiguous()))
        seen.append(repr(a))
        return a

    vmap(look)(lamella.ones(2, 3))
    assert seen[0] == ((3,), 1, 3, 3, (1,), lamella.float32, True)
    lines = seen[1].splitlines()
    assert lines[0].startswith("BatchedTensor(level=") and lines[0].endswith(
        ", batch_size=2, value="
    )
    assert lines[1:] == ["    tensor([[1., 1., 1.],", "            [1., 1., 1.]])", ")"]


def test_aliases_and_copies():
    import copy

    def look(a):
        assert a.data.shape == lamella.nn.Parameter(a).shape == copy.deepcopy(a).shape == (2,)
        a.data.mul_(2)
        return a + copy.deepcopy(a)

    x = lamella.ones(3, 2)
    assert vmap(look)(x).tolist() == [[4, 4]] * 3
    with pytest.raises(RuntimeError) as error:
        vmap(lambda a: setattr(lamella.ones(2), "data", a))(x)
    assert str(error.value) == (
        "data: expected tensors that are not batched; write it with copy_() under vmap"
    )


# ---- Refusals


def refusal(function, *args, **kwargs):
    with pytest.raises(Exception) as error:
        vmap(function, **kwargs)(*args)
    return type(error.value), str(error.value)


def use_where(name):
    return (
        f"{name}: expected a tensor that is not batched, because under vmap each of 3 examples has "
        "a value of its own and Python code runs once for all; use lamella.where in the place of "
        "a branch"
    )


def use_mask(name):
    return (
        f"{name}: expected a tensor that is not batched, because under vmap the shape of the "
        "result would be another for each of 3 examples; use lamella.where or a mask, which keep "
        "the shape"
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a if a.sum() > 0 else -a,
        lambda a: a * int(a.sum()),
        lambda a: a * float(a.sum()),
        lambda a: a * a.sum().item(),
    ],
)
def test_values_do_not_steer_python(function):
    kind, text = refusal(function, lamella.ones(3, 2))
    assert kind is RuntimeError
    assert text == use_where("item")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("buffer", lambda a: np.asarray(a)),
        ("buffer", lambda a: memoryview(a)),
        ("tolist", lambda a: a.tolist()),
        ("data_ptr", lambda a: a.data_ptr()),
        ("untyped_storage", lambda a: a.untyped_storage()),
        ("__dlpack__", lambda a: a.__dlpack__()),
    ],
)
def test_a_batched_tensor_has_no_memory(name, function):
    assert refusal(function, lamella.ones(3, 2)) == (
        RuntimeError,
        f"{name}: expected a tensor with memory of its own, got one of vmap, where each of 3 "
        "examples has values of its own and Python code runs once for all",
    )


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("nonzero", lambda a: a.nonzero()),
        ("masked_select", lambda a: lamella.masked_select(a, a > 0)),
    ],
)
def test_shapes_do_not_depend_on_values(name, function):
    assert refusal(function, lamella.ones(3, 2)) == (RuntimeError, use_mask(name))


def test_an_unbatched_tensor_cannot_take_a_batched_one():
    assert refusal(lambda a: lamella.zeros(2).add_(a), lamella.ones(3, 2)) == (
        RuntimeError,
        "add_: expected 'self', which is written, to be batched under vmap, because 'other' is: "
        "one tensor cannot hold a result for each of 3 examples; use the operator that returns a "
        "new tensor, or let vmap batch 'self' as well",
    )


ONES = lamella.ones(3, 2)
ZEROS = lamella.zeros(2)


def twice(*args):
    return args[0] * 2


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: vmap(twice, in_dims=[0])(ONES),
            ValueError,
            "vmap: expected 'in_dims' to be an int or a tuple, got list for twice",
        ),
        (
            lambda: vmap(twice)(),
            ValueError,
            "vmap: expected at least one positional argument for twice",
        ),
        (
            lambda: vmap(twice, in_dims=(0, 0))(ONES),
            ValueError,
            "vmap: expected 'in_dims' to have the structure of the arguments of twice, got (0, 0) "
            "for 1 arguments",
        ),
        (
            lambda: vmap(twice, in_dims=("0",))(ONES),
            ValueError,
            "vmap: expected 'in_dims' to hold ints and None, got str for input 0",
        ),
        (
            lambda: vmap(twice, in_dims=(0, 0))(ONES, 3),
            ValueError,
            "vmap: expected input 1, whose entry of 'in_dims' is 0, to be a Tensor, got int; use "
            "None for arguments that are not tensors",
        ),
        (
            lambda: vmap(twice, in_dims=2)(ONES),
            ValueError,
            "vmap: expected an entry of 'in_dims' from -2 to 1 for input 0 of shape [3, 2], got 2",
        ),
        (
            lambda: vmap(twice)(ONES, lamella.ones(4)),
            ValueError,
            "vmap: expected inputs to have the same number of examples, got 3 and, for input 1 of "
            "shape [4] in dimension 0, 4",
        ),
        (
            lambda: vmap(twice, in_dims=None)(ONES),
            ValueError,
            "vmap: expected 'in_dims' to be an int or a tuple, got NoneType for twice",
        ),
        (
            lambda: vmap(twice, in_dims=(None,))(ONES),
            ValueError,
            "vmap: expected 'in_dims' to name a dimension of at least one input, got (None,)",
        ),
        (
            lambda: vmap(lambda a: (a, a), out_dims=(0, 0, 0))(ONES),
            ValueError,
            "vmap: expected 'out_dims' to have the structure of what <lambda> returns, "
            "TreeSpec(tuple, None, [*, *]), got (0, 0, 0)",
        ),
        (
            lambda: vmap(twice, out_dims="0")(ONES),
            ValueError,
            "vmap: expected 'out_dims' to hold ints and None, got str",
        ),
        (
            lambda: vmap(twice, out_dims=2)(ONES),
            ValueError,
            "vmap: expected 'out_dims' from -2 to 1 for an output of shape [2], got 2",
        ),
        (
            lambda: vmap(twice, out_dims=None)(ONES),
            ValueError,
            "vmap: expected twice to return the same tensor for every example where the entry of "
            "'out_dims' is None, got a batched one",
        ),
        (
            lambda: vmap(lambda a: 3)(ONES),
            ValueError,
            "vmap: expected <lambda> to return tensors or nests of tensors, got int",
        ),
        (
            lambda: vmap(twice, randomness="some"),
            RuntimeError,
            'vmap: expected \'randomness\' to be "error", "different" or "same", got \'some\'',
        ),
        (
            lambda: vmap(twice, chunk_size=0),
            ValueError,
            "vmap: expected 'chunk_size' to be None or above 0, got 0",
        ),
        (
            lambda: vmap(lambda a: lamella.nn.functional.batch_norm(a, ZEROS, ZEROS))(ONES),
            RuntimeError,
            "batch_norm: expected 'input' to have at least 2 dimensions, got [2]",
        ),
        (
            lambda: vmap(lambda a: a.view(lamella.int16))(ZEROS),
            RuntimeError,
            "view: expected 'self' to have at least 1 dimension to see float32 as int16, got a "
            "tensor with 0",
        ),
        (
            lambda: vmap(lambda a: lamella.nn.functional.avg_pool2d(a, 1))(lamella.ones(2, 3, 4)),
            RuntimeError,
            "avg_pool2d: expected 'self' to have 3 or 4 dimensions, got 2",
        ),
    ],
)
def test_errors(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == text


# ---- Levels

ENDED = (
    "sin: expected tensors of a vmap that is running on this thread, got a batched tensor of one "
    "that has ended (or runs on another thread); return it from the function that vmap was given "
    "instead of keeping it"
)


def test_a_tensor_that_outlives_its_vmap():
    kept = []
    vmap(lambda a: [kept.append(a), a][1])(ONES)
    with pytest.raises(RuntimeError) as error:
        kept[0].sin()
    assert str(error.value) == ENDED
    with pytest.raises(RuntimeError) as error:
        vmap(lambda a: a + kept[0].sin())(ONES)
    assert str(error.value) == ENDED


def test_an_exception_leaves_no_level():
    def fail(a):
        vmap(lambda b: [b, 1 / 0])(ONES)

    for nested in (fail, lambda a: vmap(fail)(ONES)):
        with pytest.raises(ZeroDivisionError):
            vmap(nested)(ONES)
        with pytest.raises(ZeroDivisionError):
            vmap(nested, in_dims=(0,))(ONES)
        assert lamella._C._vmap_levels() == ()
        assert vmap(twice)(ONES).tolist() == [[2, 2]] * 3
    lamella.rand(2)  # no vmap refuses it


def test_levels_belong_to_a_thread():
    found = []

    def other(a):
        try:
            found.append(lamella._C._vmap_levels())
            a.sin()
        except RuntimeError as error:
            found.append(str(error))

    def within(a):
        thread = threading.Thread(target=other, args=(a,))
        thread.start()
        thread.join()
        return a

    vmap(within)(ONES)
    assert found == [(), ENDED]


def test_names_are_kept():
    def named(a):
        """Says something."""
        return a

    assert vmap(named).__name__ == "named" and vmap(named).__doc__ == "Says something."
    assert lamella.func.vmap is vmap


def test_rows_do_not_pass_for_matrices():
    """In front of an example with too few dimensions, the batch would be taken for one of them."""
    rows = lamella.eye(3)
    for name in ("tril", "det", "linalg_qr", "linalg_cholesky_ex", "linalg_svdvals", "linalg_pinv"):
        with pytest.raises(RuntimeError, match="to be a matrix or a stack of them, got \\[3\\]"):
            lamella.vmap(getattr(lamella.ops.aten, name))(rows)
    with pytest.raises(RuntimeError) as caught:
        lamella.vmap(lamella.linalg.inv)(rows)
    assert str(caught.value) == (
        "linalg_inv: expected 'A' to be a matrix or a stack of them, got [3]"
    )
    with pytest.raises(RuntimeError) as caught:
        lamella.vmap(lambda x: lamella.native_layer_norm(x, [3], None, None, 1e-5))(rows[0])
    assert str(caught.value) == (
        "native_layer_norm: expected 'input' to end with the shape [3], got []"
    )
    with pytest.raises(RuntimeError) as caught:
        lamella.vmap(lamella.view_as_complex)(lamella.ones(2))
    assert str(caught.value) == "view_as_complex: expected the last size of 'self' to be 2, got []"
    with pytest.raises(RuntimeError) as caught:
        lamella.vmap(lambda x: lamella.multinomial(x, 1), randomness="different")(rows[0])
    assert str(caught.value) == "multinomial: expected 'self' to have 1 or 2 dimensions, got []"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda w: lamella.native_layer_norm(lamella.ones(4, 3), [3], w, None, 1e-5),
         "layer_norm: expected 'weight' to be of shape [3], got [1]"),
        (lambda w: lamella.native_layer_norm(lamella.ones(4, 3), [3], None, w, 1e-5),
         "layer_norm: expected 'bias' to be of shape [3], got [1]"),
        (lambda w: lamella.ops.aten._fused_rms_norm(lamella.ones(4, 3), [3], w, 1e-5),
         "rms_norm: expected 'weight' to be of shape [3], got [1]"),
        (lambda w: lamella.native_group_norm(lamella.ones(2, 4, 3), w, None, 2, 4, 3, 2, 1e-5),
         "group_norm: expected 'weight' to be of shape [4], got [1]"),
        (lambda w: lamella.nn.functional.batch_norm(lamella.ones(2, 4), None, None, w, None, True),
         "batch_norm: expected 'weight' to be of shape [4], got [1]"),
    ],
)  # fmt: skip
def test_parameters_of_norms_do_not_broadcast(function, text):
    with pytest.raises(RuntimeError) as caught:
        vmap(function)(lamella.ones(2, 1))
    assert str(caught.value) == text


@pytest.mark.parametrize("shape", [(), (1,), (2,), (5, 2)])
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_tolerances_of_pinv_may_be_wider_than_the_stack(shape, dims):
    values = [
        np.arange(12.0).reshape(4, 3, 1) + 1,
        np.linspace(0.1, 2, 40)[: 4 * np.prod(shape, dtype=int)],
    ]
    values[1] = values[1].reshape(4, *shape)
    values = [v if dim == 0 else v[0] for v, dim in zip(values, dims)]

    def batched(library):
        pinv = library.func.vmap(lambda a, r: library.linalg.pinv(a, rtol=r), dims)
        return pinv(*(library.tensor(v) for v in values))

    found, expected = batched(lamella), batched(torch)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


BIASES = [(1, 2), (2,), (2, 2), (1,), (2, 1), ()]


@pytest.mark.parametrize(
    "dims, bias",
    [(dims, bias) for dims in ((0, None, None), (0, 0, None), (1, 1, None)) for bias in BIASES]
    + [((0, 0, 0), bias) for bias in BIASES if bias[:1] == (2,)],
)
def test_the_bias_of_linear_may_be_wider_than_the_product(dims, bias):
    values = [
        np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
        for sizes in ((2, 4), (2, 4), bias)
    ]
    given = [lamella.tensor(value) for value in values]
    wanted = torch.func.vmap(torch.nn.functional.linear, in_dims=dims)(
        *(torch.tensor(value) for value in values)
    )
    result = vmap(lamella.nn.functional.linear, in_dims=dims)(*given)
    assert result.shape == wanted.shape
    np.testing.assert_array_equal(result.numpy(), wanted.numpy())


def test_a_factor_that_was_not_asked_for_has_the_batch_as_well():
    stack = lamella.randn(2, 4, 3)
    q, r = vmap(lambda a: lamella.linalg.qr(a, mode="r"))(stack)
    assert q.shape == (2, 0)
    wanted = np.stack([np.linalg.qr(a.numpy(), mode="r") for a in stack])
    np.testing.assert_allclose(np.abs(r.numpy()), np.abs(wanted), rtol=1e-5, atol=1e-6)
