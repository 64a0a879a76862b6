"""Outputs that share memory with arguments: refused where PyTorch refuses, correct elsewhere."""

import pytest
from operator_cases import lamella


def numbers(*shape, dtype=None):
    size = 1
    for n in shape:
        size *= n
    return lamella.arange(size, dtype=dtype or lamella.float32).reshape(shape)


def index(*values):
    return lamella.tensor(values)


def clone_one(op, written, read):
    return f"{op}: expected '{written}' to share no memory with '{read}'; clone one of them first"


X = "x = numbers(6); "
REFUSED = [
    (X + "lamella.gather(x, 0, index(5, 4, 3), out=x)", clone_one("gather", "out", "self")),
    (X + "lamella.gather(x, 0, index(5, 4, 3), out=x[1:4])", clone_one("gather", "out", "self")),
    (X + "lamella.take(x, index(5, 4), out=x)", clone_one("take", "out", "self")),
    ("i = index(1, 0); lamella.take(i, i, out=i)", clone_one("take", "out", "self")),
    (
        X + "lamella.take_along_dim(x, index(5, 4), 0, out=x)",
        clone_one("take_along_dim", "out", "self"),
    ),
    (
        X + "lamella.index_select(x, 0, index(5, 4), out=x)",
        clone_one("index_select", "out", "self"),
    ),
    (X + "lamella.masked_select(x, x > 1, out=x)", clone_one("masked_select", "out", "self")),
    (X + "lamella.cat([x[:3], x[3:]], out=x)", clone_one("cat", "out", "tensors")),
    (X + "x.put_(index(1, 0, 2, 3, 4, 5), x)", clone_one("put_", "self", "source")),
    (X + "x.scatter_(0, index(1, 2, 3), x[:3])", clone_one("scatter_", "self", "src")),
    (X + "x.scatter_add_(0, index(1, 2, 3), x[:3])", clone_one("scatter_add_", "self", "src")),
    (
        X + "x.scatter_reduce_(0, index(1, 2), x[:2], 'sum')",
        clone_one("scatter_reduce_", "self", "src"),
    ),
    ("x = index(1, 2, 0); x.scatter_(0, x, 5)", clone_one("scatter_", "self", "index")),
    (X + "x.index_add_(0, index(1, 2), x[:2])", clone_one("index_add_", "self", "source")),
    (X + "x.index_copy_(0, index(1, 2), x[:2])", clone_one("index_copy_", "self", "source")),
    ("x = index(1, 2, 0); x.index_fill_(0, x, 5)", clone_one("index_fill_", "self", "index")),
    (X + "x[index(1, 0)] = x[:2]", clone_one("index_put_", "self", "values")),
    ("x = index(1, 0); x[x] = index(4, 5)", clone_one("index_put_", "self", "indices")),
    (
        "x = numbers(3) > 0; x[1:].masked_fill_(x[:2], False)",
        "masked_fill_: expected 'self' not to share part of its memory with 'mask'; clone one of "
        "them first",
    ),
    (
        "x = numbers(1).expand(2, 2); lamella.mm(numbers(2, 2), numbers(2, 2), out=x)",
        "mm: expected 'out' to have memory of its own for each element it writes, got one expanded "
        "to [2, 2]; clone it first",
    ),
    (
        "numbers(1).expand(3).cumsum_(0)",
        "cumsum_: expected 'self' to have memory of its own for each element it writes, got one "
        "expanded to [3]; clone it first",
    ),
    (
        "v = index(0, 0); lamella.topk(index(1, 2, 3), 2, out=(v, v))",
        clone_one("topk", "indices", "values"),
    ),
    (
        "v = index(0, 0); lamella.sort(index(1, 2), out=(v, v))",
        clone_one("sort", "indices", "values"),
    ),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    program, text = REFUSED[case]
    with pytest.raises(RuntimeError) as caught:
        exec(program)
    assert str(caught.value) == text


E = "x.expand(2, 3)"
# One value is written, so that shared elements have one result.
WARNED = {
    f"{E}.masked_fill_(index(1, 0, 1) > 0, 5.0)": [5, 2, 5],
    f"{E}.masked_fill_(index(1, 0, 1) > 0, lamella.tensor(5.0))": [5, 2, 5],
    f"{E}[:, :2].masked_fill_(index(0, 1) > 0, 5.0)": [1, 5, 3],
    f"{E}.index_put_((index(0),), lamella.tensor(5.0))": [5, 5, 5],
    f"{E}[index(0)] = 5.0": [5, 5, 5],
    f"{E}[numbers(2, 3) > 4] = 5.0": [1, 2, 5],
    f"{E}[index(0), 1:] = lamella.tensor([5.0])": [1, 5, 5],
    f"{E}.index_fill_(0, index(0), 5.0)": [5, 5, 5],
    f"{E}.index_fill_(1, index(0), lamella.tensor(5.0))": [5, 2, 3],
}


@pytest.mark.parametrize("program", WARNED)
def test_one_value_written_to_expanded_tensors_warns(program):
    x = numbers(1, 3) + 1
    size = r"\[2, 2\]" if ":2" in program or "1:" in program else r"\[2, 3\]"
    with pytest.warns(
        UserWarning, match=rf"_: 'self' is expanded to {size}, so elements that share"
    ):
        exec(program, globals(), {"x": x})
    assert x.tolist() == [WARNED[program]]


EXPANDED = {
    "index_put_": [
        f"{E}.index_put_((index(0),), lamella.tensor(1.0), True)",
        f"{E}.index_put_((index(0),), numbers(3))",
    ],
    "scatter_": [f"{E}.scatter_(0, index([0, 0, 0]), 1.0)"],
    "scatter_add_": [f"{E}.scatter_add_(0, index([0, 0, 0]), numbers(2, 3))"],
    "scatter_reduce_": [f"{E}.scatter_reduce_(0, index([0, 0, 0]), numbers(2, 3), 'sum')"],
    "index_add_": [f"{E}.index_add_(0, index(0), numbers(1, 3))"],
    "index_copy_": [f"{E}.index_copy_(0, index(0), numbers(1, 3))"],
    "index_reduce_": [f"{E}.index_reduce_(0, index(0), numbers(1, 3), 'prod')"],
    "put_": [f"{E}.put_(index(0), numbers(1))"],
    "masked_scatter_": [f"{E}.masked_scatter_(numbers(2, 3) > 2, numbers(2, 3))"],
    "normal_": [f"{E}.normal_()"],
    "bernoulli_": [f"{E}.bernoulli_(0.5)"],
    "renorm_": [f"{E}.renorm_(2, 0, 0.5)"],
    "addr_": [f"{E}.addr_(numbers(2), numbers(3))"],
    "polygamma_": [f"{E}.polygamma_(1)"],
}


@pytest.mark.parametrize("op", EXPANDED)
def test_expanded_tensors_are_not_written(op):
    for program in EXPANDED[op]:
        x = numbers(1, 3) + 1
        with pytest.raises(RuntimeError, match=rf"^{op}: .*to have memory of its own for each el"):
            exec(program, globals(), {"x": x})
        assert x.tolist() == [[1, 2, 3]]
    x = numbers(1, 3)
    x.expand(1, 3).masked_fill_(x > 1, 5.0)  # one row is not expanded
    assert x.expand(2, 3).masked_fill(x > 4, 0.0).tolist() == [[0, 1, 0], [0, 1, 0]]
    assert x.tolist() == [[0, 1, 5]]


def test_nothing_is_written_by_what_is_refused():
    x = numbers(6)
    with pytest.raises(RuntimeError):
        x.put_(index(1, 0, 2, 3, 4, 5), x)
    with pytest.raises(RuntimeError):
        lamella.gather(x, 0, index(5, 4), out=x)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


# A program over x and the expression for what x then holds, over a clone y of x.
RIGHT = [
    ("lamella.gather(x, 0, index(5, 4, 3), out=x[::2])", (6,), "[5, 1, 4, 3, 3, 5]"),
    ("lamella.take(x, index(5, 4, 3), out=x[::2])", (6,), "[5, 1, 4, 3, 3, 5]"),
    ("lamella.index_select(x, 0, index(5, 4, 3), out=x[::2])", (6,), "[5, 1, 4, 3, 3, 5]"),
    ("lamella.masked_select(x, x > 3, out=x[:4:2])", (6,), "[4, 1, 5, 3, 4, 5]"),
    ("lamella.cat([x[:2], x[3:4]], out=x[1::2])", (6,), "[0, 0, 2, 1, 4, 3]"),
    ("x.put_(index(5, 4, 3), x[::2])", (6,), "[0, 1, 2, 4, 2, 0]"),
    ("x.scatter_(0, index(1, 2, 3), x[::2])", (6,), "[0, 0, 2, 4, 4, 5]"),
    ("x.index_copy_(0, index(5, 0, 2), x[::2])", (6,), "[2, 1, 4, 3, 4, 0]"),
    ("x.masked_scatter_(x > 2, x.clone()[::2])", (6,), "[0, 1, 2, 0, 2, 4]"),
    ("lamella.topk(x, 3, out=(x, index(0)))", (6,), "[5, 4, 3]"),
    ("lamella.topk(x, 3, out=(x[:3], index(0, 0, 0)))", (6,), "[5, 4, 3, 3, 4, 5]"),
    ("lamella.sort(x[:4], descending=True, out=(x[1:5], index(0)))", (6,), "[0, 3, 2, 1, 0, 5]"),
    ("lamella.sort(x, 0, True, out=(x, index(0)))", (4,), "[3, 2, 1, 0]"),
    ("lamella.max(x, 0, out=(x[0], index(0, 0)))", (2, 2), "[[2, 3], [2, 3]]"),
    ("lamella.sum(x, 0, out=x[0])", (2, 2), "[[2, 4], [2, 3]]"),
    ("lamella.sum(x, 0, out=x)", (2, 2), "[2, 4]"),
    ("lamella.amax(x, 0, out=x[1])", (2, 2), "[[0, 1], [2, 3]]"),
    ("lamella.cumsum(x, 0, out=x)", (4,), "[0, 1, 3, 6]"),
    ("lamella.cumsum(x[:3], 0, out=x[1:])", (4,), "[0, 0, 1, 3]"),
    ("lamella.tril(x.t(), out=x)", (2, 2), "[[0, 0], [1, 3]]"),
    ("lamella.tril(x[:2], out=x[1:])", (3, 2), "[[0, 1], [0, 0], [2, 3]]"),
    ("lamella.mm(x, x, out=x)", (2, 2), "(y @ y).tolist()"),
    ("lamella.mm(x[:2], x[1:], out=x[1:])", (3, 2), "[[0, 1]] + (y[:2] @ y[1:]).tolist()"),
    ("lamella.matmul(x, numbers(2, 3), out=x)", (2, 2), "(y @ numbers(2, 3)).tolist()"),
    ("lamella.addmm(x, x, x, out=x)", (2, 2), "(y + y @ y).tolist()"),
    ("x.addmm_(x, x)", (2, 2), "(y + y @ y).tolist()"),
    ("lamella.addmm(x, numbers(2, 2), numbers(2, 2), out=x)", (2,), "[[2, 4], [6, 12]]"),
    ("lamella.addbmm(x, x[None], x[None], out=x)", (2, 2), "(y + y @ y).tolist()"),
    ("x.baddbmm_(x, x)", (1, 2, 2), "(y + y @ y).tolist()"),
    ("lamella.mv(numbers(2, 2), x, out=x)", (2,), "[1, 3]"),
    ("lamella.mv(x, numbers(2), out=x[0])", (2, 2), "[[1, 3], [2, 3]]"),
    ("lamella.dot(x, x, out=x)", (3,), "5"),
    ("lamella.index_add(x, 0, index(1), numbers(1) + 3, out=x)", (3,), "[0, 4, 2]"),
    ("lamella.index_add(x[:2], 0, index(1), numbers(1) + 3, out=x[1:])", (3,), "[0, 0, 4]"),
]


@pytest.mark.parametrize("case", range(len(RIGHT)))
def test_right(case):
    program, shape, expected = RIGHT[case]
    x = numbers(*shape)
    y = x.clone()
    exec(program, globals(), {"x": x})
    assert x.tolist() == eval(expected, globals(), {"y": y})


def test_right_over_memory_of_the_argument_seen_as_another_dtype():
    x = index(1, 0, 1, 1)
    out = x.view(lamella.int64).view(4, 1)
    lamella.nonzero(x, out=out)
    assert out.tolist() == [[0], [2], [3]]


def test_memory_of_two_storages_is_found_too():
    import numpy as np

    memory = np.arange(6, dtype=np.float32)
    x, out = lamella.from_numpy(memory), lamella.from_numpy(memory)
    with pytest.raises(RuntimeError) as caught:
        lamella.gather(x, 0, index(5, 4, 3, 2, 1, 0), out=out)
    assert str(caught.value) == clone_one("gather", "out", "self")
    lamella.topk(x, 6, out=(out, index(0)))
    assert memory.tolist() == [5, 4, 3, 2, 1, 0]


def test_shapes_of_meta_tensors():
    x = numbers(4).to("meta")
    indices = index(0).to("meta")
    lamella.topk(x, 2, out=(x, indices))
    assert tuple(x.shape) == tuple(indices.shape) == (2,)


@pytest.mark.parametrize(
    "program",
    [
        "lamella.index_add(x, 0, i, x[:1] + 1, out=out)",
        "lamella.index_copy(x, 0, i, x[:1] + 1, out=out)",
        "lamella.scatter(x, 0, i, x[:1] + 1, out=out)",
        "lamella.scatter(x, 0, i, 1.0, out=out)",
        "lamella.scatter_add(x, 0, i, x[:1] + 1, out=out)",
        "lamella.scatter_reduce(x, 0, i, x[:1] + 1, 'sum', include_self=False, out=out)",
        "lamella.gather(x, 0, i, out=out[:1])",
        "lamella.take(x, i, out=out[:1])",
        "lamella.index_select(x, 0, i, out=out[:1])",
        "out.index_fill_(0, i, 1)",
        "out.put_(i, x[:1])",
        "out.index_put_((i,), x[0])",
    ],
)
def test_indices_are_checked_before_anything_is_written(program):
    out = numbers(3) + 7
    with pytest.raises(IndexError):
        exec(program, globals(), {"x": numbers(3), "out": out, "i": index(9)})
    assert out.tolist() == [7, 8, 9]
