"""Recurrent layers and packed sequences against PyTorch's."""

import copy
import pickle

import pytest
from test_nn_modules import assert_close, check, flat, make_both, to_own

import lamella
from lamella import nn
from lamella.nn.utils import rnn as own_rnn

torch = pytest.importorskip("torch")
their_rnn = torch.nn.utils.rnn

LAYERS = [
    ("RNN", (3, 5), {}),
    ("RNN", (3, 5, 2, "relu"), {"bias": False}),
    ("RNN", (3, 7), {"nonlinearity": "relu", "bidirectional": True}),
    ("GRU", (3, 5), {}),
    ("GRU", (3, 19, 2), {"bidirectional": True, "batch_first": True}),
    ("GRU", (3, 4), {"bias": False, "dtype": torch.float64}),
    ("LSTM", (3, 5), {}),
    ("LSTM", (3, 17, 2), {"bidirectional": True, "batch_first": True}),
    ("LSTM", (3, 5, 2), {"proj_size": 2, "bidirectional": True}),
    ("LSTM", (3, 5, 3, False), {"dtype": torch.float64}),
]


def both(name, args, kwargs):
    own_kwargs = {k: getattr(lamella, str(v)[6:]) if k == "dtype" else v for k, v in kwargs.items()}
    torch.manual_seed(1)
    their = getattr(torch.nn, name)(*args, **kwargs)
    lamella.manual_seed(1)
    return getattr(nn, name)(*args, **own_kwargs), their


def states_of(module, count):
    dtype = next(module.parameters()).dtype
    layers = module.num_layers * (2 if module.bidirectional else 1)
    hidden = torch.randn(layers, count, module.proj_size or module.hidden_size, dtype=dtype)
    if not isinstance(module, torch.nn.LSTM):
        return hidden
    return hidden, torch.randn(layers, count, module.hidden_size, dtype=dtype)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(("name", "args", "kwargs"), LAYERS)
def test_layers(name, args, kwargs):
    own, their = both(name, args, kwargs)
    assert repr(own) == repr(their)
    assert list(own.state_dict()) == list(their.state_dict())
    for key, value in their.state_dict().items():
        assert_close(own.state_dict()[key], value, key, 1e-6)
    dtype = kwargs.get("dtype", torch.float32)
    check(own, their, lambda: [torch.randn(4, 6, 3, dtype=dtype)], name)
    check(own, their, lambda: [torch.randn(4, 3, dtype=dtype)], name)
    check_states(own, their, torch.randn(4, 6, 3, dtype=dtype), 4 if their.batch_first else 6)


def gradients(module, input, states, framework):
    """Outputs, and gradients through outputs and last states of everything that goes in."""
    inputs = flat([input, states])
    for tensor in inputs:
        tensor.requires_grad_()
    outputs = flat(module(input, states))
    loss = sum((output * output).sum() / (1 + i) for i, output in enumerate(outputs))
    loss.backward()
    found = [tensor.grad for tensor in inputs] + [p.grad for p in module.parameters()]
    module.zero_grad()
    return outputs + found


def check_states(own, their, input, count):
    states = states_of(their, count)
    found = gradients(own, to_own(input), to_own(states), lamella)
    wanted = gradients(their, input, states, torch)
    for a, b in zip(found, wanted):
        assert_close(a, b, their)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(("name", "args", "kwargs"), LAYERS)
@pytest.mark.parametrize("ordered", [True, False])
def test_packed_sequences(name, args, kwargs, ordered):
    own, their = both(name, args, kwargs)
    dtype = kwargs.get("dtype", torch.float32)
    lengths = [5, 4, 4, 1] if ordered else [1, 4, 5, 4]
    input = torch.randn(5, 4, 3, dtype=dtype)
    states = states_of(their, 4)

    def run(module, package, input, states):
        for tensor in flat([input, states]):
            tensor.requires_grad_()
        packed = package.pack_padded_sequence(input, lengths, enforce_sorted=ordered)
        output, last = module(packed, states)
        padded, found = package.pad_packed_sequence(output, padding_value=0.5)
        assert found.tolist() == lengths
        outputs = [padded, *flat(last)]
        sum((tensor * tensor).sum() for tensor in outputs).backward()
        return outputs + [t.grad for t in (input, *flat(states), *module.parameters())]

    found = run(own, own_rnn, to_own(input), to_own(states))
    for a, b in zip(found, run(their, their_rnn, input, states)):
        assert_close(a, b, name)


