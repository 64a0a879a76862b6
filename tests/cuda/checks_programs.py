"""Programs on a device: compiled functions, and modules of HLO. Their oracle is the same program on
the CPU."""

import ctypes

import pytest
import torch

import lamella
from lamella import hlo, nn


def same(on_device, on_host):
    assert on_device.device.type == "cuda" and on_host.device.type == "cpu"
    assert on_device.dtype == on_host.dtype and on_device.shape == on_host.shape
    torch.testing.assert_close(
        torch.from_dlpack(on_device.cpu().detach()), torch.from_dlpack(on_host.detach())
    )


def both(fn, *tensors):
    """Runs a compiled function on the device and on the CPU, twice each, and compares."""
    compiled = lamella.compile(fn, fullgraph=True)
    for _ in range(2):
        here = compiled(*tensors)
        there = compiled(*(tensor.cuda() for tensor in tensors))
        if isinstance(here, lamella.Tensor):
            here, there = (here,), (there,)
        for a, b in zip(there, here, strict=True):
            same(a, b)
    return compiled


# ---- Compiled functions --------------------------------------------------------------------------

X = lamella.randn(4, 8, generator=lamella.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x * 2 + 1).relu().exp(),
        lambda x: (x.sum(0), x.mean(), x.amax(1), x.softmax(-1)),
        lambda x: (x @ x.t()).tanh(),
        lambda x: (x.t(), x[1:, ::2], x.reshape(8, 4), x.flip(0), x.expand(2, 4, 8)),
        lambda x: lamella.cat([x, x * 2], 1).to(lamella.bfloat16),
        lambda x: lamella.where(x > 0, x, lamella.zeros_like(x)),
        lambda x: (x.sort(1)[0], x.argmax(1), x.cumsum(0)),
        lambda x: x[lamella.tensor([2, 0], device=x.device)],
        lambda x: nn.functional.layer_norm(x, (8,)) + lamella.arange(8, device=x.device),
        lambda x: (x.sum() * 0 + 1, x[:1, :1] + 1, x[:0]),
    ],
)
def test_functions(cuda, fn):
    both(fn, X)


def test_nothing_is_waited_for_and_constants_are_copied_once(cuda, standin):
    table = lamella.arange(8.0).cuda()
    fn = lamella.compile(lambda x: (x * table + 0.5).relu() - lamella.ones_like(x))
    module = hlo.compile(
        "HloModule m\nENTRY e { a = f32[4] parameter(0) c = f32[4] constant({1, 2, 3, 4})"
        " ROOT r = f32[4] multiply(a, c) }"
    )
    x = X.cuda()
    for call in (lambda: fn(x), lambda: module(x[0, :4])[0]):
        expected = call()
        call()
        cuda.synchronize()
        cuda.reset_fallbacks()
        standin.standin_reset_calls()
        made = call()
        for function in ("cuStreamSynchronize", "cuCtxSynchronize", "cuMemcpyDtoHAsync_v2",
                         "cuMemcpyHtoDAsync_v2", "cuMemAlloc_v2"):  # fmt: skip
            assert standin.calls(function) == 0, function
        assert cuda.fallbacks() == {}
        assert made.tolist() == expected.tolist()


def test_gradients_and_modules(cuda):
    lamella.manual_seed(2)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3))
    results = []
    for device in ("cpu", "cuda"):
        model = model.to(device)
        x = X.clone().to(device).requires_grad_()
        compiled = lamella.compile(lambda x, model=model: model(x).pow(2).mean(), fullgraph=True)
        for _ in range(2):
            model.zero_grad()
            x.grad = None
            compiled(x).backward()
        results.append([x.grad, *(p.grad.clone() for p in model.parameters())])
    for on_host, on_device in zip(*results, strict=True):
        same(on_device, on_host)


def test_training_step(cuda):
    losses = []
    for device in ("cpu", "cuda"):
        lamella.manual_seed(3)
        model = nn.Linear(8, 2).to(device)
        optimizer = lamella.optim.AdamW(model.parameters(), lr=0.05)
        x, y = X.to(device), X[:, :2].to(device)

        def step(model=model, optimizer=optimizer, x=x, y=y):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        step()
        compiled = lamella.compile(step)
        losses.append([compiled().item() for _ in range(4)])
        assert all(p.device.type == device for p in model.parameters())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5) and losses[1][-1] < losses[1][0]


