"""Neural-network operators against PyTorch."""

import pytest
from operator_cases import REAL, check, make, torch

SMALL = {torch.float16: (2e-3, 2e-3), torch.bfloat16: (2e-2, 2e-2)}


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_softmax(name, dtype):
    for shape in ((5,), (3, 7), (2, 3, 33), (4, 1000), (2, 5, 70), ()):
        for dim in range(-1, len(shape)):
            if shape or dim <= 0:
                check(name, make(*shape, dtype=dtype), dim, False, tolerance=SMALL.get(dtype))
    check(name, make(6, 5, dtype=dtype).t(), 0, False, tolerance=SMALL.get(dtype), strides=False)


def test_softmax_of_extremes():
    inf = float("inf")
    x = torch.tensor([[1e30, -1e30, 0.0], [-inf, 0.0, 1.0], [-inf, -inf, -inf], [88.0, -88.0, 0.0]])
    check("_softmax", x, 1, False)
    check("_log_softmax", x, 1, False)
    check("softmax.int", make(3, 4), 1, torch.float64)
    check("log_softmax.int", make(3, 4, dtype=torch.float16), 1, torch.float32)


def test_dropout():
    check("dropout", make(4, 5), 0.5, False)
    check("dropout", make(4, 5), 0.0, True)
    from operator_cases import to_lamella

    import lamella

    x = to_lamella(torch.ones(20000))
    y = torch.from_dlpack(lamella.ops.aten.dropout.default(x, 0.25, True))
    assert abs(y.mean() - 1) < 0.03
    assert set(y.unique().tolist()) <= {0.0, torch.tensor(1 / 0.75).item()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_fused_attention(dtype):
    q, k, v = (make(2, 3, 5, 8, dtype=dtype, seed=seed) for seed in range(3))
    some = make(5, 5, dtype=dtype)
    for causal, mask in ((False, None), (True, None), (False, some)):
        check(
            "_scaled_dot_product_flash_attention_for_cpu",
            *(q, k, v, 0.0, causal),
            attn_mask=mask,
            strides=False,
            tolerance=(1e-4, 1e-5) if dtype == torch.float32 else (1e-12, 1e-12),
        )


def test_attention_forms():
    q, k = make(2, 5, 8), make(2, 7, 8, seed=1)
    loose = dict(strides=False, meta=False, tolerance=(1e-4, 1e-5))
    check("scaled_dot_product_attention", q, k, k, **loose)
    check("scaled_dot_product_attention", q, k, k, scale=0.3, **loose)
    q4, k2 = make(1, 4, 5, 8), make(1, 2, 7, 8, seed=1)
    check("scaled_dot_product_attention", q4, k2, k2, enable_gqa=True, **loose)
    t = make(2, 5, 3, 8).transpose(1, 2)
    check("scaled_dot_product_attention", t, t, t, **loose)
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    check("scaled_dot_product_attention", t, t, t, nothing, **loose)


@pytest.mark.parametrize("name", ["upsample_nearest2d", "_upsample_nearest_exact2d"])
@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_scales_that_do_not_lead_to_the_sizes(name, format):
    x = make(2, 3, 3, 2).contiguous(memory_format=format)
    for size in ([3, 2], [6, 4], [4, 2], [3, 5]):
        grad = make(2, 3, *size).contiguous(memory_format=format)
        for scales in ((None, 0.5), (1.7, 1.3), (2.0, 2.0)):
            check(name, x, size, *scales)
            check("upsample_bilinear2d", x, size, False, *scales)
            check(f"{name}_backward", grad, size, [2, 3, 3, 2], *scales)
            check("upsample_bilinear2d_backward", grad, size, [2, 3, 3, 2], False, *scales)


@pytest.mark.parametrize("size", [3, 4, 6])
def test_scales_that_do_not_lead_to_the_size_of_a_line(size):
    for scale in (0.5, 1.7, 2.0):
        check("upsample_nearest1d", make(2, 3, 3), [size], scale)
        check("upsample_linear1d", make(2, 3, 3), [size], False, scale)
