"""Devices "cuda" on a machine without a GPU: each file of checks in a process that has the stand-in
for CUDA's driver, and what needs a process of its own."""

import pathlib
import re

import pytest
from standin_runs import DEFAULTS, STANDIN, error, printed, run

HERE = pathlib.Path(__file__).parent
pytestmark = pytest.mark.skipif(not STANDIN.exists(), reason="the stand-in of CUDA is not built")


# Checks whose results depend on the order of streams run with late streams and without; the others
# run with late streams alone.
ORDERED = ("graphs", "memory", "program_graphs", "programs", "streams")
RUNS = [
    *((file.stem, "200") for file in sorted(HERE.glob("checks_*.py"))),
    *((f"checks_{name}", "0") for name in ORDERED),
]


@pytest.mark.parametrize(("name", "delay"), RUNS)
def test_checks(name, delay):
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    command = ["-m", "pytest", *options, str(HERE / f"{name}.py")]
    done = run(command, timeout=300, LAMELLA_STANDIN_DELAY_US=delay)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_checks_without_libraries():
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    checks = str(HERE / "checks_libraries.py")
    done = run(["-m", "pytest", *options, checks], LAMELLA_CUDA_LIBRARIES="none")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_conformance():
    import lamella

    library = pathlib.Path(lamella.__file__).parents[2] / "liblamella_cuda.so"
    done = run(
        ["-m", "lamella.conformance", str(library), "--device", "cuda"],
        LAMELLA_STANDIN_DELAY_US="100",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"cuda: \d+ checks, 0 not passed", done.stdout.strip())


def test_classes_out_of_range_fail():
    program = """
import lamella
x, t = lamella.zeros(2, 3, device="cuda"), lamella.tensor([0, 3], device="cuda")
lamella.nn.functional.nll_loss(x, t).item()
"""
    text = error(program)
    assert "device-side assert triggered" in text and "nll" in text


def test_memory_that_is_not_kept():
    program = """
import lamella
x = lamella.ones(10, device="cuda")
taken = lamella.cuda.memory_reserved()
del x
print(taken, lamella.cuda.memory_reserved())
"""
    assert printed(program, LAMELLA_CUDA_CACHE="0") == "40 0"


GRAPH = """
import lamella
x, graph = lamella.arange(4.0).cuda(), lamella.cuda.CUDAGraph()
with lamella.cuda.graph(graph):
    y = (x * 2 + 1).sum() + x
graph.replay()
print(y.tolist())
compiled = lamella.compile(lambda x: (x * 3).relu() + 1, mode="reduce-overhead")
print([compiled(x).tolist() for _ in range(4)][-1])
"""


@pytest.mark.parametrize("variable", ["LAMELLA_CUDA_BLOCKING=1", "LAMELLA_CUDA_CACHE=0"])
def test_graphs_where_launches_wait_and_memory_is_not_kept(variable):
    name, _, value = variable.partition("=")
    expected = "[16.0, 17.0, 18.0, 19.0]\n[1.0, 4.0, 7.0, 10.0]"
    assert printed(GRAPH, **{name: value}) == expected


def test_captures_that_fail():
    for failure, text in [
        ("cuStreamBeginCapture_v2:1:1", "capture_begin: the CUDA driver's cuStreamBeginCapture "
         "failed: invalid argument (1)"),
        ("cuStreamEndCapture:1:901", "capture_end: the CUDA driver's cuStreamEndCapture failed: "
         "operation failed due to a previous error during capture (901)"),
        ("cuGraphInstantiateWithFlags:1:1", "capture_end: the CUDA driver's "
         "cuGraphInstantiateWithFlags failed: invalid argument (1)"),
        ("cuGraphLaunch:1:1", "replay: the CUDA driver's cuGraphLaunch failed: invalid argument "
         "(1)"),
    ]:  # fmt: skip
        assert error(GRAPH, LAMELLA_STANDIN_FAIL=failure) == f"RuntimeError: {text}"
    text = error(GRAPH, LAMELLA_STANDIN_FAIL="work:2:700")
    assert "work on cuda:0 failed" in text and "a captured graph" in text


# ---- Without a driver or a device ----------------------------------------------------------------

WITHOUT = """
import lamella
assert not lamella.cuda.is_available() and lamella.cuda.device_count() == 0
assert lamella.cuda.memory_allocated() == 0 and lamella.cuda.fallbacks() == {}
lamella.cuda.manual_seed_all(1)
lamella.cuda.empty_cache()
print(lamella.cuda.why_unavailable())
"""


