"""Operators without a derivative, registered from Python: nothing loses a gradient silently.

tests/layers/compliance/silent_gradient_test.cpp walks every registered operator.
"""

import pytest

import lamella


@pytest.fixture
def library():
    made = lamella.library.Library("no_derivative", "DEF")
    yield made
    made.close()


def grown(x):
    """A new tensor, as a kernel that is no operator of Lamella's makes it."""
    with lamella.no_grad():
        return x * 2


def raises(outputs, name):
    with pytest.raises(NotImplementedError) as error:
        lamella.autograd.backward(outputs, [lamella.ones_like(t) for t in outputs])
    assert str(error.value).startswith(
        f"no_derivative::{name}: has no derivative (the operator was "
    )
    assert "registered at " in str(error.value)
    assert "test_no_silent_gradient.py" in str(error.value)


def test_single_result(library):
    library.define("one(Tensor x, Tensor y) -> Tensor")
    library.impl("one", lambda x, y: grown(x), "CPU")
    x, y = lamella.ones(2), lamella.ones(2, requires_grad=True)
    result = lamella.ops.no_derivative.one(x, y)
    assert result.requires_grad
    assert result.grad_fn.name() == "OneBackward"
    raises([result], "one")


def test_lists_and_whole_numbers(library):
    library.define("several(Tensor[] xs) -> (Tensor[], Tensor, int)")
    library.impl("several", lambda xs: ([grown(x) for x in xs], lamella.tensor([1, 2]), 3), "CPU")
    x = lamella.ones(2, requires_grad=True)
    parts, whole, number = lamella.ops.no_derivative.several([lamella.ones(2), x])
    assert [part.requires_grad for part in parts] == [True, True]
    assert not whole.requires_grad
    assert number == 3
    raises(parts, "several")


def test_in_place(library):
    library.define("write_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("write_", lambda x: x.mul_(2), "CPU")
    leaf = lamella.ones(2, requires_grad=True)
    x = leaf * 1
    written = lamella.ops.no_derivative.write_(x)
    assert written is x
    raises([written], "write_")
    with pytest.raises(RuntimeError, match="no_derivative::write_|write_"):
        lamella.ops.no_derivative.write_(leaf)


def test_parts_have_gradients(library):
    library.define("parts(Tensor x) -> Tensor")
    library.impl("parts", lambda x: x * x, "CompositeImplicitAutograd")
    x = lamella.tensor([3.0], requires_grad=True)
    lamella.ops.no_derivative.parts(x).backward()
    assert x.grad.item() == 6


def test_parts_of_a_kernel_have_gradients(library):
    library.define("parts(Tensor x, Tensor y) -> (Tensor, Tensor)")
    library.impl("parts", lambda x, y: (x * x, y + 1), "CPU")
    x = lamella.tensor([3.0], requires_grad=True)
    square, plain = lamella.ops.no_derivative.parts(x, lamella.ones(1))
    assert not plain.requires_grad
    square.backward()
    assert x.grad.item() == 6


def test_no_gradients_no_node(library):
    library.define("one(Tensor x) -> Tensor")
    library.impl("one", grown, "CPU")
    x = lamella.ones(2, requires_grad=True)
    with lamella.no_grad():
        assert not lamella.ops.no_derivative.one(x).requires_grad
    assert not lamella.ops.no_derivative.one(x.detach()).requires_grad


@pytest.mark.parametrize(
    ("name", "call", "wants"),
    [
        ("add", lambda one, x: lamella.add(one, one, alpha=x), "'alpha': expected Scalar"),
        ("leaky_relu", lambda one, x: lamella.nn.functional.leaky_relu(one, x),
         "'negative_slope' (position 2): expected Scalar"),
        ("uniform_", lambda one, x: one.uniform_(0, x), "'to' (position 2): expected float"),
        ("full", lambda one, x: lamella.full((2,), x),
         "'fill_value' (position 2): expected Scalar"),
    ],
)  # fmt: skip
def test_numbers_are_no_tensors_that_require_grad(name, call, wants):
    one, x = lamella.ones(2), lamella.tensor(2.0, requires_grad=True)
    with pytest.raises(TypeError) as error:
        call(one, x)
    text = str(error.value)
    assert text.startswith(f"{name}: got (")
    assert f"{wants}, got Tensor that requires grad; its item() is a number" in text
    call(one, x.detach())
