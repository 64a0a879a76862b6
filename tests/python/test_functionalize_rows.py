"""Every operator of op_db, also its in-place and out forms, through functionalize: results, written
arguments and aliases are those of plain calls. See op_db.py.
"""

import contextlib
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from op_db import PRESENT, Absent  # noqa: E402
from op_db_mirror import mapped, ours, tensors_in, to_lamella, to_torch  # noqa: E402

import lamella  # noqa: E402
from lamella.func import functionalize  # noqa: E402

MODES = ("mutations", "mutations_and_views")
SAMPLES = 2


def arguments_of(sample):
    call = [sample.input, list(sample.args), dict(sample.kwargs)]
    return to_lamella(mapped(call, torch.Tensor.detach))


def tensors(*values):
    return tensors_in(list(values), lamella.Tensor)


def memory(tensor):
    return tensor.untyped_storage().data_ptr() if tensor.numel() else None


def sharing(found):
    places = [memory(t) for t in found]
    return [
        (i, j)
        for i in range(len(found))
        for j in range(i)
        if places[i] is not None and places[i] == places[j]
    ]


def run(function, sample, through=None):
    first, args, kwargs = arguments_of(sample)
    lamella.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if through is not None:
            function = functionalize(function, remove=through)
        result = function(first, *args, **kwargs)
    return result, tensors(first, args, kwargs)


def same(got, expected, what, values):
    assert len(got) == len(expected), what
    for i, (g, e) in enumerate(zip(got, expected)):
        assert g.shape == e.shape and g.dtype == e.dtype, (what, i, g.shape, e.shape)
        if values:
            torch.testing.assert_close(
                to_torch(g),
                to_torch(e),
                equal_nan=True,
                check_stride=False,
                msg=lambda text, i=i: f"{what} {i}: {text}",
            )


def forms(entry):
    """The function, its in-place form, and the function with out arguments."""
    function = entry.function()
    yield "call", function
    theirs = entry.info.get_inplace()
    if theirs is not None:
        with contextlib.suppress(Absent):
            yield "inplace", ours(theirs)
    if entry.info.supports_out:

        def with_out(first, *args, **kwargs):
            result = function(first, *args, **kwargs)
            if isinstance(result, lamella.Tensor):
                return function(first, *args, out=lamella.empty_like(result), **kwargs)
            out = tuple(lamella.empty_like(t) for t in result)
            return function(first, *args, out=out, **kwargs)

        yield "out", with_out


@pytest.mark.parametrize("entry", PRESENT, ids=lambda entry: entry.name)
def test_entry(entry):
    found = list(forms(entry))
    ran = False
    for dtype in entry.dtypes()[:1] + [d for d in entry.dtypes()[1:2] if d.is_complex]:
        for sample in entry.samples(dtype)[:SAMPLES]:
            for name, function in found:
                if entry.known(f"functionalize.{name}"):
                    continue
                try:
                    result, inputs = run(function, sample)
                except (Absent, AssertionError, AttributeError, RuntimeError, TypeError, ValueError,
                        IndexError):  # fmt: skip
                    continue  # plain calls are compared with PyTorch in test_op_db_gradients.py
                ran = True
                expected = tensors(result)
                for mode in MODES:
                    got, written = run(function, sample, mode)
                    what = f"{name}, {mode}"
                    same(tensors(got), expected, what, entry.has_values)
                    same(written, inputs, f"{what}, argument", entry.has_values)
                    if mode == "mutations":
                        assert sharing(tensors(got) + written) == sharing(expected + inputs), what
                    else:
                        kept = [i for i, e in enumerate(expected) if any(e is x for x in inputs)]
                        results = tensors(got)
                        assert all(any(results[i] is x for x in written) for i in kept), what
    entry.require_compared("functionalize", ran)
