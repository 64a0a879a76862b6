"""no_grad, enable_grad, set_grad_enabled and inference_mode."""

import pytest
from in_threads import in_threads

import lamella


def test_contexts_nest():
    assert lamella.is_grad_enabled()
    with lamella.no_grad():
        assert not lamella.is_grad_enabled()
        with lamella.enable_grad():
            assert lamella.is_grad_enabled()
            with lamella.no_grad():
                assert not lamella.is_grad_enabled()
            assert lamella.is_grad_enabled()
        assert not lamella.is_grad_enabled()
    assert lamella.is_grad_enabled()


def test_one_context_may_be_entered_again_while_entered():
    mode = lamella.no_grad()
    with mode, lamella.enable_grad():
        with mode:
            assert not lamella.is_grad_enabled()
        assert lamella.is_grad_enabled()
    assert lamella.is_grad_enabled()


def test_an_error_puts_the_mode_back():
    with pytest.raises(KeyError), lamella.no_grad():
        raise KeyError
    assert lamella.is_grad_enabled()


@pytest.mark.parametrize("bare", [True, False])
def test_decorated_functions_run_in_the_mode(bare):
    decorator = lamella.no_grad if bare else lamella.no_grad()

    @decorator
    def function(a, *, b=2):
        """Its text."""
        return lamella.is_grad_enabled(), a, b

    assert function(1, b=3) == (False, 1, 3)
    assert (function.__name__, function.__doc__) == ("function", "Its text.")
    assert lamella.is_grad_enabled()


def test_decorated_functions_may_recurse():
    @lamella.no_grad()
    def down(n):
        assert not lamella.is_grad_enabled()
        return down(n - 1) if n else "end"

    assert down(5) == "end"
    assert lamella.is_grad_enabled()


def test_generators_have_the_mode_while_they_run():
    @lamella.no_grad()
    def generator(n):
        got = []
        for i in range(n):
            assert not lamella.is_grad_enabled()
            try:
                got.append((yield i))
            except ValueError as error:
                assert not lamella.is_grad_enabled()
                got.append(error)
        return got

    running = generator(3)
    assert next(running) == 0
    assert lamella.is_grad_enabled()
    assert running.send("a") == 1
    error = ValueError()
    assert running.throw(error) == 2
    assert lamella.is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        running.send("c")
    assert end.value.value == ["a", error, "c"]


def test_closing_a_generator_runs_its_end_in_the_mode():
    seen = []

    @lamella.no_grad()
    def generator():
        try:
            yield
        finally:
            seen.append(lamella.is_grad_enabled())

    running = generator()
    next(running)
    running.close()
    assert seen == [False]


def test_set_grad_enabled_acts_at_once_and_as_a_context():
    lamella.set_grad_enabled(False)
    assert not lamella.is_grad_enabled()
    lamella.set_grad_enabled(mode=True)
    assert lamella.is_grad_enabled()
    with lamella.set_grad_enabled(False):
        assert not lamella.is_grad_enabled()
    assert lamella.is_grad_enabled()


def test_set_grad_enabled_as_a_decorator_acts_in_the_function_only():
    @lamella.set_grad_enabled(False)
    def function():
        return lamella.is_grad_enabled()

    assert lamella.is_grad_enabled()
    assert not function()
    assert lamella.is_grad_enabled()


def test_inference_mode():
    with lamella.inference_mode():
        assert lamella.is_inference_mode_enabled()
        assert not lamella.is_grad_enabled()
        made = lamella.ones(2)
        assert made.is_inference()
        with lamella.inference_mode(False):
            assert not lamella.is_inference_mode_enabled()
            assert lamella.is_grad_enabled()
            assert not lamella.ones(2).is_inference()
        assert lamella.is_inference_mode_enabled()
    assert not lamella.is_inference_mode_enabled()
    assert lamella.is_grad_enabled()
    assert not lamella.ones(2).is_inference()


def test_modules_made_in_inference_mode():
    with lamella.inference_mode():
        layer = lamella.nn.Linear(2, 2)
        assert layer.weight.requires_grad and layer.weight.is_inference()
        x = lamella.ones(2)
        assert not layer(x).requires_grad and lamella.rand(2, requires_grad=True).requires_grad
        plain = lamella.ones(2)
    with pytest.raises(RuntimeError, match="made outside of inference mode"):
        plain.requires_grad_()
    # Autograd cannot keep what it needs of such parameters, and says so.
    with pytest.raises(RuntimeError, match="inference"):
        layer(lamella.ones(2, requires_grad=True)).sum().backward()
    with lamella.no_grad():
        assert layer(lamella.ones(2)).shape == (2,)


def test_inference_mode_decorates():
    @lamella.inference_mode
    def bare():
        return lamella.is_inference_mode_enabled()

    @lamella.inference_mode()
    def called():
        return lamella.is_inference_mode_enabled()

    assert bare() and called()
    assert not lamella.is_inference_mode_enabled()


