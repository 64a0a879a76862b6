"""Calls every overload of every operator with arguments of all kinds, in guarded child processes.

    python tests/fuzz/operators.py --calls 400                 everything, a new seed, printed
    python tests/fuzz/operators.py --match 'conv|pool'         overloads whose names match
    python tests/fuzz/operators.py --replay 'aten::add.Tensor:7:12'    one call, in full
    python tests/fuzz/operators.py --compare --calls 50        valid calls beside PyTorch's
    python tests/fuzz/operators.py --sweep --calls 64          each dtype, and devices mixed

Call number `index` of an overload under a seed is the same always (calls.py makes a valid one,
hostile.py spoils it). Operands stand between pages that must not be accessed, so that a read or
write beside them ends the process; the parent knows from shared memory which call that was. What
counts as a failure:

    crash            the process ended: a signal, or an access beside a tensor's memory
    hang             a call took more than 20 seconds
    written beside   bytes between a tensor's memory and the guarding page changed
    unwritten        a result depends on what its memory held before
    input changed    an argument that the schema does not mark as written was
    result outside   a result's elements are not inside of its storage
    bad exception    an exception that is not documented, or one without text
    internal error   LAMELLA_INTERNAL_ASSERT failed
    unnamed error    an error whose text does not begin with an operator
    foreign name     a dtype or device is refused in the name of another operator
    leak             memory is left of each call
    difference       PyTorch does something else (--compare; known_differences.txt has those known)

Calls on tensors that say they have more elements than memory holds may take as long as they like:
they are ended after two seconds and counted as long.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

if os.environ.get("MALLOC_PERTURB_") is None:
    # Bytes of the heap are overwritten as they are freed, so that their use shows.
    os.environ["MALLOC_PERTURB_"] = "165"
    os.execv(sys.executable, [sys.executable, *sys.argv])

# PyTorch's warnings from C++, of which a run has thousands; its errors are shown.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

sys.path.insert(0, str(Path(__file__).resolve().parent))
import known  # noqa: E402
import layers  # noqa: E402
import running  # noqa: E402

import lamella  # noqa: E402
from lamella import _C  # noqa: E402

HANG = 20.0
LONG = 2.0
MOST_DEATHS = 8  # of one overload, after which the rest of its calls is left out
MEMORY = 1536 << 20
FAILURES = (
    "crash", "hang", "written beside", "unwritten", "input changed", "result outside",
    "bad exception", "internal error", "unnamed error", "foreign name", "leak", "difference",
)  # fmt: skip

_BROKEN = 70  # a child's exit status when the fuzzer has a bug
_STATE = struct.Struct("=iiddii")  # operator, call, begin, limit, calls made, in PyTorch


class Slot:
    """One child: the operators it has, and the call it is at."""

    def __init__(self, number: int, folder: Path) -> None:
        self.state = mmap.mmap(-1, 4096)
        self.faults = folder / f"faults{number}"
        self.pid = 0
        self.batch: list[tuple[int, int, bool]] = []  # operator, first call, whether giants too

    def at(self) -> tuple[int, int, float, float, int]:
        return _STATE.unpack_from(self.state)[:5]

    def in_pytorch(self) -> bool:
        return bool(_STATE.unpack_from(self.state)[5])

    def enter_pytorch(self) -> None:
        _STATE.pack_into(self.state, 0, *self.at(), 1)

    def note(self, op: int, call: int, limit: float, made: int) -> None:
        _STATE.pack_into(self.state, 0, op, call, time.monotonic(), limit, made, 0)


class Fuzzer:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.ops = running.operators(options.match)
        self.folder = Path(tempfile.mkdtemp(prefix="lamella-fuzz-"))
        self.log = self.folder / "findings"
        self.log.touch()
        self.deaths: collections.Counter[int] = collections.Counter()
        self.longs: collections.Counter[int] = collections.Counter()
        self.calls = 0
        self.begin = time.monotonic()
        self.known = known.KnownDifferences()
        if options.compare:
            import reference

            self.reference = reference
        if options.known:
            self.ops = [op for op in self.ops if self.known.calls(op.full_name)]

    def calls_of(self, op: running.Operator) -> Sequence[int]:
        if self.options.known:
            return self.known.calls(op.full_name)
        return range(self.options.calls)

    # ---- The parent ----

    def run(self) -> int:
        options = self.options
        size = 8 if options.calls > 20 else 48  # a child costs as much as a hundred calls
        if options.known:
            size = 1  # PyTorch writes beside memory in some of these, which the next must not meet
        work = [(i, 0, True) for i in range(len(self.ops))]
        batches = [work[i : i + size] for i in range(0, len(work), size)]
        batches.reverse()
        slots = [Slot(i, self.folder) for i in range(options.jobs)]
        while True:
            stop = options.seconds and time.monotonic() - self.begin > options.seconds
            for slot in slots:
                if slot.pid == 0 and not slot.batch and batches and not stop:
                    slot.batch = batches.pop()
                if slot.pid == 0 and slot.batch:
                    self.start(slot)
            running_slots = [slot for slot in slots if slot.pid]
            if not running_slots:
                break
            self.watch(running_slots)
        return self.report()

    def start(self, slot: Slot) -> None:
        sys.stdout.flush()
        slot.note(slot.batch[0][0], slot.batch[0][1], 60, 0)
        slot.faults.write_text("")
        slot.pid = os.fork()
        if slot.pid == 0:
            status = _BROKEN
            try:
                self.work(slot)
                status = 0
            except BaseException:
                slot.faults.write_text(traceback.format_exc())
            finally:
                os._exit(status)

    def watch(self, slots: list[Slot]) -> None:
        time.sleep(0.02)
        for slot in slots:
            pid, status = os.waitpid(slot.pid, os.WNOHANG)
            if pid == 0:
                before = slot.at()
                if time.monotonic() - before[2] > before[3]:
                    time.sleep(0.05)
                    if slot.at() != before:  # it was read while the child wrote it
                        continue
                    os.kill(slot.pid, signal.SIGKILL)
                    os.waitpid(slot.pid, 0)
                    self.died(slot, None)
                continue
            if status == 0:
                self.calls += slot.at()[4]
                slot.pid, slot.batch = 0, []
            else:
                self.died(slot, status)

    def died(self, slot: Slot, status: int | None) -> None:
        """A child ended, or was ended since it took too long: the next one goes on behind it."""
        op, call, _, limit, made = slot.at()
        self.calls += made
        name = f"{self.ops[op].full_name}:{self.options.seed}:{call}"
        if status is not None and os.WIFEXITED(status) and os.WEXITSTATUS(status) == _BROKEN:
            raise SystemExit(f"the fuzzer itself failed at {name}\n{slot.faults.read_text()}")
        if slot.in_pytorch():
            self.find("PyTorch's end", name, str(status))
        elif status is None:
            kind = "long" if limit <= LONG else "hang"
            self.find(kind, name, f"took more than {limit:g} s")
            self.longs[op] += 1
        else:
            if os.WIFSIGNALED(status):
                how = signal.Signals(os.WTERMSIG(status)).name
            else:
                how = slot.faults.read_text().strip() or f"exit {os.WEXITSTATUS(status)}"
            self.find("crash", name, how)
        self.deaths[op] += kind_counts(status, limit)
        rest = [entry for entry in slot.batch if entry[0] > op]
        if self.deaths[op] < MOST_DEATHS:
            rest.insert(0, (op, call + 1, self.longs[op] < 2))
        else:
            self.find("abandoned", name, f"{self.options.calls - call - 1} calls left out")
        slot.pid, slot.batch = 0, rest

    def find(self, kind: str, call: str, text: str) -> None:
        line = json.dumps({"kind": kind, "call": call, "text": text}) + "\n"
        with open(self.log, "ab", buffering=0) as log:
            log.write(line.encode())

    # ---- A child ----

    def work(self, slot: Slot) -> None:
        options = self.options
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        confine(os.open(slot.faults, os.O_WRONLY | os.O_APPEND))
        around = layers.LAYERS[options.layer]
        made = 0
        for number, first, giants in slot.batch:
            op = self.ops[number]
            counts: collections.Counter[str] = collections.Counter()
            last_fine = last_error = None
            digest = hashlib.sha256()
            for index in self.calls_of(op):
                if index < first:
                    continue
                slot.note(number, index, 60, made)
                call = running.Call(op, options.seed, index, options.compare, options.sweep)
                if call.giant and not giants or call.loops and options.no_loops:
                    continue
                slot.note(number, index, LONG if call.giant else HANG, made)
                made += 1
                if options.compare:
                    outcome = self.reference.compare(call, slot.enter_pytorch)
                else:
                    outcome = running.run(call, around)
                counts[outcome.kind] += 1
                if options.digest:
                    digest.update(f"{call} {outcome.kind} {outcome.text}\n".encode())
                if call.valid:
                    counts["valid"] += 1
                    counts["valid and fine"] += outcome.kind == "fine"
                if outcome.kind in FAILURES:
                    self.find(outcome.kind, call.name, outcome.text)
                if outcome.kind == "fine" and not call.giant:
                    last_fine = index
                elif outcome.kind == "error" and not call.giant:
                    last_error = index
            if options.leaks:
                for index in (last_fine, last_error):
                    if index is not None:
                        slot.note(number, index, 3 * HANG, made)
                        grown = running.leak(op, options.seed, index, around, options.sweep)
                        if grown:
                            self.find("leak", f"{op.full_name}:{options.seed}:{index}", grown)
            self.find("counts", op.full_name, json.dumps(counts))
            if options.digest:
                self.find("digest", op.full_name, digest.hexdigest())
            slot.note(number, options.calls, 60, made)
        slot.note(slot.batch[-1][0], options.calls, 60, made)

    # ---- The report ----

    def report(self) -> int:
        options = self.options
        found: dict[str, list[dict[str, str]]] = collections.defaultdict(list)
        totals: collections.Counter[str] = collections.Counter()
        never = []
        for line in self.log.read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "counts":
                counts = json.loads(entry["text"])
                totals.update(counts)
                if counts.get("valid", 0) >= 5 and not counts.get("valid and fine"):
                    never.append(entry["call"])
            elif entry["kind"] == "difference" and self.is_known(entry):
                found["known difference"].append(entry)
            else:
                found[entry["kind"]].append(entry)
        replay = "python tests/fuzz/operators.py"
        if options.layer != "none":
            replay += f" --layer {options.layer}"
        for name in ("compare", "sweep"):
            replay += f" --{name}" if getattr(options, name) else ""
        for kind in FAILURES:
            shown: collections.Counter[str] = collections.Counter()
            for entry in sorted(found[kind], key=lambda e: e["call"]):
                op = entry["call"].rsplit(":", 2)[0]
                shown[op] += 1
                if shown[op] <= options.show:
                    print(f"{kind}: {replay} --replay '{entry['call']}'  # {entry['text']}")
        if options.never:
            print("valid calls are never fine:", *never)
        for entry in found["abandoned"]:
            print(f"abandoned: {entry['call']}: {entry['text']}")
        print(
            f"seed {options.seed}: {len(self.ops)} overloads, {self.calls} calls"
            + ("" if options.digest else f" in {time.monotonic() - self.begin:.0f} s")
        )
        rows = {"fine": totals["fine"], "clean error": totals["error"]}
        # Descriptions that no tensor has, such as an alias beyond its memory.
        rows["not made"] = totals["unmade"]
        rows["long"] = len(found["long"])
        rows |= {kind: len(found[kind]) for kind in (*FAILURES, "known difference")}
        for kind, count in rows.items():
            ops = len({e["call"].rsplit(":", 2)[0] for e in found[kind]})
            print(f"  {kind:15} {count:8}" + (f"  of {ops} overloads" if count and ops else ""))
        if options.digest:
            for entry in sorted(found["digest"], key=lambda e: e["call"]):
                print(entry["call"], entry["text"])
        share = totals["valid and fine"] / max(totals["valid"], 1)
        if totals["valid"]:
            print(f"  {share:.0%} of the valid calls were fine; {len(never)} overloads had none")
        failed = any(found[kind] for kind in FAILURES if kind not in options.allow)
        both = found["known difference"] + found["difference"]
        if options.known:
            shown_by = {
                (*_operator_and_call(e), known.KnownDifferences.kind(e["text"])) for e in both
            }
            for line in self.known.not_needed({(op, kind, call) for op, call, kind in shown_by}):
                print(f"not needed any more, or without its reason: {line}")
                failed = True
        if options.write_known:
            first: dict[tuple[str, str], tuple[int, str]] = {}
            for entry in sorted(both, key=_operator_and_call):
                op, call = _operator_and_call(entry)
                first.setdefault((op, self.known.kind(entry["text"])), (call, entry["text"]))
            self.known.write(first)
        return int(failed)

    def is_known(self, entry: dict[str, str]) -> bool:
        return self.known.has(_operator_and_call(entry)[0], entry["text"])


def _operator_and_call(entry: dict[str, str]) -> tuple[str, int]:
    op, _, call = entry["call"].rsplit(":", 2)
    return op, int(call)


def confine(faults: int) -> None:
    """Sets guarded and bounded memory; first loads everything that is loaded lazily."""
    lamella.set_num_threads(1)
    square = lamella.ones(64, 64)
    lamella.linalg.eigh(square @ square)
    _C._report_guard_faults(faults)
    _C._set_guarded_memory(True, 0xA5, 0x5A)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def kind_counts(status: int | None, limit: float) -> int:
    """The weight of a death against MOST_DEATHS: none for a long call."""
    return 0 if status is None and limit <= LONG else 1


def replay(options: argparse.Namespace) -> int:
    name, seed, index = options.replay.rsplit(":", 2)
    qualified, _, overload = name.partition(".")
    op = running.Operator(qualified, overload)
    call = running.Call(op, int(seed), int(index), options.compare, options.sweep)
    print(op.facts["schema"])
    for argument, value in call.values.items():
        print(f"  {argument} = {value}")
    sys.stdout.flush()
    confine(2)
    if options.compare:
        import reference

        outcome = reference.compare(call)
    else:
        outcome = running.run(call, layers.LAYERS[options.layer], keep=True)
    print(f"{outcome.kind}: {outcome.text or outcome.result}")
    return int(outcome.kind in FAILURES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=None, help="a new one without it")
    parser.add_argument("--calls", type=int, default=400, help="of each overload")
    parser.add_argument("--match", default="", help="a pattern for names such as aten::add.out")
    parser.add_argument("--jobs", type=int, default=max(1, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=0, help="begin nothing new after them")
    parser.add_argument("--layer", choices=list(layers.LAYERS), default="none")
    parser.add_argument("--compare", action="store_true", help="valid calls, beside PyTorch")
    parser.add_argument(
        "--sweep", action="store_true", help="all dtypes, devices, extremes in turn"
    )
    parser.add_argument("--known", action="store_true", help="the calls of known_differences.txt")
    parser.add_argument("--write-known", action="store_true", help="write that list anew")
    parser.add_argument("--no-leaks", dest="leaks", action="store_false")
    parser.add_argument("--allow", action="append", default=[], help="a failure that is none")
    parser.add_argument("--show", type=int, default=3, help="failures shown of an overload")
    parser.add_argument("--no-loops", action="store_true", help="no lists that contain themselves")
    parser.add_argument("--digest", action="store_true", help="a hash of calls and outcomes")
    parser.add_argument("--never", action="store_true", help="overloads that took no valid call")
    parser.add_argument("--replay", metavar="OPERATOR:SEED:CALL", help="one call, in full")
    options = parser.parse_args()
    if options.known or options.write_known:
        options.seed, options.compare = known.SEED, True
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    if options.compare:
        options.leaks = False
    return replay(options) if options.replay else Fuzzer(options).run()


if __name__ == "__main__":
    sys.exit(main())
