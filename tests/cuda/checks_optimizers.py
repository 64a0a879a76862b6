"""Steps of optimizers on "cuda": the CPU's results, without its help and without waiting."""

import pytest

import lamella
from lamella.optim import SGD, Adam, AdamW

WAYS = [
    (SGD, {"lr": 0.1}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "dampening": 0.1}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (Adam, {"lr": 0.01}),
    (Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    (AdamW, {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    (AdamW, {"lr": lamella.tensor(0.01)}),
]


def trained(way, options, dtype, device, steps=3, more=1):
    parameters = [
        (lamella.arange(24.0).reshape(2, 3, 4) / 7 - 1).to(dtype).to(device),
        lamella.linspace(-1, 1, 10).reshape(2, 5).t().to(dtype).to(device),
        lamella.ones(0, 3, dtype=dtype, device=device),
        *(lamella.full((i + 1,), 0.5, dtype=dtype, device=device) for i in range(more)),
    ]
    for p in parameters:
        p.requires_grad_()
    optimizer = way(parameters, **options)
    for step in range(steps):
        for p in parameters:
            p.grad = (p.detach() * (step + 1) + 1).clone()
        optimizer.step()
    return [p.detach() for p in parameters]


@pytest.mark.parametrize("dtype", [lamella.float32, lamella.float64, lamella.bfloat16], ids=str)
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_steps(way, dtype, cuda):
    expected = trained(*WAYS[way], dtype, "cpu", more=50)
    cuda.reset_fallbacks()
    got = trained(*WAYS[way], dtype, "cuda", more=50)
    # Powers and roots of the two machines may differ in the last place.
    tolerance = {lamella.float32: 1e-6, lamella.float64: 1e-14, lamella.bfloat16: 8e-3}[dtype]
    for a, b in zip(expected, got):
        assert lamella.allclose(a, b.cpu(), rtol=tolerance, atol=tolerance)
    assert not [name for name in cuda.fallbacks() if "fused" in name]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_steps_wait_for_nothing(way, cuda, standin):
    kind, options = WAYS[way]
    p = lamella.ones(5, device="cuda").requires_grad_()
    optimizer = kind([p], **options)
    (p * p).sum().backward()
    optimizer.step()
    cuda.synchronize()
    standin.standin_reset_calls()
    cuda.reset_fallbacks()
    optimizer.step()
    waits = (
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "cuMemcpyDtoHAsync_v2",
        "cuEventSynchronize",
    )
    assert not any(standin.calls(name) for name in waits) and cuda.fallbacks() == {}


def test_scaled_gradients():
    for infinite in (0.0, 1.0):
        results = []
        for device in ("cpu", "cuda"):
            p, g = (lamella.arange(1.0, 5, device=device) for _ in range(2))
            state = [lamella.zeros(4, device=device) for _ in range(2)]
            scale = {"grad_scale": lamella.tensor(8.0, device=device)}
            scale["found_inf"] = lamella.tensor(infinite, device=device)
            lamella._fused_adam_(
                [p], [g], state[:1], state[1:], [], [lamella.tensor(1.0)], lr=0.1, beta1=0.9,
                beta2=0.99, weight_decay=0, eps=1e-8, amsgrad=False, maximize=False, **scale,
            )  # fmt: skip
            lamella._fused_sgd_(
                [p], [g], [], weight_decay=0, momentum=0, lr=0.1, dampening=0, nesterov=False,
                maximize=False, is_first_step=False, **scale,
            )  # fmt: skip
            results.append([t.cpu() for t in (p, g, *state)])
        for a, b in zip(*results):
            assert lamella.allclose(a, b)
        assert infinite == 0 or results[1][0].tolist() == [1, 2, 3, 4]


def test_errors():
    def message(device):
        p = lamella.ones(3, device=device)
        with pytest.raises(RuntimeError) as error:
            lamella._fused_sgd_(
                [p], [p[:2]], [], weight_decay=0, momentum=0, lr=0.1, dampening=0, nesterov=False,
                maximize=False, is_first_step=False,
            )  # fmt: skip
        return str(error.value)

    assert message("cuda") == message("cpu")
