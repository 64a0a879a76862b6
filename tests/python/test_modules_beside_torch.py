"""Modules beside PyTorch's: names, signatures, values, losses and clipped gradients."""

import importlib
import inspect

import pytest

import lamella
from lamella import nn


def test_modules_are_found_where_torch_has_them():
    """Programs import these names from the files of torch.nn."""
    names = {
        "common_types": ["_size_1_t", "_size_2_t", "_size_any_t", "_ratio_3_t"],
        "init": ["_calculate_fan_in_and_fan_out"],
        "modules.activation": ["MultiheadAttention", "Softmax2d"],
        "modules.batchnorm": ["_BatchNorm", "_NormBase"],
        "modules.conv": ["_ConvNd", "_ConvTransposeNd"],
        "modules.dropout": ["_DropoutNd"],
        "modules.instancenorm": ["_InstanceNorm"],
        "modules.loss": ["_Loss", "_WeightedLoss"],
        "modules.pooling": ["_AvgPoolNd", "_MaxPoolNd", "_AdaptiveAvgPoolNd"],
        "modules.rnn": ["RNNBase"],
        "modules.transformer": ["_get_clones"],
        "modules.utils": ["_ntuple", "_pair", "_reverse_repeat_tuple", "_single", "_triple"],
        "utils.clip_grad": ["clip_grad_norm_", "clip_grad_value_"],
        "utils.convert_parameters": ["parameters_to_vector"],
        "utils.parametrize": ["register_parametrization"],
        "utils.rnn": ["PackedSequence", "pad_sequence"],
        "utils.stateless": ["functional_call"],
    }
    for place, found in names.items():
        module = importlib.import_module(f"lamella.nn.{place}")
        for name in found:
            assert hasattr(module, name), (place, name)
    assert isinstance(nn.BatchNorm2d(1), nn.modules.batchnorm._BatchNorm)
    with pytest.raises(AttributeError, match="module 'lamella.nn' has no attribute 'Conv4d'"):
        nn.Conv4d  # noqa: B018


def test_signatures_are_those_of_torch():
    torch = pytest.importorskip("torch")
    rest = {"Tensor", "Any"}
    compared = 0

    def default(value):
        return value.__name__ if inspect.isfunction(value) else value

    for name in dir(nn):
        own, their = getattr(nn, name), getattr(torch.nn, name, None)
        if not isinstance(own, type) or name in rest or their is None or name == "Module":
            continue
        found = [
            (p.name, p.kind, default(p.default)) for p in inspect.signature(own).parameters.values()
        ]
        wanted = [
            (p.name, p.kind, default(p.default))
            for p in inspect.signature(their).parameters.values()
            # Names that torch has given up.
            if p.name not in ("min_value", "max_value")
        ]
        assert found == wanted, name
        compared += 1
    assert compared > 80


def close(found, wanted):
    return found.detach().flatten().tolist() == pytest.approx(
        wanted.detach().flatten().tolist(), rel=1e-5, abs=1e-5
    )


