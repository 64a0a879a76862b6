"""Sparse gradients beside PyTorch's: embeddings, accumulation, optimizers, clipping, hooks."""

import copy
import warnings

import numpy as np
import pytest
import torch
from operator_cases import lamella

warnings.filterwarnings("ignore", ".*[Ss]parse.*")
BOTH = (torch, lamella)


def weight_of(module, rows=6, columns=3):
    return (module.arange(rows * columns, dtype=module.float64).reshape(rows, columns) - 7) / 5


def embedding(module, **options):
    return module.nn.Embedding(6, 3, sparse=True, _weight=weight_of(module), **options)


def plain(value):
    """The properties on which both libraries must agree: layout, parts and numbers."""
    if isinstance(value, (torch.Tensor, lamella.Tensor)):
        if value.is_sparse:
            own = value.coalesce()
            return ["sparse", list(value.shape), own.indices().tolist(), own.values().tolist()]
        return value.detach().tolist()
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def close(got, expected):
    if isinstance(expected, dict):
        assert got.keys() == expected.keys()
        for name in expected:
            close(got[name], expected[name])
    elif isinstance(expected, list) and expected and not isinstance(expected[0], (int, float)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            close(one, other)
    elif isinstance(expected, (str, type(None))):
        assert got == expected
    else:
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def same(program):
    expected, got = (plain(program(module)) for module in BOTH)
    close(got, expected)
    return got


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"max_norm": 1.0}], ids=str)
def test_embeddings(options):
    def program(module):
        net = embedding(module, **options)
        net(module.tensor([[1, 4, 1], [2, 0, 1]])).pow(2).sum().backward()
        grad = net.weight.grad
        assert grad.is_sparse and grad.layout == module.sparse_coo
        assert not grad.is_coalesced() and not grad.requires_grad
        parts = [grad._indices(), grad._values(), grad._nnz(), grad.sparse_dim(), grad.dense_dim()]
        return [*parts, grad, grad.to_dense(), grad.coalesce().values()]

    same(program)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bags(mode, weighted):
    if weighted and mode == "mean":
        return

    def program(module):
        net = module.nn.EmbeddingBag(6, 3, mode=mode, sparse=True, _weight=weight_of(module))
        scale = module.tensor([1.0, 2, 3, 4, 5], dtype=module.float64) if weighted else None
        found = net(module.tensor([1, 4, 1, 0, 4]), module.tensor([0, 2, 2]), scale)
        found.pow(2).sum().backward()
        return [found, net.weight.grad]

    same(program)


def test_bags_of_the_largest_are_refused():
    for keywords in ({"sparse": True}, {"scale_grad_by_freq": True}):
        for module in BOTH:
            with pytest.raises(ValueError):
                module.nn.functional.embedding_bag(
                    module.tensor([1, 2]), module.ones(4, 3), module.tensor([0]), mode="max",
                    **keywords,
                )  # fmt: skip


def test_gradients_add_up():
    def program(module):
        found = []
        rows = module.tensor([1, 4, 1])
        net = embedding(module)
        for _ in range(3):  # sparse and sparse
            net(rows).sum().backward()
            found.append(net.weight.grad.clone())
        net.weight.sum().backward()  # and dense
        found.append(net.weight.grad.clone())
        net(rows).sum().backward()  # dense and sparse
        found.append(net.weight.grad)
        net.weight.grad = None
        # Twice in one graph, and beside a dense use.
        (net(rows).sum() * 2 + net(module.tensor([5])).sum()).backward()
        found.append(net.weight.grad)
        net.weight.grad = None
        (net(rows).sum() + net.weight.pow(2).sum()).backward()
        found.append(net.weight.grad)
        return found

    same(program)


def test_a_gradient_that_is_kept_stays():
    def program(module):
        net, kept = embedding(module), []
        net.weight.register_hook(kept.append)
        for _ in range(2):
            net(module.tensor([1, 4, 1])).pow(2).sum().backward()
        assert all(grad.is_sparse for grad in kept)
        return [*kept, net.weight.grad]

    same(program)


def test_hooks_change_gradients():
    def program(module):
        net = embedding(module)
        net.weight.register_hook(lambda grad: grad * 3)
        seen = []
        net.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad._nnz()))
        net(module.tensor([1, 4, 1])).sum().backward()
        return [net.weight.grad, seen]

    same(program)


def test_gradients_as_results():
    def program(module):
        net = embedding(module)
        loss = net(module.tensor([1, 4, 1])).pow(3).sum()
        (grad,) = module.autograd.grad(loss, net.weight)
        return grad

    same(program)
    weight = weight_of(lamella).requires_grad_()
    rows = lamella.tensor([1, 4, 1])
    loss = lamella.nn.functional.embedding(rows, weight, sparse=True).pow(3).sum()
    (grad,) = lamella.autograd.grad(loss, weight, create_graph=True)
    (second,) = lamella.autograd.grad(grad.to_dense().sum(), weight)
    expected = lamella.zeros(6, 3, dtype=lamella.float64)
    expected[[1, 4]] = 6 * weight.detach()[[1, 4]] * lamella.tensor([[2.0], [1.0]])
    assert second.to_dense().allclose(expected)


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.3, "maximize": True}),
    ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "betas": (0.7, 0.8), "eps": 1e-3, "maximize": True}),
]


