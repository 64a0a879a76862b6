"""Checks that an installed wheel works without other packages; run by the wheel's interpreter."""

import pathlib
import subprocess
import sys

import lamella

folder = pathlib.Path(lamella.__file__).parent
assert pathlib.Path(sys.prefix) in folder.parents, f"{folder} is not of this environment"

x = lamella.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]
eye = lamella.eye(64)
assert (eye @ eye).sum().item() == 64.0  # liblamella_blas.so
text = "HloModule m\nENTRY f {\n  p = f32[] parameter(0)\n  ROOT s = f32[] add(p, p)\n}\n"
assert lamella.hlo.evaluate(text, 2.0)[0].item() == 4.0

# The commands, the headers, the CMake package and the generator: a new project builds and tests.
commands = pathlib.Path(sys.prefix) / "bin"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


project = pathlib.Path.cwd() / "wheel_smoke"
run(commands / "lamella", "new", project.name)
prefix = lamella.utils.cmake_prefix_path
run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
    f"-DPython3_EXECUTABLE={sys.executable}")  # fmt: skip
run("cmake", "--build", project / "build")
run("ctest", "--test-dir", project / "build", "--output-on-failure")
print(f"lamella {lamella.__version__} in {folder}: smoke test passed")
