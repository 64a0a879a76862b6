"""Parametrizations, and norms of weights by hooks, against PyTorch's."""

import copy
import pickle
import warnings

import pytest
from test_nn_modules import assert_close, check, to_own

import lamella
from lamella import nn
from lamella.nn.utils import parametrizations, parametrize

torch = pytest.importorskip("torch")
LAYERS = [
    ("Linear", (4, 3), (5, 4)),
    ("Conv2d", (3, 4, 3), (2, 3, 5, 5)),
    ("ConvTranspose1d", (3, 4, 3), (2, 3, 5)),
]


def both(name, args, change):
    """The same layer of both, changed by a function of the package."""
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        their = change(torch.nn, getattr(torch.nn, name)(*args))
    lamella.manual_seed(1)
    own = change(nn, getattr(nn, name)(*args))
    assert repr(own) == repr(their)
    assert list(own.state_dict()) == list(their.state_dict())
    for key, value in their.state_dict().items():
        assert_close(own.state_dict()[key], value, key, 1e-5)
    return own, their


@pytest.mark.parametrize(("name", "args", "shape"), LAYERS)
@pytest.mark.parametrize(
    "change",
    [
        lambda nn, m: nn.utils.parametrizations.weight_norm(m),
        lambda nn, m: nn.utils.parametrizations.weight_norm(m, dim=1),
        lambda nn, m: nn.utils.parametrizations.weight_norm(m, dim=None),
        lambda nn, m: nn.utils.parametrizations.spectral_norm(m),
        lambda nn, m: nn.utils.parametrizations.spectral_norm(m, n_power_iterations=3, dim=1),
        lambda nn, m: nn.utils.weight_norm(m),
        lambda nn, m: nn.utils.weight_norm(m, dim=None),
        lambda nn, m: nn.utils.spectral_norm(m),
    ],
)
def test_norms(name, args, shape, change):
    own, their = both(name, args, change)
    check(own, their, lambda: [torch.randn(shape)], name)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((4, 4), {}),
        ((3, 5), {}),
        ((5, 3), {}),
        ((4, 4), {"orthogonal_map": "cayley"}),
        ((3, 5), {"orthogonal_map": "matrix_exp", "use_trivialization": False}),
        ((5, 3), {"orthogonal_map": "householder", "use_trivialization": False}),
    ],
)
def test_orthogonal(shape, options):
    torch.manual_seed(1)
    their = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(*shape), **options)
    lamella.manual_seed(1)
    own = parametrizations.orthogonal(nn.Linear(*shape), **options)
    assert repr(own) == repr(their)
    assert list(own.state_dict()) == list(their.state_dict())
    wide = own.weight if own.weight.size(0) <= own.weight.size(1) else own.weight.t()
    assert lamella.allclose(wide @ wide.t(), lamella.eye(wide.size(0)), atol=1e-5)
    own.load_state_dict(to_own(their.state_dict()))
    assert_close(own.weight, their.weight, options)
    x = torch.randn(2, shape[0])
    own(to_own(x)).square().sum().backward()
    their(x).square().sum().backward()
    a, b = (m.parametrizations.weight.original.grad for m in (own, their))
    assert_close(a, b, options, 1e-4)
    target = lamella.linalg.qr(lamella.randn(max(shape), min(shape)))[0]
    target = target if own.weight.shape == target.shape else target.t()
    if own.parametrizations.weight[0].base is not None:
        own.weight = target
        assert lamella.allclose(own.weight, target, atol=1e-5)


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).t()

    def right_inverse(self, A):
        return A.triu()


class Scaled(nn.Module):
    def forward(self, X):
        return X * 2


def test_parametrized_tensors():
    net = nn.Linear(3, 3)
    plain = net.weight
    value = plain.detach().clone()
    assert parametrize.register_parametrization(net, "weight", Symmetric()) is net
    assert type(net).__name__ == "ParametrizedLinear" and isinstance(net, nn.Linear)
    assert parametrize.is_parametrized(net, "weight") and not parametrize.is_parametrized(
        net, "bias"
    )
    assert parametrize.type_before_parametrizations(net) is nn.Linear
    assert (net.weight == net.weight.t()).all()
    assert net.parametrizations.weight.original is plain
    assert plain.tolist() == value.triu().tolist()
    net.weight = lamella.ones(3, 3)
    assert net.weight.tolist() == [[1.0] * 3] * 3
    parametrize.register_parametrization(net, "weight", Scaled())
    assert net.weight.tolist() == [[2.0] * 3] * 3
    with parametrize.cached():
        assert net.weight is net.weight
    assert net.weight is not net.weight
    other = copy.deepcopy(net)
    net(lamella.ones(1, 3)).sum().backward()
    assert plain.grad is not None
    parametrize.remove_parametrizations(net, "weight")
    assert type(net) is nn.Linear and isinstance(net.weight, nn.Parameter)
    assert net.weight.tolist() == [[2.0] * 3] * 3 and list(net.state_dict()) == ["bias", "weight"]
    assert other.weight.tolist() == [[2.0] * 3] * 3
    parametrize.remove_parametrizations(other, "weight", leave_parametrized=False)
    assert other.weight.tolist() == lamella.ones(3, 3).triu().tolist()


