"""Rows of the operator table, entries of op_db and overloads of all operators under vmap equal the
loop over their examples. See vmap_rows.py."""

import warnings

import pytest

import lamella

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import op_db  # noqa: E402
import op_db_mirror  # noqa: E402
import operands  # noqa: E402
import operator_rows  # noqa: E402
import running  # noqa: E402
import vmap_rows  # noqa: E402


def rows_of(entry):
    """(row, name) for the entry's samples; empty if Lamella lacks it."""
    try:
        function = entry.function()
    except op_db_mirror.Absent:
        return
    for dtype in entry.dtypes()[:1]:
        for number, sample in enumerate(entry.samples(dtype)):
            call = [sample.input, list(sample.args), dict(sample.kwargs)]
            try:
                first, args, kwargs = op_db_mirror.to_lamella(call)
                row = vmap_rows.Row(function, [[first, *args], kwargs])
                results = row.results(*row.leaves)
            except Exception:  # what a sample needs and Lamella has not: test_op_db_gradients.py
                continue
            if row.leaves and results:
                yield row, f"{entry.name} sample {number} of {dtype}"


def inplace_of(entry):
    try:
        return op_db_mirror.ours(entry.info.get_inplace())
    except Exception:
        return None


@pytest.mark.parametrize("entry", op_db.DENSE, ids=lambda entry: entry.name)
def test_entry(entry):
    refused = []

    def run(way, *args):
        try:
            way(*args)
        except vmap_rows.Refused as error:
            refused.append(str(error))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (row, name) in enumerate(rows_of(entry)):
            if entry.known("vmap.loop"):
                continue
            # What vmap refuses before it asks for the meaning of random numbers is random, too.
            known = entry.has_values and entry.name != "normal"
            check = vmap_rows.Check(row, name, values=known)
            run(check.all_batched)
            if number < 2:
                run(check.each_alone)
            if number == 0:
                run(check.last_dimension)
                run(check.nested)
            if number == 0 and entry.info.inplace_variant is not None:
                inplace = inplace_of(entry)
                if inplace is not None:
                    run(check.inplace, inplace)
            if number == 0 and entry.info.supports_out:
                run(check.out)
            if number == 0 and entry.info.supports_autograd:
                run(check.gradients)
            if entry.info.supports_autograd:
                run(check.cotangents)
    entry.hold("vmap.refused", "\n".join(refused))


def table_rows():
    for number, row in enumerate(operator_rows.ROWS):
        for dtype in row.dtypes[:1]:
            yield pytest.param(row, dtype, id=f"{number}-{row.path}")


@pytest.mark.parametrize("row, dtype", list(table_rows()))
def test_gradient_row(row, dtype):
    function, inputs = row.call(dtype)
    check = vmap_rows.Check(vmap_rows.Row(function, [list(inputs), {}]), row.name)
    check.all_batched()
    check.gradients()
    check.cotangents()


# What vmap refuses: results whose shapes depend on values, numbers read from tensors, other memory.
REFUSED = (
    "_unique _unique2 argwhere bincount cov histogram masked_scatter_backward masked_select narrow "
    "nonzero nonzero_numpy one_hot repeat_interleave set_ tensor_split unique_consecutive "
    "unique_dim unique_dim_consecutive where"
).split()
# Left out: nonzero_static.out calls what vmap loops over,
# and the others differ from the loop where numbers of dimensions, undefined results or storages are
# another for each example.
FAILING = ("_fused_rms_norm_backward set_.source_Tensor_storage_offset nonzero_static.out").split()


def overloads():
    """Those that no rule of all pointwise operators serves, and vmap does not loop over."""
    for op in running.operators():
        rule = op.call.policy("batching")
        if rule in ("pointwise", "loop", None) or op.full_name.removeprefix("aten::") in FAILING:
            continue
        if any("Tensor" in argument.type for argument in op.arguments):
            yield op


def call_of(op):
    """The first call of the fuzzer's table (tests/fuzz/shapes.txt) that succeeds."""
    for index in range(8):
        call = running.Call(op, 0, index, only_valid=True)
        kinds = {operand.dtype for _, operand in call.operands()}
        if call.giant or call.loops or kinds & {"float16", "bfloat16"}:
            continue
        call.values.pop("found_inf", None)  # one for all examples of an optimizer's step
        try:
            args, kwargs = call.made(operands.make_lamella, running.other_lamella)
            op.call(*args, **kwargs)  # gives `out` its size
            return args, kwargs
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            continue
    return None


def keeping(op):
    """The operator as a function that writes copies, which it returns."""
    written = {argument.name for argument in op.arguments if argument.write}

    def copied(value):
        return [item.clone() for item in value] if isinstance(value, list) else value.clone()

    def function(*args, **kwargs):
        given = dict(zip((argument.name for argument in op.arguments), args)) | kwargs
        kept = {name: copied(given[name]) for name in written if given.get(name) is not None}
        args = [kept.get(argument.name, arg) for argument, arg in zip(op.arguments, args)]
        result = op.call(*args, **{name: kept.get(name, kwargs[name]) for name in kwargs})
        return [result, *kept.values()]

    return function


@pytest.mark.parametrize("op", list(overloads()), ids=lambda op: op.full_name)
def test_overload(op):
    call = call_of(op)
    if call is None:
        return
    row = vmap_rows.Row(keeping(op), list(call))
    if not row.leaves or not row.results(*row.leaves):
        return
    try:
        vmap_rows.Check(row, op.full_name).all_batched()
    except vmap_rows.Refused:
        assert op.short_name in REFUSED


def needs_rule(operator):
    """Whether a call of it may meet a batched tensor."""
    return "Tensor" in operator._schema.partition(" -> ")[0]


# Kernels for one example at a time: lengths and regions are another for each, or steps wait for
# each other.
ONE_AT_A_TIME = {
    "aten._csr_mm.default",
    "aten._ctc_loss.default",
    "aten._ctc_loss_backward.default",
    "aten._fractional_max_pool_places.default",
    "aten._rnn_layer.default",
    "aten._rnn_layer_backward.default",
    "aten.nonzero_static.default",
}


def test_no_operator_is_served_by_the_loop():
    shapes = {"dynamic_output_shape", "data_dependent_output"}
    without = []
    for name, overload in lamella._C._operator_names():
        if not name.startswith("aten::"):
            continue
        operator = getattr(getattr(lamella.ops.aten, name[6:]), overload or "default")
        rule = operator.policy("batching")
        if needs_rule(operator) and (rule in (None, "loop") and not shapes & set(operator.tags)):
            without.append(str(operator))
    assert set(without) == ONE_AT_A_TIME, "\n".join(without)
