"""Every operator of the tables on an out-of-tree backend, equal to the CPU's results.

The devices of examples/backend run six operators themselves and all others by the fallback on the
CPU, so their results equal the CPU's to the last bit.
"""

import warnings

import pytest
import sim_backend

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # the table's module needs it

import op_db  # noqa: E402
import op_db_mirror  # noqa: E402
from operator_rows import ROWS  # noqa: E402

import lamella  # noqa: E402

CASES = [(row, dtype) for row in ROWS for dtype in row.dtypes]
IDS = [f"{i}-{row.path}-{dtype}" for i, (row, dtype) in enumerate(CASES)]


@pytest.fixture(scope="module", autouse=True)
def devices():
    sim_backend.load()


def tensors(value):
    return op_db_mirror.tensors_in(value, lamella.Tensor)


def same(got, expected, what, values=True, exact=True, there=True):
    """there: whether anything of the call was on the device."""
    assert type(got) is type(expected), what
    if isinstance(expected, lamella.Tensor):
        assert tuple(got.shape) == tuple(expected.shape), what
        assert got.dtype == expected.dtype, what
        assert tuple(got.stride()) == tuple(expected.stride()), (what, "strides")
        if values and expected.device.type == "cpu":
            assert got.device.type == "sim" or not there, (what, got.device)
            mine, theirs = op_db_mirror.to_torch(got.cpu()), op_db_mirror.to_torch(expected)
            tolerance = {} if not exact else {"rtol": 0, "atol": 0}
            torch.testing.assert_close(
                mine,
                theirs,
                equal_nan=True,
                msg=lambda m: f"{what}: {m}",
                check_stride=False,
                **tolerance,
            )
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), what
        for i, (mine, theirs) in enumerate(zip(got, expected)):
            same(mine, theirs, f"{what} {i}", values, exact, there)
    elif values:
        assert got == expected or (got != got and expected != expected), what


@pytest.mark.parametrize("row, dtype", CASES, ids=IDS)
def test_row(row, dtype):
    """Values and gradients."""
    function, inputs = row.call(dtype)
    there = sim_backend.onto(inputs)
    lamella.manual_seed(0)
    expected = function(*inputs)
    lamella.manual_seed(0)
    source = {id(t): m for t, m in zip(inputs, there)}
    assert all(id(t) in source for t in inputs)
    with_constants = row.call(dtype, place="sim")[0]
    got = with_constants(*there)
    same(got, expected, "result")
    results = [t for t in tensors(expected) if t.requires_grad]
    mine = [t for t in tensors(got) if t.requires_grad]
    assert len(mine) == len(results)
    seeds = [lamella.ones_like(t) for t in results]
    grads = lamella.autograd.grad(results, inputs, seeds, allow_unused=True)
    my_grads = lamella.autograd.grad(
        mine, there, [sim_backend.onto(s) for s in seeds], allow_unused=True
    )
    for i, (g, e) in enumerate(zip(my_grads, grads)):
        assert (g is None) == (e is None)
        if e is not None:
            same(g.contiguous(), e.contiguous(), f"gradient {i}", exact=False)


def on_device(function, call, device):
    first, args, kwargs = sim_backend.onto(call, "sim") if device else call
    lamella.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(first, *args, **kwargs)
    return result, [first, args, kwargs]


def outcome(function, make, device):
    try:
        return on_device(function, make(), device)
    except Exception as error:
        return error, None


@pytest.mark.parametrize("entry", op_db.DENSE, ids=lambda entry: entry.name)
def test_entry(entry):
    try:
        function = entry.function()
    except op_db.Absent:
        assert entry.known("absent")
        return
    refused = None
    forms = [("result", function)]
    inplace = entry.info.get_inplace()
    if inplace is not None:
        try:
            forms.append(("in place", op_db.ours(inplace)))
        except op_db.Absent:
            pass
    for dtype in entry.dtypes():
        for number, sample in enumerate(entry.samples(dtype)[:2]):
            call = [sample.input, list(sample.args), dict(sample.kwargs)]
            try:
                op_db_mirror.to_lamella(call)
            except op_db.Absent:
                continue

            def make(call=call):
                return sim_backend.change(op_db_mirror.to_lamella(call), lambda t: t.detach())

            for form, called in forms:
                what = f"{entry.name} {form}: {dtype} sample {number}"
                expected, arguments = outcome(called, make, False)
                got, mine = outcome(called, make, True)
                if isinstance(expected, Exception):
                    assert isinstance(got, Exception), what
                    continue
                if isinstance(got, Exception):
                    refused = f"{what}: {got}"
                    continue
                there = bool(tensors(arguments)) or "device" in sample.kwargs
                same(got, expected, what, entry.has_values, exact=False, there=there)
                what = f"{what}: arguments"
                same(tensors(mine), tensors(arguments), what, entry.has_values, exact=False)
    entry.hold("backend", refused)
    assert (entry.known("backend") or "") in (refused or "")
