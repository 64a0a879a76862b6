"""The conformance command: no complaints about the example, and a report of each missing part."""

import json
import os
import subprocess
import sys

import pytest
import sim_backend
from build_tree import ROOT, build


def command(*arguments, crippled=""):
    return subprocess.run(
        [sys.executable, "-m", "lamella.conformance", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CRIPPLED": crippled},
    )


@pytest.fixture(scope="module")
def crippled():
    source = ROOT / "tests" / "python" / "crippled_backend"
    library = str(build(source, ROOT / "build" / "tests" / "crippled") / "libcrippled.so")

    def check(word, *more):
        done = command(library, "--device", "crippled", "--json", "-", *more, crippled=word)
        report = json.loads(done.stdout)
        failures = {c["name"]: c for c in report["checks"] if c["status"] != "ok"}
        assert done.returncode == (1 if failures else 0), done.stderr
        return failures

    return check


def test_the_example_is_complete():
    done = command(sim_backend.library(), "--device", "sim")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout
    assert len(lines) == 1 and lines[0].startswith("sim: ") and lines[0].endswith(", 0 not passed")
    assert int(lines[0].split()[1]) > 150


def test_nothing_is_found_where_nothing_is_wrong(crippled):
    assert crippled("") == {}


@pytest.mark.parametrize(
    "word, name, status, text",
    [
        ("no-allocator", "allocator", "missing", "expected a device with an allocator"),
        ("no-copy", "copy: host to device and back", "missing", "expected a backend with a copy"),
        ("lossy-copy", "copy: host to device and back", "failed", "expected"),
        ("no-copy-between", "copy: between devices", "failed", "expected"),
        ("deaf-guard", "guard: exchange", "failed", "expected 1 to be current, got 0"),
        ("no-streams", "streams", "missing", "Stream: expected a backend with streams"),
        ("no-events", "events", "missing", "Event: expected a backend with events"),
        ("no-fallback", "operators without a kernel", "missing", "no kernel and no fallback for"),
        ("wrong-add", "operator add", "failed", "result: expected"),
        ("crash-in-sin", "operator sin", "crashed", "the process ended by SIGSEGV"),
        ("forgetful-exp_", "operator exp_", "failed", "result: expected"),
        ("copying-view", "views", "failed", "view: expected a view of the device's memory"),
    ],
)
def test_what_is_missing_is_named(crippled, word, name, status, text):
    failures = crippled(word, "--only", name)
    assert name in failures, failures
    assert failures[name]["status"] == status
    assert text in failures[name]["text"]


def test_a_crash_ends_one_check_alone(crippled):
    failures = crippled("crash-in-sin,wrong-add", "--only", "operator")
    assert failures["operator sin"]["status"] == "crashed"
    assert failures["operator add"]["status"] == "failed"
    assert "operator cos" not in failures and "operator tan" not in failures


def test_parts_that_are_done_without(crippled):
    given = ("--without", "streams", "--without", "events")
    assert "streams" in crippled("no-streams,no-events", "--only", "streams")
    assert crippled("no-streams,no-events", "--only", "events", *given) == {}


def test_a_library_that_cannot_be_loaded(tmp_path):
    (tmp_path / "broken.so").write_bytes(b"no library")
    done = command(str(tmp_path / "broken.so"), "--device", "sim")
    assert done.returncode == 2
    assert done.stdout.startswith("load  failed  load_library: ")