def test_modes_belong_to_their_thread():
    seen = []
    with lamella.no_grad():
        in_threads(lambda: seen.append(lamella.is_grad_enabled()), 1)
    assert seen == [True]


def test_results_without_gradients():
    x = lamella.ones(2, requires_grad=True)
    with lamella.no_grad():
        y = x * 2
        z = lamella.ones(2, requires_grad=True)
    assert not y.requires_grad and y.grad_fn is None
    assert z.requires_grad
    with lamella.enable_grad():
        assert (x * 2).requires_grad


@pytest.mark.parametrize("arguments", [(1, 2), ("x",)])
def test_wrong_arguments(arguments):
    with pytest.raises(TypeError):
        lamella.no_grad(*arguments)


def test_set_grad_enabled_needs_its_argument():
    with pytest.raises(TypeError, match="set_grad_enabled: expected one argument, 'mode'"):
        lamella.set_grad_enabled()


def test_modules_have_the_names():
    for place in (lamella, lamella.autograd, lamella.autograd.grad_mode):
        assert place.no_grad is lamella.no_grad
        assert place.inference_mode is lamella.inference_mode


def test_a_subclass_is_a_context():
    class Mine(lamella.no_grad):
        pass

    with Mine():
        assert not lamella.is_grad_enabled()
    assert lamella.is_grad_enabled()


def test_views_taken_under_no_grad_are_leaves_that_require_gradients():
    leaf = lamella.ones(3, 2, requires_grad=True)
    for tensor in (leaf, leaf * 2):
        with lamella.no_grad():
            views = [tensor[0], tensor.t(), tensor.reshape(6), tensor[0][1], *tensor.unbind(0)]
            views += [*tensor.split(1), tensor.expand(2, 3, 2)]
            others = [tensor * 2, tensor.detach(), tensor.detach()[0], tensor.t().reshape(6)]
        assert all(view.requires_grad and view.is_leaf and view.grad_fn is None for view in views)
        assert not any(other.requires_grad for other in others)
        view = views[0]
        (view * 3).sum().backward()
        assert view.grad.tolist() == [3, 3] and tensor is not leaf or leaf.grad is None
        assert view[0].grad_fn.name() == "SelectBackward0"
        with pytest.raises(RuntimeError, match="expected 'self'"):
            view.mul_(2)
        with lamella.no_grad():
            view.mul_(2)
    with lamella.no_grad():
        assert not lamella.ones(3)[0].requires_grad
        assert not leaf.to(lamella.int64)[0].requires_grad


WRITES_TO_INFERENCE = {
    "add_": lambda x, y: x.add_(1),
    "fill_": lambda x, y: x.fill_(1),
    "copy_": lambda x, y: x.copy_(y),
    "row": lambda x, y: x[0].zero_(),
    "set item": lambda x, y: x.__setitem__(0, 1.0),
    "random": lambda x, y: x.normal_(),
    "resize": lambda x, y: x.resize_(4),
    "turned": lambda x, y: x.t_(),
    "list": lambda x, y: lamella._foreach_add_([x], 1),
    "structured": lambda x, y: lamella.exp(y, out=x),
    "product": lambda x, y: lamella.matmul(y, y, out=x),
    "factory": lambda x, y: lamella.eye(3, out=x),
    "one of two": lambda x, y: lamella.sort(y, out=(x, lamella.empty(3, 3, dtype=lamella.int64))),
    "masked": lambda x, y: x.masked_fill_(y > 0, 2),
    "relu_": lambda x, y: lamella.nn.functional.relu(x, inplace=True),
}


@pytest.mark.parametrize("name", WRITES_TO_INFERENCE)
def test_tensors_of_inference_mode_are_written_there_alone(name):
    write = WRITES_TO_INFERENCE[name]
    y = lamella.full((3, 3), 2.0)
    with lamella.inference_mode():
        x = lamella.zeros(3, 3)
        view = x.view(9)
    with pytest.raises(RuntimeError, match="not to be made in inference mode"):
        write(x, y)
    assert view.tolist() == [0.0] * 9 and x.shape == (3, 3)
    with lamella.inference_mode():
        write(x, y)
        write(y.clone(), y)
    write(lamella.zeros(3, 3), y)


def test_writes_of_inference_tensors_are_not_counted():
    with lamella.inference_mode():
        x = lamella.zeros(3)
        with pytest.raises(RuntimeError, match="inference"):
            _ = x._version
    with pytest.raises(RuntimeError, match="inference"):
        _ = x[0]._version
    y = lamella.zeros(3)
    with lamella.inference_mode():
        y.add_(1)  # was made outside
    assert y._version == 1
    assert y.add_(x)._version == 2
    with pytest.raises(RuntimeError, match="inference"):
        y.requires_grad_().clone().mul_(x)
    # `data` has a count of its own, its views do not.
    data = x.data
    assert data.add_(1)._version == 1 and x.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="inference"):
        data[0].add_(1)
