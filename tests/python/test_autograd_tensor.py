"""Autograd's members of tensors: attributes, factories, copies, text."""

import copy
import gc
import pickle
import warnings

import numpy
import pytest

import lamella


def run(y, **options):
    y.backward(lamella.ones_like(y), **options)


def n(value):
    return lamella.tensor(value, dtype=lamella.float64)


def leaf(*values, dtype=None):
    return lamella.tensor(values, dtype=dtype or lamella.float32, requires_grad=True)


def test_a_new_tensor():
    x = lamella.ones(2)
    assert not x.requires_grad and x.is_leaf and x.grad is None and x.grad_fn is None
    assert x.output_nr == 0 and not x.retains_grad
    x.requires_grad = True
    assert x.requires_grad and x.is_leaf and x.grad_fn is None
    assert x.requires_grad_(False) is x
    assert not x.requires_grad


def test_a_computed_tensor():
    y = leaf(1.0, 2.0) * n(3.0)
    assert y.requires_grad and not y.is_leaf and y.output_nr == 0
    assert y.grad_fn.name() == "MulBackward0"
    assert y.grad_fn is y.grad_fn


def test_detach():
    x = leaf(1.0, 2.0)
    y = (x * n(2.0)).detach()
    assert not y.requires_grad and y.is_leaf and y.grad_fn is None
    z = x * n(2.0)
    assert z.detach_() is z
    assert not z.requires_grad and z.grad_fn is None
    z = x * n(2.0)
    with lamella.no_grad():
        assert not lamella.ops.aten.detach_(z).requires_grad
    text = "^detach_: expected a tensor that is no view, got a view; use detach\\(\\)$"
    for view in (n([1.0, 2.0])[:1], lamella.ones(2, dtype=lamella.int64)[1:]):
        with pytest.raises(RuntimeError, match=text):
            view.detach_()
    dual = lamella.autograd.forward_ad
    with dual.dual_level():
        z = dual.make_dual(n(1.0), n(3.0)) * n(2.0)
        assert dual.unpack_dual(z.detach_()).tangent is None


def test_requires_grad_of_a_computed_tensor_cannot_be_taken():
    y = leaf(1.0) * n(1.0)
    y.requires_grad_()
    with pytest.raises(RuntimeError) as error:
        y.requires_grad = False
    assert str(error.value).startswith(
        "requires_grad_: expected a leaf, got a tensor that MulBackward0 made"
    )


@pytest.mark.parametrize("dtype", [lamella.int64, lamella.bool, lamella.uint8])
def test_integers_have_no_gradients(dtype):
    for make in (
        lambda: lamella.ones(2, dtype=dtype).requires_grad_(),
        lambda: lamella.ones(2, dtype=dtype, requires_grad=True),
        lambda: lamella.tensor([1], dtype=dtype, requires_grad=True),
    ):
        with pytest.raises(RuntimeError, match="floating-point"):
            make()


# ---- grad ----


def test_gradients_accumulate():
    x = leaf(1.0, 2.0)
    run(x * n(2.0))
    first = x.grad
    assert first.tolist() == [2.0, 2.0] and not first.requires_grad
    run(x * n(3.0))
    assert x.grad.tolist() == [5.0, 5.0]
    x.grad = None
    assert x.grad is None
    run(x * n(3.0))
    assert x.grad.tolist() == [3.0, 3.0]
    del x.grad
    assert x.grad is None


def test_set_grad():
    x = leaf(1.0, 2.0)
    g = lamella.ones(2)
    x.grad = g
    assert x.grad is g
    for wrong in (lamella.ones(3), lamella.ones(2, dtype=lamella.float64), x):
        with pytest.raises(RuntimeError, match="grad: expected"):
            x.grad = wrong
    with pytest.raises(TypeError, match="grad: expected a Tensor or None, got int"):
        x.grad = 1


def test_grad_of_a_computed_tensor_warns():
    y = leaf(1.0) * n(2.0)
    with pytest.warns(UserWarning, match="grad: expected a leaf or a tensor with retain_grad"):
        assert y.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y.retain_grad()
        assert y.grad is None
        assert lamella.ones(1).grad is None