def test_the_same_layers_as_torch():
    """Made after the same seed, layers have torch's values, text and state."""
    torch = pytest.importorskip("torch")
    cases = [
        ("Linear", (4, 3), (2, 4)),
        ("Conv1d", (2, 3, 3), (2, 2, 7)),
        ("Conv2d", (2, 4, 3), (2, 2, 6, 6)),
        ("Conv2d", (2, 4, 3, 2, 1, 1, 2, False), (2, 2, 6, 6)),
        ("Conv2d", (2, 4, 3, 1, "same"), (2, 2, 6, 6)),
        ("Conv2d", (2, 4, 3, 1, 1, 1, 1, True, "reflect"), (2, 2, 6, 6)),
        ("ConvTranspose2d", (2, 4, 3, 2, 1, 1), (2, 2, 5, 5)),
        ("LayerNorm", (4,), (2, 4)),
        ("RMSNorm", (4,), (2, 4)),
        ("GroupNorm", (2, 4), (2, 4, 3)),
        ("BatchNorm1d", (4,), (5, 4)),
        ("BatchNorm2d", (3, 1e-3, None), (2, 3, 4, 4)),
        ("Embedding", (5, 3, 1), None),
        ("Softmax", (1,), (2, 3)),
        ("LogSoftmax", (1,), (2, 3)),
        ("GELU", ("tanh",), (2, 3)),
        ("SiLU", (), (2, 3)),
        ("ReLU", (), (2, 3)),
        ("LeakyReLU", (0.2,), (2, 3)),
        ("ELU", (), (2, 3)),
        ("Softplus", (), (2, 3)),
        ("MaxPool2d", (2,), (1, 2, 4, 4)),
        ("AvgPool2d", (2,), (1, 2, 4, 4)),
        ("AdaptiveAvgPool2d", (2,), (1, 2, 5, 4)),
        ("Flatten", (), (2, 3, 4)),
        ("Identity", (), (2, 3)),
    ]
    for name, args, shape in cases:
        lamella.manual_seed(1)
        torch.manual_seed(1)
        own, their = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
        assert repr(own) == repr(their)
        assert list(own.state_dict()) == list(their.state_dict())
        for key, value in their.state_dict().items():
            if not isinstance(own, (nn.Conv2d, nn.Conv1d, nn.ConvTranspose2d)):
                assert close(own.state_dict()[key], value), (name, key)
        own.load_state_dict(
            {k: lamella.from_numpy(v.numpy().copy()) for k, v in their.state_dict().items()}
        )
        x = torch.randn(shape) if shape else torch.tensor([[0, 4], [1, 2]])
        for training in (True, False):
            own.train(training)
            their.train(training)
            found, wanted = own(lamella.from_numpy(x.numpy())), their(x)
            assert tuple(found.shape) == tuple(wanted.shape), name
            assert close(found, wanted), (name, training)
        for key, value in their.state_dict().items():
            assert close(own.state_dict()[key], value), (name, key)


def test_losses():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    scores, classes = torch.randn(4, 3), torch.tensor([0, 2, 1, 2])
    other, half = torch.randn(4, 3), torch.rand(4, 3)
    weight = torch.tensor([1.0, 2.0, 0.5])
    cases = [
        ("CrossEntropyLoss", {}, (scores, classes)),
        ("CrossEntropyLoss", {"ignore_index": 2, "reduction": "sum"}, (scores, classes)),
        ("CrossEntropyLoss", {"weight": weight, "label_smoothing": 0.1}, (scores, classes)),
        ("NLLLoss", {}, (scores.log_softmax(1), classes)),
        ("MSELoss", {}, (scores, other)),
        ("MSELoss", {"reduction": "none"}, (scores, other)),
        ("L1Loss", {"reduction": "sum"}, (scores, other)),
        ("SmoothL1Loss", {"beta": 0.5}, (scores, other)),
        ("HuberLoss", {"delta": 0.5}, (scores, other)),
        ("BCEWithLogitsLoss", {"pos_weight": weight}, (scores, half)),
        ("BCELoss", {}, (half, half)),
        ("KLDivLoss", {"reduction": "batchmean"}, (scores, half)),
    ]

    def to_own(value):
        return lamella.from_numpy(value.numpy()) if isinstance(value, torch.Tensor) else value

    for name, options, args in cases:
        own = getattr(nn, name)(**{k: to_own(v) for k, v in options.items()})
        wanted = getattr(torch.nn, name)(**options)(*args)
        found = own(*map(to_own, args))
        assert close(found, wanted), name
    with pytest.raises(ValueError) as error:
        nn.MSELoss(reduction="all")
    assert str(error.value) == ("MSELoss: expected 'reduction' to be none, mean or sum, got 'all'")


def test_gradient_clipping():
    torch = pytest.importorskip("torch")
    for order in (1.0, 2.0, float("inf")):
        own = [nn.Parameter(lamella.ones(3)), nn.Parameter(lamella.ones(2, 2))]
        their = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))]
        for tensors, package in ((own, lamella), (their, torch)):
            tensors[0].grad = package.tensor([1.0, -2.0, 3.0])
            tensors[1].grad = package.full((2, 2), 0.5)
        total = nn.utils.clip_grad_norm_(own, 1.5, order)
        wanted = torch.nn.utils.clip_grad_norm_(their, 1.5, order)
        assert total.item() == pytest.approx(wanted.item())
        assert own[0].grad.tolist() == pytest.approx(their[0].grad.tolist())
        nn.utils.clip_grad_value_(own, 0.2)
        assert own[0].grad.abs().max().item() <= 0.2 + 1e-7
    own[0].grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match="expected the total norm of order 2.0 to be finite"):
        nn.utils.clip_grad_norm_(own, 1.0, error_if_nonfinite=True)
