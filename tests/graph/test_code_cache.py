"""The code cache on disk: other processes use it without LLVM, and damaged entries are refused."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys
import time

import hlo_difference
import hlo_random_programs
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")

PROGRAM = """
import sys
import lamella
from lamella import hlo

size = int(sys.argv[1])
text = f'''HloModule m
ENTRY e {{
  x = f32[{size}] parameter(0)
  t = f32[{size}] tanh(x)
  ROOT r = f32[{size}] multiply(t, x)
}}
'''
x = lamella.linspace(-2, 2, size)
(got,), (wanted,) = hlo.compile(text)(x), hlo.evaluate(text, x)
assert lamella.allclose(got, wanted, atol=1e-6), (got, wanted)
with open("/proc/self/maps") as maps:
    print("libLLVM" in maps.read())
"""
HAS_COMPILER = (
    "machine code"
    in hlo.compile(
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}\n"
    ).explain()
)
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="there is no compiler")


def started(folder: object, size: int = 8, **settings: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "LAMELLA_CACHE": str(folder), **settings}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(size)],
        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def loads_llvm(folder: object, size: int = 8, **settings: str) -> bool:
    """Whether a process that compiles the program needs LLVM for it."""
    process = started(folder, size, **settings)
    out, error = process.communicate()
    assert process.returncode == 0, error
    return out.strip() == "True"


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


@needs_compiler
def test_second_process_needs_no_llvm(tmp_path):
    folder = tmp_path / "some" / "code"
    assert loads_llvm(folder)
    (file,) = files(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not loads_llvm(folder)
    assert files(folder) == [file]
    # Another program, another capability.
    assert loads_llvm(folder, 9)
    assert loads_llvm(folder, LAMELLA_CPU_CAPABILITY="default")
    assert len(files(folder)) == 3


@needs_compiler
def test_places(tmp_path):
    assert loads_llvm("", XDG_CACHE_HOME=str(tmp_path / "x"))
    assert len(files(tmp_path / "x" / "lamella")) == 1
    assert loads_llvm("", XDG_CACHE_HOME="", HOME=str(tmp_path / "h"))
    assert len(files(tmp_path / "h" / ".cache" / "lamella")) == 1
    for _ in range(2):
        assert loads_llvm("off", XDG_CACHE_HOME=str(tmp_path / "off"))
    assert not (tmp_path / "off").exists()


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@needs_compiler
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: flip(data, 0),
        lambda data: flip(data, 20),
        lambda data: flip(data, len(data) // 2),
        lambda data: flip(data, len(data) - 1),
    ],
)
def test_damaged_files_are_compiled_again(tmp_path, damage):
    assert loads_llvm(tmp_path)
    (file,) = files(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert loads_llvm(tmp_path)
    assert file.read_bytes() == whole
    assert not loads_llvm(tmp_path)


@needs_compiler
def test_what_others_may_write_is_not_used(tmp_path):
    folder = tmp_path / "code"
    assert loads_llvm(folder)
    (file,) = files(folder)
    file.chmod(0o620)
    assert loads_llvm(folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600  # written anew
    folder.chmod(0o777)
    assert loads_llvm(folder)
    folder.chmod(0o700)
    target = tmp_path / "elsewhere"
    file.rename(target)
    file.symlink_to(target)
    assert loads_llvm(folder)
    assert not file.is_symlink()


@needs_compiler
def test_folders_that_cannot_be_used(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below", "/proc/none"):
        assert loads_llvm(folder)


@needs_compiler
def test_the_oldest_go(tmp_path):
    assert loads_llvm(tmp_path)
    (first,) = files(tmp_path)
    filler = [tmp_path / f"{n}.code" for n in range(8)]
    for n, file in enumerate(filler):
        file.write_bytes(bytes(200_000))
        os.utime(file, (time.time() - 1000 + n,) * 2)
    left = tmp_path / ".new-abcdef"
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    os.utime(first, (0, 0))
    assert not loads_llvm(tmp_path)  # now it was used last
    assert loads_llvm(tmp_path, 9, LAMELLA_CACHE_LIMIT="1")
    kept = files(tmp_path)
    assert first in kept and left not in kept
    assert [file for file in filler if file in kept] == filler[-3:]


@needs_compiler
def test_processes_at_once(tmp_path):
    several = [started(tmp_path, 8 + n % 2) for n in range(8)]
    for process in several:
        _, error = process.communicate()
        assert process.returncode == 0, error
    assert [file.suffix for file in files(tmp_path)] == [".code"] * 2


@needs_compiler
def test_found_code_gives_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMELLA_CACHE", str(tmp_path))
    for seed in range(40):
        text, arguments = hlo_random_programs.program(seed)
        made = hlo.compile(text)(*arguments)
        count = len(files(tmp_path))
        found = hlo.compile(text)
        assert len(files(tmp_path)) == count
        assert hlo_difference.same_bits(made, found(*arguments))


@needs_compiler
def test_bits_of_constants_count(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMELLA_CACHE", str(tmp_path))
    for number in ("0", "-0", "1", "nan", "-nan", "inf"):
        text = (
            f"HloModule m\nENTRY e {{\n  c = f32[] constant({number})\n"
            "  x = f32[] parameter(0)\n  ROOT s = f32[] copysign(x, c)\n}\n"
        ).replace("copysign(x, c)", "select(p, c, x)")
        text = text.replace("  ROOT", "  p = pred[] compare(x, x), direction=EQ\n  ROOT")
        (got,), (wanted,) = hlo.compile(text)(2.0), hlo.evaluate(text, 2.0)
        assert got.view(lamella.int32).item() == wanted.view(lamella.int32).item()
    assert len(files(tmp_path)) == 6


@needs_compiler
def test_a_compiler_of_another_version(tmp_path):
    program = """
import ctypes, pathlib
import lamella
from lamella import hlo

text = "HloModule m\\nENTRY e {\\n  x = f32[2] parameter(0)\\n  ROOT y = f32[2] tanh(x)\\n}\\n"
hlo.compile(text)
folder = pathlib.Path(lamella.__file__).parents[2]
library = ctypes.CDLL(str(folder / "liblamella_graph.so"))
# What a compiler's library calls while it is loaded, with its table of opcodes.
call = library["_ZN7lamella3hlo20set_machine_compilerEPNS0_15MachineCompilerEm"]
call(ctypes.c_void_p(), ctypes.c_uint64(1))
hlo.compile(text)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "LAMELLA_CACHE": "off"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "liblamella_compiler.so of the same version as" in done.stderr
    assert "got one with other opcodes" in done.stderr