def test_dropout_between_layers():
    own, their = both("LSTM", (3, 5, 3), {"dropout": 0.5})
    input = torch.randn(4, 6, 3)
    torch.manual_seed(5)
    lamella.manual_seed(5)
    assert_close(own(to_own(input))[0], their(input)[0], "dropout")
    own.eval()
    their.eval()
    assert_close(own(to_own(input))[0], their(input)[0], "no dropout")
    with pytest.warns(UserWarning, match="stands between layers, and num_layers is 1"):
        nn.GRU(2, 3, dropout=0.1)


CELLS = [
    ("RNNCell", (3, 5), {}),
    ("RNNCell", (3, 5, False, "relu"), {}),
    ("GRUCell", (3, 5), {}),
    ("GRUCell", (3, 5, False), {}),
    ("LSTMCell", (3, 5), {}),
    ("LSTMCell", (3, 5, False), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CELLS)
def test_cells(name, args, kwargs):
    own, their = make_both(name, args, kwargs)
    assert repr(own) == repr(their)
    assert list(own.state_dict()) == list(their.state_dict())
    for key, value in their.state_dict().items():
        assert_close(own.state_dict()[key], value, key, 1e-6)
    check(own, their, lambda: [torch.randn(4, 3)], name)
    check(own, their, lambda: [torch.randn(3)], name)
    states = torch.randn(4, 5)
    if name == "LSTMCell":
        states = (states, torch.randn(4, 5))
    input = torch.randn(4, 3)
    found = gradients(own, to_own(input), to_own(states), lamella)
    for a, b in zip(found, gradients(their, input, states, torch)):
        assert_close(a, b, name)


def test_half_precision():
    for name in ("LSTM", "GRU", "RNN"):
        own, their = both(name, (3, 5), {})
        input = torch.randn(4, 2, 3)
        wanted = their(input)[0]
        found = own.to(lamella.bfloat16)(to_own(input).to(lamella.bfloat16))[0]
        assert found.dtype == lamella.bfloat16
        assert_close(found.float(), wanted, name, 2e-2)
        found.sum().backward()
        assert own.weight_hh_l0.grad.dtype == lamella.bfloat16


def test_layers_without_gradients_keep_nothing():
    net = nn.LSTM(3, 5)
    arguments = (None, lamella.zeros(2, 5), lamella.zeros(2, 5), net.weight_hh_l0, None, None)
    rows = lamella.zeros(4, 20)
    kept = lamella.ops.aten._rnn_layer(rows, *arguments[1:], [2, 2], 2, False, True)[3]
    assert tuple(kept.shape) == (4, 30)
    with lamella.no_grad():
        assert (
            lamella.ops.aten._rnn_layer(rows, *arguments[1:], [2, 2], 2, False, False)[3].numel()
            == 0
        )


def test_vmap_and_meta():
    net = nn.GRU(3, 5)
    inputs = lamella.randn(2, 4, 6, 3)
    found = lamella.vmap(lambda x: net(x)[0])(inputs)
    wanted = lamella.stack([net(x)[0] for x in inputs])
    assert lamella.allclose(found, wanted, atol=1e-6)
    made = nn.LSTM(3, 5, 2, device="meta")(lamella.empty(4, 6, 3, device="meta"))
    assert tuple(made[0].shape) == (4, 6, 5) and tuple(made[1][1].shape) == (2, 6, 5)


def test_gradcheck():
    net = nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2, dtype=lamella.float64)
    names = [name for name, _ in net.named_parameters()]

    def call(x, *values):
        return lamella.func.functional_call(net, dict(zip(names, values)), (x,))[0]

    x = lamella.randn(3, 2, 2, dtype=lamella.float64, requires_grad=True)
    assert lamella.autograd.gradcheck(call, (x, *net.parameters()))


def test_copies_of_layers():
    net = nn.LSTM(3, 5, 2)
    x = lamella.randn(4, 2, 3)
    for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert (made(x)[0] == net(x)[0]).all()
        assert made.all_weights[1][0] is made.weight_ih_l1
    net.flatten_parameters()
    assert [len(weights) for weights in net.all_weights] == [4, 4]


