"""Convolutions that take different paths through the kernels: channels, strides, layouts, threads,
and which of oneDNN's implementations run."""

import os
import subprocess
import sys

import pytest
from operator_cases import compare, lamella, make, same_bits, to_lamella, torch

SHAPES = {
    "depthwise": ((2, 6, 9, 70), (6, 1, 3, 3), dict(padding=1, groups=6)),
    "depthwise stride 2": ((2, 5, 11, 38), (5, 1, 3, 3), dict(padding=1, stride=2, groups=5)),
    "depthwise stride 3": ((1, 3, 12, 50), (6, 1, 5, 4), dict(padding=2, stride=3, groups=3)),
    "depthwise dilated": ((1, 4, 14, 20), (8, 1, 3, 3), dict(padding=2, dilation=2, groups=4)),
    "depthwise without padding": ((1, 4, 8, 9), (4, 1, 3, 2), dict(groups=4)),
    "depthwise wide padding": ((1, 2, 3, 5), (2, 1, 2, 2), dict(padding=4, groups=2)),
    "depthwise 1d": ((2, 3, 100), (3, 1, 5), dict(padding=2, groups=3)),
    "depthwise 3d": ((1, 3, 5, 6, 20), (3, 1, 3, 3, 3), dict(padding=1, groups=3)),
    "one input": ((2, 1, 12, 12), (9, 1, 3, 3), dict(padding=1)),
    "one input, small planes": ((3, 1, 8, 8), (16, 1, 3, 3), dict(padding=1)),
    "one input, stride 2": ((3, 1, 9, 7), (6, 1, 3, 2), dict(padding=1, stride=2)),
    "one input 1d": ((2, 1, 50), (5, 1, 4), dict(padding=2)),
    "one input 3d": ((2, 1, 4, 5, 6), (4, 1, 2, 3, 3), dict(padding=1)),
    "many channels to two groups": ((2, 4, 9, 20), (70, 2, 3, 3), dict(padding=1, groups=2)),
    "three inputs": ((2, 3, 12, 33), (17, 3, 3, 3), dict(padding=1)),
    "three inputs, two groups": ((1, 6, 9, 9), (4, 3, 3, 3), dict(groups=2)),
    "product": ((2, 6, 20, 20), (7, 6, 1, 1), {}),
    "product of a small plane": ((2, 40, 5, 5), (33, 40, 1, 1), {}),
    "pointwise stride 2": ((2, 8, 9, 9), (16, 8, 1, 1), dict(stride=2)),
    "odd groups": ((2, 10, 9, 11), (20, 5, 3, 3), dict(padding=1, groups=2)),
    "grouped, dilated": ((2, 32, 12, 12), (32, 8, 3, 3), dict(groups=4, stride=2, dilation=2)),
    "3d": ((2, 20, 5, 6, 7), (35, 20, 3, 3, 3), dict(padding=1)),
    "long kernel": ((2, 7, 50), (9, 7, 11), dict(stride=3)),
    "many channels": ((2, 20, 9, 11), (35, 20, 3, 3), dict(padding=1)),
    "grouped": ((2, 32, 9, 11), (32, 16, 3, 3), dict(padding=1, groups=2)),
    "1d": ((2, 20, 40), (20, 20, 3), dict(padding=1)),
}


def run(module, functional, x, w, b, options):
    convolve = getattr(functional, f"conv{x.dim() - 2}d")
    out = convolve(x, w, b, **options)
    grad = module.ones_like(out) * 0.5
    return [out.detach(), *module.autograd.grad(out, (x, w, b), grad)]


def operands(name, layout):
    xs, ws, options = SHAPES[name]
    x, w, b = make(*xs), make(*ws, seed=1), make(ws[0], seed=2)
    if layout != torch.contiguous_format:
        x = x.to(memory_format=layout)
    return x, w, b, options


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_against_torch(name, layout):
    planes = len(SHAPES[name][0]) == 4
    x, w, b, options = operands(name, layout if planes else torch.contiguous_format)
    wide = [t.double().requires_grad_(True) for t in (x, w, b)]
    expected = run(torch, torch.nn.functional, *wide, options)
    mine = [to_lamella(t.clone()).requires_grad_(True) for t in (x, w, b)]
    got = run(lamella, lamella.nn.functional, *mine, options)
    for what, one, other in zip(("output", "dx", "dw", "db"), got, expected):
        limit = 2e-6 * max(1.0, float(other.abs().max()))
        compare(one, other.float(), strides=False, what=what, tolerance=(1e-4, limit))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_small_types(name, layout, dtype):
    planes = len(SHAPES[name][0]) == 4
    x, w, b, options = operands(name, layout if planes else torch.contiguous_format)
    small = [t.to(dtype) for t in (x, w, b)]
    wide = [t.double().requires_grad_(True) for t in small]
    expected = run(torch, torch.nn.functional, *wide, options)
    mine = [to_lamella(t.clone()).requires_grad_(True) for t in small]
    got = run(lamella, lamella.nn.functional, *mine, options)
    for what, one, other in zip(("output", "dx", "dw", "db"), got, expected):
        limit = 2e-2 * max(1.0, float(other.abs().max()))
        compare(one, other.to(dtype), strides=False, what=what, tolerance=(2e-2, limit))


