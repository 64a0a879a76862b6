"""Every row of the operator table under vmap equals the loop over its examples. See
vmap_rows.py."""

import warnings

import pytest

import lamella

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import op_db  # noqa: E402
import op_db_mirror  # noqa: E402
import operator_rows  # noqa: E402
import vmap_cases  # noqa: E402
import vmap_rows  # noqa: E402

CASES = list(vmap_cases.calls())


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


@pytest.mark.parametrize("name, function, args, kwargs", CASES, ids=[case[0] for case in CASES])
def test_case(name, function, args, kwargs):
    row = vmap_rows.Row(function, [args, kwargs])
    check = vmap_rows.Check(row, name)
    check.all_batched()
    check.nested()
    try:
        check.each_alone()
    except vmap_rows.Refused as error:
        assert "which is written, to be batched under vmap" in str(error)


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