def test_what_layers_do_not_take():
    net = nn.LSTM(3, 5)
    cases = [
        (lambda: nn.GRU(3, 5, proj_size=2),
         "GRU: expected no 'proj_size', which only the LSTM has"),
        (lambda: nn.LSTM(3, 0), "LSTM: expected 'hidden_size' to be positive, got 0"),
        (lambda: nn.LSTM(3, 5.0), "LSTM: expected 'hidden_size' to be an int, got float"),
        (lambda: nn.LSTM(3, 5, dropout=2), "LSTM: expected 'dropout' to be from 0 to 1, got 2"),
        (lambda: nn.LSTM(3, 5, proj_size=5),
         "LSTM: expected 'proj_size' to be from 0 to 4, got 5"),
        (lambda: nn.RNN(3, 5, nonlinearity="gelu"),
         "RNN: expected 'nonlinearity' to be tanh or relu, got 'gelu'"),
        (lambda: net(lamella.ones(2)),
         "LSTM: expected 'input' to have 2 or 3 dimensions, got 1"),
        (lambda: net(lamella.ones(4, 2, 4)),
         "LSTM: expected 'input' to have 3 numbers in its last dimension, got [4, 2, 4]"),
        (lambda: net(lamella.ones(4, 2, 3), (lamella.ones(1, 2, 5), lamella.ones(1, 2, 4))),
         "LSTM: expected 'hx[1]' to have the shape [1, 2, 5], got [1, 2, 4]"),
        (lambda: nn.GRU(3, 5)(lamella.ones(4, 2, 3), lamella.ones(2, 5)),
         "GRU: expected 'hx' to have the shape [1, 2, 5], got [2, 5]"),
        (lambda: nn.GRUCell(3, 5)(lamella.ones(2, 4)),
         "GRUCell: expected 'input' to have 3 numbers in its last dimension, got [2, 4]"),
        (lambda: own_rnn.pack_padded_sequence(lamella.ones(4, 2, 3), [3, 4]),
         "pack_padded_sequence: expected 'lengths' to fall, got [3, 4]; with "
         "enforce_sorted=False the sequences are sorted"),
        (lambda: own_rnn.pack_padded_sequence(lamella.ones(4, 2, 3), [3, 0]),
         "pack_padded_sequence: expected 'lengths' to be at least 1, got [3, 0]"),
        (lambda: own_rnn.pack_padded_sequence(lamella.ones(4, 2, 3), [5, 1]),
         "pack_padded_sequence: expected 'lengths' to be at most 4, got [5, 1]"),
    ]  # fmt: skip
    for call, text in cases:
        with pytest.raises((RuntimeError, ValueError, TypeError)) as error:
            call()
        assert str(error.value) == text


def test_what_the_operator_does_not_take():
    op = lamella.ops.aten._rnn_layer
    w, h = lamella.ones(12, 3), lamella.ones(2, 3)
    cases = [
        ((lamella.ones(4, 12), h, h, w, None, None, [2, 1], 2, False, False),
         "_rnn_layer: expected as many rows as the sum of 'batch_sizes', 3, got 4"),
        ((lamella.ones(4, 12), h, h, w, None, None, [1, 3], 2, False, False),
         "_rnn_layer: expected 'batch_sizes' to be non-increasing from at most 2, got [1, 3]"),
        ((lamella.ones(4, 12), h, None, w, None, None, [2, 2], 2, False, False),
         "_rnn_layer: expected 'cx' for an LSTM and for no other cell"),
        ((lamella.ones(4, 11), h, h, w, None, None, [2, 2], 2, False, False),
         "_rnn_layer: expected 'input' to have the shape [4, 12], got [4, 11]"),
        ((lamella.ones(4, 12), h.double(), h, w, None, None, [2, 2], 2, False, False),
         "_rnn_layer: expected all tensors to be float32, got float64"),
        ((lamella.ones(4, 12), h, h, w, None, None, [2, 2], 7, False, False),
         "_rnn_layer: expected 'mode' to be from 0 to 3, got 7"),
    ]  # fmt: skip
    for arguments, text in cases:
        with pytest.raises((RuntimeError, TypeError)) as error:
            op(*arguments)
        assert str(error.value) == text


