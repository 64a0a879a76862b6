"""Published packages of PyTorch extensions from the package index, built unmodified by their own
setup.py against Lamella's headers, and used with Lamella as torch."""

import os
import re
import subprocess
import sys
import textwrap

import index_packages
import numpy as np
import pytest
from index_packages import ENVIRONMENT

torch = pytest.importorskip("torch")


def there(folder, name):
    """The folder that index_packages returned; skips the test if there is none."""
    return folder or pytest.skip(f"the package index has no {name} for us")


def build(source):
    index_packages.build(source, "-m", "lamella.compat")


def in_pytorch(source, code):
    """Runs code with PyTorch and the bridge."""
    use(source, code, before="import torch, lamella.bridge\n")


def use(
    source,
    code,
    *arguments,
    before="import sys, numpy as np, lamella.compat\ntorch = lamella.compat.install()\n",
):
    """Runs code with torch's names and the package importable."""
    done = subprocess.run(
        [sys.executable, "-c", before + textwrap.dedent(code), *map(str, arguments)],
        cwd=source,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


SCATTER = """
    import torch_scatter
    given, results = np.load(sys.argv[1]), {}
    index = torch.from_numpy(given["index"])
    for reduce in ("sum", "mean", "mul", "min", "max"):
        src = torch.from_numpy(given["src"]).requires_grad_()
        out = torch_scatter.scatter(src, index, 0, reduce=reduce, dim_size=6)
        (out * torch.from_numpy(given["weight"])).sum().backward()
        results[reduce], results[reduce + "_grad"] = out.detach().numpy(), src.grad.numpy()
    src = torch.from_numpy(given["src"])
    pointers = torch.tensor([0, 2, 2, 5, 8])
    results["csr"] = torch_scatter.segment_csr(src, pointers, reduce="sum").numpy()
    results["gather"] = torch_scatter.gather_csr(src[:4], pointers).numpy()
    ordered = index[:, 0].sort().values
    results["coo"] = torch_scatter.segment_coo(src, ordered, dim_size=6, reduce="max").numpy()
    results["softmax"] = torch_scatter.scatter_softmax(src, index, 0, dim_size=6).numpy()
    try:
        torch_scatter.scatter(src, index, 0, reduce="no such")
    except ValueError:
        pass
    np.savez(sys.argv[2], **results)
"""


def test_torch_scatter(tmp_path):
    source = there(index_packages.fetched("torch_scatter==2.1.2"), "torch_scatter")
    build(source)
    rng = np.random.default_rng(0)
    given = {
        "src": rng.uniform(0.5, 2, (8, 3)),
        "index": rng.integers(0, 5, (8, 3)),
        "weight": rng.uniform(-1, 1, (6, 3)),
    }
    np.savez(tmp_path / "given.npz", **given)
    use(source, SCATTER, tmp_path / "given.npz", tmp_path / "results.npz")
    results = np.load(tmp_path / "results.npz")
    index, weight = torch.from_numpy(given["index"]), torch.from_numpy(given["weight"])
    names = {"sum": "sum", "mean": "mean", "mul": "prod", "min": "amin", "max": "amax"}
    for reduce, name in names.items():
        src = torch.from_numpy(given["src"]).requires_grad_()
        # What nothing is scattered to is 0, and 1 of a product.
        out = torch.full((6, 3), 1.0 if reduce == "mul" else 0.0, dtype=torch.float64)
        out = out.scatter_reduce(0, index, src, name, include_self=reduce == "mul")
        (out * weight).sum().backward()
        np.testing.assert_allclose(results[reduce], out.detach().numpy(), rtol=1e-12)
        np.testing.assert_allclose(results[reduce + "_grad"], src.grad.numpy(), rtol=1e-12)
    src = given["src"]
    pairs = list(zip([0, 2, 2, 5], [2, 2, 5, 8]))
    np.testing.assert_allclose(results["csr"], [src[a:b].sum(0) for a, b in pairs])
    np.testing.assert_array_equal(results["gather"], np.repeat(src[:4], [2, 0, 3, 3], axis=0))
    ordered = np.sort(given["index"][:, 0])
    expected = np.zeros((6, 3))
    for row in set(ordered):
        expected[row] = src[ordered == row].max(0)
    np.testing.assert_array_equal(results["coo"], expected)
    shares = torch.zeros(6, 3, dtype=torch.float64).scatter_add(
        0, index, torch.from_numpy(src).exp()
    )
    np.testing.assert_allclose(
        results["softmax"], (torch.from_numpy(src).exp() / shares.gather(0, index)).numpy()
    )
    in_pytorch(source, BRIDGED_SCATTER)


# The same libraries as operators of PyTorch, against PyTorch's own.
BRIDGED_SCATTER = """
    for name in ("scatter", "segment_csr"):
        lamella.bridge.torch(f"torch_scatter/_{name}_cpu.so")
    ops = torch.ops.torch_scatter
    src = torch.rand(8, 3, dtype=torch.float64, requires_grad=True)
    index, weight = torch.randint(0, 5, (8, 3)), torch.rand(6, 3, dtype=torch.float64)

    def same(found, expected):
        torch.testing.assert_close(found, expected)
        grads = [torch.autograd.grad((y * weight).sum(), src)[0] for y in (found, expected)]
        torch.testing.assert_close(*grads)

    for name, reduce in {"sum": "sum", "mul": "prod", "mean": "mean"}.items():
        start = torch.full((6, 3), 1.0 if name == "mul" else 0.0, dtype=torch.float64)
        expected = start.scatter_reduce(0, index, src, reduce, include_self=name == "mul")
        same(getattr(ops, f"scatter_{name}")(src, index, 0, None, 6), expected)
    for name in ("min", "max"):
        expected = torch.zeros(6, 3, dtype=torch.float64).scatter_reduce(
            0, index, src, f"a{name}", include_self=False
        )
        same(getattr(ops, f"scatter_{name}")(src, index, 0, None, 6)[0], expected)
    pointers = torch.tensor([0, 2, 2, 5, 8, 8, 8])
    rows = [src[a:b].sum(0) for a, b in zip(pointers, pointers[1:])]
    same(ops.segment_sum_csr(src, pointers, None), torch.stack(rows))
"""


# What the classes find is what was put into the fields.
OPENPIFPAF = """
    import copy, pickle
    torch.ops.load_library("src/openpifpaf/_cpp.so")
    torch.ops.openpifpaf.set_quiet(True)
    utils, decoder = torch.classes.openpifpaf_decoder_utils, torch.classes.openpifpaf_decoder

    occupancy = utils.Occupancy(2.0, 4.0)
    occupancy.reset([2, 40, 50])
    occupancy.set(0, 20.0, 10.0, 8.0)
    taken = [[occupancy.get(0, float(x), float(y)) for x in range(50)] for y in range(40)]
    expected = np.zeros((40, 50), bool)
    expected[2:18, 12:28] = True
    assert np.array_equal(taken, expected)
    assert not occupancy.get(1, 20.0, 10.0) and occupancy.get(2, 0.0, 0.0)
    occupancy.clear()
    assert not occupancy.get(0, 20.0, 10.0)

    # Two people of three joints, each joint seen from the cells around it.
    joints = np.array([[[20, 20], [20, 60], [28, 100]], [[100, 36], [92, 76], [92, 116]]])
    stride = 8
    cif, caf = np.zeros((3, 5, 20, 20), np.float32), np.zeros((2, 8, 20, 20), np.float32)
    for person in joints:
        for f, (x, y) in enumerate(person):
            for j in range(y // stride - 1, y // stride + 3):
                for i in range(x // stride - 1, x // stride + 3):
                    cif[f, 1:, j, i] = [0.9, x / stride, y / stride, 2]
        for f in range(2):
            (x1, y1), (x2, y2) = person[f], person[f + 1]
            j, i = (y1 + y2) // 2 // stride, (x1 + x2) // 2 // stride
            for dj in (0, 1):
                for di in (0, 1):
                    ends = [v / stride for v in (x1, y1, x2, y2)]
                    caf[f, 1:, j + dj, i + di] = [0.8, *ends, 2, 2]

    heat = utils.CifHr()
    utils.CifHr.set_neighbors(4)
    assert utils.CifHr.get_neighbors() == 4
    utils.CifHr.set_neighbors(16)
    heat.reset(cif.shape, stride)
    heat.accumulate(torch.from_numpy(cif), stride, 0.0, 1.0)
    accumulated, revision = heat.get_accumulated()
    assert accumulated.shape == (3, 153, 153)
    peaks = accumulated.numpy() - revision
    for person in joints:
        for f, (x, y) in enumerate(person):
            np.testing.assert_allclose(peaks[f, y, x], 0.9, rtol=1e-3)

    seeds = utils.CifSeeds(accumulated, revision)
    seeds.fill(torch.from_numpy(cif), stride)
    fields, values = seeds.get()
    assert fields.shape == (96,) and sorted(set(fields.tolist())) == [0, 1, 2]
    for f, (_, x, y, scale) in zip(fields.tolist(), values.tolist()):
        assert scale == 16 and [x, y] in joints[:, f].tolist()
    caf_decoder = decoder.CifCaf(3, torch.tensor([[0, 1], [1, 2]]))
    for made in (caf_decoder, pickle.loads(pickle.dumps(caf_decoder)), copy.deepcopy(caf_decoder)):
        annotations, ids = made.call(torch.from_numpy(cif), stride, torch.from_numpy(caf), stride)
        found = annotations.numpy()
        found = found[found[:, 0, 1].argsort()]
        np.testing.assert_allclose(found[:, :, 1:3], joints, atol=1e-3)
        np.testing.assert_allclose(found[:, :, 3], 16)
    try:
        decoder.CifCaf(3, torch.tensor([[0.0, 1], [1, 2]]))
        raise AssertionError("expected an error")
    except RuntimeError as error:
        assert str(error) == "CifCaf: skeleton must be of type LongTensor", error
"""


def test_openpifpaf():
    source = there(index_packages.fetched("openpifpaf==0.13.11"), "openpifpaf")
    build(source)
    use(source, OPENPIFPAF)


# Packages whose source distributions have their tests: what these import beside it, what pytest
# is given, and how many tests pass and are skipped, for want of a GPU.
OWN_TESTS = {
    "torchlpc==0.7.2": (["numba==0.68.1", "llvmlite==0.50.0"], ["tests"], 26, 27),
    # In two of 2,197 cases the rounding of float32 passes what test_orgqr_2d_tau_cpu allows; over
    # many matrices the mean error is PyTorch's.
    "torch_householder==1.0.1": (
        ["tqdm==4.70.1"],
        ["tests/test.py", "--deselect", "tests/test.py::TestORGQR::test_orgqr_2d_tau_cpu"],
        9,
        0,
    ),
}
# These take minutes, since they compare with long loops in Python.
if os.environ.get("LAMELLA_TEST_PACKAGES") == "all":
    OWN_TESTS["pytorch-fast-transformers==0.4.0"] = ([], ["tests"], 56, 70)
    OWN_TESTS["torch_discounted_cumsum==1.1.0"] = (["tqdm==4.70.1"], ["tests/test.py"], 3, 0)


@pytest.mark.parametrize("package", OWN_TESTS)
def test_own_tests(package):
    needs, arguments, passed, skipped = OWN_TESTS[package]
    source = there(index_packages.fetched(package), package)
    build(source)
    paths = [
        ENVIRONMENT["PYTHONPATH"],
        *(str(there(index_packages.installed(need), need)) for need in needs),
    ]
    command = [sys.executable, "-m", "lamella.compat", "-m", "pytest", "-q", "-c", os.devnull]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", source, *arguments],
        cwd=source,
        env=dict(ENVIRONMENT, PYTHONPATH=os.pathsep.join(paths)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    last = done.stdout.splitlines()[-1]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|skipped)", last)}
    assert (counts["passed"], counts.get("skipped", 0)) == (passed, skipped), last
