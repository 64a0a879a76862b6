"""Losses against PyTorch."""

from operator_cases import check, error_of, make, torch


def test_operands_of_other_layouts_and_dtypes():
    check("mse_loss", make(6, 5).t(), make(5, 6), 2)
    check("mse_loss", make(3, 1, 4), make(5, 4), 1)
    check("mse_loss", make(0, 3), make(0, 3), 1)
    check("nll_loss_forward", make(8, 5), make(8, dtype=torch.uint8), None, 1, -100)
    check("mse_loss", make(300, 700), make(300, 700, seed=1), 2, tolerance=(1e-5, 0))


def test_nll_loss_backward_checks_the_total_weight():
    x, target = make(2, 3), torch.tensor([0, 2])

    def error(total, grad=torch.ones(())):
        return error_of("nll_loss_backward", grad, x, target, None, 1, -100, total)

    assert error(torch.ones(0)) == (
        "nll_loss_backward: expected 'total_weight' to be one number, got [0]"
    )
    assert error(torch.ones((), dtype=torch.float16)) == (
        "nll_loss_backward: expected 'total_weight' to be float32, got float16"
    )
    assert error(torch.ones(()), torch.ones((), dtype=torch.float64)) == (
        "nll_loss_backward: expected 'grad_output' to be float32, got float64"
    )


def test_classes_of_lines_and_volumes():
    for shape in ((2, 5, 3), (2, 5, 2, 3, 2)):
        target = make(2, *shape[2:], dtype=torch.int64, low=0)
        for weight in (None, make(5, low=0.5, high=2)):
            given = (make(*shape), target, weight, 0, 2, 0.2)
            check("cross_entropy_loss", *given, tolerance=(1e-5, 1e-6), strides=False)
