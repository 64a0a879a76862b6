"""Every module of lamella.nn against PyTorch's: text, state, first values, outputs, gradients."""

import copy
import pickle

import pytest

import lamella
from lamella import nn

torch = pytest.importorskip("torch")


def image(*shape):
    return torch.randn(shape)


def positive(*shape):
    return torch.rand(shape) + 0.1


def integers(high, *shape):
    return torch.randint(0, high, shape)


def signs(*shape):
    """Targets, for which PyTorch has no gradients."""
    made = torch.randint(0, 2, shape) * 2.0 - 1
    made.is_target = True
    return made


# (class, arguments, keywords, inputs); inputs are made after the seed, for each case anew.
CASES = [
    # Activations
    *[
        (name, (), {}, lambda: [image(3, 4, 5, 6)])
        for name in (
            "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish "
            "PReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax2d Softplus Softshrink Softsign Tanh "
            "Tanhshrink Identity Dropout Dropout2d AlphaDropout FeatureAlphaDropout RReLU"
        ).split()
    ],
    ("Hardshrink", (0.1,), {}, lambda: [image(5)]),
    ("Softshrink", (), {"lambd": 0.2}, lambda: [image(5)]),
    ("RReLU", (0.2, 0.3), {}, lambda: [image(2, 5)]),
    ("PReLU", (4, 0.1), {}, lambda: [image(3, 4, 5)]),
    ("Softmax2d", (), {}, lambda: [image(4, 5, 6)]),
    ("Threshold", (0.1, 20), {}, lambda: [image(4, 5)]),
    ("GLU", (1,), {}, lambda: [image(3, 4, 5)]),
    ("Softmin", (1,), {}, lambda: [image(3, 4)]),
    # Padding
    *[
        (f"{kind}Pad{d}d", (padding,), {}, lambda d=d: [image(2, 3, *range(5, 5 + d))])
        for kind in ("Circular", "Reflection", "Replication", "Zero")
        for d in (1, 2, 3)
        for padding in (1, tuple(range(2 * d)) if d < 3 else (1, 0, 2, 1, 1, 3))
    ],
    ("ConstantPad1d", (2, 3.5), {}, lambda: [image(2, 4)]),
    ("ConstantPad2d", ((1, -1, 0, 2), 3.5), {}, lambda: [image(2, 3, 4)]),
    ("ConstantPad3d", (1, -2), {}, lambda: [image(2, 3, 4, 5)]),
    ("CircularPad2d", (1,), {}, lambda: [image(3, 4, 5)]),
    # Pooling
    ("LPPool1d", (2, 3), {"stride": 2}, lambda: [positive(2, 3, 9)]),
    ("LPPool2d", (1.2, (3, 2)), {"stride": (2, 1)}, lambda: [positive(2, 3, 9, 7)]),
    ("LPPool3d", (2, 3), {"ceil_mode": True}, lambda: [positive(2, 2, 7, 7, 7)]),
    ("FractionalMaxPool2d", (2,), {"output_size": (4, 3)}, lambda: [image(2, 3, 9, 7)]),
    ("FractionalMaxPool2d", ((2, 3),), {"output_ratio": 0.5}, lambda: [image(3, 9, 8)]),
    ("FractionalMaxPool3d", (2,), {"output_size": 3}, lambda: [image(2, 3, 7, 7, 8)]),
    ("AdaptiveAvgPool1d", (3,), {}, lambda: [image(2, 3, 7)]),
    ("AdaptiveAvgPool3d", ((2, None, 3),), {}, lambda: [image(2, 3, 5, 4, 6)]),
    ("AdaptiveMaxPool1d", (3,), {}, lambda: [image(2, 3, 7)]),
    ("AdaptiveMaxPool2d", ((2, None),), {}, lambda: [image(2, 3, 5, 4)]),
    ("AdaptiveMaxPool3d", (2,), {}, lambda: [image(2, 3, 5, 4, 6)]),
    ("MaxPool1d", (3, 2, 1), {"return_indices": True}, lambda: [image(2, 3, 9)]),
    ("MaxPool2d", (3, 2, 1), {"ceil_mode": True}, lambda: [image(2, 3, 8, 9)]),
    ("MaxPool3d", (2,), {"dilation": 2}, lambda: [image(2, 3, 5, 6, 7)]),
    ("AvgPool1d", (3, 2), {}, lambda: [image(2, 3, 9)]),
    ("AvgPool2d", (3,), {"divisor_override": 2}, lambda: [image(2, 3, 9, 8)]),
    ("AvgPool3d", (2, 2, 1, True, False), {}, lambda: [image(2, 3, 5, 5, 5)]),
    # Convolutions
    ("Conv1d", (4, 6, 3), {"groups": 2, "padding": "same"}, lambda: [image(2, 4, 9)]),
    (
        "Conv2d",
        (3, 4, (3, 2)),
        {"padding_mode": "circular", "padding": (1, 2)},
        lambda: [image(2, 3, 6, 7)],
    ),
    ("Conv2d", (3, 4, 3), {"padding_mode": "reflect", "padding": "same"}, lambda: [image(3, 6, 7)]),
    (
        "Conv3d",
        (2, 3, 2),
        {"padding_mode": "replicate", "padding": 1, "bias": False},
        lambda: [image(2, 2, 4, 4, 4)],
    ),
    ("ConvTranspose1d", (4, 6, 3, 2, 1, 1), {"groups": 2}, lambda: [image(2, 4, 5)]),
    ("ConvTranspose2d", (3, 4, 3), {"dilation": 2, "bias": False}, lambda: [image(2, 3, 5, 4)]),
    ("ConvTranspose3d", (2, 3, 2, 2), {}, lambda: [image(2, 2, 3, 3, 3)]),
    ("Fold", ((4, 5), (2, 2)), {}, lambda: [image(2, 12, 12)]),
    ("Fold", (4, 2), {"stride": 2, "dilation": 1, "padding": 1}, lambda: [image(8, 9)]),
    ("Unfold", ((2, 3),), {"padding": 1, "stride": (1, 2)}, lambda: [image(2, 3, 6, 7)]),
    # Norms
    ("BatchNorm1d", (3,), {"affine": False}, lambda: [image(4, 3, 5)]),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, lambda: [image(4, 3, 5, 2)]),
    ("BatchNorm3d", (3,), {"bias": False}, lambda: [image(4, 3, 2, 3, 2)]),
    ("InstanceNorm1d", (3,), {}, lambda: [image(4, 3, 5)]),
    ("InstanceNorm2d", (3,), {"affine": True}, lambda: [image(4, 3, 5, 2)]),
    ("InstanceNorm3d", (3,), {"track_running_stats": True}, lambda: [image(4, 3, 5, 2, 3)]),
    ("LocalResponseNorm", (3, 0.5, 0.6, 2.0), {}, lambda: [image(2, 7, 3, 4)]),
    ("GroupNorm", (2, 4), {"affine": False}, lambda: [image(3, 4, 5)]),
    ("LayerNorm", ((4, 5),), {"bias": False}, lambda: [image(3, 4, 5)]),
    # Tables
    ("Embedding", (7, 3), {"scale_grad_by_freq": True}, lambda: [integers(7, 2, 9)]),
    ("Embedding", (7, 3), {"max_norm": 1.0, "norm_type": 1.5}, lambda: [integers(7, 2, 9)]),
    ("EmbeddingBag", (7, 3), {}, lambda: [integers(7, 2, 9)]),
    ("EmbeddingBag", (7, 3), {"mode": "max", "padding_idx": -1}, lambda: [integers(7, 2, 9)]),
    (
        "EmbeddingBag",
        (7, 3),
        {"mode": "sum", "max_norm": 1.0},
        lambda: [integers(7, 9), torch.tensor([0, 2, 5]), positive(9)],
    ),
    (
        "EmbeddingBag",
        (7, 3),
        {"include_last_offset": True},
        lambda: [integers(7, 9), torch.tensor([0, 2, 9])],
    ),
    # Sizes that the first input tells
    ("LazyLinear", (4,), {}, lambda: [image(2, 5)]),
    ("LazyConv1d", (4, 3), {"bias": False}, lambda: [image(2, 3, 7)]),
    ("LazyConv2d", (4, 3, 1, 1), {"padding_mode": "reflect"}, lambda: [image(2, 3, 7, 6)]),
    ("LazyConv3d", (4, 2), {}, lambda: [image(3, 4, 4, 4)]),
    ("LazyConvTranspose1d", (4, 3), {}, lambda: [image(2, 3, 7)]),
    ("LazyConvTranspose2d", (4, 3), {"groups": 2}, lambda: [image(2, 6, 4, 5)]),
    ("LazyConvTranspose3d", (4, 2), {}, lambda: [image(2, 3, 3, 3, 3)]),
    ("LazyBatchNorm1d", (), {}, lambda: [image(4, 3)]),
    ("LazyBatchNorm2d", (1e-3, None), {"bias": False}, lambda: [image(4, 3, 2, 2)]),
    ("LazyBatchNorm3d", (), {"affine": False}, lambda: [image(4, 3, 2, 2, 2)]),
    ("LazyInstanceNorm1d", (), {}, lambda: [image(4, 3, 6)]),
    ("LazyInstanceNorm2d", (), {"track_running_stats": False}, lambda: [image(4, 3, 6, 2)]),
    ("LazyInstanceNorm3d", (), {}, lambda: [image(4, 3, 6, 2, 2)]),
    # Shapes and vectors
    ("Bilinear", (3, 4, 5), {}, lambda: [image(2, 6, 3), image(2, 6, 4)]),
    ("ChannelShuffle", (2,), {}, lambda: [image(2, 6, 3)]),
    ("PixelShuffle", (2,), {}, lambda: [image(2, 8, 3, 4)]),
    ("PixelUnshuffle", (2,), {}, lambda: [image(2, 3, 4, 6)]),
    ("Unflatten", (1, (2, 3)), {}, lambda: [image(4, 6)]),
    ("Upsample", (), {"scale_factor": 2, "mode": "bicubic"}, lambda: [image(1, 2, 3, 4)]),
    ("Upsample", ((3, 5, 7),), {"mode": "trilinear"}, lambda: [image(1, 2, 2, 3, 4)]),
    ("UpsamplingNearest2d", (5,), {}, lambda: [image(1, 2, 3, 4)]),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, lambda: [image(1, 2, 3, 4)]),
    ("CosineSimilarity", (-1,), {}, lambda: [image(3, 4), image(3, 4)]),
    ("PairwiseDistance", (3.0, 1e-3, True), {}, lambda: [image(3, 4), image(3, 4)]),
    # Losses
    *[
        (name, (), {"reduction": reduction}, inputs)
        for reduction in ("mean", "sum", "none")
        for name, inputs in (
            ("L1Loss", lambda: [image(3, 4), image(3, 4)]),
            ("SmoothL1Loss", lambda: [image(3, 4), image(3, 4)]),
            ("HingeEmbeddingLoss", lambda: [image(3, 4), signs(3, 4)]),
            ("MarginRankingLoss", lambda: [image(4), image(4), signs(4)]),
            ("CosineEmbeddingLoss", lambda: [image(4, 5), image(4, 5), signs(4)]),
            ("SoftMarginLoss", lambda: [image(3, 4), signs(3, 4)]),
            ("PoissonNLLLoss", lambda: [image(3, 4), positive(3, 4)]),
            ("GaussianNLLLoss", lambda: [image(3, 4), image(3, 4), positive(3, 4)]),
            ("TripletMarginLoss", lambda: [image(3, 4), image(3, 4), image(3, 4)]),
            ("TripletMarginWithDistanceLoss", lambda: [image(3, 4), image(3, 4), image(3, 4)]),
            ("MultiLabelSoftMarginLoss", lambda: [image(3, 4), integers(2, 3, 4).float()]),
            ("MultiLabelMarginLoss",
             lambda: [image(2, 4), torch.tensor([[3, 0, -1, 1], [1, 2, 3, -1]])]),
            ("MultiMarginLoss", lambda: [image(3, 4), integers(4, 3)]),
            ("NLLLoss", lambda: [image(3, 4, 2), integers(4, 3, 2)]),
            ("CTCLoss",
             lambda: [image(9, 2, 5).log_softmax(2), integers(4, 2, 3) + 1,
              torch.tensor([9, 7]), torch.tensor([3, 2])]),
        )
    ],
    ("MultiMarginLoss", (2, 0.5), {"weight": positive(4)}, lambda: [image(3, 4), integers(4, 3)]),
    (
        "MultiLabelSoftMarginLoss",
        (positive(4),),
        {},
        lambda: [image(3, 4), integers(2, 3, 4).float()],
    ),
    (
        "LinearCrossEntropyLoss",
        (5, 4),
        {"bias": True, "label_smoothing": 0.1},
        lambda: [image(3, 5), integers(4, 3)],
    ),
]  # fmt: skip