def test_infinities_stay_where_they_belong():
    x, w = make(1, 2, 4, 40), make(2, 1, 3, 3, seed=1)
    x[0, 0, 1, 39] = float("inf")
    options = dict(groups=2, stride=2, padding=1)
    both = [t.clone().requires_grad_(True) for t in (x, w)]
    bias = torch.zeros(2, requires_grad=True)
    expected = run(torch, torch.nn.functional, *both, bias, options)
    mine = [to_lamella(t.clone()).requires_grad_(True) for t in (x, w, bias.detach())]
    for one, other in zip(run(lamella, lamella.nn.functional, *mine, options), expected):
        compare(one, other, strides=False, tolerance=(1e-4, 1e-4))


@pytest.mark.parametrize("shape", [
    ((6, 32, 40, 40), (48, 32, 3, 3), dict(padding=1)),
    ((1, 64, 40, 40), (64, 64, 3, 3), dict(padding=1)),
    ((8, 64, 28, 28), (64, 1, 3, 3), dict(padding=1, groups=64)),
    ((4, 3, 64, 64), (32, 3, 3, 3), dict(padding=1)),
    ((40, 1, 28, 28), (64, 1, 3, 3), dict(padding=1)),
    ((4, 64, 40, 40), (96, 64, 1, 1), {}),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_threads_give_the_same_bits(shape, dtype):
    xs, ws, options = shape
    x, w, b = (to_lamella(make(*s, seed=i).to(dtype)) for i, s in enumerate((xs, ws, ws[:1])))

    def compute():
        given = [t.detach().requires_grad_(True) for t in (x, w, b)]
        return run(lamella, lamella.nn.functional, *given, options)[:3]

    same_bits(compute)


PROGRAM = """
import lamella
for layout in (lamella.contiguous_format, lamella.channels_last):
    for xs, ws, options in CASES:
        for dtype in (lamella.float32, lamella.bfloat16, lamella.float16):
            x = lamella.ones(xs, dtype=dtype)
            if len(xs) == 4:
                x = x.contiguous(memory_format=layout)
            x, w = x.requires_grad_(True), lamella.ones(ws, dtype=dtype).requires_grad_(True)
            out = getattr(lamella.nn.functional, f"conv{len(xs) - 2}d")(x, w, **options)
            lamella.autograd.grad(out, (x, w), lamella.ones_like(out))
            if len(xs) == 4:
                lamella.nn.functional.max_pool2d(x, 2)
                lamella.nn.functional.avg_pool2d(x, 2)
"""


# As this machine is, and as others are.
@pytest.mark.parametrize("machine", [{}, {"ONEDNN_MAX_CPU_ISA": "AVX2"},
                                     {"ONEDNN_MAX_CPU_ISA": "SSE41"}], ids=str)  # fmt: skip
def test_no_reference_code_runs(machine):
    program = PROGRAM.replace("CASES", repr(list(SHAPES.values())))
    if "AVX2" in machine.values():
        machine = {**machine, "LAMELLA_CPU_CAPABILITY": "avx2"}
    elif machine:
        machine = {**machine, "LAMELLA_CPU_CAPABILITY": "default"}
    done = subprocess.run([sys.executable, "-c", program],
                          env={**os.environ, **machine, "DNNL_VERBOSE": "1"},
                          capture_output=True, text=True, check=True)  # fmt: skip
    calls = [line for line in done.stdout.splitlines() if ",exec," in line]
    assert calls, "oneDNN says nothing about its calls"
    slow = {line.split(",exec,")[1].rsplit(",", 1)[0] for line in calls if ",ref" in line}
    assert not slow, "\n".join(sorted(slow))
