"""Extensions for CUDA: sources for nvcc are built and loaded, and the host's part runs on the
stand-in. Kernels run where there is a GPU."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
from build_tree import PREFIX
from standin_runs import STANDIN, run

import lamella
from lamella.utils import _cuda_extension, cpp_extension

needs_nvcc = pytest.mark.skipif(cpp_extension.CUDA_HOME is None, reason="nvcc is not installed")
INSTALLED = {"PYTHONPATH": str(PREFIX / "lib" / "python")}

HOST = """
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAUtils.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

// What is current: the device, the handle of its stream, and whether that is the default one.
std::vector<int64_t> now() {
  const at::cuda::CUDAStream stream = at::cuda::getCurrentCUDAStream();
  return {c10::cuda::current_device(), reinterpret_cast<int64_t>(stream.stream()),
          stream == at::cuda::getDefaultCUDAStream()};
}
std::vector<std::vector<int64_t>> guarded(at::Tensor x) {
  std::vector<std::vector<int64_t>> seen{now()};
  {
    const c10::cuda::OptionalCUDAGuard guard(device_of(x));
    seen.push_back(now());
    const auto side = at::cuda::getStreamFromPool(/*is_high_priority=*/true);
    {
      c10::cuda::CUDAStreamGuard inner(side);
      seen.push_back(now());
    }
    c10::cuda::MaybeSetDevice(0);
    seen.push_back(now());
  }
  seen.push_back(now());
  return seen;
}
int64_t raw(int64_t bytes) {
  void* memory = c10::cuda::CUDACachingAllocator::raw_alloc(bytes);
  c10::cuda::CUDACachingAllocator::recordStream(
      c10::DataPtr(memory, c10::Device(c10::kCUDA, c10::cuda::current_device())),
      at::cuda::getStreamFromPool());
  c10::cuda::CUDACachingAllocator::raw_delete(memory);
  auto held = c10::cuda::CUDACachingAllocator::get()->allocate(bytes);
  return reinterpret_cast<int64_t>(held.get()) != 0;
}
bool on_current(at::Tensor x) { return at::cuda::check_device({x}); }
"""

USE_HOST = """
import json, sys
import lamella
from lamella.utils import cpp_extension
module = cpp_extension.load_inline(
    "cuda_host", sys.stdin.read(), functions=["guarded", "raw", "on_current"],
    build_directory=sys.argv[1], with_cuda=True)
x = lamella.ones(2, device="cuda:1")
seen = module.guarded(x)
before = lamella.cuda.memory_allocated()
assert module.raw(1000) and lamella.cuda.memory_allocated() == before
assert not module.on_current(x) and module.on_current(lamella.ones(2, device="cuda"))
try:
    lamella.cuda.set_device(7)
except RuntimeError as error:
    print(json.dumps([seen, str(error)]))
"""


@needs_nvcc
@pytest.mark.skipif(not STANDIN.exists(), reason="the stand-in of CUDA is not built")
def test_host_part_on_the_standin(tmp_path):
    """Guards, streams and memory of extensions are those of Lamella."""
    (tmp_path / "use.py").write_text(USE_HOST.replace("sys.stdin.read()", repr(HOST)))
    done = run([str(tmp_path / "use.py"), str(tmp_path)], timeout=300, **INSTALLED)
    assert done.returncode == 0, done.stdout + done.stderr
    seen, _ = json.loads(done.stdout)
    devices = [device for device, _, _ in seen]
    assert devices == [0, 1, 1, 0, 0]
    assert [is_default for _, _, is_default in seen] == [1, 1, 0, 1, 1]
    assert seen[2][1] != 0 and seen[0] == seen[4]


KERNELS = """
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/DeviceUtils.cuh>
#include <ATen/cuda/Exceptions.h>
#include <ATen/cuda/NumericLimits.cuh>
#include <ATen/cuda/ThrustAllocator.h>
#include <ATen/cuda/detail/IndexUtils.cuh>
#include <ATen/native/cuda/KernelUtils.cuh>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAMathCompat.h>

template <typename scalar_t>
__global__ void add_to(at::cuda::detail::TensorInfo<scalar_t, int> from, scalar_t* to, int count) {
  CUDA_KERNEL_LOOP(i, count) {
    const int offset = at::cuda::detail::IndexToOffset<scalar_t, int, -1>::get(i, from);
    CUDA_KERNEL_ASSERT(offset >= 0);
    const scalar_t value = WARP_SHFL_XOR(from.data[offset], 0);
    at::native::fastAtomicAdd(to, i % 2, 2, value, true);
    gpuAtomicMax(to + 2, value);
    gpuAtomicMin(to + 3, value);
    if (value == at::numeric_limits<scalar_t>::lowest()) gpuAtomicMul(to, value);
  }
}
at::Tensor sums(at::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "sums: expected 'x' to be on a CUDA device, got ", x.device());
  const c10::cuda::OptionalCUDAGuard guard(device_of(x));
  at::Tensor out = at::zeros({4}, x.options());
  auto stream = at::cuda::getCurrentCUDAStream();
  at::cuda::CUDAEvent done;
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "sums", [&] {
    const auto info = at::cuda::detail::getTensorInfo<scalar_t, int>(x);
    add_to<scalar_t><<<at::cuda::detail::GET_BLOCKS(x.numel()), 1024, 0, stream>>>(
        info, out.data_ptr<scalar_t>(), static_cast<int>(x.numel()));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  done.record(stream);
  done.synchronize();
  at::cuda::ThrustAllocator allocator;
  allocator.deallocate(allocator.allocate(512), 512);
  AT_CUDA_CHECK(cudaGetLastError());
  return out;
}
"""

USE_KERNELS = """
import os, sys
import lamella
from lamella.utils import cpp_extension
module = cpp_extension.load_inline(
    "cuda_kernels", "at::Tensor sums(at::Tensor x);", cuda_sources=open(sys.argv[1]).read(),
    functions="sums", build_directory=os.path.dirname(sys.argv[1]), extra_cuda_cflags=["-O1"])
