"""Compiled functions and modules on "cuda" against the CPU, for tools/gpu_check.sh.

Prints a line for each that differs, and a count at the end, with the steps that ran on the host.
"""

from __future__ import annotations

import sys

import lamella
import lamella.nn.functional as F
from lamella import hlo, nn

LOOP = """HloModule m
condition { s = (s32[], f32[64,32]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  m = s32[] constant(5)
  ROOT r = pred[] compare(n, m), direction=LT }
body { s = (s32[], f32[64,32]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[64,32] get-tuple-element(s), index=1
  o = s32[] constant(1)
  n2 = s32[] add(n, o)
  x2 = f32[64,32] tanh(x)
  ROOT r = (s32[], f32[64,32]) tuple(n2, x2) }
ENTRY e { a = f32[64,32] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[64,32]) tuple(z, a)
  ROOT w = (s32[], f32[64,32]) while(s), condition=condition, body=body }
"""


def cases():
    for name, function in {
        "pointwise": lambda x: (x * 2 + 1).relu().exp().clamp(max=10),
        "rows": lambda x: (x.softmax(-1), x.sum(0), x.amax(1), F.layer_norm(x, (32,))),
        "products": lambda x: (x @ x.t()).tanh(),
        "movement": lambda x: (x.t(), x[1:, ::2], x.flip(0), lamella.cat([x, x], 1)),
        "choice": lambda x: (lamella.where(x > 0, x, -x), x.sort(1)[0], x.argmax(1)),
        "casts": lambda x: x.to(lamella.bfloat16) * 3,
    }.items():
        yield name, lamella.compile(function, fullgraph=True)
    yield "a module with a loop", hlo.compile(LOOP)
    for dtype in (lamella.float32, lamella.bfloat16):
        yield f"gradients in {dtype}", lambda x, dtype=dtype: trained(x.to(dtype))


def trained(x: lamella.Tensor) -> list[lamella.Tensor]:
    """The gradients of a small network after a compiled step."""
    lamella.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)).to(x.dtype).to(x.device)

    def step():
        model.zero_grad()
        loss = model(x).float().pow(2).mean()
        loss.backward()
        return loss.detach()

    compiled = lamella.compile(step)
    return [compiled(), *(p.grad.clone() for p in model.parameters())]


def main() -> int:
    lamella.manual_seed(1)
    x = lamella.randn(64, 32)
    count, wrong = 0, 0
    lamella.cuda.reset_fallbacks()
    for name, function in cases():
        count += 1
        try:
            here, there = (function(one) for one in (x, x.cuda()))
            pairs = [(here, there)] if isinstance(here, lamella.Tensor) else zip(here, there)
            for a, b in pairs:
                tolerance = 3e-2 if a.dtype == lamella.bfloat16 else 1e-4
                b = b.cpu()
                if a.shape != b.shape or not lamella.allclose(
                    a.double(), b.double(), rtol=tolerance, atol=tolerance
                ):
                    print(f"{name}: the results differ")
                    wrong += 1
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")
            wrong += 1
    print(lamella.cuda.fallbacks())
    ran = sum(n for name, n in lamella.cuda.fallbacks().items() if name.startswith("hlo::"))
    print(f"{count} programs, {wrong} differ; {ran} steps ran by the host's rules")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
