"""Losses against PyTorch."""

import pytest
from operator_cases import check, make, torch

import lamella


def test_operands_of_other_layouts_and_dtypes():
    check("mse_loss", make(6, 5).t(), make(5, 6), 2)
    check("mse_loss", make(3, 1, 4), make(5, 4), 1)
    check("mse_loss", make(0, 3), make(0, 3), 1)
    check("nll_loss_forward", make(8, 5), make(8, dtype=torch.uint8), None, 1, -100)
    check("mse_loss", make(300, 700), make(300, 700, seed=1), 2, tolerance=(1e-5, 0))


def test_classes_of_lines_and_volumes():
    for shape in ((2, 5, 3), (2, 5, 2, 3, 2)):
        target = make(2, *shape[2:], dtype=torch.int64, low=0)
        for weight in (None, make(5, low=0.5, high=2)):
            given = (make(*shape), target, weight, 0, 2, 0.2)
            check("cross_entropy_loss", *given, tolerance=(1e-5, 1e-6), strides=False)


@pytest.mark.parametrize("name", ["input_lengths", "target_lengths"])
def test_lengths_of_ctc_loss_are_integers(name):
    lengths = {"input_lengths": lamella.tensor([4, 4]), "target_lengths": lamella.tensor([2, 1])}
    lengths[name] = lengths[name].float()
    rows, targets = lamella.randn(4, 2, 5).log_softmax(2), lamella.tensor([1, 2, 3])
    with pytest.raises(TypeError) as error:
        lamella.nn.functional.ctc_loss(rows, targets, **lengths)
    assert str(error.value) == f"ctc_loss: expected '{name}' to be integers, got float32"