def test_what_parametrizations_do_not_take():
    net = nn.Linear(3, 2)
    with pytest.raises(ValueError) as error:
        parametrize.register_parametrization(net, "gain", Scaled())
    assert str(error.value) == (
        "register_parametrization: Linear has no parameter or buffer 'gain'"
    )
    with pytest.raises(ValueError) as error:
        parametrize.register_parametrization(net, "weight", nn.Linear(3, 4))
    assert str(error.value) == (
        "parametrization: expected lamella.float32 of shape [2, 3] to be returned, got "
        "lamella.float32 of [2, 4]; unsafe=True allows it"
    )
    assert not parametrize.is_parametrized(net) and list(net.state_dict()) == ["weight", "bias"]
    with pytest.raises(ValueError) as error:
        parametrize.remove_parametrizations(net, "weight")
    assert str(error.value) == (
        "remove_parametrizations: Linear has no parametrization of 'weight'"
    )
    parametrizations.weight_norm(net)
    with pytest.raises(RuntimeError, match="expected a module without parametrizations"):
        pickle.dumps(net)
    with pytest.raises(ValueError) as error:
        parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    assert str(error.value) == (
        "remove_parametrizations: expected leave_parametrized=True for a tensor that is computed "
        "from 2"
    )


def test_norms_are_removed():
    x = lamella.ones(2, 4)
    for name in ("weight", "spectral"):
        net = nn.Linear(4, 3)
        add, remove = (getattr(nn.utils, f"{p}{name}_norm") for p in ("", "remove_"))
        add(net)
        with pytest.raises(RuntimeError) as error:
            add(net)
        assert str(error.value) == f"{name}_norm: 'weight' has one already"
        net.eval()
        before = net(x)
        remove(net)
        assert isinstance(net.weight, nn.Parameter)
        assert sorted(net.state_dict()) == ["bias", "weight"]
        assert lamella.allclose(net(x), before)
        with pytest.raises(ValueError) as error:
            remove(net)
        assert str(error.value) == f"remove_{name}_norm: 'weight' of Linear has none"


def test_the_choice_of_attention():
    from lamella.nn.attention import SDPBackend, sdpa_kernel

    q = lamella.randn(1, 2, 3, 4)
    plain = nn.functional.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert (nn.functional.scaled_dot_product_attention(q, q, q) == plain).all()
    with pytest.raises(AssertionError, match="expected 'backends' to be one SDPBackend"):
        with sdpa_kernel("math"):
            pass


def test_a_module_without_values():
    net = nn.utils.skip_init(nn.Linear, 4, 3)
    assert net.weight.device.type == "cpu" and tuple(net.weight.shape) == (3, 4)


def test_pruning():
    from lamella.nn.utils import prune

    theirs = pytest.importorskip("torch.nn.utils.prune")
    for run in (
        lambda p, m: p.l1_unstructured(m, "weight", 0.4),
        lambda p, m: p.l1_unstructured(p.l1_unstructured(m, "weight", 3), "weight", 0.5),
        lambda p, m: p.ln_structured(m, "weight", 1, n=2, dim=0),
        lambda p, m: p.ln_structured(p.ln_structured(m, "weight", 1, 1, 1), "weight", 0.5, 2, 1),
        lambda p, m: p.identity(m, "bias"),
        lambda p, m: p.random_unstructured(p.random_unstructured(m, "weight", 5), "weight", 0.5),
        lambda p, m: p.random_structured(p.l1_unstructured(m, "weight", 5), "weight", 1, dim=1),
        lambda p, m: p.l1_unstructured(m, "weight", 2, -m.weight.detach()),
        lambda p, m: (
            p.global_unstructured([(m, "weight"), (m, "bias")], p.L1Unstructured, amount=0.3),
            m,
        )[1],
        lambda p, m: (
            p.global_unstructured(
                [(m, "weight"), (m, "bias")],
                pruning_method=p.RandomUnstructured,
                importance_scores={(m, "bias"): m.bias.detach()},
                amount=4,
            ),
            m,
        )[1],
    ):
        torch.manual_seed(1)
        their = run(theirs, torch.nn.Linear(4, 3))
        lamella.manual_seed(1)
        own = run(prune, nn.Linear(4, 3))
        assert list(own.state_dict()) == list(their.state_dict())
        for key, value in their.state_dict().items():
            assert_close(own.state_dict()[key], value, key)
        check(own, their, lambda: [torch.randn(2, 4)], "pruned")
        assert prune.is_pruned(nn.Sequential(own))
    lamella.manual_seed(1)
    net = prune.random_structured(nn.Linear(4, 3), "weight", 2, dim=1)
    assert (net.weight_mask.sum(0) > 0).sum().item() == 2
    prune.random_unstructured(net, "weight", 0.5)
    assert net.weight_mask.sum().item() == 3
    value = net.weight.detach().clone()
    prune.remove(net, "weight")
    assert (net.weight == value).all() and list(net.state_dict()) == ["bias", "weight"]
    both_layers = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    prune.global_unstructured([(layer, "weight") for layer in both_layers], amount=8)
    assert sum((layer.weight == 0).sum().item() for layer in both_layers) == 8
    with pytest.raises(ValueError) as error:
        prune.l1_unstructured(nn.Linear(2, 2), "weight", 5)
    assert str(error.value) == "L1Unstructured: expected 'amount' to be in [0, 4], got 5"
    with pytest.raises(ValueError) as error:
        prune.remove(nn.Linear(2, 2), "weight")
    assert str(error.value) == "remove: 'weight' of Linear is not pruned"