def test_without_a_driver():
    missing = {"LAMELLA_CUDA_DRIVER": "libno_such_driver.so"}
    why = (
        "there is no CUDA: libno_such_driver.so: cannot open shared object file: "
        "No such file or directory"
    )
    assert printed(WITHOUT, **missing) == why
    assert error("import lamella; lamella.ones(2).to('cuda')", **missing) == (
        f"NotImplementedError: to: expected a device with an allocator, got cuda; {why}"
    )
    for call in ("ones(2).cuda()", "cuda.set_device(0)", "ones(2).pin_memory()", "cuda.init()"):
        name = re.search(r"(\w+)\(\d?\)$", call).group(1)
        assert error(f"import lamella; lamella.{call}", **missing) == (
            f"RuntimeError: {name}: expected a CUDA device, found none; {why}"
        )


def test_without_a_device():
    assert printed(WITHOUT, LAMELLA_STANDIN_DEVICES="0") == (
        "there is no CUDA: cuInit failed: no CUDA-capable device is detected (100)"
    )
    assert printed(WITHOUT, LAMELLA_STANDIN_FAIL="cuInit:1:3") == (
        "there is no CUDA: cuInit failed: initialization error (3)"
    )


def test_nothing_is_loaded_before_it_is_asked_for():
    program = (
        "import lamella; lamella.manual_seed(1); lamella.ones(2).is_pinned(); "
        "maps = open('/proc/self/maps').read(); print('lamella_cuda' in maps, 'standin' in maps)"
    )
    assert printed(program) == "False False"


# ---- CUDA's libraries ---------------------------------------------------------------------------

PRODUCT = """
import lamella
x = lamella.arange(6.0).reshape(2, 3).cuda()
print((x @ x.mT).tolist(), round(lamella.linalg.det(x[:, :2]).item(), 3))
print(lamella.nn.functional.conv1d(x[None], x[None, :, :2]).tolist())
print(lamella.cuda.libraries()["cublasLt"])
print(lamella.cuda.libraries()["cudnn"])
"""
RESULTS = ["[[5.0, 14.0], [14.0, 50.0]] -3.0", "[[[26.0, 34.0]]]"]


def test_libraries_of_a_folder(tmp_path):
    """A folder has them by their names; what is not a library is not used, and says why."""
    (tmp_path / "libcublasLt.so.12").symlink_to(DEFAULTS["LAMELLA_CUDA_LIBRARIES"])
    (tmp_path / "libcudnn.so.9").write_text("no library")
    *got, product, convolution = printed(PRODUCT, LAMELLA_CUDA_LIBRARIES=str(tmp_path)).splitlines()
    assert got == RESULTS and product == str(tmp_path / "libcublasLt.so.12")
    assert convolution.startswith(f"there is no cudnn: {tmp_path}/libcudnn.so.9: ")
    driver = DEFAULTS["LAMELLA_CUDA_DRIVER"]
    *got, product, _ = printed(PRODUCT, LAMELLA_CUDA_LIBRARIES=driver).splitlines()
    assert got == RESULTS and product == "there is no cublasLt: it lacks cublasLtCreate"
    missing = str(tmp_path / "none.so")
    *got, product, _ = printed(PRODUCT, LAMELLA_CUDA_LIBRARIES=missing).splitlines()
    assert got == RESULTS and product == (
        f"there is no cublasLt: {missing}: cannot open shared object file: "
        "No such file or directory"
    )


def test_libraries_of_packages(tmp_path):
    """Those of NVIDIA's Python packages, where the interpreter looks for packages."""
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcublasLt.so.13").symlink_to(DEFAULTS["LAMELLA_CUDA_LIBRARIES"])
    program = f"import sys; sys.path.append({str(tmp_path)!r})" + PRODUCT
    found = printed(program, LAMELLA_CUDA_LIBRARIES="").splitlines()
    assert found[:2] == RESULTS and found[2] == str(folder / "libcublasLt.so.13")


@pytest.mark.parametrize(
    "function", ["cublasLtMatmul", "cusolverDnXgetrf", "cudnnConvolutionForward"]
)
def test_calls_of_libraries_that_fail(function):
    """Something else computes."""
    got = printed(PRODUCT, LAMELLA_STANDIN_FAIL=f"{function}:1:14").splitlines()[:2]
    assert got == RESULTS


# ---- Errors --------------------------------------------------------------------------------------


