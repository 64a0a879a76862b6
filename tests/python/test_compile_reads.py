"""lamella.compile notices each change of what a function read: eager's result after the change."""

import pathlib
import sys

import pytest

lamella = pytest.importorskip("lamella")
pytest.importorskip("lamella.hlo")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import compile_ways_attributes  # noqa: E402, F401
import compile_ways_containers  # noqa: E402, F401
import compile_ways_state  # noqa: E402, F401
from compile_ways import WAYS, Box  # noqa: E402


def values(result):
    if isinstance(result, tuple):
        return [part for item in result for part in values(item)]
    if isinstance(result, lamella.Tensor):
        return [str(result.dtype), result.requires_grad, result.tolist()]
    return [result]


@pytest.mark.parametrize("make", WAYS)
def test_way(make):
    """Each result is eager's; without a change there is no new program."""
    fn, change = make()
    run = fn.run if isinstance(fn, Box) and "run" in vars(fn) else fn
    eager = getattr(fn, "eager", run)
    compiled = lamella.compile(run)
    wrap = getattr(run, "graded", lambda f: f)
    x = lamella.tensor([1.0, 2.0])
    try:
        for _ in range(3):
            assert values(wrap(compiled)(x)) == values(wrap(eager)(x))
        count = len(compiled._entries)
        assert count <= 2, compiled.explanation()
        change()
        for _ in range(3):
            assert values(wrap(compiled)(x)) == values(wrap(eager)(x)), compiled.explanation()
        assert len(compiled._entries) <= count + 2, compiled.explanation()
        if make.__name__ not in UNCOMPILED:
            assert "uncompiled" not in compiled.explanation().splitlines()[-1]
    finally:
        getattr(change, "undo", lambda: None)()


# Functions that read what no guard compares: they run uncompiled.
UNCOMPILED = {
    "attribute_of_a_parameter",
    "dictionary_of_tensors",
    "formatted_text",
    "iterator_from_outside",
    "precision_of_decimal",
    "random_numbers_of_python",
    "seed_of_the_generator",
    "tensors_that_are_the_same",
    "text_in_memory",
}


def test_hooks_run_where_a_function_computes_gradients():
    def step(x):
        (x * 2).sum().backward()
        grad, x.grad = x.grad, None
        return grad

    def penalty(x):
        (grad,) = lamella.autograd.grad((x * x).sum(), x, create_graph=True)
        return grad.sum()

    for fn, plain, hooked in ((step, [2, 2], [16, 16]), (penalty, 6, 48)):
        compiled = lamella.compile(fn)
        x = lamella.tensor([1.0, 2.0], requires_grad=True)
        assert compiled(x).tolist() == plain
        handle = x.register_hook(lambda grad: grad * 8)
        assert compiled(x).tolist() == fn(x).tolist() == hooked
        assert "computes gradients of a tensor with hooks" in compiled.explanation()
        handle.remove()
        assert compiled(x).tolist() == plain
    # Gradients that the caller computes run hooks around the program.
    outer = lamella.compile(lambda x: (x * 3).sum())
    x = lamella.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda grad: grad * 8)
    outer(x).backward()
    assert x.grad.tolist() == [24, 24] and "uncompiled" not in outer.explanation()


def test_written_arguments_that_share_memory_with_what_was_read():
    """The second call writes what the function reads otherwise: as a default, in a list, as an
    array of NumPy."""

    class Listed(lamella.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = [lamella.ones(3)]

        def forward(self, x):
            x.add_(1)
            return self.kept[0] * 2

    def default(w):
        def function(x, y=w):
            x.add_(1)
            return y * 2

        return function

    def array(w):
        numbers = w.numpy()

        def function(x):
            x.add_(1)
            return lamella.from_numpy(numbers) * 2

        return function

    def view(w):
        def function(x, y=w[1:]):
            x.add_(1)
            return y * 2

        return function

    module = Listed()
    cases = [(module, module.kept[0])]
    for make in (default, array, view):
        w = lamella.ones(3)
        cases.append((make(w), w))
    for function, shared in cases:
        compiled = lamella.compile(function)
        assert set(compiled(lamella.zeros(3)).tolist()) == {2}
        assert set(compiled(shared).tolist()) == {4}
        assert shared.tolist() == [2] * 3
        shared.fill_(5)
        assert set(compiled(lamella.zeros(3)).tolist()) == {10}


def test_errors_of_the_lowering_are_raised(monkeypatch):
    from lamella import _hlo

    def broken(*args, **kwargs):
        raise RuntimeError("the lowering is broken")

    for name in ("_from_trace", "compile", "_divide_trace"):
        with monkeypatch.context() as patch:
            patch.setattr(_hlo, name, broken)
            x = lamella.ones(2, requires_grad=name == "_divide_trace")
            with pytest.raises(RuntimeError, match="the lowering is broken"):
                lamella.compile(lambda x: x * 2)(x)


def test_unknown_layouts_of_frames_are_refused():
    from lamella import _hlo

    def start(first):
        _hlo._watch(None, None, None).start(object())

    with pytest.raises(RuntimeError, match=r"the layout of frames of Python \d.\d+ is not known"):
        start(1)