def test_pruning_methods_of_a_program():
    from lamella.nn.utils import prune

    class EverySecond(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    net = nn.Linear(4, 2)
    assert isinstance(EverySecond.apply(net, "weight"), EverySecond)
    container = EverySecond.apply(net, "weight")
    # The second time every second of those that stayed goes.
    assert net.weight_mask.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1]]
    assert [type(m) for m in container] == [EverySecond] * 2 and len(net._forward_pre_hooks) == 1

    class Fails(EverySecond):
        def compute_mask(self, t, default_mask):
            raise ArithmeticError

    other = nn.Linear(4, 2)
    for module in (net, other):
        before = list(module.state_dict()), len(module._forward_pre_hooks)
        with pytest.raises(ArithmeticError):
            Fails.apply(module, "weight")
        assert (list(module.state_dict()), len(module._forward_pre_hooks)) == before
    with pytest.raises(TypeError) as error:
        prune.global_unstructured([(other, "weight")], prune.LnStructured, amount=1, n=2)
    assert str(error.value) == (
        "global_unstructured: expected 'pruning_method' to be unstructured, got structured "
        "LnStructured"
    )
    with pytest.raises(TypeError) as error:
        prune.l1_unstructured(other, "weight", "all")
    assert str(error.value) == "L1Unstructured: expected 'amount' to be a number, got str"


def test_gradients_of_convolutions():
    for d in (1, 2, 3):
        x, w = torch.randn(2, 4, *[6] * d), torch.randn(6, 2, *[3] * d)
        options = {"stride": 2, "padding": 1, "groups": 2}
        out = getattr(torch.nn.functional, f"conv{d}d")(x, w, None, **options)
        grad = torch.randn_like(out)
        for part, args in (("input", (x.shape, w, grad)), ("weight", (x, w.shape, grad))):
            wanted = getattr(torch.nn.grad, f"conv{d}d_{part}")(*args, **options)
            args = [list(a) if isinstance(a, torch.Size) else to_own(a) for a in args]
            found = getattr(nn.grad, f"conv{d}d_{part}")(*args, **options)
            assert_close(found, wanted, (d, part), 1e-4)


def test_modules_for_many_devices():
    net = nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3))
    made = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(net))
    assert type(made[1]) is nn.SyncBatchNorm and list(made.state_dict()) == list(net.state_dict())
    x = lamella.randn(4, 2, 6)
    assert (made(x) == net(x)).all() and (made[1].running_mean == net[1].running_mean).all()
    with pytest.raises(ValueError) as error:
        made[1](lamella.ones(3))
    assert str(error.value) == (
        "SyncBatchNorm: expected 'input' to have at least 2 dimensions, got 1"
    )
    wrapped = nn.DataParallel(net.eval())
    assert (wrapped(x) == net(x)).all()
    assert list(wrapped.state_dict())[0] == "module.0.weight"
    with pytest.raises(ValueError, match="expected 'device_ids' to name one device, got 2"):
        nn.DataParallel(net, device_ids=[0, 1])


def test_later_pruning_sees_the_zeros_of_earlier_one():
    found = []
    for package in (torch, lamella):
        prune = package.nn.utils.prune
        layer = package.nn.Linear(3, 3)
        weight = [[3.0, 3.0, 0.1], [2.0, 2.5, 2.0], [1.0, 2.0, 2.2]]
        layer.weight.data = package.tensor(weight)
        mask = package.tensor([[0, 0, 1], [1, 1, 1], [1, 1, 1]])
        prune.custom_from_mask(layer, "weight", mask)
        prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
        found.append(layer.weight_mask.tolist())
    assert found[1] == found[0] == [[0, 0, 0], [1, 1, 1], [1, 1, 1]]


def test_masks_of_several_prunings_have_the_dtype_of_the_tensor():
    from lamella.nn.utils import prune

    container = prune.PruningContainer()
    container._tensor_name = "weight"
    method = prune.L1Unstructured(amount=1)
    method._tensor_name = "weight"
    container.add_pruning_method(method)
    mask = container.compute_mask(
        lamella.tensor([3.0, 1.0, 2.0, 0.5]), lamella.tensor([1, 1, 1, 0])
    )
    assert mask.dtype == lamella.float32 and mask.tolist() == [1, 0, 1, 0]