@pytest.mark.parametrize("name, options", OPTIMIZERS, ids=str)
def test_optimizers(name, options):
    def program(module):
        net, found = embedding(module), []
        optimizer = getattr(module.optim, name)(net.parameters(), **options)
        for rows in ([1, 3, 1], [0, 1], [3, 3], [5]):
            optimizer.zero_grad()
            net(module.tensor(rows)).pow(2).sum().backward()
            optimizer.step()
            found.append(net.weight.clone())
        return [*found, optimizer.state_dict()["state"]]

    same(program)


def test_states_go_to_and_fro():
    theirs, ours = embedding(torch), embedding(lamella)
    optimizers = []
    for module, net in ((torch, theirs), (lamella, ours)):
        optimizer = module.optim.SparseAdam(net.parameters(), lr=0.1)
        net(module.tensor([1, 3, 1])).pow(2).sum().backward()
        optimizer.step()
        optimizers.append(optimizer)
    state = optimizers[0].state_dict()
    kept = {k: lamella.from_numpy(v.numpy()) for k, v in state["state"][0].items() if k != "step"}
    kept["step"] = state["state"][0]["step"]
    optimizers[1].load_state_dict({**copy.deepcopy(state), "state": {0: kept}})
    for module, net, optimizer in ((torch, theirs, optimizers[0]), (lamella, ours, optimizers[1])):
        net(module.tensor([0])).pow(2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy())


REFUSING = "Adam AdamW RMSprop Adadelta Adamax NAdam RAdam ASGD Rprop Adafactor Muon".split()


@pytest.mark.parametrize("name", REFUSING)
def test_optimizers_that_take_dense_gradients(name):
    net = embedding(lamella)
    optimizer = getattr(lamella.optim, name)(net.parameters())
    net(lamella.tensor([1])).sum().backward()
    before = net.weight.detach().clone()
    with pytest.raises(RuntimeError) as caught:
        optimizer.step()
    said = "Adam" if name == "AdamW" else name
    assert str(caught.value) == (
        f"{said}: expected dense gradients, got a sparse one, which SparseAdam, Adagrad and SGD "
        "take"
    )
    assert net.weight.equal(before) and not optimizer.state[net.weight]


ERRORS = [
    ("SGD", {"lr": 0.1, "weight_decay": 0.5}, True,
     "SGD: expected 'weight_decay' to be 0 for sparse gradients, got 0.5"),
    ("Adagrad", {"weight_decay": 0.5}, True,
     "Adagrad: expected 'weight_decay' to be 0 for sparse gradients, got 0.5"),
    ("SparseAdam", {}, False,
     "SparseAdam: expected sparse gradients, got a dense one, which Adam takes"),
]  # fmt: skip


@pytest.mark.parametrize("name, options, sparse, text", ERRORS, ids=str)
def test_errors(name, options, sparse, text):
    for module in BOTH:
        net = module.nn.Embedding(6, 3, sparse=sparse)
        optimizer = getattr(module.optim, name)(net.parameters(), **options)
        net(module.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError) as caught:
            optimizer.step()
    assert str(caught.value) == text


def test_scaled_by_frequency():
    for module in BOTH:
        net = module.nn.Embedding(6, 3, sparse=True, scale_grad_by_freq=True)
        with pytest.raises(RuntimeError) as caught:
            net(module.tensor([1])).sum().backward()
    assert str(caught.value) == (
        "embedding_sparse_backward: expected 'scale_grad_by_freq' to be False for sparse gradients"
    )


def test_clipping_and_zeros():
    net = embedding(lamella)
    rows = lamella.tensor([1, 4, 1])
    dense = lamella.nn.Embedding(6, 3, _weight=weight_of(lamella))
    for norm in (1.0, 2.0, float("inf")):
        totals = []
        for one in (net, dense):
            one.zero_grad()
            one(rows).pow(2).sum().backward()
            totals.append(lamella.nn.utils.clip_grad_norm_(one.parameters(), 0.5, norm).item())
        assert totals[0] == pytest.approx(totals[1])
        assert net.weight.grad.is_sparse
        assert net.weight.grad.to_dense().allclose(dense.weight.grad)
    optimizer = lamella.optim.SGD(net.parameters(), lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    assert net.weight.grad.is_sparse and net.weight.grad._nnz() == 0
    net(rows).sum().backward()
    assert net.weight.grad._nnz() == 2


def test_gradients_for_sparse_tensors():
    def program(module):
        s = module.eye(3, dtype=module.float64).to_sparse().requires_grad_()
        x = module.arange(6, dtype=module.float64).reshape(3, 2)
        (first,) = module.autograd.grad(module.sparse.mm(s, x).pow(2).sum(), s)
        module.autograd.backward(s.to_dense().pow(3).sum(), inputs=[s])
        return [first, s.grad]

    same(program)


def test_functions_of_functions():
    def program(module):
        rows = module.tensor([1, 2, 1])

        def loss(w):
            return module.nn.functional.embedding(rows, w, sparse=True).pow(2).sum()

        return module.func.grad(loss)(weight_of(module))

    same(program)


def test_a_large_table_is_not_touched():
    """Only the rows that were looked up are: the gradient of the whole would take 400 GB."""
    weight = lamella.zeros(1, 1).expand(10**9, 100).requires_grad_()
    lamella.nn.functional.embedding(
        lamella.tensor([7, 10**9 - 1]), weight, sparse=True
    ).sum().backward()
    assert weight.grad._indices().tolist() == [[7, 10**9 - 1]]
    assert weight.grad._values().shape == (2, 100)
