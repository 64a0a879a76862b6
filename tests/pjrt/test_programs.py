"""Programs of JAX on Lamella: those of programs.py, in a process of their own, and settings."""

import json
import os
import pathlib
import re
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


@pytest.fixture(scope="module")
def problems():
    lines = run(str(HERE / "programs.py"), JAX_PLATFORMS="lamella,cpu").splitlines()
    return dict(json.loads(line) for line in lines if line.startswith("["))


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
def problems_of_devices():
    settings = {"JAX_PLATFORMS": "lamella,cpu", "JAX_NUM_CPU_DEVICES": "8"}
    lines = run(str(HERE / "devices.py"), **settings).splitlines()
    return dict(json.loads(line) for line in lines if line.startswith("["))


@pytest.mark.parametrize("name", DEVICES)
def test_program_of_several_devices(problems_of_devices, name):
    assert problems_of_devices[name] is None, problems_of_devices[name]


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
