"""The library of operators of tests/bridge, compiled once for a run, and its random schemas."""

import fcntl
import importlib.util
import os
import pathlib
import shutil

import pytest

import lamella
import lamella.bridge

_HERE = pathlib.Path(__file__).parent
_spec = importlib.util.spec_from_file_location("bridge_schemas", _HERE / "schemas.py")
schemas = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(schemas)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The path of the library; BRIDGE_LIBRARY names one that is built, for test_runtime.py."""
    if "BRIDGE_LIBRARY" in os.environ:
        return os.environ["BRIDGE_LIBRARY"]
    from lamella.utils import cpp_extension

    if shutil.which(cpp_extension.get_cxx_compiler()) is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # one for all workers
    folder = folder / "bridge"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        texts = [case.schema for case in schemas.CASES]
        (folder / "schemas.txt").write_text("\n".join(texts) + "\n")
        os.environ["BRIDGE_SCHEMAS"] = str(folder / "schemas.txt")
        return cpp_extension.load(
            "bridge_operators",
            [str(_HERE / "operators.cpp")],
            extra_cflags=["-O0"],
            build_directory=str(folder),
            is_python_module=False,
        )


@pytest.fixture(scope="module")
def ops(library, request):
    """The library's operators by the function of lamella.bridge that the file is named after."""
    door = request.module.__name__.rpartition("test_")[2]
    return getattr(lamella.bridge, door)(library).cases


@pytest.fixture
def bridged(ops):
    """A function of bridged operators; the files have the same of their packages' own."""

    def function(a, b):
        return (ops.midpoint(ops.cube(a) + ops.grow(a * 0.1), b, 0.25) ** 2).sum()

    return function


@pytest.fixture(params=schemas.CASES, ids=lambda case: case.name)
def case(request):
    """One random schema with arguments for it."""
    return request.param