def to_own(value):
    """The same for lamella: of tensors, and of dictionaries, lists and tuples with them."""
    if isinstance(value, torch.Tensor):
        made = lamella.from_numpy(value.detach().numpy().copy())
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return type(value)((k, to_own(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(to_own(v) for v in value)
    return value


def flat(result):
    """The tensors of a result."""
    if result is None:
        return []
    if isinstance(result, (torch.Tensor, lamella.Tensor)):
        return [result]
    return [tensor for part in result for tensor in flat(part)]


def assert_close(found, wanted, what, tolerance=2e-5):
    assert tuple(found.shape) == tuple(wanted.shape), what
    assert str(found.dtype).split(".")[-1] == str(wanted.dtype).split(".")[-1], what
    found, wanted = torch.from_numpy(found.detach().numpy()), wanted.detach()
    close = (found - wanted).abs() <= tolerance * (1 + wanted.abs())
    assert bool((close | (found == wanted)).all()), (what, found, wanted)


def run(module, inputs, framework, targets):
    """Outputs, and gradients of the inputs and parameters, with weights that tell them apart."""
    framework.manual_seed(3)
    for t, target in zip(inputs, targets):
        t.requires_grad_(t.is_floating_point() and not target)
    outputs = flat(module(*inputs))
    loss = 0
    for output in outputs:
        if output.is_floating_point() and output.requires_grad:
            weight = framework.arange(1, 1 + output.numel()).reshape(output.shape)
            loss = loss + (output * weight).sum() / max(1, output.numel())
    if not isinstance(loss, int):
        loss.backward()
    return outputs, [t.grad for t in inputs], {k: p.grad for k, p in module.named_parameters()}


def check(own, their, make_inputs, what):
    """Both modules do the same, in training and outside."""
    for training in (True, False):
        own.train(training)
        their.train(training)
        torch.manual_seed(7)
        inputs = make_inputs()
        targets = [hasattr(t, "is_target") for t in inputs]
        found = run(own, to_own(inputs), lamella, targets)
        wanted = run(their, inputs, torch, targets)
        assert len(found[0]) == len(wanted[0]), what
        for a, b in zip(found[0], wanted[0]):
            assert_close(a, b, (what, training, "output"))
        for a, b in zip(found[1], wanted[1]):
            assert (a is None) == (b is None), what
            if b is not None:
                assert_close(a, b, (what, training, "grad of input"))
        for key, b in wanted[2].items():
            a = found[2][key]
            assert (a is None) == (b is None), (what, key)
            if b is not None:
                assert_close(a, b.to_dense() if b.is_sparse else b, (what, training, key))
        for key, b in their.state_dict().items():
            assert_close(own.state_dict()[key], b, (what, key))
        own.zero_grad()
        their.zero_grad()


def make_both(name, args, kwargs):
    torch.manual_seed(1)
    their = getattr(torch.nn, name)(*args, **kwargs)
    lamella.manual_seed(1)
    own = getattr(nn, name)(*to_own(args), **to_own(kwargs))
    return own, their


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize(
    ("name", "args", "kwargs", "inputs"),
    CASES,
    ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)],
)
def test_the_same_as_torch(name, args, kwargs, inputs):
    own, their = make_both(name, args, kwargs)
    assert repr(own) == repr(their)
    assert list(own.state_dict()) == list(their.state_dict())
    if not name.startswith("Lazy"):
        for key, value in their.state_dict().items():
            assert_close(own.state_dict()[key], value, key, 1e-6)
    check(own, their, inputs, name)
    assert repr(own) == repr(their)


def test_unpooling():
    for d in (1, 2, 3):
        x = image(2, 3, *[8] * d)
        pool = getattr(torch.nn, f"MaxPool{d}d")(2, return_indices=True)
        values, places = pool(x)
        own, their = make_both(f"MaxUnpool{d}d", (2,), {})
        assert repr(own) == repr(their)
        assert_close(own(*to_own([values, places])), their(values, places), d)
        size = [9] * d
        found = own(*to_own([values, places]), output_size=size)
        assert_close(found, their(values, places, output_size=size), d)


def test_old_response_norm():
    for size in (2, 3, 4, 5):
        own, their = make_both("CrossMapLRN2d", (size, 0.5, 0.75, 2), {})
        x = image(2, 8, 2, 3)
        assert repr(own) == repr(their)
        assert_close(own(to_own(x)), their(x), size)


def test_adaptive_softmax():
    own, their = make_both("AdaptiveLogSoftmaxWithLoss", (8, 20, [5, 10]), {"div_value": 2.0})
    assert repr(own) == repr(their)
    for key, value in their.state_dict().items():
        assert_close(own.state_dict()[key], value, key, 1e-6)
    rows, target = image(6, 8), torch.tensor([0, 4, 5, 9, 10, 19])
    found, wanted = own(*to_own([rows, target])), their(rows, target)
    assert_close(found.output, wanted.output, "output")
    found.loss.backward()
    wanted.loss.backward()
    for (key, a), b in zip(own.named_parameters(), their.parameters()):
        assert_close(a.grad, b.grad, key)
    assert_close(own.log_prob(to_own(rows)), their.log_prob(rows), "log_prob")
    assert own.predict(to_own(rows)).tolist() == their.predict(rows).tolist()
    assert_close(
        own(to_own(rows[0]), to_own(target[5])).output, their(rows[0], target[5]).output, 1
    )
    with pytest.raises(RuntimeError) as error:
        own(to_own(rows[:2]), lamella.tensor([0, 20]))
    assert str(error.value) == (
        "AdaptiveLogSoftmaxWithLoss: expected 'target_' to be in [0, 19], got values from 0 to 20"
    )


def test_layers_without_shapes():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert repr(net[0].weight) == "<UninitializedParameter>"
    assert net[3].has_uninitialized_params()
    with pytest.raises(RuntimeError, match="UninitializedParameter: expected the tensor to have a"):
        net[0].weight.shape  # noqa: B018
    made = [copy.deepcopy(net), pickle.loads(pickle.dumps(net))]
    made[0].load_state_dict(net.state_dict())
    net.double()
    x = lamella.randn(2, 3, 6, 6)
    assert tuple(net(x.double()).shape) == (2, 2)
    assert type(net[0]) is nn.Conv2d and type(net[0].weight) is nn.Parameter
    assert net[3].in_features == 64 and net[3].weight.dtype == lamella.float64
    for other in made:
        other.load_state_dict(net.state_dict())
        other.eval()
        net.eval()
        assert lamella.allclose(other(x), net(x.double()).float(), atol=1e-4)


def test_images_without_aliases():
    x = image(2, 3, 12, 17)
    for options in (
        {"size": (5, 7), "mode": "bilinear"},
        {"size": (5, 7), "mode": "bicubic"},
        {"size": (20, 9), "mode": "bicubic", "align_corners": True},
        {"size": (1, 30), "mode": "bilinear", "align_corners": True},
        {"scale_factor": 0.4, "mode": "bilinear"},
        {"scale_factor": (0.35, 2.0), "mode": "bicubic"},
        {"scale_factor": 0.4, "mode": "bicubic", "recompute_scale_factor": True},
    ):
        their = x.clone().requires_grad_()
        own = to_own(their)
        wanted = torch.nn.functional.interpolate(their, antialias=True, **options)
        found = nn.functional.interpolate(own, antialias=True, **options)
        assert_close(found, wanted, options)
        found.square().sum().backward()
        wanted.square().sum().backward()
        assert_close(own.grad, their.grad, options, 1e-4)
    with pytest.raises(ValueError) as error:
        nn.functional.interpolate(to_own(x), 4, antialias=True)
    assert str(error.value) == (
        "interpolate: expected an image and a mode of ['bilinear', 'bicubic', 'lanczos'] with "
        "'antialias', got 2 dimensions and 'nearest'"
    )


def test_states_from_before_batches_were_counted():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.InstanceNorm1d(2, track_running_stats=True))
    state = net.state_dict()
    assert state._metadata["0"]["version"] == 2
    for name in ("0", "1"):
        del state[f"{name}.num_batches_tracked"]
    with pytest.raises(RuntimeError, match="missing keys: '0.num_batches_tracked'"):
        net.load_state_dict(state)
    net[0].num_batches_tracked.fill_(5)
    for name in ("0", "1"):
        state._metadata[name]["version"] = 1
    net.load_state_dict(state)
    net.load_state_dict(dict(state))
    assert net[0].num_batches_tracked.item() == 5 and "0.num_batches_tracked" not in state


def test_extra_state_belongs_to_whom_can_take_it():
    class Takes(nn.Module):
        def set_extra_state(self, state):
            self.taken = state

    module = Takes()
    with pytest.raises(RuntimeError, match="missing key: '_extra_state'"):
        module.load_state_dict({})
    module.load_state_dict({"_extra_state": 3})
    assert module.taken == 3
    with pytest.raises(RuntimeError, match="unexpected key: '_extra_state'"):
        nn.Linear(1, 1, bias=False).load_state_dict(
            {"weight": lamella.ones(1, 1), "_extra_state": 3}
        )


def test_next_class_is_initialized_where_it_is_wished():
    class Mixin:
        def __init__(self, size=0):
            self.size = size

    class Both(nn.Module, Mixin):
        call_super_init = True

    class Alone(nn.Module, Mixin):
        pass

    assert Both(3).size == 3 and not hasattr(Alone(), "size")
    with pytest.raises(TypeError, match="expected no arguments for Module.__init__, got 1"):
        Alone(3)