if lamella.cuda.is_available():
    for dtype in (lamella.float32, lamella.float16, lamella.bfloat16, lamella.uint8):
        x = lamella.arange(6).reshape(2, 3).to(dtype).cuda().t()
        assert module.sums(x).tolist() == [0 + 1 + 2, 3 + 4 + 5, 5, 0], module.sums(x)
try:
    module.sums(lamella.ones(2))
except RuntimeError as error:
    print(error)
"""


@needs_nvcc
def test_sources_for_nvcc(tmp_path):
    """The headers compile by nvcc, and the extension loads without a GPU."""
    (tmp_path / "kernels.cuh").write_text(KERNELS)
    (tmp_path / "use.py").write_text(USE_KERNELS)
    command = [str(tmp_path / "use.py"), str(tmp_path / "kernels.cuh")]
    driver = {} if lamella.cuda.is_available() else {"LAMELLA_CUDA_DRIVER": "libno_driver.so"}
    done = run(command, timeout=300, TORCH_CUDA_ARCH_LIST="9.0", **INSTALLED, **driver)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "sums: expected 'x' to be on a CUDA device, got cpu\n"


SETUP = """
from lamella.utils.cpp_extension import BuildExtension, CUDAExtension
from setuptools import setup
setup(name="pair", ext_modules=[CUDAExtension(
          "pair._cuda", ["main.cpp", "kernels.cu"], define_macros=[("WITH_CUDA", None)],
          extra_compile_args={"cxx": ["-O1"], "nvcc": ["-O1"]})],
      cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)})
"""


@needs_nvcc
def test_setup(tmp_path):
    (tmp_path / "pair").mkdir()
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "kernels.cu").write_text(
        "#ifdef WITH_CUDA\n#include <cuda_runtime_api.h>\n"
        "__global__ void fill(int* x) { *x = 7; }\n"
        "int launch(int* x) { fill<<<1, 1>>>(x); return cudaGetLastError(); }\n#endif\n"
    )
    (tmp_path / "main.cpp").write_text(
        "#include <Python.h>\n#include <torch/library.h>\nint launch(int* x);\n"
        "TORCH_LIBRARY(pair, m) {\n"
        '  m.def("fails() -> bool", [] { return launch(nullptr) != 0; });\n}\n'
        'static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_cuda", nullptr, -1, nullptr};\n'
        "PyMODINIT_FUNC PyInit__cuda() { return PyModule_Create(&module); }\n"
    )
    environment = {"TORCH_CUDA_ARCH_LIST": "9.0", **INSTALLED}
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**environment, "PATH": "/usr/local/bin:/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = pathlib.Path(tmp_path).glob("pair/_cuda*.so")
    lamella.ops.load_library(str(built))
    if not lamella.cuda.is_available():
        assert lamella.ops.pair.fails()


def test_architectures(monkeypatch):
    flags = _cuda_extension.architecture_flags
    for names, wanted in [
        ("8.0", "80,80"),
        ("8.0;9.0+PTX", "80,80 90,90 90,compute_90"),
        ("8.0 9.0a", "80,80 90a,90a"),
        ("Hopper", "90,90 90,compute_90"),
        ("Ampere", "80,80 86,86 86,compute_86"),
    ]:
        monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", names)
        made = [
            re.fullmatch(r"-gencode=arch=compute_(\w+),code=(?:sm_)?(\w+)", flag).groups()
            for flag in flags("load")
        ]
        assert " ".join(",".join(pair) for pair in made) == wanted
    assert flags("load", ["-arch=sm_90"]) == []
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0;nine")
    with pytest.raises(ValueError) as caught:
        flags("load")
    assert str(caught.value) == (
        "load: expected TORCH_CUDA_ARCH_LIST to have architectures such as 8.0 or 9.0+PTX,"
        " got 'nine'"
    )


def test_without_the_toolkit(monkeypatch):
    monkeypatch.setattr(_cuda_extension, "find_home", lambda: None)
    for call, what in [
        (lambda: cpp_extension.load("x", ["x.cu"], build_directory="."), "include_paths"),
        (lambda: cpp_extension.CUDAExtension("x", ["x.cu"]), "CUDAExtension"),
        (lambda: cpp_extension.include_paths("cuda"), "include_paths"),
    ]:
        with pytest.raises(RuntimeError) as caught:
            call()
        assert str(caught.value) == (
            f"{what}: expected the CUDA toolkit, found none; CUDA_HOME names its folder"
        )
