"""Global module hooks, and hooks for the registration of entries."""

import copy
import pickle
from collections import OrderedDict

import pytest

import lamella
from lamella import nn
from lamella.nn.modules import _hooks
from lamella.nn.modules import module as modules
from lamella.utils.hooks import RemovableHandle


@pytest.fixture(autouse=True)
def _none_left():
    yield
    nn.Module._hooks = None
    for kind in _hooks.Hooks.KINDS:
        assert not getattr(_hooks.EVERYWHERE, kind), kind


def test_of_all_modules_run_before_those_of_one():
    net = nn.Sequential(nn.Identity())
    seen = []
    net[0].register_forward_pre_hook(lambda m, args: seen.append("own before"))
    net[0].register_forward_hook(lambda m, args, out: seen.append("own after"))
    with (
        modules.register_module_forward_pre_hook(
            lambda m, a: seen.append(f"before {len(list(m.children()))}")
        ),
        modules.register_module_forward_hook(
            lambda m, a, k, out: seen.append("after"), with_kwargs=True
        ),
    ):
        net(lamella.ones(2))
    assert seen == ["before 1", "before 0", "own before", "after", "own after", "after"]
    net(lamella.ones(2))
    assert seen[6:] == ["own before", "own after"]


def test_of_all_modules_change_arguments_outputs_and_gradients():
    x = lamella.ones(2, requires_grad=True)
    seen = []
    with (
        modules.register_module_forward_pre_hook(lambda m, args: (args[0] + 1,)),
        modules.register_module_forward_hook(lambda m, args, out: out * 3),
        modules.register_module_full_backward_pre_hook(lambda m, out: seen.append(out[0].tolist())),
        modules.register_module_full_backward_hook(lambda m, into, out: (into[0] * 2,)),
    ):
        y = nn.ReLU()(x)
        assert y.tolist() == [6, 6]
        y.sum().backward()
    assert x.grad.tolist() == [6, 6] and seen == [[1, 1]]


def test_that_is_always_called_hears_of_a_failure():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    seen = []
    with modules.register_module_forward_hook(lambda *a: seen.append(1), always_call=True):
        with pytest.raises(ValueError, match="no"):
            Fails()(1)
    assert seen == [1]


def test_see_parameters_buffers_and_modules_registered():
    seen = []

    def note(kind):
        return lambda module, name, value: seen.append((kind, name))

    def doubled(module, name, value):
        return nn.Parameter(value.detach() * 2)

    with (
        modules.register_module_parameter_registration_hook(doubled),
        modules.register_module_buffer_registration_hook(note("buffer")),
        modules.register_module_module_registration_hook(note("module")),
    ):
        m = nn.Module()
        m.weight = nn.Parameter(lamella.ones(2))
        m.register_buffer("mean", lamella.ones(2))
        m.mean = lamella.zeros(2)
        m.inner = nn.Identity()
        m.add_module("other", nn.Identity())
    assert m.weight.tolist() == [2, 2]
    assert seen == [("buffer", "mean")] * 2 + [("module", "inner"), ("module", "other")]


def test_handles_are_copied_with_their_dictionaries():
    hooks = OrderedDict()
    handle = RemovableHandle(hooks)
    hooks[handle.id] = len
    for other in (copy.deepcopy((hooks, handle)), pickle.loads(pickle.dumps((hooks, handle)))):
        assert other[1].hooks_dict_ref() is other[0] and list(other[0]) == [handle.id]
        other[1].remove()
        assert not other[0]
    assert list(hooks) == [handle.id]


def test_a_double_backward_is_no_backward_of_the_module():
    calls = []
    loss = lamella.nn.MSELoss()
    loss.register_full_backward_hook(lambda module, into, out: calls.append(1))
    x = lamella.tensor([0.5], requires_grad=True)
    (first,) = lamella.autograd.grad(loss(x, lamella.tensor([2.0])), x, create_graph=True)
    assert len(calls) == 1
    (second,) = lamella.autograd.grad(first, x)
    assert len(calls) == 1 and second.tolist() == [2.0]