def test_retain_grad():
    x = leaf(1.0, 2.0)
    y = x * n(2.0)
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    run(y * n(3.0))
    assert y.grad.tolist() == [3.0, 3.0] and x.grad.tolist() == [6.0, 6.0]
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="retain_grad: expected a tensor that requires grad"):
        lamella.ones(1).retain_grad()


def test_retained_grad_is_of_the_value_after_a_write():
    for write in (lambda y: y.mul_(n(2.0)), lambda y: y[:1].mul_(n(2.0))):
        x = leaf(1.0, 2.0)
        y = x * n(3.0)
        y.retain_grad()
        write(y)
        assert y.retains_grad
        y.retain_grad()
        run(y)
        assert y.grad.tolist() == [1.0, 1.0] and x.grad[0].item() == 6.0


# ---- Factories ----


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: lamella.zeros(2, **k),
        lambda **k: lamella.zeros((2, 3), dtype=lamella.float64, **k),
        lambda **k: lamella.ones(2, 3, **k),
        lambda **k: lamella.rand(2, **k),
        lambda **k: lamella.randn(2, **k),
        lambda **k: lamella.empty(2, **k),
        lambda **k: lamella.full((2,), 1.5, **k),
        lambda **k: lamella.arange(3.0, **k),
        lambda **k: lamella.linspace(0, 1, 3, **k),
        lambda **k: lamella.eye(2, **k),
        lambda **k: lamella.zeros_like(lamella.ones(2), **k),
        lambda **k: lamella.randn_like(lamella.ones(2), **k),
        lambda **k: lamella.full_like(lamella.ones(2), 2.0, **k),
        lambda **k: lamella.ones(2).new_zeros(3, **k),
        lambda **k: lamella.ones(2).new_full((3,), 2.0, **k),
        lambda **k: lamella.tensor([1.0], **k),
        lambda **k: lamella.asarray([1.0], **k),
        lambda **k: lamella.frombuffer(bytearray(8), dtype=lamella.float32, **k),
    ],
)
def test_factories_take_requires_grad(make):
    assert make(requires_grad=True).requires_grad
    assert make(requires_grad=True).is_leaf
    assert not make(requires_grad=False).requires_grad
    assert not make().requires_grad


def test_other_operators_take_no_requires_grad():
    with pytest.raises(TypeError, match="unknown keyword 'requires_grad'"):
        lamella.ones(2).to(lamella.float64, requires_grad=True)
    with pytest.raises(TypeError, match="'requires_grad': expected bool, got int"):
        lamella.zeros(2, requires_grad=1)


def test_tensor_of_a_tensor_warns_and_copies():
    x = leaf(1.0, 2.0)
    with pytest.warns(UserWarning, match="tensor: expected data that is not a Tensor"):
        y = lamella.tensor(x)
    assert y.is_leaf and not y.requires_grad and y.data_ptr() != x.data_ptr()
    with pytest.warns(UserWarning):
        assert lamella.tensor(x, requires_grad=True).is_leaf


# ---- Other libraries ----


def test_numpy_needs_detach():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError) as error:
        x.numpy()
    assert str(error.value) == (
        "numpy: expected a tensor that does not require grad, got one that does; "
        "use detach().numpy()"
    )
    for read in (numpy.asarray, memoryview, numpy.from_dlpack):
        with pytest.raises((RuntimeError, BufferError), match="does not require grad"):
            read(x)
    assert x.numpy(force=True).tolist() == [1.0, 2.0]
    assert x.detach().numpy().tolist() == [1.0, 2.0]


def test_numbers_can_be_read():
    x = leaf(2.0)
    assert x.item() == 2.0 and x.tolist() == [2.0] and float(x) == 2.0 and bool(x)


# ---- Copies ----


def test_deepcopy():
    x = leaf(1.0, 2.0)
    run(x * n(2.0))
    y = copy.deepcopy(x)
    assert y.requires_grad and y.is_leaf and y.grad.tolist() == [2.0, 2.0]
    assert y.grad is not x.grad and y.data_ptr() != x.data_ptr()
    assert not copy.deepcopy(x.detach()).requires_grad
    with pytest.raises(RuntimeError) as error:
        copy.deepcopy(x * n(2.0))
    assert str(error.value) == (
        "deepcopy: expected a leaf, got a computed tensor; copy it with detach().clone()"
    )


