"""Pooling and interpolation that take different loops: layouts, widths, thread counts."""

import pytest
from operator_cases import check, compare, lamella, make, same_bits, to_lamella, torch

# Few and many channels, short and long lines.
SHAPES = [(2, 3, 9, 11), (1, 130, 5, 6), (2, 17, 7, 7), (1, 2, 40, 150), (1, 1, 1, 70),
          (9, 5, 8, 8), (7, 3, 6, 12)]  # fmt: skip
POOLINGS = [
    ("max_pool2d_with_indices", [2, 2]),
    ("max_pool2d_with_indices", [3, 3], [2, 2], [1, 1]),
    ("max_pool2d_with_indices", [1, 3], [1, 1], [0, 1]),
    ("max_pool2d_with_indices", [1, 5], [3, 3]),
    ("max_pool2d_with_indices", [1, 40], [1, 7], [0, 20], [1, 1], True),
    ("adaptive_max_pool2d", [1, 1]),
    ("adaptive_max_pool2d", [3, 4]),
    ("avg_pool2d", [2, 2]),
    ("avg_pool2d", [3, 3], [2, 2], [1, 1], True, False),
    ("avg_pool2d", [1, 3], [1, 1], [0, 1]),
    ("avg_pool2d", [1, 40], [1, 3], [0, 20], True, True),
    ("_adaptive_avg_pool2d", [1, 1]),
    ("_adaptive_avg_pool2d", [3, 4]),
    ("_adaptive_avg_pool2d", [5, 170]),
]
FORMATS = [torch.contiguous_format, torch.channels_last]


def fits(shape, pooling):
    name, window, *rest = pooling
    if name.startswith(("adaptive", "_adaptive")):
        return True
    padding = rest[1] if len(rest) > 1 else [0, 0]
    return all(n + 2 * p >= k for n, p, k in zip(shape[2:], padding, window))


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_pooling_by_layout(pooling):
    name, *how = pooling
    for shape in SHAPES:
        if not fits(shape, pooling):
            continue
        for layout in FORMATS:
            x = make(*shape).to(memory_format=layout)
            made = check(name, x, *how, tolerance=(1e-5, 1e-6))
            first = made[0] if isinstance(made, list) else made
            grad = make(*first.shape, seed=1).to(memory_format=layout)
            if name == "max_pool2d_with_indices":
                how_all = (how + [how[0], [0, 0], [1, 1], False][len(how) - 1 :])[:5]
                arguments = [grad, x, *how_all, made[1]]
            elif name == "avg_pool2d":
                how_all = (how + [how[0], [0, 0], False, True][len(how) - 1 :])[:5]
                arguments = [grad, x, *how_all, None]
            else:
                arguments = [grad, x] + ([made[1]] if isinstance(made, list) else [])
            check(f"{name}_backward", *arguments, strides=False, tolerance=(1e-4, 1e-5))


def test_maximum_of_equals_and_nan():
    nan = float("nan")
    for width in (4, 70, 200):
        for layout in FORMATS:
            x = torch.zeros(1, 2, 3, width).to(memory_format=layout)
            check("max_pool2d_with_indices", x, [3, 2])
            check("adaptive_max_pool2d", x, [1, 1])
            x[0, 0, 1, width - 1] = nan
            x[0, 0, 2, 0] = nan
            x[0, 1] = -float("inf")
            check("adaptive_max_pool2d", x, [1, 1])
            check("max_pool2d_with_indices", x, [3, 2])


# Rows of few windows are taken together, over the ends of planes.
@pytest.mark.parametrize("shape", [(11, 3, 8, 8), (5, 2, 7, 10), (70, 1, 2, 3), (3, 1, 9, 64)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
def test_maximum_of_short_rows(shape, dtype):
    x = (make(*shape) * 3).round()
    if dtype.is_floating_point:
        x[0, 0, 1, 1] = float("nan")
        x[-1, -1, -1, -1] = float("nan")
        x[1] = -float("inf")
    x = x.to(dtype)
    for how in ([2, 2], [2, 2], [1, 1]), ([2, 2], [2, 2]), ([2, 3],), ([1, 2], [1, 3]):
        check("max_pool2d_with_indices", x, *how)
    if shape[2] >= 7:
        check("max_pool2d_with_indices", x, [2, 2], [3, 5], [0, 0], [2, 3])
        check("max_pool3d_with_indices", x, [2, 2, 2] if shape[1] > 1 else [1, 2, 2])
    if dtype.is_floating_point:
        check("adaptive_max_pool2d", x, [1, 3])


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64], ids=str)
def test_maximum_of_whole_numbers(dtype):
    x = torch.arange(2 * 3 * 5 * 35).reshape(2, 3, 5, 35).mul(37).remainder(101).to(dtype)
    for layout in FORMATS:
        for how in ([[2, 2]], [[3, 3], [2, 2]], [[1, 33]]):
            check("max_pool2d_with_indices", x.to(memory_format=layout), *how)


@pytest.mark.parametrize("size", [(18, 22), (5, 30), (9, 11), (30, 4), (1, 1)], ids=str)
def test_interpolation_by_layout(size):
    for shape in [(2, 3, 9, 11), (1, 40, 6, 5), (2, 1, 3, 200)]:
        for layout in FORMATS:
            x = make(*shape).to(memory_format=layout)
            grad = make(*shape[:2], *size, seed=1).to(memory_format=layout)
            for corners in (False, True):
                check("upsample_bilinear2d", x, size, corners, tolerance=(1e-4, 1e-4))
                arguments = [grad, size, list(shape), corners]
                check("upsample_bilinear2d_backward", *arguments, strides=False,
                      tolerance=(1e-4, 1e-3))  # fmt: skip
            for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
                check(name, x, size)
                check(f"{name}_backward", grad, size, list(shape), strides=False,
                      tolerance=(1e-5, 1e-5))  # fmt: skip


def test_padding_with_channels_innermost():
    x = make(2, 20, 6, 5).to(memory_format=torch.channels_last)
    for name in ("reflection_pad2d", "replication_pad2d"):
        padded = check(name, x, [3, 1, 2, 4])
        check(f"{name}_backward", padded, x, [3, 1, 2, 4], strides=False)


def test_an_infinite_neighbour_without_a_part():
    x = to_lamella(torch.tensor([[[1.0, float("inf"), 2.0]]]))
    made = lamella.ops.aten.upsample_linear1d(x, [5], True)
    compare(made, torch.tensor([[[1.0, float("inf"), float("inf"), float("inf"), 2.0]]]))


@pytest.mark.parametrize("layout", FORMATS, ids=str)
def test_threads_give_the_same_bits(layout):
    x = to_lamella(make(3, 48, 60, 50).to(memory_format=layout))
    f = lamella.nn.functional
    functions = [
        lambda t: f.max_pool2d(t, 3, 2, 1),
        lambda t: f.avg_pool2d(t, 3, 2, 1),
        lambda t: f.adaptive_avg_pool2d(t, (7, 3)),
        lambda t: f.adaptive_avg_pool2d(t, 1),
        lambda t: f.interpolate(t, size=(71, 90), mode="bilinear"),
        lambda t: f.interpolate(t, size=(71, 90)),
        lambda t: f.pad(t, (3, 2, 1, 4), mode="reflect"),
    ]
    for function in functions:

        def compute(function=function):
            leaf = x.detach().requires_grad_(True)
            out = function(leaf)
            return out, *lamella.autograd.grad((out * out).sum(), leaf)

        same_bits(compute)