def test_sequences():
    sequences = [torch.randn(n, 2) for n in (4, 2, 1)]
    own = to_own(sequences)
    for options in ({}, {"batch_first": True}, {"padding_value": 3.0, "padding_side": "left"}):
        found = own_rnn.pad_sequence(own, **options)
        assert_close(found, their_rnn.pad_sequence(sequences, **options), options)
    packed, wanted = own_rnn.pack_sequence(own), their_rnn.pack_sequence(sequences)
    assert_close(packed.data, wanted.data, "packed")
    assert packed.batch_sizes.tolist() == wanted.batch_sizes.tolist()
    assert packed.sorted_indices is None is wanted.sorted_indices
    for a, b in zip(own_rnn.unpack_sequence(packed), sequences):
        assert_close(a, b, "unpacked")
    back = [sequences[1], sequences[0], sequences[2]]
    packed = own_rnn.pack_sequence(to_own(back), enforce_sorted=False)
    wanted = their_rnn.pack_sequence(back, enforce_sorted=False)
    assert packed.sorted_indices.tolist() == wanted.sorted_indices.tolist()
    assert packed.unsorted_indices.tolist() == wanted.unsorted_indices.tolist()
    for options in ({}, {"total_length": 6, "batch_first": True}):
        found, lengths = own_rnn.pad_packed_sequence(packed, **options)
        padded, counts = their_rnn.pad_packed_sequence(wanted, **options)
        assert_close(found, padded, options)
        assert lengths.tolist() == counts.tolist()
    assert packed.double().data.dtype == lamella.float64
    assert packed.to(lamella.float32) is packed
    unpadded = own_rnn.unpad_sequence(own_rnn.pad_sequence(own), lamella.tensor([4, 2, 1]))
    assert [len(sequence) for sequence in unpadded] == [4, 2, 1]
    with pytest.raises(ValueError, match="expected 'total_length' to be at least 4, got 3"):
        own_rnn.pad_packed_sequence(packed, total_length=3)


SECOND = [
    ("RNN", (3, 4), {}),
    ("RNN", (3, 4), {"nonlinearity": "relu", "bias": False}),
    ("LSTM", (3, 4), {}),
    ("LSTM", (3, 4, 2), {"proj_size": 2, "bidirectional": True}),
    ("GRU", (3, 4, 2), {"bidirectional": True, "batch_first": True}),
    ("GRU", (3, 4), {"bias": False}),
]


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("lengths", [None, [3, 2, 1]])
@pytest.mark.parametrize(("name", "args", "kwargs"), SECOND)
def test_second_derivatives(name, args, kwargs, lengths):
    """A penalty on the gradient, as in training; and PyTorch's numbers for it."""
    own, their = (module.double() for module in both(name, args, kwargs))
    torch.manual_seed(0)
    data = torch.randn(3, 3, 3, dtype=torch.float64)
    states = states_of(their, 3)
    found = []
    for module, net, rnn in ((torch, their, their_rnn), (lamella, own, own_rnn)):
        ours = module is lamella
        x = (to_own(data) if ours else data.clone()).requires_grad_()
        hx = tuple((to_own(t) if ours else t.clone()).requires_grad_() for t in flat(states))
        rows = x
        if lengths is not None:
            rows = rnn.pack_padded_sequence(x, lengths, batch_first=net.batch_first)
        output, last = net(rows, hx if name == "LSTM" else hx[0])
        output = output if lengths is None else output.data
        loss = output.pow(2).sum() + sum(t.sin().sum() for t in flat(last))
        sides = [x, *hx, *net.parameters()]
        first = module.autograd.grad(loss, sides, create_graph=True)
        sum(g.pow(2).sum() for g in first).backward()
        found.append([*first, *(side.grad for side in sides)])
    for number, (got, expected) in enumerate(zip(found[1], found[0])):
        assert_close(got, expected, (name, number), 1e-9)


def test_third_derivatives():
    for name in ("LSTM", "GRU", "RNN"):
        cell = getattr(nn, f"{name}Cell")(2, 3).double()

        def third(x, cell=cell):
            out = cell(x)
            out = out[0] if isinstance(out, tuple) else out
            (first,) = lamella.autograd.grad(out.pow(2).sum(), x, create_graph=True)
            (second,) = lamella.autograd.grad(first.pow(2).sum(), x, create_graph=True)
            return second

        x = lamella.randn(2, 2, dtype=lamella.float64, requires_grad=True)
        assert lamella.autograd.gradcheck(third, (x,))


def test_second_derivatives_need_the_rows():
    gates = lamella.ones(2, 4, requires_grad=True)
    h, w = lamella.ones(2, 4), lamella.ones(4, 4)
    arguments = (gates, h, None, w, None, None, [2], 0, False, True)
    for more in ((), (gates,)):
        out = lamella.ops.aten._rnn_layer(*arguments, *more)[0]
        (first,) = lamella.autograd.grad(out.sum(), gates, create_graph=True)
        if more:
            first.sum().backward()
            x = gates.detach() + 4
            assert gates.grad.allclose(-2 * x.tanh() * (1 - x.tanh() ** 2), atol=1e-6)
            continue
        with pytest.raises(RuntimeError) as error:
            first.sum().backward()
        assert str(error.value).partition("\n")[0] == (
            "_rnn_layer_backward: expected 'rows' to be given to _rnn_layer for a second derivative"
        )
