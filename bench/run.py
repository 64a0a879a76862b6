"""Measures Lamella and its peers in one run and prints a table: required, got, peer.

Needs what `make bench` installs and builds. Rows without their peer say so.
Usage: run.py [--build DIR] [--only TOPIC]; --help lists the topics.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import functions
import jax_programs
import packages
import readme

ROOT = Path(__file__).resolve().parent.parent
Rows = dict[str, float]


def run_rows(command: list[str], env: dict[str, str] | None = None) -> Rows:
    """Runs a benchmark that prints one JSON object a line."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        print(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
        return {}
    rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return {row["row"]: row["ns"] for row in rows}


def as_time(ns: float) -> str:
    return (
        f"{ns:.1f} ns" if ns < 1e5 else f"{ns / 1e3:.1f} us" if ns < 1e8 else f"{ns / 1e6:.1f} ms"
    )


class Table:
    """Collects rows and prints them as they come."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        self.not_run: list[str] = []
        print(f"{'what':<58}{'required':>22}{'got':>12}{'peer':>28}  ok")

    def section(self, title: str) -> None:
        print(f"\n-- {title}")

    def row(self, what: str, required: str, got: str, peer: str, met: bool | None) -> None:
        mark = {True: "yes", False: "NO", None: "-"}[met]
        print(f"{what:<58} {required:>21} {got:>11} {peer:>27}  {mark}", flush=True)
        if met is False:
            self.missed.append(what)
        if got == "not run":
            self.not_run.append(what)

    def limit(self, what: str, got: float | None, limit: float, unit: str, peer: str = "") -> None:
        shown, met = ("not run", None) if got is None else (f"{got:.2f} {unit}", got <= limit)
        self.row(what, f"<= {limit:g} {unit}", shown, peer, met)

    def ratio(
        self, what: str, got: float | None, factor: float, peer_name: str, peer: float | None
    ) -> None:
        required = f"<= {factor:g} x {peer_name}"
        if got is None or peer is None:
            mine = "not run" if got is None else as_time(got)
            against = f"{peer_name} {'not run' if peer is None else as_time(peer)}"
            self.row(what, required, mine, against, None)
            return
        against = f"{peer_name} {as_time(peer)} ({got / peer:.3f} x)"
        self.row(what, required, as_time(got), against, got <= factor * peer)


def build_torch_peer(folder: Path, name: str) -> Path | None:
    """Compiles the libtorch rows of bench/NAME.cpp against the installed torch wheel."""
    try:
        import torch
    except ImportError:
        return None
    base = Path(torch.__file__).parent
    program = folder / name
    command = [
        os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-DNDEBUG", f"-I{ROOT}",
        f"-I{base}/include", f"-I{base}/include/torch/csrc/api/include",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        str(ROOT / "bench" / f"{name}.cpp"), "-o", str(program),
        f"-L{base}/lib", f"-Wl,-rpath,{base}/lib", "-ltorch_cpu", "-lc10",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"the libtorch rows do not compile:\n{done.stderr[-1500:]}", file=sys.stderr)
        return None
    return program


def cpp_rows(table: Table, build: Path, folder: Path) -> None:
    dispatch = run_rows([str(build / "bench" / "bench_dispatch")])
    shared = run_rows([str(build / "bench" / "bench_operators")])
    inside = run_rows([str(build / "bench" / "bench_operators_inside")])
    program = build_torch_peer(folder, "operators_torch")
    torch = run_rows([str(program)]) if program else {}

    def peer(row: str) -> str:
        return f"torch {torch[row]:.1f} ns" if row in torch else "torch not run"

    table.section("dispatch, C++")
    for row, limit in [
        ("typed call over direct", 3.0),
        ("boxed call over direct", 8.0),
        ("typed call of a boxed-only kernel over direct", 10.0),
        ("one more layer that redispatches", 5.0),
        ("a layer that does not apply", 0.5),
    ]:
        table.limit(row, dispatch.get(row), limit, "ns", peer(row) if row in torch else "")
    table.row(
        "find by name", "-", f"{dispatch.get('find by name', 0):.1f} ns", peer("find by name"), None
    )
    table.section("operators, C++")
    for row, factor in [
        ("add, 1 element", 0.07),
        ("add_out", 0.1),
        ("empty", 0.11),
        ("view", 0.16),
    ]:
        table.ratio(row, shared.get(row), factor, "torch", torch.get(row))
    for row in ["add, 64 elements", "add_", "mul by a scalar", "transpose", "mm 4x4"]:
        if row in shared:
            table.row(row, "-", f"{shared[row]:.1f} ns", peer(row), None)
    table.ratio(
        "add from a separately built library",
        shared.get("add, 1 element"), 1.3, "inside", inside.get("add, 1 element"),
    )  # fmt: skip
    instruction_rows(table, build)


def instruction_rows(table: Table, build: Path) -> None:
    """Instructions of one call, counted by callgrind: free of noise."""
    sys.path.insert(0, str(ROOT / "tools"))
    from count_instructions import instructions_per_call

    program = build / "bench" / "bench_dispatch"
    counts = {
        row: instructions_per_call(program, row)
        for row in ("direct", "typed", "boxed", "into_boxed", "layer")
    }
    if any(count is None for count in counts.values()):
        table.row("instructions of the dispatch rows", "-", "not run", "valgrind not found", None)
        return
    direct = counts["direct"]
    for row, label in [
        ("typed", "instructions: typed call over direct"),
        ("boxed", "instructions: boxed call over direct"),
        ("into_boxed", "instructions: into a boxed-only kernel over direct"),
        ("layer", "instructions: a layer that redispatches, over typed"),
    ]:
        base = counts["typed"] if row == "layer" else direct
        table.row(label, "-", f"{counts[row] - base:.0f}", "", None)


def python_rows(table: Table, build: Path) -> dict[str, Rows]:
    script = str(ROOT / "bench" / "python_calls.py")
    results: dict[str, Rows] = {}
    for kind in ("lamella", "numpy", "torch", "tvm_ffi"):
        extra = [str(build / "bench" / "libbench_custom.so")] if kind == "lamella" else []
        results[kind] = run_rows([sys.executable, script, kind, *extra])
    ours, numpy, torch = results["lamella"], results["numpy"], results["torch"]
    table.section("calls, Python")
    for size in ("1 element", "64 elements"):
        for row in ("add(a, b)", "a + b", "a + 1.5", "add(out=)"):
            name = f"{row}, {size}"
            table.ratio(name, ours.get(name), 0.4, "NumPy", numpy.get(name))
    for row in ("transpose", "a[1:3]", "reshape", "empty(4)"):
        table.ratio(row, ours.get(row), 0.95, "NumPy", numpy.get(row))
    table.ratio(
        "add of another library",
        ours.get("custom add"),
        1.1,
        "built-in",
        ours.get("built-in add, bound"),
    )
    table.ratio(
        "custom no-op",
        ours.get("custom no-op"),
        0.6,
        "tvm-ffi",
        results["tvm_ffi"].get("custom no-op"),
    )
    for row in ("add(a, b), 1 element", "transpose", "custom no-op", "sum"):
        if row in torch and row in ours:
            table.row(
                f"{row} beside torch",
                "-",
                f"{ours[row]:.1f} ns",
                f"torch {torch[row]:.1f} ns",
                None,
            )
    return results


def autograd_rows(table: Table, build: Path, folder: Path) -> None:
    """Gradients: recording and backward from C++, training from Python, peak memory."""
    ours = run_rows([str(build / "bench" / "bench_autograd")])
    program = build_torch_peer(folder, "autograd_torch")
    torch = run_rows([str(program)]) if program else {}
    table.section("gradients, C++")
    for row, factor in [
        ("add with gradients, 1 element", 0.1),
        ("backward, per operator of a chain of 100", 0.05),
        ("backward, fixed cost", 0.1),
    ]:
        table.ratio(row, ours.get(row), factor, "torch", torch.get(row))
    script = str(ROOT / "bench" / "training.py")
    rows = {
        kind: run_rows([sys.executable, script, kind]) for kind in ("lamella", "torch", "numpy")
    }
    mine, torch = rows["lamella"], rows["torch"]
    table.section("gradients, Python")
    for row, factor in [
        ("10 multiplications, forward and backward", 0.05),
        ("Function identity, forward and backward", 0.2),
        ("digits MLP, one step", 0.3),
        ("digits conv net, one step", 1.0),
    ]:
        table.ratio(row, mine.get(row), factor, "torch", torch.get(row))
    by_hand = rows["numpy"].get("digits MLP, one step")
    if by_hand is not None:
        table.row("digits MLP, one step, by hand", "-", "", f"NumPy {by_hand:.1f} ns", None)
    table.section("peak memory of training steps")
    for model in ("MLP", "conv net"):
        got, peer = (
            run_rows([sys.executable, script, kind, "memory", model]).get(model)
            for kind in ("lamella", "torch")
        )
        if got is None or peer is None:
            table.row(model, "<= 1 x torch", "not run", "", None)
        else:
            table.row(
                model, "<= 1 x torch", f"{got / 2**20:.1f} MiB",
                f"torch {peer / 2**20:.1f} MiB ({got / peer:.3f} x)", got <= peer,
            )  # fmt: skip


def layer_rows(table: Table) -> None:
    """Layers from Python: custom operators, vmap, autocast, modes, tracing."""
    script = str(ROOT / "bench" / "layers.py")
    ours, torch = (run_rows([sys.executable, script, kind]) for kind in ("lamella", "torch"))
    table.section("layers, Python")

    def over(rows: Rows, row: str, base: str) -> float | None:
        return rows[row] - rows[base] if row in rows and base in rows else None

    def peer(number: float | None) -> str:
        return "torch not run" if number is None else f"torch {number:.0f} ns"

    base = "custom operator, the function"
    for row, limit in (("custom operator", 100), ("custom operator with gradients", 500)):
        table.limit(
            f"{row} over its function", over(ours, row, base), limit, "ns",
            peer(over(torch, row, base)),
        )  # fmt: skip
    row = "vmap of 10 operators"
    table.ratio(row, ours.get(row), 0.1, "torch", torch.get(row))
    base = "vmap of 10 operators, the function"
    got = over(ours, row, base)
    mine = "not run" if got is None else f"{got:.0f} ns"
    table.row(f"{row} over the function", "-", mine, peer(over(torch, row, base)), None)
    row = "add in an autocast region"
    got = over(ours, row, "add, the function")
    # Nothing, as far as a clock can tell: within 3 % of the call.
    table.limit(f"{row} over add", got, 0.03 * ours.get("add, the function", 0), "ns",
                peer(over(torch, row, "add, the function")))  # fmt: skip
    for row in ("mm of 4 x 4 in an autocast region", "add under a mode that passes on"):
        if row in ours:
            table.row(row, "-", f"{ours[row]:.0f} ns", peer(torch.get(row)), None)
    row = "trace of 1,000 operators"
    got = ours.get(row)
    peer_ms = f"torch.jit.trace {torch[row] / 1e6:.0f} ms" if row in torch else "torch not run"
    table.limit(row, None if got is None else got / 1e6, 5.0, "ms", peer_ms)


# What part of jax.jit's time compiled functions may take, by the beginning of a row's name; chains
# over 10,000,000 elements may take 0.9.
COMPILED = {
    "calling": 0.1,
    "gelu": 0.5,
    "x sigmoid": 0.5,
    "normalised rows": 0.5,
    "training step": 0.7,
    "encoder": 0.95,
}


def graph_rows(table: Table, build: Path, folder: Path) -> None:
    """Custom calls inside programs of them, and reading HLO."""
    script = str(ROOT / "bench" / "graph.py")
    peer = run_rows([sys.executable, script, str(folder)]).get("jax.ffi call")
    library = folder / "libincrement.so"
    arguments = [str(library)] if library.exists() else []
    ours = run_rows([str(build / "bench" / "bench_graph"), *arguments])
    table.section("graph")
    for row, factor in [
        ("custom call", 0.1),
        ("custom call with a status", 0.1),
        ("typed call", 0.2),
    ]:
        table.ratio(f"{row}, in a program of 1,000", ours.get(row), factor, "jax.ffi", peer)
    speed = ours.get("parsing HLO text, MB/s")
    if speed is None:
        table.row("parsing HLO text", ">= 100 MB/s", "not run", "", None)
    else:
        table.row("parsing HLO text", ">= 100 MB/s", f"{speed:.0f} MB/s", "", speed >= 100)
    programs = run_rows([sys.executable, str(ROOT / "bench" / "programs.py")])
    for row in [name[len("lamella ") :] for name in programs if name.startswith("lamella ")]:
        peer_name = "jax" if "jax donated " + row not in programs else "jax donated"
        factor = 0.9 if "1e+07" in row else 0.1 if row == "tiny call" else 0.5
        table.ratio(
            row, programs[f"lamella {row}"], factor, peer_name, programs[f"{peer_name} {row}"]
        )
    ns = ours.get("verifying 10,000 instructions")
    table.limit("verifying 10,000 instructions", None if ns is None else ns / 1e6, 10.0, "ms")
    compiled_rows(table)
    network_rows(table)


NETWORK_PEERS = ("jax", "torch", "openvino", "onnxruntime")


def network_rows(table: Table) -> None:
    """Compiled networks and the best of their peers, each library in a process of its own."""
    script = str(ROOT / "bench" / "network_rows.py")
    cores = sorted(os.sched_getaffinity(0))

    def rows(library: str, threads: int, *arguments: str) -> Rows:
        on = ",".join(map(str, cores[-threads:]))
        command = ["taskset", "-c", on, sys.executable, script, library, *arguments]
        return run_rows(command, {"OMP_NUM_THREADS": str(threads)})

    for threads in (1, 2) if len(cores) > 1 else (1,):
        table.section(f"compiled networks, {threads} thread{'s' if threads > 1 else ''}")
        ours = rows("lamella", threads)
        peers = {library: rows(library, threads) for library in NETWORK_PEERS}
        for row in ours:
            there = {library: made[row] for library, made in peers.items() if row in made}
            name = min(there, key=lambda library: there[library]) if there else "peers"
            factor = 0.95
            if row.startswith("training step of the encoder"):
                name, factor = "jax", 0.8
            elif row.startswith(("encoder in", "encoder with")):
                factor = 1.0
            table.ratio(row, ours.get(row), factor, name, there.get(name))
    table.section("peak memory of compiled networks")
    # Each in a process of its own: what one leaves for reuse is no memory of the next.
    wanted = ("^encoder, 8 x 128", "^training step of the encoder", "^small conv net, training")
    ours, peer = (
        {row: got for one in wanted for row, got in rows(library, 1, "memory", one).items()}
        for library in ("lamella", "jax")
    )
    for row in ours:
        got, theirs = ours[row] / 2**20, peer.get(row)
        limit = None if theirs is None else theirs / 2**20
        text = "jax not run" if limit is None else f"jax {limit:.1f} MiB"
        met = None if limit is None else got <= limit
        table.row(f"{row}, at the peak", "<= 1 x jax", f"{got:.1f} MiB", text, met)


def compiled_rows(table: Table) -> None:
    """lamella.compile and jax.jit, each in a process of its own on one core."""
    script = str(ROOT / "bench" / "compiled.py")
    core = str(max(os.sched_getaffinity(0)))
    ours, peer = (
        run_rows(["taskset", "-c", core, sys.executable, script, library])
        for library in ("lamella", "jax")
    )
    table.section("compiled functions")
    for row in ours:
        factor = next(f for start, f in COMPILED.items() if row.startswith(start))
        if row.endswith(" 10,000,000"):
            factor = 0.9
        table.ratio(row, ours.get(row), factor, "jax.jit", peer.get(row))
    script = str(ROOT / "bench" / "compile_time.py")
    ours, peer = (
        run_rows(["taskset", "-c", core, sys.executable, script, library])
        for library in ("lamella", "jax")
    )
    for row in ours:
        begins, found, _ = row.partition(", from the disk")
        table.ratio(row, ours[row], 0.1 if found else 0.5, "jax.jit", peer.get(begins))


def function_rows(table: Table) -> None:
    """The JAX functions of the tests at their size, and with arguments 256 times as large."""
    script = str(ROOT / "bench" / "functions.py")
    table.section("functions of JAX, compiled")
    for title, arguments in (("at the tests' size", []), ("enlarged", ["--times", "256"])):
        rows = run_rows([sys.executable, script, *arguments])
        required = f"none > {functions.SLOWER:g} x jax.jit"
        if not rows:
            table.row(f"functions {title}", required, "not run", "", None)
            continue
        got = functions.slower(rows)
        what = f"{len(rows) // 2} functions {title}"
        table.row(what, required, f"{len(got)} slower", ", ".join(got[:2]), not got)
        mean = functions.geometric_mean(rows)
        table.row(f"{what}, geometric mean", "<= 0.5 x jax.jit", f"{mean:.3f} x", "", mean <= 0.5)


def import_ms(module: str) -> float | None:
    """Wall time of an import over that of a bare interpreter, in milliseconds; median of nine."""

    def once(statement: str) -> float:
        begin = time.perf_counter()
        # Elsewhere than in the tree, whose folders look like packages without anything in them.
        subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True, cwd="/")
        return (time.perf_counter() - begin) * 1e3

    try:
        once(f"import {module}")
    except subprocess.CalledProcessError:
        return None
    loaded = statistics.median(once(f"import {module}") for _ in range(9))
    return loaded - statistics.median(once("pass") for _ in range(9))


def size_rows(table: Table, build: Path) -> dict[str, float | None]:
    table.section("size and import")
    imports = {name: import_ms(name) for name in ("lamella", "numpy", "torch")}
    ours, numpy, torch = imports.values()
    peers = ", ".join(f"{n} {v:.0f} ms" for n, v in (("NumPy", numpy), ("torch", torch)) if v)
    table.limit("import lamella over a bare interpreter", ours, 30.0, "ms", peers)
    with tempfile.TemporaryDirectory() as folder:
        library = build / "prefix" / "lib" / "liblamella.so"
        stripped = Path(folder) / "liblamella.so"
        subprocess.run(["strip", "-o", str(stripped), str(library.resolve())], check=True)
        table.limit("core library, stripped", stripped.stat().st_size / 1e6, 12.0, "MB")
    return imports


def compile_seconds(text: str, build: Path, folder: Path) -> float | None:
    source = folder / "extension.cpp"
    source.write_text(text)
    command = [
        os.environ.get("CXX", "g++"), "-std=c++20", "-O0", "-fPIC", "-c",
        f"-I{build}/prefix/include", str(source), "-o", str(folder / "extension.o"),
    ]  # fmt: skip
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        if subprocess.run(command, check=False).returncode != 0:
            return None
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def rebuild_seconds(build: Path, folder: Path) -> float | None:
    """Builds the output of `lamella new`, then again with a kernel changed; median of five."""
    project = folder / "clipping"
    prefix = build / "prefix"
    subprocess.run([prefix / "bin" / "lamella", "new", "clipping", project], check=True,
                   capture_output=True)  # fmt: skip
    make = ["cmake", "--build", project / "build"]
    configure = ["cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    for command in (configure, make):
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            return None
    times = []
    for i in range(5):
        with open(project / "kernels.cpp", "a") as kernels:
            kernels.write(f"// {i}\n")
        begin = time.perf_counter()
        subprocess.run(make, check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


BODY = """
namespace {
lamella::Tensor twice(const lamella::Tensor& self) { return %s; }
LAMELLA_LIBRARY(bench_compile, m) { m.def("twice(Tensor self) -> Tensor"); }
LAMELLA_LIBRARY_IMPL(bench_compile, CPU, m) { m.impl("twice", LAMELLA_FN(twice)); }
}
"""


def build_rows(table: Table, build: Path, folder: Path) -> None:
    table.section("building an extension")
    everything = "#include <lamella/lamella.h>\n" + BODY % "lamella::add(self, self)"
    one = (
        "#include <lamella/library.h>\n#include <lamella/api/ops/add.h>\n"
        + BODY % "lamella::add(self, self)"
    )
    table.limit(
        "compile one file, everything included",
        compile_seconds(everything, build, folder),
        0.6,
        "s",
    )
    table.limit(
        "compile one file, one header per operator", compile_seconds(one, build, folder), 0.35, "s"
    )
    table.limit("`lamella new`'s project after a change", rebuild_seconds(build, folder), 0.9, "s")
    bare = "#include <optional>\n#include <string>\n#include <tuple>\n#include <vector>\n"
    seconds = compile_seconds(bare, build, folder)
    if seconds is not None:
        table.row("compile the standard headers alone", "-", f"{seconds:.2f} s", "", None)


def bridge_rows(table: Table, folder: Path) -> None:
    table.section("operators of a library in PyTorch and JAX")
    rows = run_rows([sys.executable, str(ROOT / "bench/bridge.py"), str(folder)])
    for what, row, peer, factor in (
        ("torch operator, no gradient wanted", "torch", "torch, headers", 1.05),
        ("the same beside PyTorch's stable interface", "torch", "torch, stable", 0.65),
        ("the same in inference mode", "torch, inference", "torch, inference, headers", 1.05),
        ("called without PyTorch's dispatcher", "direct", "direct, tvm-ffi", 0.55),
        ("forward and backward", "torch, both", "torch, both, headers", 1.0),
        ("the same beside register_autograd", "torch, both", "torch, both, register_autograd", 0.7),
        ("10^6 elements in jit", "jax, 10^6", "jax, handler, 10^6", 1.02),
    ):
        table.ratio(what, rows.get(row), factor, peer, rows.get(peer))
    table.limit("an argument without a stable form", rows.get("torch, Scalar"), 5000, "ns")

    def marginal(name: str) -> float | None:
        many, one = rows.get(f"{name}, 101 calls"), rows.get(f"{name}, 1 calls")
        return None if many is None or one is None else (many - one) / 100

    theirs = marginal("jax, handler")
    peer = "" if theirs is None else f"direct handler {theirs:.1f} ns"
    table.limit("one more call in jit", marginal("jax"), 150, "ns", peer)
    compiled = rows.get("compile")
    table.limit("compile of the example", compiled and compiled / 1e9, 1.0, "s")


def package_rows(table: Table) -> None:
    """Operators of packages, built from one source against Lamella and against PyTorch."""
    table.section("packages of C++ operators")
    for package in packages.PACKAGES:
        results = packages.measure(package)
        if isinstance(results, str):
            table.row(package, "<= 1 x PyTorch", "not run", results, None)
            continue
        for row, (ours, peer, ratio) in results.items():
            against = f"PyTorch {peer / 1e3:.1f} us ({ratio:.3f} x)"
            # A pair of medians on a shared machine differs by this much.
            met = ratio <= 1.03
            table.row(row, "<= 1 x PyTorch", f"{ours / 1e3:.1f} us", against, met)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    topics = ["kernels", "cpp", "python", "autograd", "layers", "graph"]
    topics += ["functions", "size", "extensions", "packages", "distributed", "bridge", "jax"]
    parser.add_argument("--only", choices=topics)
    options = parser.parse_args()
    if options.only == "kernels":
        for threads in ("1", "2"):
            for name in ("kernels.py", "models.py"):
                command = [sys.executable, str(ROOT / "bench" / name), "--threads", threads]
                subprocess.run([*command, "--build", str(options.build)], check=False)
        return
    if options.only == "distributed":
        subprocess.run([sys.executable, str(ROOT / "bench" / "distributed.py")], check=False)
        return
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((x.split(":")[1].strip() for x in info if x.startswith("model name")), "?")
    print(f"{model}, {os.cpu_count()} cores, Python {sysconfig.get_python_version()}, one thread")
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sections = {
            "cpp": lambda: cpp_rows(table, options.build, folder),
            "python": lambda: python_rows(table, options.build),
            "autograd": lambda: autograd_rows(table, options.build, folder),
            "layers": lambda: layer_rows(table),
            "graph": lambda: graph_rows(table, options.build, folder),
            "functions": lambda: function_rows(table),
            "size": lambda: size_rows(table, options.build),
            "extensions": lambda: build_rows(table, options.build, folder),
            "packages": lambda: package_rows(table),
            "bridge": lambda: bridge_rows(table, folder),
            "jax": lambda: jax_programs.add_rows(table),
        }
        chosen = list(sections) if options.only is None else [options.only]
        found = {topic: sections[topic]() for topic in chosen if topic in sections}
        if options.only is None:
            readme.write(found["python"], found["size"], options.build)
    for title, rows in (("short", table.missed), ("not run", table.not_run)):
        print(f"\n{len(rows)} rows {title}" + (": " + "; ".join(rows) if rows else ""))


if __name__ == "__main__":
    main()
