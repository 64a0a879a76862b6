"""The operator table under a mode and through a wrapper subclass: the same values and gradients."""

# ruff: noqa: B023

import warnings

import pytest
from operator_rows import ROWS

import lamella
from lamella.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from lamella.utils._pytree import tree_map

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import op_db  # noqa: E402
import op_db_mirror  # noqa: E402

# Rows that are not run through a layer, each with the reason.
EXCEPT_MODE = {}
EXCEPT_WRAPPER = {}


class Through(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


class Wrapper(lamella.Tensor):
    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        return lamella.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=elem.device,
            requires_grad=requires_grad,
        )

    def __init__(self, elem, requires_grad=False):
        self.elem = elem

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner_args, inner_kwargs = tree_map(
            lambda x: x.elem if isinstance(x, Wrapper) else x, (list(args), kwargs or {})
        )
        out = func(*inner_args, **inner_kwargs)
        out = tree_map(lambda x: Wrapper(x) if type(x) is lamella.Tensor else x, out)
        return return_and_correct_aliasing(func, args, kwargs, out)


def plain(value):
    return value.elem if isinstance(value, Wrapper) else value


def values_and_gradients(function, inputs):
    results = function(*inputs)
    results = [results] if isinstance(results, lamella.Tensor) else list(results)
    grads = [lamella.ones_like(plain(r).detach()) for r in results]
    gradients = lamella.autograd.grad(results, inputs, grads, allow_unused=True)
    return [plain(r.detach()) for r in results], [plain(g) for g in gradients]


def same(ours, eager):
    assert len(ours) == len(eager)
    for a, b in zip(ours, eager):
        assert (a is None) == (b is None)
        if a is None:
            continue
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert lamella.allclose(a, b, equal_nan=True)


CASES = [pytest.param(row, dtype, id=f"{i}-{row.name}-{dtype}")
         for i, row in enumerate(ROWS) for dtype in row.dtypes]  # fmt: skip


@pytest.mark.parametrize("row, dtype", CASES)
def test_under_a_mode(row, dtype):
    if row.path in EXCEPT_MODE:
        pytest.skip(EXCEPT_MODE[row.path])
    function, inputs = row.call(dtype)
    eager = values_and_gradients(function, inputs)
    with Through() as mode:
        ours = values_and_gradients(function, inputs)
    assert mode.seen > 0
    for a, b in zip(ours, eager):
        same(a, b)


@pytest.mark.parametrize("row, dtype", CASES)
def test_through_a_wrapper(row, dtype):
    if row.path in EXCEPT_WRAPPER:
        pytest.skip(EXCEPT_WRAPPER[row.path])
    function, inputs = row.call(dtype)
    eager = values_and_gradients(function, inputs)
    wrapped = tuple(Wrapper(x.detach(), requires_grad=True) for x in inputs)
    ours = values_and_gradients(function, wrapped)
    for a, b in zip(ours, eager):
        same(a, b)


# ---- PyTorch's table of operators ----------------------------------------------------------------


def results_of(function, call):
    """Results and written arguments of a call with copies of its tensors."""
    first, args, kwargs = call
    lamella.manual_seed(42)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(first, *args, **kwargs)
    return [plain(t) for t in op_db_mirror.tensors_in([result, call], lamella.Tensor)]


def agree(ours, eager, values):
    assert len(ours) == len(eager)
    for a, b in zip(ours, eager):
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
        if values:
            a, b = a.detach(), b.detach()
            assert bool(((a == b) | ((a != a) & (b != b))).all())


@pytest.mark.parametrize("entry", op_db.PRESENT, ids=lambda entry: entry.name)
def test_entry(entry):
    function = entry.function()
    under_mode = through_wrapper = None
    ran = False
    for call in entry.calls():

        def fresh(change):
            with torch.no_grad():
                return op_db_mirror.mapped(op_db_mirror.to_lamella(call), change, lamella.Tensor)

        def copied(t):
            return t.detach().clone()

        try:
            eager = results_of(function, fresh(copied))
        except Exception:  # what Lamella has not: test_op_db_gradients.py
            continue
        ran = True
        try:
            given = fresh(copied)
            with Through():
                ours = results_of(function, given)
            agree(ours, eager, entry.has_values)
        except Exception as error:
            under_mode = under_mode or f"{type(error).__name__}: {error}"
        try:
            ours = results_of(function, fresh(lambda t: Wrapper(copied(t))))
            agree(ours, eager, entry.has_values)
        except Exception as error:
            through_wrapper = through_wrapper or f"{type(error).__name__}: {error}"
    entry.hold("mode", under_mode)
    entry.hold("wrapper", through_wrapper)
    entry.require_compared("layers", ran)
