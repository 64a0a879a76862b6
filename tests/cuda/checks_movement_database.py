"""PyTorch's database of inputs for the operators that move elements: "cuda" against the CPU."""

import pathlib
import sys

import pytest
import torch

import lamella

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from op_db import Entry  # noqa: E402
from op_db_mirror import Absent, mapped, tensors_in, to_lamella  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

NAMES = """
    __getitem__ arange argsort argwhere bincount bucketize cat column_stack diag diag_embed diagflat
    dsplit dstack empty eye flip fliplr flipud full gather hstack index_add index_copy index_fill
    index_put index_reduce index_select isin kthvalue linspace masked_fill masked_scatter
    masked_select median msort nanmedian nonzero ones permute put repeat repeat_interleave roll
    rot90 scatter scatter_add scatter_reduce searchsorted select_scatter slice_scatter sort stack
    take take_along_dim tile topk tril triu unique unique_consecutive unfold vstack where zeros
    nn.functional.embedding nn.functional.pad nn.functional.pixel_shuffle
    nn.functional.pixel_unshuffle nn.functional.max_pool1d nn.functional.max_pool2d
    nn.functional.max_pool3d nn.functional.avg_pool1d nn.functional.avg_pool2d
    nn.functional.avg_pool3d nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d
    nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool1d
    nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d nn.functional.interpolate
    nn.functional.upsample_nearest nn.functional.upsample_bilinear nn.functional.unfold
    nn.functional.fold nn.functional.grid_sample nn.functional.one_hot nn.functional.embedding_bag
""".split()
INFOS = [info for info in op_db if info.name in NAMES]
DTYPES = (torch.float32, torch.float16, torch.complex64, torch.int64, torch.uint8, torch.bool)


def results(value):
    return [t.detach() for t in tensors_in(value, lamella.Tensor)]


def equal(a, b, where):
    b = b.cpu()
    assert a.dtype == b.dtype and a.shape == b.shape, where
    if a.is_complex():
        a, b = lamella.view_as_real(a), lamella.view_as_real(b)
    tolerance = 2e-2 if a.itemsize == 2 else 1e-4
    close = lamella.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
    assert close, (where, a, b)


def run(function, call, device):
    inputs = []

    def move(t):
        moved = t.detach().clone().to(device)
        inputs.append(moved.requires_grad_() if t.requires_grad else moved)
        return inputs[-1]

    first, args, kwargs = mapped(to_lamella(call), move, lamella.Tensor)
    if "device" in kwargs:
        kwargs["device"] = device
    found = function(first, *args, **kwargs)
    wanted = [t for t in inputs if t.requires_grad]
    made = [t for t in tensors_in(found, lamella.Tensor) if t.requires_grad]
    if not made or not wanted:
        return results(found), []
    ones = [lamella.ones_like(t) for t in made]
    grads = lamella.autograd.grad(made, wanted, ones, allow_unused=True)
    return results(found), [g for g in grads if g is not None]


@pytest.mark.parametrize("info", INFOS, ids=lambda info: f"{info.name}.{info.variant_test_name}")
def test_samples(info):
    entry = Entry(info)
    try:
        function = entry.function()
    except Absent:
        pytest.skip("Lamella has no such function")
    for dtype in DTYPES:
        if dtype not in info.dtypes:
            continue
        for number, sample in enumerate(entry.samples(dtype, 12, 60)):
            call = [sample.input, list(sample.args), dict(sample.kwargs)]
            where = f"{dtype} {number}"
            try:
                expected, slopes = run(function, call, "cpu")
            except (RuntimeError, TypeError, NotImplementedError, Absent):
                continue
            got, its = run(function, call, "cuda")
            if info.name in ("topk", "kthvalue"):  # which of equal elements is found is not defined
                expected, got, slopes, its = expected[:1], got[:1], [], []
            if info.name != "empty":
                for a, b in zip([*expected, *slopes], [*got, *its], strict=True):
                    equal(a, b, where)
    lamella.cuda.synchronize()
