"""Gradients of views, copies, indexing and joining in the cases that PyTorch's table of operators
leaves out: overlapping memory, in-place forms, dtypes, repeated positions, unused parts."""

import pytest
from operator_cases import dtype_of, make, to_lamella, torch

lamella = pytest.importorskip("lamella")

D = torch.float64
C = torch.complex128


def index(m, values, dtype=torch.int64):
    data = torch.tensor(values, dtype=dtype)
    return data if m is torch else to_lamella(data)


def kind(m, dtype):
    return dtype if m is torch else dtype_of(dtype)


def written(x):
    """A copy that may be written in place."""
    return x * 1


CASES = {
    # as_strided where places overlap, in the result, in the input, in both
    "overlapping result": ([(6,)], lambda m, x: m.as_strided(x, (3, 3), (1, 1), 1)),
    "stride 0": ([(6,)], lambda m, x: m.as_strided(x, (2, 3), (0, 2), 1)),
    "overlapping input": ([(1, 4)], lambda m, x: m.as_strided(x.expand(3, 4), (2, 2), (1, 2))),
    "both": ([(2, 1)], lambda m, x: m.as_strided(x.expand(2, 3), (2, 2), (1, 0))),
    "transposed input": ([(3, 4)], lambda m, x: m.as_strided(x.t(), (2, 2), (1, 4), 2)),
    "outside": ([(3, 4)], lambda m, x: m.as_strided(x[:, 1], (5,), (1,), 0)),
    "backwards": ([(2, 3)], lambda m, x: m.as_strided((x * 2)[1], (3,), (1,), 0)),
    # metadata in place
    "transpose_": ([(2, 3)], lambda m, x: written(x).transpose_(0, 1)),
    "t_": ([(2, 3)], lambda m, x: written(x).t_()),
    "squeeze_": ([(2, 1, 3, 1)], lambda m, x: written(x).squeeze_()),
    "squeeze_.dim": ([(2, 1, 3, 1)], lambda m, x: written(x).squeeze_(1)),
    "unsqueeze_": ([(2, 3)], lambda m, x: written(x).unsqueeze_(-1)),
    "as_strided_": ([(2, 3)], lambda m, x: written(x).as_strided_((2, 2), (1, 2), 1)),
    # writes
    "copy_": ([(2, 3), (3,)], lambda m, x, y: written(x).copy_(y)),
    "copy_ complex": ([(2, 3, C), (3,)], lambda m, x, y: written(x).copy_(y)),
    "fill_": ([(2, 3), ()], lambda m, x, y: written(x).fill_(y)),
    "zero_": ([(2, 3)], lambda m, x: written(x).zero_() + x),
    "write a view": ([(3, 4), (4,)], lambda m, x, y: write(written(x), lambda z: z[1].copy_(y))),
    "write a view of a view": (
        [(3, 4), (2,)],
        lambda m, x, y: write(written(x), lambda z: z.t()[1:3, 2].mul_(y)),
    ),
    "write diagonals": (
        [(3, 3)],
        lambda m, x: write(written(x), lambda z: z.diagonal().mul_(z[0] * 1)),
    ),
    "unfolded": ([(7,)], lambda m, x: x.unfold(0, 3, 2) * x.unfold(0, 3, 2)),
    # casts
    "to float": ([(2, 3)], lambda m, x: x.to(kind(m, torch.float32)) * 2),
    "to complex": ([(2, 3)], lambda m, x: x.to(kind(m, C)) * x),
    # repeated positions
    "index_put_": (
        [(4, 3), (2, 3)],
        lambda m, x, y: written(x).index_put_((index(m, [0, 2]),), y),
    ),
    "index_put_ broadcast": (
        [(4, 3), (3,)],
        lambda m, x, y: written(x).index_put_((index(m, [0, 2, 0]),), y, accumulate=True),
    ),
    "scatter from more": (
        [(4, 3), (2, 3)],
        lambda m, x, y: m.scatter_add(x, 0, index(m, [[0, 1, 2], [0, 3, 0]]), y),
    ),
    "put_": ([(2, 3), (2,)], lambda m, x, y: written(x).put_(index(m, [0, 4]), y)),
    "put_ accumulate": (
        [(2, 3), (3,)],
        lambda m, x, y: written(x).put_(index(m, [0, 4, 0]), y, accumulate=True),
    ),
    # joining and parts
    "cat dtypes": ([(2, 3), (1, 3, C)], lambda m, x, y: m.cat([x, y, x])),
    "cat empty": ([(2, 3), (0,)], lambda m, x, y: m.cat([x, y, x], 1)),
    "split unused": ([(5, 2)], lambda m, x: x.split(2)[1] * 2),
    "unbind unused": ([(3, 2)], lambda m, x: x.unbind(1)[0] * 2),
    "repeat nothing": ([(2, 1)], lambda m, x: x.repeat(0, 1) + x.sum()),
}


