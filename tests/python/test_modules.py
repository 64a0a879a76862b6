"""Modules: their entries, calls, hooks, state and text."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref

import pytest

import lamella
from lamella import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.scale = nn.Parameter(lamella.ones(3))
        self.register_buffer("seen", lamella.zeros(1))
        self.register_buffer("scratch", lamella.zeros(1), persistent=False)
        self.note = "plain"

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x * self.scale


def test_what_belongs_to_a_module():
    net = Net()
    names = [
        "scale",
        "first.weight",
        "first.bias",
        "blocks.0.weight",
        "blocks.0.bias",
        "blocks.1.weight",
        "blocks.1.bias",
    ]
    assert [name for name, _ in net.named_parameters()] == names
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert [name for name, _ in net.named_buffers(prefix="p")] == ["p.seen", "p.scratch"]
    assert [name for name, _ in net.named_modules()] == [
        "",
        "first",
        "blocks",
        "blocks.0",
        "blocks.1",
    ]
    assert [name for name, _ in net.named_children()] == ["first", "blocks"]
    assert list(net.state_dict()) == ["scale", "seen", *names[1:]]
    assert net.get_submodule("blocks.1") is net.blocks[1]
    assert net.get_parameter("blocks.1.bias") is net.blocks[1].bias
    assert net.get_buffer("seen") is net.seen
    with pytest.raises(AttributeError) as error:
        net.get_submodule("blocks.2")
    assert str(error.value) == "get_submodule: ModuleList has no submodule '2' (of 'blocks.2')"
    shared = nn.Linear(2, 2)
    twice = nn.ModuleDict({"a": shared, "b": shared})
    assert len(list(twice.parameters())) == 2
    assert len(list(twice.named_parameters(remove_duplicate=False))) == 4


def test_attributes():
    net = Net()
    assert net.scale is net._parameters["scale"]
    new = nn.Parameter(lamella.zeros(3))
    net.scale = new
    assert net.scale is net._parameters["scale"] is new
    net._parameters["scale"] = None
    assert net.scale is None
    net.scale = new
    del net.scale
    assert not hasattr(net, "scale") and "scale" not in net._parameters
    with pytest.raises(AttributeError) as error:
        net.missing  # noqa: B018
    assert str(error.value) == "'Net' object has no attribute 'missing'"
    net.first = nn.Identity()
    assert list(net._modules) == ["first", "blocks"]
    net.first = None
    assert net.first is None and list(net._modules) == ["first", "blocks"]
    net.seen = lamella.ones(1)
    assert net._buffers["seen"] is net.seen
    # Another kind takes the name over; a plain attribute does too.
    net.seen = nn.Parameter(lamella.ones(1))
    assert "seen" in net._parameters and "seen" not in net._buffers
    net.note = nn.Identity()
    assert net.note is net._modules["note"]


def test_attributes_that_do_not_fit():
    net = Net()
    with pytest.raises(TypeError) as error:
        net.scale = lamella.ones(3)
    assert str(error.value) == (
        "Net: expected parameter 'scale' to be set to a Parameter or None, got Tensor"
    )
    with pytest.raises(TypeError) as error:
        net.first = 5
    assert str(error.value) == (
        "Net: expected submodule 'first' to be set to a Module or None, got int"
    )
    with pytest.raises(KeyError, match="register_buffer: the attribute 'note' exists already"):
        net.register_buffer("note", None)
    with pytest.raises(KeyError, match="expected 'name' to have no dot, got 'a.b'"):
        net.register_parameter("a.b", None)

    class Late(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(lamella.ones(1))

    with pytest.raises(AttributeError) as error:
        Late()
    assert str(error.value) == (
        "Late: expected Module.__init__() to be called before 'weight' is set"
    )


def test_modules_are_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        net = Net()
        net(lamella.ones(2, 4)).sum().backward()
        gone = [weakref.ref(net), weakref.ref(net.first.weight)]
        del net
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_changes():
    net = Net()
    assert net.training and net.first.training
    net.eval()
    assert not net.training and not net.blocks[1].training
    net.double()
    assert net.first.weight.dtype == lamella.float64 and net.seen.dtype == lamella.float64
    net.to(lamella.float32)
    weight = net.first.weight
    net(lamella.ones(2, 4)).sum().backward()
    net.to(dtype=lamella.float64)
    assert net.first.weight is weight
    assert weight.dtype == weight.grad.dtype == lamella.float64
    net.zero_grad(set_to_none=False)
    assert weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    order = []
    net.apply(lambda module: order.append(type(module).__name__))
    assert order == ["Linear", "Linear", "Linear", "ModuleList", "Net"]
    with pytest.raises(TypeError) as error:
        net.to(lamella.int64)
    assert str(error.value) == ("to: expected 'dtype' to be floating or complex, got lamella.int64")


def test_buffers_that_say_so():
    net = nn.Module()
    net.kept = nn.Buffer(lamella.ones(2))
    net.left = nn.Buffer(lamella.ones(2), persistent=False)
    assert list(net.state_dict()) == ["kept"]
    assert [name for name, _ in net.named_buffers()] == ["kept", "left"]
    net.kept = lamella.zeros(3)
    assert net._buffers["kept"] is net.kept
    assert list(net.state_dict(None, "a.", True)) == ["a.kept"]


def test_submodules_are_replaced():
    net = Net()
    net.set_submodule("blocks.1", nn.Identity())
    assert type(net.blocks[1]) is nn.Identity
    net.set_submodule("first.extra", nn.ReLU())
    assert type(net.first.extra) is nn.ReLU
    with pytest.raises(AttributeError) as error:
        net.set_submodule("blocks.7", nn.ReLU(), strict=True)
    assert str(error.value) == ("set_submodule: ModuleList has no submodule '7' (of 'blocks.7')")
    with pytest.raises(ValueError, match="expected a name and a Module, got '' and ReLU"):
        net.set_submodule("", nn.ReLU())


def test_state():
    net, other = Net(), Net()
    state = net.state_dict()
    assert not state["scale"].requires_grad
    assert state["scale"].data_ptr() == net.scale.data_ptr()
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert other.first.weight.tolist() == net.first.weight.tolist()
    assert other.first.weight is not net.first.weight
    weight = lamella.ones(3, 4)
    other.load_state_dict({**state, "first.weight": weight}, assign=True)
    assert other.first.weight.data_ptr() == weight.data_ptr()
    assert isinstance(other.first.weight, nn.Parameter)
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict({"scale": lamella.ones(2), "seen": lamella.ones(1), "what": 1})
    assert str(error.value) == (
        "load_state_dict: expected 'state_dict' to fit Net, got:\n"
        "  missing keys: 'first.weight', 'first.bias', 'blocks.0.weight', 'blocks.0.bias', "
        "'blocks.1.weight', 'blocks.1.bias'\n"
        "  unexpected key: 'what'\n"
        "  'scale': expected shape [3], got [2]"
    )
    found = net.load_state_dict({"seen": lamella.ones(1), "blocks.7.x": 0}, strict=False)
    assert net.seen.item() == 1
    assert "scale" in found.missing_keys and found.unexpected_keys == ["blocks.7.x"]


def test_extra_state():
    class Counter(nn.Module):
        count = 3

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    state = nn.Sequential(Counter()).state_dict()
    assert state == {"0._extra_state": {"count": 3}}
    other = nn.Sequential(Counter())
    other[0].count = 0
    other.load_state_dict(state)
    assert other[0].count == 3


def test_copies():
    net = Net()
    net.first.weight.tag = "mine"
    for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert made.first.weight is made.first._parameters["weight"]
        assert made.first.weight is not net.first.weight
        assert made.first.weight.tolist() == net.first.weight.tolist()
        assert isinstance(made.scale, nn.Parameter) and made.scale.requires_grad
        assert made.first.weight.tag == "mine"
        made.scale = nn.Parameter(lamella.zeros(3))
        assert made._parameters["scale"] is made.scale is not net.scale
        assert made.note == "plain"


def test_forward_hooks():
    net = nn.Linear(2, 2)
    x = lamella.ones(1, 2)
    plain = net(x)
    calls = []
    handle = net.register_forward_hook(lambda module, args, out: calls.append((args, out)))
    net(x)
    assert calls[0][0] == (x,)
    handle.remove()
    handle.remove()
    net(x)
    assert len(calls) == 1
    with net.register_forward_hook(lambda module, args, out: out * 2):
        assert (net(x) == plain * 2).all()
    with net.register_forward_pre_hook(lambda module, args: args[0] * 0):
        assert (net(x) == net.bias).all()
    with net.register_forward_pre_hook(
        lambda module, args, kwargs: ((), {"input": kwargs["input"] * 0}), with_kwargs=True
    ):
        assert (net(input=x) == net.bias).all()
    order = []
    net.register_forward_hook(lambda *_: order.append(1))
    net.register_forward_hook(lambda *_: order.append(2), prepend=True)
    net.register_forward_hook(lambda *_: order.append(3), always_call=True)
    net(x)
    assert order == [2, 1, 3]
    order.clear()
    with pytest.raises(TypeError):
        net(x, x)
    assert order == [3]


def test_backward_hooks():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    seen = []
    net.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go)))
    net(lamella.ones(4, 2)).sum().backward()
    assert seen[0][0] == (None,)
    assert seen[0][1][0].tolist() == lamella.ones(4, 3).tolist()
    x = lamella.ones(4, 2, requires_grad=True)
    net(x).sum().backward()
    assert seen[1][0][0].tolist() == x.grad.tolist()
    plain = x.grad
    x.grad = None
    net.register_full_backward_pre_hook(lambda module, go: (go[0] * 2,))
    net.register_full_backward_hook(lambda module, gi, go: (gi[0] * 3,))
    net(x).sum().backward()
    assert lamella.allclose(x.grad, plain * 6)


def test_state_hooks():
    net = nn.Linear(2, 2)
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update(more=1))
    assert list(net.state_dict()) == ["weight", "bias", "more"]
    other = nn.Linear(2, 2)
    other.register_load_state_dict_pre_hook(lambda m, state, *rest: state.pop("more"))
    done = []
    other.register_load_state_dict_post_hook(lambda m, keys: done.append(keys))
    other.load_state_dict(net.state_dict())
    assert done == [([], [])]


def test_containers():
    a, b, c = nn.Linear(1, 1), nn.ReLU(), nn.Tanh()
    seq = nn.Sequential(a, b)
    seq.append(c)
    assert list(seq) == [a, b, c] and len(seq) == 3 and seq[-1] is c
    assert list(seq[1:]) == [b, c]
    del seq[0]
    assert list(seq._modules) == ["0", "1"] and seq[0] is b
    seq.insert(0, a)
    assert list(seq) == [a, b, c]
    assert list(seq + nn.Sequential(b)) == [a, b, c, b]
    assert list(seq * 2) == [a, b, c, a, b, c] == list(2 * seq)
    longer = nn.Sequential(a)
    longer += nn.Sequential(b)
    assert list(longer) == [a, b]
    longer *= 2
    assert list(longer) == [a, b, a, b]
    with pytest.raises(ValueError) as error:
        seq * 0
    assert str(error.value) == "Sequential: expected to be repeated at least once, got 0"
    named = nn.Sequential({"x": a, "y": b})
    assert named.x is a and list(named[:1]._modules) == ["x"]
    with pytest.raises(IndexError) as error:
        seq[5]
    assert str(error.value) == "Sequential: index 5 is out of range for 3 entries"
    modules = nn.ModuleList([a]) + [b]
    modules[0] = c
    assert list(modules) == [c, b] and modules.pop(0) is c and list(modules._modules) == ["0"]
    table = nn.ModuleDict({"a": a})
    table["b"] = b
    assert list(table) == ["a", "b"] and "b" in table and table.pop("a") is a
    params = nn.ParameterList([lamella.ones(1), nn.Parameter(lamella.zeros(2))])
    assert [p.numel() for p in params] == [1, 2] and len(list(params.parameters())) == 2
    assert repr(nn.ParameterList([lamella.ones(2, 3), 4])) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [lamella.float32 of size 2x3]\n"
        "    (1): Object of type: int\n)"
    )
    params[0] = lamella.ones(4)
    assert params[0].numel() == 4 and isinstance(params[0], nn.Parameter)
    table = nn.ParameterDict({"a": lamella.ones(1)})
    table["b"] = lamella.ones(2)
    assert [name for name, _ in table.named_parameters()] == ["a", "b"]
    assert table.pop("a").numel() == 1 and list(table.keys()) == ["b"]
    both = table | nn.ParameterDict({"c": lamella.ones(3)})
    assert list(both) == ["b", "c"] and list(reversed(both)) == ["c", "b"] and len(table) == 1
    assert both.setdefault("b", lamella.ones(9)) is table["b"]
    assert both.popitem()[0] == "c" and list(both) == ["b"] and both.copy()["b"] is table["b"]
    assert list(table.fromkeys(["x", "y"], lamella.ones(1)).parameters())[0].numel() == 1
    both.clear()
    assert len(both) == 0 and list(both.parameters()) == []


def test_modules_that_few_programs_use_are_loaded_when_asked_for():
    program = (
        "import sys, lamella; assert 'lamella.nn' not in sys.modules\n"
        "from lamella import nn; nn.Sequential(nn.Linear(2, 2), nn.Conv2d(1, 1, 1), nn.ReLU())\n"
        "loaded = [m for m in sys.modules if m.startswith('lamella.nn.modules.')]\n"
        "assert not {m.rpartition('.')[2] for m in loaded} & {'rnn', 'transformer', 'padding'}\n"
        "nn.LSTM(2, 2); assert 'lamella.nn.modules.rnn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_memory_formats():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(2, 2))
    net.to(memory_format=lamella.channels_last)
    assert net[0].weight.is_contiguous(memory_format=lamella.channels_last)
    assert net[1].weight.is_contiguous()


def test_text():
    net = Net()
    assert repr(net) == (
        "Net(\n"
        "  (first): Linear(in_features=4, out_features=3, bias=True)\n"
        "  (blocks): ModuleList(\n"
        "    (0-1): 2 x Linear(in_features=3, out_features=3, bias=True)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Parameter(lamella.ones(2))) == (
        "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    )


def test_init():
    lamella.manual_seed(0)
    for shape in ((5, 3), (3, 5), (4, 2, 3)):
        q = nn.init.orthogonal_(lamella.empty(shape)).reshape(shape[0], -1)
        product = q @ q.t() if shape[0] <= q.size(1) else q.t() @ q
        assert lamella.allclose(product, lamella.eye(product.size(0)), atol=1e-5)
    w = lamella.empty(200, 100)
    assert nn.init.kaiming_normal_(w, nonlinearity="relu").std().item() == pytest.approx(
        (2 / 100) ** 0.5, rel=0.05
    )
    assert nn.init.xavier_uniform_(w).abs().max().item() <= (6 / 300) ** 0.5
    t = nn.init.trunc_normal_(w, std=2.0, a=-1, b=1)
    assert -1 <= t.min().item() < -0.9 and 0.9 < t.max().item() <= 1
    assert nn.init.eye_(lamella.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert nn.init.dirac_(lamella.empty(2, 2, 3))[1].tolist() == [[0, 0, 0], [0, 1, 0]]
    assert (nn.init.sparse_(w, 0.3) == 0).sum(0).tolist() == [60] * 100
    with pytest.raises(ValueError) as error:
        nn.init.xavier_normal_(lamella.empty(3))
    assert str(error.value) == (
        "fan in and fan out: expected 'tensor' to have at least 2 dimensions, got 1"
    )


def test_transposed_convolutions_have_numbers_as_padding():
    with pytest.raises(ValueError, match="expected 'padding' to be numbers, got 'same'"):
        nn.ConvTranspose2d(2, 3, 3, padding="same")


def test_parameters_as_a_vector():
    net = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (9,)
    nn.utils.vector_to_parameters(vector.detach() * 0 + 1, net.parameters())
    assert net.weight.tolist() == [[1, 1]] * 3 and net.weight.is_leaf


def test_state_in_files(tmp_path):
    path = tmp_path / "net"
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Embedding(2, 2))
    lamella.save_file(net.state_dict(), path)
    other = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Embedding(2, 2))
    assert str(other.load_state_dict(lamella.load_file(path))) == "<All keys matched successfully>"
    for name, tensor in net.state_dict().items():
        assert other.state_dict()[name].tolist() == tensor.tolist()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_a_dimension_that_is_not_given_is_said(name):
    x = lamella.arange(6.0).view(2, 3)
    function = getattr(nn.functional, name)
    with pytest.warns(UserWarning) as said:
        y = function(x)
    assert [str(one.message) for one in said] == [
        f"{name}: 'dim' is not given, so dim=1 is taken; say it"
    ]
    assert said[0].filename == __file__ and y.tolist() == function(x, dim=1).tolist()
