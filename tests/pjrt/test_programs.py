"""Programs of JAX on Lamella: those of programs.py, in a process of their own, and settings."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import lamella

pytest.importorskip("jax")
HERE = pathlib.Path(__file__).parent
NAMES = re.findall(r"^@program\ndef (\w+)", (HERE / "programs.py").read_text(), re.M)
PYTHON = pathlib.Path(lamella.__file__).parent.parent


def run(*command, **environment):
    """Runs Python with the plugin on the path; returns what it prints."""
    path = f"{PYTHON}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "lamella", **environment}
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def problems_of(factory, script, **settings):
    """What a file of programs prints, which runs once for all workers of pytest."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    kept = folder / f"{script}.txt"
    with open(folder / f"{script}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_text(run(str(HERE / script), JAX_PLATFORMS="lamella,cpu", **settings))
    lines = kept.read_text().splitlines()
    return dict(json.loads(line) for line in lines if line.startswith("["))


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    return problems_of(tmp_path_factory, "programs.py")


@pytest.mark.parametrize("name", NAMES)
def test_program(problems, name):
    assert problems[name] is None, problems[name]


def test_jax_finds_the_plugin_and_prefers_its_own_client():
    script = "import jax; print(jax.devices()[0].client.platform_version, jax.devices('lamella'))"
    out = run("-c", script, JAX_PLATFORMS="")
    assert "lamella" not in out.split("[")[0]
    assert "LamellaDevice(id=0)" in out


def test_in_the_place_of_the_cpu_client():
    script = "import jax; print(jax.devices('cpu'), jax.jit(lambda x: x + 1)(1.0))"
    for platforms in ("", "cpu"):
        out = run("-c", script, JAX_PLATFORMS=platforms, LAMELLA_AS_CPU="1")
        assert out.strip() == "[LamellaDevice(id=0)] 2.0"


def test_number_of_devices():
    script = "import jax; print(len(jax.devices()))"
    assert run("-c", script, XLA_FLAGS="--xla_force_host_platform_device_count=3").strip() == "3"
    assert run("-c", script, JAX_NUM_CPU_DEVICES="2").strip() == "2"


def test_compilation_cache(tmp_path):
    script = """
import jax, jax.numpy as jnp
from jax._src import monitoring
hits = []
monitoring.register_event_listener(lambda name, **_: hits.append(name.endswith('cache_hits')))
x = jnp.arange(6.0).reshape(2, 3)
print(jax.jit(lambda x: jnp.sin(x) @ x.T)(x).sum(), sum(hits))
"""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    first, second = (run("-c", script, **settings).split() for _ in range(2))
    assert first[0] == second[0]
    assert int(first[1]) == 0
    assert int(second[1]) > 0


DEVICES = re.findall(r"^@program\ndef (\w+)", (HERE / "devices.py").read_text(), re.M)


@pytest.fixture(scope="module")
def problems_of_devices(tmp_path_factory):
    return problems_of(tmp_path_factory, "devices.py", JAX_NUM_CPU_DEVICES="8")


@pytest.mark.parametrize("name", DEVICES)
def test_program_of_several_devices(problems_of_devices, name):
    assert problems_of_devices[name] is None, problems_of_devices[name]


def test_custom_calls_of_users(tmp_path):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C compiler")
    library = str(tmp_path / "libhandlers.so")
    include = run("-c", "import jax; print(jax.ffi.include_dir())").strip()
    command = [compiler, "-std=c++17", "-O0", "-shared", "-fPIC", "-w", f"-I{include}"]
    subprocess.run([*command, str(HERE / "handlers.cpp"), "-o", library], check=True)
    out = run(str(HERE / "custom_calls.py"), library, JAX_PLATFORMS="lamella,cpu")
    assert out.strip() == "done"


def test_a_jax_without_the_names_is_refused_in_a_sentence():
    script = """
import jax
from jax._src import xla_bridge
del xla_bridge._nonexperimental_plugins
try:
    jax.devices()
except RuntimeError as error:
    print(error)
"""
    out = run("-c", script)
    assert "jax_plugins.lamella: expected a jaxlib such as 0.10.2, got" in out
    assert "run `pip install jax==0.10.2`" in out


def test_callbacks_without_another_client():
    script = """
import jax, jax.numpy as jnp, numpy as np
shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
f = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x))
# More than are queued at a time.
print(sum(float(y[0, 0]) for y in [f(jnp.ones((64, 64))) for _ in range(200)]), jax.devices('cpu'))
"""
    assert run("-c", script).strip() == "400.0 [LamellaDevice(id=0)]"


def test_errors_and_deletion_of_what_is_under_way():
    script = """
import jax, jax.numpy as jnp, numpy as np
f = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda _, y: jnp.tanh(y @ x * 1e-3), x))
x = jnp.ones((300, 300))
y = f(x)
z = jax.jit(lambda a: a + 1, donate_argnums=0)(y)
assert y.is_deleted() and np.isfinite(np.asarray(z)).all()
y = f(x)
y.delete()
def fail(v):
    raise ValueError("bad thing")
y = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), f(x)))(x)
z = jax.jit(lambda a: a * 2)(y)
for one in z, y:
    try:
        np.asarray(one)
    except jax.errors.JaxRuntimeError as error:
        assert "bad thing" in str(error)
    else:
        raise AssertionError("expected an error")
for _ in range(5):
    x = f(x)
print("ends while programs run")
"""
    assert run("-c", script).strip() == "ends while programs run"


def test_comparison_of_test_files(tmp_path):
    (tmp_path / "some_test.py").write_text(
        """
import os
import jax, jax.numpy as jnp

def is_ours():
    return "lamella" in jax.devices()[0].client.platform_version

def test_same():
    assert jnp.sin(1.0) > 0.8

def test_differs():
    assert not is_ours()

def test_ends_the_process():
    if is_ours():
        os._exit(3)

def test_after_it():
    assert jax.jit(lambda x: x + 1)(1) == 2
"""
    )
    done = subprocess.run(
        [sys.executable, str(HERE / "run_jax_tests.py"), str(tmp_path), "some_test"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{PYTHON}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "some_test: 2 of 4, 50.00 %"
    assert [line.split(":")[0] for line in lines[1:3]] == [
        "  failed test_differs",
        "  crash test_ends_the_process",
    ]
    assert lines[3] == "all: 2 of 4, 50.00 %"


def test_unknown_compile_options_are_refused():
    script = """
import jax
f = jax.jit(lambda x: x + 1, compiler_options={"xla_embed_ir_in_executable": True})
print(f(1.0))
try:
    jax.jit(lambda x: x, compiler_options={"no_option": 1}).lower(1.0).compile()
except jax.errors.JaxRuntimeError as error:
    print(error)
"""
    out = run("-c", script).splitlines()
    assert out == ["2.0", "INVALID_ARGUMENT: No such compile option: 'no_option'"]


def test_callbacks_that_write_their_results():
    script = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.buffer_callback import buffer_callback

def add_one(run, out, x):
    assert x.shape == out.shape == (3,) and out.writeable and not x.writeable
    np.asarray(out)[...] = np.asarray(x) + 1

def fails(run, out, x):
    np.asarray(x)[...] = 0

like = jax.ShapeDtypeStruct((3,), jnp.float32)
x = jnp.arange(3.0)
f = jax.jit(buffer_callback(add_one, like, input_output_aliases={0: 0}))
g = jax.jit(buffer_callback(add_one, like))
print(f(x).tolist(), x.tolist(), np.asarray(g(x) * 2).tolist())
try:
    jax.jit(buffer_callback(fails, like))(x).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print(str(error).strip().splitlines()[-1])
"""
    assert run("-c", script).splitlines() == [
        "[1.0, 2.0, 3.0] [0.0, 1.0, 2.0] [2.0, 4.0, 6.0]",
        "ValueError: assignment destination is read-only",
    ]