def write(x, action):
    action(x)
    return x


def inputs_of(shapes):
    out = []
    for i, shape in enumerate(shapes):
        dtype = C if C in shape else D
        out.append(make(*[n for n in shape if n is not C], dtype=dtype, seed=i))
    return out


def cotangent(shape, dtype, seed=9):
    return make(*shape, dtype=dtype, seed=seed)


def gradients(m, function, values):
    """First and second gradients, as PyTorch tensors."""
    convert = (lambda t: t.clone()) if m is torch else (lambda t: to_lamella(t.clone()))
    back = (lambda t: t) if m is torch else (lambda t: torch.from_dlpack(t.detach()))
    inputs = [convert(v).requires_grad_() for v in values]
    result = function(m, *inputs)
    dtype = getattr(torch, str(result.dtype).rsplit(".", 1)[1])
    weight = convert(cotangent(tuple(result.shape), dtype)).requires_grad_()
    first = m.autograd.grad(result, inputs, weight, create_graph=True, allow_unused=True)
    seen = [g for g in first if g is not None and g.requires_grad]
    shapes = [
        cotangent(tuple(g.shape), v.dtype, 20)
        for g, v in zip(first, values)
        if g is not None and g.requires_grad
    ]
    second = m.autograd.grad(
        seen, [*inputs, weight], [convert(s) for s in shapes], allow_unused=True
    )
    out = [back(result.detach())]
    for gradient, value in zip([*first, *second], [*values, *values, None]):
        if gradient is None:
            out.append(None if value is None else torch.zeros_like(value))
        else:
            out.append(back(gradient.detach()))
    return out


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    shapes, function = CASES[name]
    values = inputs_of(shapes)
    expected = gradients(torch, function, values)
    got = gradients(lamella, function, values)
    for g, e in zip(got, expected):
        torch.testing.assert_close(g, e)


@pytest.mark.parametrize("name", CASES)
def test_forward_mode(name):
    shapes, function = CASES[name]
    values = inputs_of(shapes)

    def tangent(m):
        ad = m.autograd.forward_ad
        convert = (lambda t: t.clone()) if m is torch else (lambda t: to_lamella(t.clone()))
        with ad.dual_level():
            duals = [
                ad.make_dual(convert(v), convert(make(*v.shape, dtype=v.dtype, seed=30 + i)))
                for i, v in enumerate(values)
            ]
            result = ad.unpack_dual(function(m, *duals)).tangent
            return result if m is torch else torch.from_dlpack(result)

    torch.testing.assert_close(tangent(lamella), tangent(torch))


def test_as_strided_scatter():
    """PyTorch's gradient of `self` fails its own gradcheck; finite differences decide."""
    x, y = (to_lamella(v).requires_grad_() for v in inputs_of([(3, 3), (2, 2)]))
    scatter = lambda x, y: lamella.as_strided_scatter(x, y, (2, 2), (1, 3), 1)  # noqa: E731
    assert lamella.autograd.gradcheck(scatter, (x, y))
    assert lamella.autograd.gradgradcheck(scatter, (x, y))