def test_arguments_are_written(cuda):
    @lamella.compile(fullgraph=True)
    def fn(x, y):
        y.add_(x)
        return y * 2, x.view(-1)

    x, y = X.cuda(), lamella.ones(4, 8, device="cuda")
    doubled, view = fn(x, y)
    same(y, X + 1)
    same(doubled, (X + 1) * 2)
    view.zero_()
    assert x.abs().sum().item() == 0


def test_what_a_program_cannot_be(cuda):
    """Programs run on one device, and draw no random numbers there."""
    x = X.cuda()
    for fn, why in [
        (lambda x: x.cpu(), "it returns a tensor on cpu"),
        (lambda x: x + lamella.rand(8, device="cuda"), "it draws random numbers on cuda:0"),
    ]:
        with pytest.raises(RuntimeError) as caught:
            lamella.compile(fn, fullgraph=True)(x)
        assert why in str(caught.value)
        assert lamella.compile(fn)(x).device == fn(x).device
    with pytest.raises(RuntimeError, match="it returns a tensor on cuda:0"):
        lamella.compile(lambda x: x.cuda(), fullgraph=True)(X)
    if cuda.device_count() > 1:
        with pytest.raises(RuntimeError, match="it takes tensors on cuda:0, cuda:1"):
            lamella.compile(lambda a, b: (a + 1, b + 1), fullgraph=True)(x, X.to("cuda:1"))


def test_autocast(cuda):
    fn = lamella.compile(lambda x: x @ x.t(), fullgraph=True)
    x = X.cuda()
    for dtype in (lamella.bfloat16, lamella.float16):
        with lamella.autocast("cuda", dtype=dtype):
            assert fn(x).dtype == dtype
    assert fn(x).dtype == lamella.float32


# ---- Modules -------------------------------------------------------------------------------------

MODULES = {
    "structure": """
        a = f32[4,8] parameter(0)
        b = (f32[4,8], s32[2]) parameter(1)
        c = f32[4,8] get-tuple-element(b), index=0
        d = s32[2] get-tuple-element(b), index=1
        e = s32[2] add(d, d)
        f = s32[4,3] iota(), iota_dimension=1
        g = f32[32] reshape(a)
        ROOT r = (f32[4,8], (s32[2], s32[4,3]), f32[32], f32[4,8]) tuple(c, h, g, c)
    """.replace("ROOT", "h = (s32[2], s32[4,3]) tuple(e, f)\n ROOT"),
    "movement": """
        a = f32[4,8] parameter(0)
        z = f32[] constant(2)
        p = f32[6,17] pad(a, z), padding=1_1x0_2_1
        t = f32[8,4] transpose(a), dimensions={1,0}
        s = f32[2,3] slice(a), slice={[0:4:2], [1:7:2]}
        b = f32[3,4,8] broadcast(a), dimensions={1,2}
        c = f32[8,8] concatenate(a, a), dimensions={0}
        v = f32[4,8] reverse(a), dimensions={1}
        i = s32[] constant(1)
        d = f32[2,8] dynamic-slice(a, i, i), dynamic_slice_sizes={2,8}
        ROOT r = (f32[6,17], f32[8,4], f32[2,3], f32[3,4,8], f32[8,8], f32[4,8], f32[2,8])
          tuple(p, t, s, b, c, v, d)
    """,
}
LOOP = """HloModule m
condition { s = (s32[], f32[4,8]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  m = s32[] constant(3)
  ROOT r = pred[] compare(n, m), direction=LT }
body { s = (s32[], f32[4,8]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[4,8] get-tuple-element(s), index=1
  o = s32[] constant(1)
  n2 = s32[] add(n, o)
  x2 = f32[4,8] add(x, x)
  ROOT r = (s32[], f32[4,8]) tuple(n2, x2) }
yes { x = f32[4,8] parameter(0) ROOT r = f32[4,8] negate(x) }
no { x = f32[4,8] parameter(0) ROOT r = f32[4,8] sine(x) }
ENTRY e { a = f32[4,8] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[4,8]) tuple(z, a)
  w = (s32[], f32[4,8]) while(s), condition=condition, body=body
  x = f32[4,8] get-tuple-element(w), index=1
  n = s32[] get-tuple-element(w), index=0
  k = s32[] constant(3)
  p = pred[] compare(n, k), direction=EQ
  ROOT r = f32[4,8] conditional(p, x, a), true_computation=yes, false_computation=no }
"""