def test_a_call_that_fails():
    program = "import lamella; x = lamella.ones(3); x.to('cuda')"
    fail = {"LAMELLA_STANDIN_FAIL": "cuMemcpyHtoDAsync_v2:1:1"}
    assert error(program, **fail) == (
        "RuntimeError: to: the CUDA driver's cuMemcpyHtoDAsync failed: invalid argument (1)"
    )


def test_a_failure_of_work_marks_the_device():
    program = """
import lamella
x = lamella.ones(3).cuda()
other = lamella.ones(3).cuda(1)
for call in (lambda: x.add(1).mul(2).cpu(), lambda: x.add(1)):
    try:
        call()
    except RuntimeError as error:
        print(error)
print(other.add(1).tolist())
"""
    first, second, works = printed(program, LAMELLA_STANDIN_FAIL="work:3:700").splitlines()
    assert re.match(r"\w+: work on cuda:0 failed, as \w+ reports: ", first)
    assert "an illegal memory access was encountered (700); kernels launched since" in first
    assert "the last wait: add" in first
    assert "The device cannot be used any more in this process; LAMELLA_CUDA_BLOCKING=1" in first
    assert second.startswith(
        "add: expected a CUDA device that works, got cuda:0, on which earlier work failed: "
    )
    assert works == "[2.0, 2.0, 2.0]"
    blocking = {"LAMELLA_STANDIN_FAIL": "work:3:700", "LAMELLA_CUDA_BLOCKING": "1"}
    exact = printed(program, **blocking).splitlines()[0]
    assert exact.startswith("add: work on cuda:0 failed, as cuStreamSynchronize reports: ")


def test_lines_of_python():
    """LAMELLA_CUDA_SOURCES=1 keeps the line of each launch, outside of Lamella's own package."""
    program = """
import lamella
import lamella.nn.functional as F
x = lamella.ones(3).cuda()
def step(y):
    return F.softplus(y)
try:
    step(x + 1)
    x.cpu()
except RuntimeError as error:
    print(error)
"""
    failing = {"LAMELLA_STANDIN_FAIL": "work:3:700"}
    text = printed(program, **failing, LAMELLA_CUDA_SOURCES="1")
    assert "kernels launched since the last wait: add (<string>:8), softplus (<string>:6). " in text
    assert text.endswith("; LAMELLA_CUDA_BLOCKING=1 names the operator exactly")
    text = printed(program, **failing)
    assert "kernels launched since the last wait: add, softplus. The device" in text
    assert text.endswith("; LAMELLA_CUDA_SOURCES=1 keeps the lines that launch")


def test_the_latest_launches_are_named():
    program = """
import lamella
x = lamella.ones(3).cuda()
for _ in range(30):
    x = x.exp()
try:
    x.neg().cpu()
except RuntimeError as error:
    print(error)
"""
    text = printed(program, LAMELLA_STANDIN_FAIL="work:32:700")
    names = ", ".join(["15 others", *["exp"] * 15, "neg"])
    assert f"kernels launched since the last wait: {names}. " in text


def test_devices_that_do_not_fit():
    program = """
import lamella
x, y, z = lamella.ones(3).cuda(), lamella.ones(3).cuda(1), lamella.ones(3)
calls = (lambda: x + y, lambda: x + z, lambda: x.add_(y), lambda: x.softmax(0).add(y),
         lambda: lamella.cat([x, y]), lambda: lamella.empty(2, device="cuda:7"),
         lambda: lamella.cuda.can_device_access_peer(0, 5))
for call in calls:
    try:
        call()
    except (RuntimeError, ValueError) as error:
        print(error)
print(lamella.cuda.can_device_access_peer(0, 1), (x + y.cuda(0)).tolist(), x.tolist())
"""
    *texts, last = printed(program).splitlines()
    on_other = "expected 'other' to be on cuda:0 like 'self', got"
    assert texts == [
        f"add: {on_other} cuda:1",
        f"add: {on_other} cpu",
        f"add_: {on_other} cuda:1",
        f"add: {on_other} cuda:1",
        "cat: expected all tensors to be on one device, got 'tensors' on cuda:0 and 'tensors' on "
        "cuda:1",
        "empty: expected a device of cuda from 0 to 1, got 7",
        "can_device_access_peer: expected a device of cuda from 0 to 1, got 5",
    ]
    assert last == "True [2.0, 2.0, 2.0] [1.0, 1.0, 1.0]"


