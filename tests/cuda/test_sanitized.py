"""The product's kernels on the stand-in under sanitizers: memory out of bounds, missing barriers.
tools/sanitize.sh builds what they need: cuda_standin_asan, cuda_standin_tsan."""

import pathlib
import subprocess

import pytest
from checks_fibres import PROGRAM
from standin_runs import STANDIN, run

HERE = pathlib.Path(__file__).parent


def sanitized(folder, library, arguments):
    driver = STANDIN.parent / folder / STANDIN.name
    if not driver.exists():
        pytest.skip(f"the stand-in for {folder} is not built")
    preloaded = [
        subprocess.run(
            ["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in (library, "libstdc++.so.6")
    ]
    return run(
        arguments,
        LAMELLA_CUDA_DRIVER=str(driver),
        LAMELLA_CUDA_CACHE="0",
        LD_PRELOAD=" ".join(preloaded),
        PYTHONMALLOC="malloc",
        ASAN_OPTIONS="detect_leaks=0",
        TSAN_OPTIONS="ignore_noninstrumented_modules=1:halt_on_error=1",
    )


def launched(folder, library, arguments):
    done = sanitized(folder, library, ["-c", PROGRAM + f"print(launch({arguments}))"])
    return done.stdout + done.stderr


def checks(folder, library, name, which=""):
    options = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", which]
    done = sanitized(folder, library, [*options, str(HERE / f"checks_{name}.py")])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize(
    ("name", "which"),
    [
        ("attention", "nothing or layouts and float32 or sizes0 or sizes4 and float16"),
        *((name, "") for name in ("losses", "norms", "reductions", "scans")),
        ("select", "long_lines and 64"),
    ],
)
def test_kernels_stay_in_bounds(name, which):
    checks("asan", "libasan.so", name, which)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("'fibres_turn', range(100), 128, (1, 1, 1), (128, 1, 1), 512", "use-after-poison"),
        ("'fibres_turn', range(128), 100, (1, 1, 1), (128, 1, 1), 512", "use-after-poison"),
        ("'fibres_turn', range(128), 128, (1, 1, 1), (128, 1, 1), 500", "heap-buffer-overflow"),
    ],
)
def test_accesses_out_of_bounds_are_named(arguments, what):
    text = launched("asan", "libasan.so", arguments)
    assert f"AddressSanitizer: {what}" in text and "fibres_turn" in text


@pytest.mark.parametrize(
    ("name", "which"),
    [
        ("attention", "sizes0 and not bfloat16"),
        ("norms", "float32"),
        ("reductions", "sum or var or long"),
        ("scans", "shape4 or shape5"),
        ("select", "long_lines and int32"),
    ],
)
def test_kernels_have_their_barriers(name, which):
    checks("tsan", "libtsan.so", name, which)


def test_missing_barriers_are_named():
    rest = "'fibres_turn', range(128), 128, (1, 1, 1), (128, 1, 1), 512"
    assert "data race" not in launched("tsan", "libtsan.so", rest)
    text = launched("tsan", "libtsan.so", rest + ", 1")
    assert "data race" in text and "fibres_turn" in text
