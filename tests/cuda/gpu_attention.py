"""Fused attention of "cuda" beside float64 on the CPU, and its times beside PyTorch's, for
tools/gpu_check.sh."""

from __future__ import annotations

import math
import sys

from gpu_timings import HEAD, STANDS_IN, best, pytorch_with_cuda, row, value

import lamella

TOLERANCE = {"float32": 5e-5, "float16": 6e-3, "bfloat16": 5e-2}
# batch, query heads, key heads, queries, keys, width, width of values, causal
CASES = [
    (2, 4, 4, 65, 70, 64, 64, False),
    (1, 4, 2, 130, 130, 32, 40, True),
    (1, 2, 1, 33, 129, 96, 128, False),
    (1, 2, 2, 100, 77, 200, 256, True),
    (3, 2, 2, 1, 300, 80, 8, False),
]
# The same with heads x width of common networks.
TIMED = [
    ("bfloat16", 8, 12, 1024, 64, True),
    ("bfloat16", 4, 16, 4096, 128, True),
    ("float16", 4, 16, 4096, 64, False),
    ("bfloat16", 2, 8, 2048, 256, False),
    ("float32", 4, 12, 1024, 64, True),
]


def attention(library, q, k, v, grad, **how):
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    function = library.nn.functional.scaled_dot_product_attention
    y = function(*leaves, enable_gqa=q.shape[1] != k.shape[1], **how)
    return (y.detach(), *library.autograd.grad(y, leaves, grad))


def differences(dtype: str) -> list[str]:
    """The cases whose results or gradients are not those of float64."""
    found = []
    for case in CASES:
        b, heads, key_heads, rows, keys, width, value_width, causal = case
        lamella.manual_seed(0)
        sizes = ((heads, rows, width), (key_heads, keys, width), (key_heads, keys, value_width))
        q, k, v, grad = (
            lamella.randn(b, *size).to(getattr(lamella, dtype))
            for size in (*sizes, (heads, rows, value_width))
        )
        seen = lamella.rand(rows, keys) > 0.3
        seen[0] = False
        for how in ({"is_causal": causal}, {"attn_mask": seen}):
            expected = attention(lamella, *(x.double() for x in (q, k, v, grad)), **how)
            device = {n: x.cuda() if n == "attn_mask" else x for n, x in how.items()}
            got = attention(lamella, *(x.cuda() for x in (q, k, v, grad)), **device)
            off = max(
                ((a - b.cpu().double()).abs() / (1 + a.abs())).max().item()
                for a, b in zip(expected, got)
            )
            if not off <= TOLERANCE[dtype]:
                found.append(f"{dtype} {case} {'mask' if 'attn_mask' in how else ''}: {off:.2g}")
    return found


def speeds(library, dtype: str, batch: int, heads: int, rows: int, width: int, causal: bool):
    """TFLOP/s of the result, and of the result with gradients."""
    if STANDS_IN:
        batch, heads, rows = 1, 1, 64
    functional = library.nn.functional
    q, k, v, grad = (
        library.randn(batch, heads, rows, width, device="cuda").to(getattr(library, dtype))
        for _ in range(4)
    )
    work = 4e-12 * batch * heads * rows**2 * width / (2 if causal else 1)

    def forward():
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def both():
        return attention(library, q, k, v, grad, is_causal=causal)

    repeats = 1 if STANDS_IN else 10
    for function, times in ((forward, 1.0), (both, 3.5)):
        yield work * times / best(function, library.cuda.synchronize, repeats)


def main() -> int:
    lamella.cuda.reset_fallbacks()
    wrong = [text for dtype in TOLERANCE for text in differences(dtype)]
    fallen = list(lamella.cuda.fallbacks())
    for text in wrong:
        print("differs:", text, flush=True)
    print(HEAD, flush=True)
    torch = pytorch_with_cuda()
    for case in TIMED:
        dtype, batch, heads, rows, width, causal = case
        mine = value(lambda c=case: list(speeds(lamella, *c)))
        other = math.nan if torch is None else value(lambda c=case: list(speeds(torch, *c)))
        for i, what in enumerate(("", " with gradients")):
            name = f"attention{what}, {dtype}, {batch} × {heads} × {rows} × {width}"
            cells = [x[i] if isinstance(x, list) else x for x in (mine, other)]
            print(row(f"{name}{', causal' if causal else ''}, TFLOP/s", *cells), flush=True)
    print(f"{6 * len(CASES)} cases, {len(wrong)} differ; on the CPU: {' '.join(fallen) or 'none'}")
    return 1 if wrong or fallen else 0


if __name__ == "__main__":
    sys.exit(main())