def test_pickles_keep_requires_grad():
    x = leaf(1.0, 2.0)
    for tensor in (x, x * n(2.0)):
        y = pickle.loads(pickle.dumps(tensor))
        assert y.requires_grad and y.is_leaf and y.tolist() == tensor.tolist()
        y = copy.copy(tensor)
        assert y.requires_grad and y.is_leaf and y.data_ptr() == tensor.data_ptr()
    assert not pickle.loads(pickle.dumps(x.detach())).requires_grad


class Special(lamella.Tensor):
    pass


def test_subclasses():
    x = leaf(1.0)
    made = lamella.Tensor._make_subclass(Special, x, True)
    assert type(made) is Special and made.is_leaf and made.requires_grad
    y = pickle.loads(pickle.dumps(made))
    assert type(y) is Special and y.requires_grad and y.is_leaf
    y = copy.deepcopy(made)
    assert type(y) is Special and y.requires_grad and y.is_leaf
    alias = x.as_subclass(Special)
    assert type(alias) is Special and not alias.is_leaf
    run(alias)
    assert x.grad.tolist() == [1.0]


# ---- data ----


def test_data():
    x = leaf(1.0, 2.0)
    d = x.data
    assert not d.requires_grad and d.data_ptr() == x.data_ptr() and not d._is_view()
    d[0] = 5
    assert x.tolist() == [5.0, 2.0]
    x.data = lamella.zeros(3)
    assert x.requires_grad and x.is_leaf and x.shape == (3,)
    with pytest.raises(TypeError, match="data: expected a Tensor, got int"):
        x.data = 1
    with pytest.raises(RuntimeError, match="data: expected a floating-point or complex tensor"):
        x.data = lamella.zeros(3, dtype=lamella.int64)


def test_views_know_their_base():
    x = lamella.ones(2, 3)
    y = x[0]
    assert y._is_view() and y._base is x
    assert y[1:]._base is x
    assert not x._is_view() and x._base is None
    assert not y.detach()._is_view()


def test_attributes_are_of_one_tensor():
    x, y = lamella.ones(2), lamella.ones(2)
    vars(x)["first"] = 1
    x.second = 2
    assert vars(x) == {"first": 1, "second": 2} and vars(y) == {} and vars(lamella.ones(1)) == {}
    with pytest.raises(AttributeError):
        del y.first
    with pytest.raises(TypeError, match="__dict__ must be set to a dictionary"):
        y.__dict__ = 3
    y.grad = lamella.zeros(2)
    assert vars(y) == {} and not hasattr(y, "second")
    del x.first, x.second
    assert vars(x) == {} and not hasattr(x, "first")
    # Objects are used again, and those without attributes may share what says so.
    for i in range(300):
        t = lamella.ones(1)
        assert not hasattr(t, "tag") and t.numel() == 1
        if i % 3 == 0:
            t.__dict__ = {"tag": i}
        elif i % 3 == 1:
            t.tag = i
        assert getattr(t, "tag", i) == i
        assert {"tag": i} in gc.get_referents(t) if i % 3 != 2 else not gc.get_referents(t)


# ---- Text ----


def test_repr():
    assert repr(leaf(1.0)) == "tensor([1.], requires_grad=True)"
    assert repr(leaf(1.0) * n(2.0)) == "tensor([2.], grad_fn=<MulBackward0>)"
    x = lamella.ones(1, dtype=lamella.float64, requires_grad=True)
    assert repr(x) == "tensor([1.], dtype=lamella.float64, requires_grad=True)"
    assert repr(x.detach()) == "tensor([1.], dtype=lamella.float64)"


def test_inference_tensors():
    with lamella.inference_mode():
        x = lamella.ones(2)
    assert x.is_inference()
    assert not lamella.ones(2).is_inference()
    with pytest.raises(RuntimeError):
        x.requires_grad_()
