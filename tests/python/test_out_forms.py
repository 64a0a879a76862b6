"""`out=` of every entry of PyTorch's operator table that takes it: values, resizing, what is
returned, and the errors of outputs that cannot hold the result."""

import warnings

import pytest
import torch
from op_db import ENTRIES
from op_db_mirror import Absent, fresh, name_of, tensors_in, to_lamella, to_torch
from op_db_sample import same

import lamella

# Entries whose results are drawn or are whatever the memory holds.
DRAWN = "empty empty_permuted normal new_empty bernoulli multinomial rand randn randint".split()
# Entries for whose samples PyTorch has no out=, though the table says so.
NOTHING = "equal sparse.sampled_addmm histogramdd _batch_norm_with_update".split()
# Copies of views, whose out= would be nothing but a tensor's copy_(), and what PyTorch documents
# without it.
ABSENT = (
    "expand_copy diagonal_copy alias_copy as_strided_copy view_copy permute_copy unbind_copy "
    "split_with_sizes_copy unfold_copy squeeze_copy unsqueeze_copy transpose_copy t_copy lu "
    "native_batch_norm _native_batch_norm_legit nn.functional.logsigmoid"
).split()
OPTIONS = ("dtype", "device", "layout", "pin_memory", "requires_grad")
TAKES_OUT = [e for e in ENTRIES if e.info.supports_out and e.name not in NOTHING]


def cases(entry):
    types = entry.info.supported_dtypes("cpu")
    dtype = next(t for t in (torch.float32, torch.complex64, *types) if t in types)
    for sample in entry.samples(dtype, 2):
        given = [sample.input, list(sample.args), dict(sample.kwargs)]
        for tensor in tensors_in(given, torch.Tensor):
            tensor.requires_grad_(False)
        # Factories take their options from the output.
        if "device" in given[2] or not tensors_in(given, torch.Tensor):
            given[2] = {name: v for name, v in given[2].items() if name not in OPTIONS}
        yield given


def outputs(module, result, grows):
    """Tensors for the results, which may have to grow."""
    if isinstance(result, torch.Tensor):
        dtype = getattr(module, name_of(result.dtype))
        return module.empty(0 if grows else tuple(result.shape), dtype=dtype)
    return tuple(outputs(module, item, grows) for item in result)


def converted(value):
    return tuple(map(converted, value)) if isinstance(value, (list, tuple)) else to_torch(value)


@pytest.mark.parametrize("entry", TAKES_OUT, ids=lambda entry: entry.name)
def test_out(entry):
    warnings.simplefilter("ignore")
    try:
        ours, theirs = entry.function(), entry.info.get_op()
    except Absent as absent:
        assert entry.known("absent"), absent
        return
    compared = 0
    for given in cases(entry):
        first, args, kwargs = fresh(given)
        try:
            plain = theirs(first, *args, **kwargs)
            first, args, kwargs = fresh(given)
            expected = theirs(first, *args, out=outputs(torch, plain, True), **kwargs)
        except Exception:
            continue  # PyTorch has no out= for this sample
        if not isinstance(plain, (torch.Tensor, tuple)):
            continue
        first, args, kwargs = to_lamella(given)
        if entry.name in ABSENT:
            with pytest.raises(TypeError, match="out"):
                ours(first, *args, out=outputs(lamella, plain, True), **kwargs)
            return
        for grows in (True, False):
            mine = outputs(lamella, plain, grows)
            got = ours(first, *args, out=mine, **kwargs)
            if isinstance(mine, lamella.Tensor):
                assert got is mine
            same(got, expected, "out", values=False)
            if entry.name.partition(".")[0] not in DRAWN:
                same(got, converted(ours(first, *args, **kwargs)), "out")
        compared += 1
        refuse_another_dtype(entry, ours, theirs, given, plain)
    assert compared, "PyTorch takes out= for no sample"


def refuse_another_dtype(entry, ours, theirs, given, plain):
    """A result of floating point does not go into integers, of which nothing is written, unless
    PyTorch has it computed in the dtype of the output."""
    if not isinstance(plain, torch.Tensor) or not plain.dtype.is_floating_point:
        return
    if entry.name == "nansum":  # computes in the dtype of the output, as sum() does
        return
    first, args, kwargs = fresh(given)
    with pytest.raises((RuntimeError, TypeError)) as refused:
        theirs(first, *args, out=torch.full(plain.shape, 7), **kwargs)
        raise TypeError("taken")
    if str(refused.value) == "taken":
        return
    first, args, kwargs = to_lamella(given)
    mine = lamella.full(tuple(plain.shape), 7, dtype=lamella.int64)
    with pytest.raises((RuntimeError, TypeError)):
        ours(first, *args, out=mine, **kwargs)
    assert (to_torch(mine) == 7).all()


def test_out_forms_refuse_gradients_and_shared_memory():
    x = lamella.ones(3, 3, requires_grad=True)
    for call in (
        lambda out: lamella.kron(x, x, out=out),
        lambda out: lamella.linalg.inv(x, out=out),
        lambda out: lamella.complex(x, x, out=out),
    ):
        with pytest.raises(RuntimeError, match="gradient"):
            call(lamella.empty(0))
    values = lamella.empty(3)
    with pytest.raises(RuntimeError, match="mode: expected"):
        lamella.mode(x.detach(), 0, out=(values, values.view(lamella.int32)))


def plain(schema):
    return schema.replace("SymInt", "int").replace("10.0", "10.")


def test_overloads_have_pytorchs_names():
    for name, overload in (
        ("all", "out"), ("any", "all_out"), ("svd", "U"), ("linalg_eigh", "eigvals"),
        ("kthvalue", "values"), ("lu_unpack", "out"), ("xlogy", "OutTensor"), ("max", "unary_out"),
        ("multinomial", "out"), ("logspace", "Tensor_Scalar_out"), ("triangular_solve", "X"),
    ):  # fmt: skip
        mine = str(getattr(getattr(lamella.ops.aten, name), overload)._schema)
        theirs = str(getattr(getattr(torch.ops.aten, name), overload)._schema)
        assert plain(mine) == plain(theirs)