def run_both(program, *arguments):
    on_host = program(*arguments)
    on_device = program(*(a.cuda() for a in arguments))
    for there, here in zip(on_device, on_host, strict=True):
        same(there, here)
    return on_device


def test_modules(cuda):
    x, n = X, lamella.tensor([3, 4], dtype=lamella.int32)
    given = {"structure": (x, x + 1, n), "movement": (x,)}
    for name, body in MODULES.items():
        made = run_both(hlo.compile(f"HloModule m\nENTRY e {{ {body} }}"), *given[name])
        memory = [tensor.data_ptr() for tensor in made]
        assert len(set(memory)) == len(memory)
        assert all(tensor.is_contiguous() for tensor in made)
    run_both(hlo.compile(LOOP), X)


def test_what_only_the_host_has_is_counted(cuda):
    """An opcode without an operator runs by the host's rule, on copies."""
    text = """HloModule m
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { a = f32[4,8] parameter(0)
  b = f32[4,8] sort(a), dimensions={1}, to_apply=less
  ROOT r = f32[4,8] add(b, b) }"""
    program = hlo.compile(text)
    run_both(program, X)
    assert cuda.fallbacks() == {"hlo::sort": 1}
    assert "rule on the host of sort" in program.explain()


def test_arguments_of_modules(cuda):
    program = hlo.compile("HloModule m\nENTRY e { a = f32[2] parameter(0) b = f32[2] parameter(1)"
                          " ROOT r = f32[2] add(a, b) }")  # fmt: skip
    x = lamella.ones(2, device="cuda")
    for other in (lamella.ones(2), x):
        (made,) = program(x, other)
        assert made.device == x.device and made.tolist() == [2, 2]
    with pytest.raises(RuntimeError) as caught:
        program(x, lamella.ones(3, device="cuda"))
    assert str(caught.value) == "hlo: expected argument 1 ('b') to be f32[2], got f32[3]"
    add = hlo.as_operator(program.module, "checks_programs::add")
    same(add(x, x), lamella.full((2,), 2.0))
    assert cuda.fallbacks() == {}


def test_traces(cuda):
    """A trace of the device's tensors is a module like any other, factories included."""
    graph = lamella.trace(lambda x: (x * 2 + lamella.ones(8, device=x.device)).sum(0), X.cuda())
    program = hlo.compile(hlo.from_trace(graph))
    run_both(program, X)
    same(graph(X.cuda() + 1), program(X + 1)[0])


def test_custom_calls_get_the_device(cuda, standin):
    """A call in XLA's convention gets addresses and the current stream, without any copy."""
    signature = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p, ctypes.c_size_t
    )
    seen = []

    @signature
    def copy(stream, buffers, opaque, size):
        seen.append((stream, buffers[0], ctypes.string_at(opaque, size)))
        standin.cuMemcpyDtoDAsync_v2(
            ctypes.c_uint64(buffers[1]), ctypes.c_uint64(buffers[0]), ctypes.c_size_t(128),
            ctypes.c_void_p(stream),
        )  # fmt: skip

    hlo.register_custom_call_target("checks_copy", copy, platform="CUDA")
    program = hlo.compile(
        """HloModule m
ENTRY e { a = f32[4,8] parameter(0)
  b = f32[4,8] custom-call(a), custom_call_target="checks_copy", backend_config="text"
  ROOT r = f32[4,8] add(b, a) }""",
        platform="CUDA",
    )
    x = X.cuda()
    program(x)
    cuda.synchronize()
    standin.standin_reset_calls()
    side = cuda.Stream()
    with cuda.stream(side):
        (made,) = program(x)
    assert standin.calls("cuMemcpyDtoHAsync_v2") == standin.calls("cuStreamSynchronize") == 0
    assert seen[-1] == (side.cuda_stream, x.data_ptr(), b"text")
    cuda.current_stream().wait_stream(side)
    same(made, X * 2)
