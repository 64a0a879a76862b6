"""Runs JAX's own test files on Lamella's plugin and on jaxlib's CPU client, and compares.

    python tests/pjrt/run_jax_tests.py FOLDER lax_test nn_test [--every 10] [--devices 8]

FOLDER is `tests` of JAX's repository at the tag of the installed release. A test that passes on
jaxlib ought to pass on Lamella: the share of those that do is printed for each file, then those
that do not, with the last line of what they say. --every N takes a sample, every N-th test by a
hash of its name. --out FILE keeps all results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any


class Recorder:
    """Writes a line before and after each test, so that the last line names one that crashed."""

    def __init__(self, path: str, every: int, done: set[str]):
        self.file, self.every, self.done = open(path, "a", encoding="utf-8"), every, done

    def note(self, **what: Any) -> None:
        self.file.write(json.dumps(what) + "\n")
        self.file.flush()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [
            one
            for one in items
            if zlib.crc32(one.nodeid.encode()) % self.every == 0 and one.nodeid not in self.done
        ]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.note(test=report.nodeid, result="failed", why=str(report.longrepr)[-3000:])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.note(test=nodeid, result="crash")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when != "call" and report.passed:
            return
        result = "failed" if report.failed else report.outcome
        self.note(test=report.nodeid, result=result, why=str(report.longrepr or "")[-6000:],
                  seconds=round(report.duration, 3))  # fmt: skip


def child(path: str, file: str, every: int) -> int:
    import pytest

    done = set(results_in(path))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--tb=short"]
    return int(pytest.main([*options, "--noconftest", file], plugins=[Recorder(path, every, done)]))


def results_in(path: str) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    if os.path.exists(path):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            out[one["test"]] = one
    return out


def run_file(file: Path, on: str, args: argparse.Namespace, folder: str) -> dict[str, Any]:
    """test -> result, of one file on one platform. After a crash the rest runs in a new process."""
    path = f"{folder}/{on}.{file.stem}"
    environment = {
        **os.environ,
        "JAX_NUM_GENERATED_CASES": str(args.cases),
        "JAX_PLATFORMS": "cpu",
        "JAX_SKIP_SLOW_TESTS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    environment.pop("LAMELLA_AS_CPU", None)
    if on == "lamella":
        environment["LAMELLA_AS_CPU"] = "1"
    if args.devices > 1:
        environment["JAX_NUM_CPU_DEVICES"] = str(args.devices)
        environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={args.devices}"
    command = [sys.executable, __file__, "--child", path, str(file), "--every", str(args.every)]
    before = -1
    while True:
        with open(f"{path}.log", "a", encoding="utf-8") as log:
            process = subprocess.Popen(
                command, env=environment, cwd=file.parent, stdout=log, stderr=subprocess.STDOUT
            )
            seen, since = -1, time.monotonic()
            while process.poll() is None:
                time.sleep(0.2)
                size = os.path.getsize(path) if os.path.exists(path) else 0
                if size != seen:
                    seen, since = size, time.monotonic()
                elif time.monotonic() - since > args.seconds:
                    process.kill()
        found = results_in(path)
        # 0 and 1 are pytest's ends with all tests run, 5 that there were none.
        if process.returncode in (0, 1, 5) or len(found) == before:
            if process.returncode not in (0, 1, 5):
                text = Path(f"{path}.log").read_text(encoding="utf-8")[-1500:]
                found[f"{file.name}::"] = {"result": "crash", "why": text}
            return found
        before = len(found)


def last_line(why: str) -> str:
    lines = [line for line in why.splitlines() if line.startswith("E ")] or why.splitlines()
    return lines[0][:200] if lines else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+", help="names of test files, with or without .py")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--cases", type=int, default=10, help="JAX_NUM_GENERATED_CASES")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120, help="longest time of a test")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    everything, passed, kept = {}, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.files:
            file = (args.folder / name).with_suffix(".py").resolve()
            ours = run_file(file, "lamella", args, folder)
            theirs = run_file(file, "jaxlib", args, folder)
            right = [test for test, one in theirs.items() if one["result"] == "passed"]
            lost = [t for t in right if ours.get(t, {"result": "missing"})["result"] != "passed"]
            passed, kept = passed + len(right), kept + len(right) - len(lost)
            share = 100 * (1 - len(lost) / len(right)) if right else 100.0
            print(f"{name}: {len(right) - len(lost)} of {len(right)}, {share:.2f} %", flush=True)
            for test in lost:
                one = ours.get(test, {"result": "missing"})
                print(
                    f"  {one['result']} {test.split('::', 1)[1]}: {last_line(one.get('why', ''))}"
                )
            for test, one in ours.items():
                if one["result"] == "crash" and test not in lost:
                    print(f"  crash {test}")
            everything[name] = {"lamella": ours, "jaxlib": theirs}
            if args.out:
                args.out.write_text(json.dumps(everything), encoding="utf-8")
    print(f"all: {kept} of {passed}, {100 * kept / max(passed, 1):.2f} %")
    return 0 if kept == passed else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(sys.argv[2], sys.argv[3], int(sys.argv[5])))
    sys.exit(main())
