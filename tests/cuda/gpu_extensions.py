"""Extensions on "cuda", for tools/gpu_check.sh: the kernels of test_extensions.py, built by nvcc,
and packages that build/gpu/packages has, built before, with their functions against the CPU's.
"""

from __future__ import annotations

import pathlib
import re
import sys
import tempfile

import lamella
from lamella.utils import cpp_extension

HERE = pathlib.Path(__file__).parent
PACKAGES = HERE.parents[1] / "build" / "gpu" / "packages"


def own_kernels() -> str:
    if cpp_extension.CUDA_HOME is None or not cpp_extension.check_compiler_ok_for_platform("c++"):
        return "no nvcc or no c++"
    text = (HERE / "test_extensions.py").read_text()
    kernels = re.search(r'^KERNELS = """\n(.*?)^"""', text, re.MULTILINE | re.DOTALL)[1]
    with tempfile.TemporaryDirectory() as folder:
        module = cpp_extension.load_inline(
            "gpu_kernels",
            "at::Tensor sums(at::Tensor x);",
            cuda_sources=kernels,
            functions="sums",
            build_directory=folder,
        )
        for dtype in (lamella.float32, lamella.float64, lamella.float16, lamella.bfloat16):
            x = lamella.arange(6).reshape(2, 3).to(dtype).cuda().t()
            got = module.sums(x).tolist()
            if got != [3, 12, 5, 0]:
                return f"sums in {dtype}: expected [3, 12, 5, 0], got {got}"
    return ""


def package_calls():
    """Names and calls of operators of packages, by the library that has them."""
    index = lamella.tensor([0, 1, 0, 2, 1])
    source = lamella.randn(5, 3)
    ops = lamella.ops
    yield (
        "_scatter_cuda",
        "scatter_sum",
        lambda s, i: ops.torch_scatter.scatter_sum(
            s, i[:, None].expand_as(s).contiguous(), 0, None, 3
        ),
        (source, index),
    )
    for name in ("segment_sum_csr", "segment_max_csr"):
        yield (
            "_segment_csr_cuda",
            name,
            lambda s, i, n=name: getattr(ops.torch_scatter, n)(s, i, None),
            (source, lamella.tensor([0, 2, 5])),
        )
    points = lamella.randn(50, 3)
    pointer = lamella.tensor([0, 20, 50])
    yield (
        "_fps_cuda",
        "fps",
        lambda p, b: ops.torch_cluster.fps(p, b, lamella.tensor(0.5, device=p.device), False),
        (points, pointer),
    )
    yield (
        "_knn_cuda",
        "knn",
        lambda p, b: ops.torch_cluster.knn(p, p, b, b, 3, False, 1),
        (
            points,
            pointer,
        ),
    )
    rows, columns = lamella.tensor([0, 2, 3]), lamella.tensor([0, 1, 1])
    yield (
        "_spmm_cuda",
        "spmm_sum",
        lambda r, c, v, m: ops.torch_sparse.spmm_sum(None, r, c, v, None, None, m),
        (rows, columns, lamella.randn(3), lamella.randn(2, 4)),
    )


def main() -> int:
    lamella.manual_seed(0)
    wrong, ran = [], 0
    said = own_kernels()
    print("own kernels:", said or "right")
    wrong += [said] if said and "no nvcc" not in said else []
    libraries = {path.name.split(".")[0]: path for path in sorted(PACKAGES.rglob("*.so"))}
    for path in libraries.values():
        try:
            lamella.ops.load_library(str(path))
        except Exception as error:
            wrong.append(f"{path.name}: {error}")
    for library, name, call, inputs in package_calls():
        if library not in libraries:
            continue
        ran += 1
        try:
            here, there = call(*inputs), call(*(x.cuda() for x in inputs))
            one = isinstance(here, lamella.Tensor)
            for a, b in [(here, there)] if one else zip(here, there):
                if not lamella.allclose(a.double(), b.cpu().double(), rtol=1e-4, atol=1e-5):
                    wrong.append(f"{name}: the results differ")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    for line in wrong:
        print(line)
    print(f"{len(libraries)} libraries of packages, {ran} functions, {len(wrong)} differ or fail")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
