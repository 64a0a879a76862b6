"""How tensors and values print: as in PyTorch."""

import pytest

import lamella

torch = pytest.importorskip("torch")

CASES = [
    "tensor(1.)",
    "tensor([1., 2.5, -3.])",
    "tensor([[1., 2.], [30., 4.]])",
    "tensor([1e-5, 1.])",
    "tensor([1e9, 1.5])",
    "tensor([float('nan'), float('inf'), 1.])",
    "tensor([0., 0.])",
    "tensor([True, False])",
    "tensor([1, -20, 300])",
    "tensor([1, 2], dtype=T.int8)",
    "tensor([1.5], dtype=T.float64)",
    "tensor([1.5], dtype=T.bfloat16)",
    "tensor([1 + 2j, -0.5j])",
    "tensor([])",
    "tensor([], dtype=T.int64)",
    "zeros(2, 0)",
    "zeros(2, 0, dtype=T.int32)",
    "arange(1001)",
    "arange(30.).reshape(2, 3, 5)",
    "arange(5000).reshape(10, 20, 25)",
    "arange(40.) * 1000.5",
    "empty(2, 3, device='meta')",
    "empty(2, dtype=T.int64, device='meta')",
    "tensor([[1.]]).T",
    "max(T.tensor([[1., 2.], [3., 0.]]), 1)",
    "linalg.slogdet(T.eye(2))",
]


@pytest.mark.parametrize("case", CASES)
def test_tensors(case):
    ours = repr(eval(f"T.{case}", {"T": lamella}))
    assert ours.replace("lamella.", "torch.") == repr(eval(f"T.{case}", {"T": torch}))


def test_format_and_values():
    assert f"{lamella.tensor(2.5):.3f}" == "2.500"
    assert repr(lamella.Size([2, 3])) == "lamella.Size([2, 3])"
    assert repr(lamella.device("cuda", 1)) == "device(type='cuda', index=1)"
    assert repr(lamella.float32) == "lamella.float32"
    assert repr(lamella.channels_last) == "lamella.channels_last"


def test_print_options():
    x = lamella.tensor([1.23456789, 2.0])
    try:
        lamella.set_printoptions(precision=2)
        assert repr(x) == "tensor([1.23, 2.00])"
        lamella.set_printoptions(sci_mode=True)
        assert repr(x) == "tensor([1.23e+00, 2.00e+00])"
    finally:
        lamella.set_printoptions(profile="default")
    with pytest.raises(ValueError, match="expected 'profile' to be default, short or full"):
        lamella.set_printoptions(profile="tiny")