def test_a_stream_that_was_freed():
    program = "import lamella; x = lamella.ones(3).cuda(); x + 1"
    assert error(program, LAMELLA_STANDIN_FAIL="cuLaunchKernel:1:400") == (
        "RuntimeError: add: the CUDA driver's cuLaunchKernel failed: invalid resource handle "
        "(400); expected a stream and an event that still exist, got one that was freed"
    )


def test_blocking():
    """Without it the copy to pinned memory is late."""
    program = """
import lamella
to = lamella.zeros(4).pin_memory()
to.copy_(lamella.ones(4).cuda(), non_blocking=True)
print(to.tolist())
"""
    late = {"LAMELLA_STANDIN_DELAY_US": "20000"}
    assert printed(program, **late) == "[0.0, 0.0, 0.0, 0.0]"
    assert printed(program, **late, LAMELLA_CUDA_BLOCKING="1") == "[1.0, 1.0, 1.0, 1.0]"


def test_fork_after_use():
    program = """
import os, lamella
x = lamella.ones(3).cuda()
lamella.cuda.synchronize()
child = os.fork()
if child == 0:
    for call in (lambda: lamella.ones(3).cuda(), lambda: x + 1, lambda: lamella.cuda.synchronize(),
                 lambda: lamella.cuda.Stream(), lambda: lamella.cuda.memory_stats()):
        try:
            call()
        except RuntimeError as error:
            print(error, flush=True)
    print(lamella.cuda._is_in_bad_fork(), lamella.ones(2).tolist(), flush=True)
    del x
    os._exit(0)
print(os.waitpid(child, 0)[1], (x + 1).tolist())
"""
    *refused, here, parent = printed(program).splitlines()
    sentence = (
        "expected a process that uses CUDA for the first time, got a child that was forked "
        "after its parent had used it; start such processes with the method 'spawn'"
    )
    names = ["to: ", "add: ", "", "", "memory_stats: "]
    assert refused == [name + sentence for name in names]
    assert here == "True [1.0, 1.0]" and parent == "0 [2.0, 2.0, 2.0]"


def test_fork_before_use():
    program = """
import os, lamella
child = os.fork()
if child == 0:
    print((lamella.ones(3).cuda() + 1).tolist(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print((lamella.ones(3).cuda() + 2).tolist())
"""
    assert printed(program).splitlines() == ["[2.0, 2.0, 2.0]", "[3.0, 3.0, 3.0]"]


def test_out_of_memory():
    program = """
import lamella
x = lamella.empty(8 << 20, dtype=lamella.uint8, device="cuda")
try:
    lamella.empty(60 << 20, dtype=lamella.uint8, device="cuda")
except RuntimeError as error:
    assert isinstance(error, (MemoryError, lamella.cuda.OutOfMemoryError))
    print(error)
print(lamella.cuda.memory_stats()["num_ooms"], lamella.cuda.memory_stats()["num_alloc_retries"])
"""
    text, counts = printed(program, LAMELLA_STANDIN_MEMORY=str(64 << 20)).splitlines()
    assert text == (
        "empty: CUDA is out of memory: expected 60.00 MiB on cuda:0, got none: of 64.00 MiB in "
        "total 44.00 MiB are free; this process has 8.00 MiB in tensors and 12.00 MiB in "
        "segments that are kept for reuse"
    )
    assert counts == "1 1"


def test_leaks_are_reported():
    program = (
        "import lamella; x = lamella.ones(3).cuda(); del x; lamella.cuda.empty_cache(); {more}"
    )
    clean = run(["-c", program.format(more="")], LAMELLA_STANDIN_LEAKS="1")
    assert clean.returncode == 0 and clean.stderr == ""
    kept = run(["-c", program.format(more="y = lamella.ones(3).cuda()")], LAMELLA_STANDIN_LEAKS="1")
    assert "standin: 1 blocks of cuda:0 were not freed, 2097152 bytes" in kept.stderr


def test_page():
    """The programs of docs/cuda.md."""
    page = (HERE.parents[1] / "docs" / "cuda.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", page, re.S)
    outputs = [printed(program) for program in programs]
    assert len(outputs) == 4 and outputs[1] == "{'aten::polygamma': 1}"


@pytest.mark.parametrize(
    "script", ["operators", "programs", "graphs", "random", "timings", "nccl", "libraries"]
)
def test_the_checks_for_machines_with_a_gpu(script):
    done = run([str(HERE / f"gpu_{script}.py")], timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    if script in ("operators", "programs", "graphs"):
        assert ", 0 differ; " in done.stdout.splitlines()[-1]
    if script == "timings":
        assert "16 rows in timings.txt" in done.stdout and "Error" not in done.stdout
