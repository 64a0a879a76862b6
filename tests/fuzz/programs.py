#!/usr/bin/env python3
"""Random HLO programs: compiled code against the reference evaluator, with LLVM's compiler and
without, with one thread and with three. See tests/python/hlo_random_programs.py. Then functions of
each element at special values, eager, compiled and evaluated: see tests/python/one_answer.py.

    programs.py --seed 7 --count 20000 --jobs 2      programs 7, 8, ... of both kinds
    programs.py --seed 123 --count 1 --print         one of them, with its text
    programs.py --count 500 --large                  of arrays that threads share
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

CHUNK = 250
# A chunk takes seconds.
LONGEST = 900


def run(seed: int, count: int, large: bool) -> int:
    """In this process: a line before each program, and the failures."""
    import hlo_difference
    import hlo_random_programs

    import lamella
    from lamella import hlo

    failed = 0
    for number in range(seed, seed + count):
        print(f"program {number}", flush=True)
        text, arguments = hlo_random_programs.program(number, large)
        try:
            program = hlo.compile(text)
            lamella.set_num_threads(1)
            got = program(*arguments)
            lamella.set_num_threads(3)
            again = program(*arguments)
            wrong = hlo_difference.between(got, hlo.evaluate(text, *arguments), text)
            if not hlo_difference.same_bits(got, again):
                wrong = f"other bits for three threads: {got} and {again}"
            elif wrong is not None and hlo_difference.is_steep(text, arguments):
                print(f"steep {number}", flush=True)
                wrong = None
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            failed += 1
            print(f"failed {number}: {wrong}\n{text}", flush=True)
    print("end", flush=True)
    return failed


def chunk(seed: int, count: int, compiler: str, large: bool) -> tuple[list[str], int]:
    """In a process of its own, which a program may end: the reports of what failed, and how many
    were too steep to tell."""
    reports: list[str] = []
    steep = 0
    end = seed + count
    while seed < end:
        command = [sys.executable, __file__, "--here", "--seed", str(seed)]
        command += ["--large"] if large else []
        environment = {**os.environ, "LAMELLA_COMPILER": compiler, "LAMELLA_CACHE": "off"}
        environment["LAMELLA_BUNDLES"] = "off"
        try:
            done = subprocess.run(
                [*command, "--count", str(end - seed)], env=environment, text=True,
                capture_output=True, check=False, timeout=LONGEST,
            )  # fmt: skip
            out, status, error = done.stdout, done.returncode, done.stderr
        except subprocess.TimeoutExpired as late:
            out = late.stdout or ""
            out = out.decode() if isinstance(out, bytes) else out
            status, error = -1, f"expected an end within {LONGEST} seconds"
        last, report = seed, ""
        for line in out.splitlines():
            if line.startswith("program ") or line == "end":
                if line != "end":
                    last = int(line.split()[1])
                if report:
                    reports.append(report)
                report = ""
            elif line.startswith("steep "):
                steep += 1
            else:
                report += f"{line}\n"
        if report:
            reports.append(report)
        if out.endswith("end\n"):
            break
        reports.append(f"failed {last}: the process ended with {status}: {error[-2000:]}\n")
        seed = last + 1
    return reports, steep


def answers(seed: int, count: int) -> int:
    """In this process: special values in functions of each element; the failures."""
    import one_answer

    failed = 0
    for number in range(seed, seed + count):
        for found in (
            *one_answer.operators(number, one_answer.FLOATS),
            *one_answer.opcodes(number),
            *one_answer.moving(number),
            *one_answer.complex_functions(number),
        ):
            failed += 1
            print(f"seed {number}: {found}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--print", action="store_true", help="only the texts")
    parser.add_argument("--large", action="store_true", help="some hundred thousand elements")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--answers", type=int, help="only special values, with so many seeds")
    options = parser.parse_args()
    if options.print:
        import hlo_random_programs

        for number in range(options.seed, options.seed + options.count):
            print(hlo_random_programs.program(number, options.large)[0])
        return 0
    if options.here:
        return 1 if run(options.seed, options.count, options.large) else 0
    if options.answers is not None:
        return 1 if answers(options.seed, options.answers) else 0
    starts = range(options.seed, options.seed + options.count, CHUNK)
    failed = 0
    for compiler in ("1", "0"):
        name = "with the compiler" if compiler == "1" else "without it"
        with ThreadPoolExecutor(options.jobs) as pool:
            found = list(
                pool.map(
                    lambda start, compiler=compiler: chunk(
                        start,
                        min(CHUNK, options.seed + options.count - start),
                        compiler,
                        options.large,
                    ),
                    starts,
                )
            )
        reports = [report for part, _ in found for report in part]
        steep = sum(number for _, number in found)
        print(
            f"programs {name}: {options.count}, of which {len(reports)} failed and {steep} are too "
            "steep to tell",
            flush=True,
        )
        for report in reports[:20]:
            print(report)
        failed += len(reports)
    # A program of special values is worth some hundred others.
    each = max(1, options.count // 400)
    command = [sys.executable, __file__, "--seed", str(options.seed), "--answers", str(each)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    failed += done.returncode != 0
    print(f"special values, {each} seeds: {'failed' if done.returncode else 'one answer'}")
    print(done.stdout + done.stderr[-2000:] if done.returncode else "", end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
