"""Running sums, products and extremes by kernels on "cuda", beside the CPU."""

import pytest
from beside_cpu import FLOATS, INTEGERS, assert_same, check, layouts, values

import lamella


@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (3, 700), (2, 3000), (3, 4, 5), (4100, 3), (33, 4100)]
)
def test_scans(cuda, shape):
    for dtype in (*FLOATS, *INTEGERS, lamella.bool):
        if len(shape) == 2 and dtype not in (lamella.float32, lamella.int64, lamella.bfloat16):
            continue
        x = values(dtype, *shape)
        for dim in range(max(1, len(shape))):
            check(cuda, lambda u, d=dim: (u.cumsum(d), tuple(u.cummax(d)), tuple(u.cummin(d))), x)
            near_one = (
                x.clamp(0, 1)
                if dtype in INTEGERS
                else x.div(50).add(1)
                if (dtype.is_floating_point)
                else x
            )
            check(cuda, lambda u, d=dim: u.cumprod(d), near_one)
            if dtype.is_floating_point:
                check(cuda, lambda u, d=dim: u.logcumsumexp(d), x)
    if len(shape) == 3:
        for x in layouts(values(lamella.float32, *shape)):
            for dim in range(3):
                check(cuda, lambda u, d=dim: (u.cumsum(d), tuple(u.cummax(d))), x)
        y = values(lamella.float32, *shape)
        z = y.cuda()
        z.cumsum_(1)
        assert_same(y.cumsum(1), z)
