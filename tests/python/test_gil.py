"""The GIL: released only around long work, and held by kernels in Python."""

import sys
import threading
import time

import pytest
from in_threads import in_threads

import lamella


@pytest.fixture
def many_switches():
    """Threads take turns fifty times as often: few rounds meet every order."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


class Counter(threading.Thread):
    """Counts whenever it gets the GIL, and gives it back each time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.count = 0
        self.stopped = False

    def run(self):
        while not self.stopped:
            self.count += 1
            time.sleep(0.0002)


def counted_during(work, seconds=0):
    """How often another thread ran during `work`, without forced switches of the GIL. The work is
    repeated for so many seconds, or until the other thread ran: a busy machine may be late."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    counter = Counter()
    try:
        counter.start()
        time.sleep(0.01)
        before = counter.count
        work()
        end = time.monotonic() + seconds
        while counter.count == before and time.monotonic() < end:
            work()
        after = counter.count
    finally:
        sys.setswitchinterval(interval)
        counter.stopped = True
        counter.join()
    return after - before


def test_small_work_keeps_the_gil():
    a, b = lamella.tensor([1.0] * 64), lamella.tensor([2.0] * 64)

    def work():
        for _ in range(2000):
            lamella.add(a, b)

    assert counted_during(work) == 0


def test_large_work_lets_it_go():
    a = lamella.empty(4_000_000)
    b = lamella.empty(4_000_000)

    def work():
        for _ in range(20):
            lamella.add(a, b, out=b)

    assert counted_during(work, seconds=20) > 0


def test_kernels_in_python_from_many_threads(recorder):
    lib = recorder.library
    lib.define("step(Tensor x, int i) -> Tensor")
    lib.impl("step", lambda x, i: x, "CompositeImplicitAutograd")
    op = getattr(lamella.ops, recorder.ns).step
    big = lamella.empty(100_000)
    wrong = []

    def run():
        for i in range(200):
            if op(big, i) is not big:
                wrong.append(i)

    in_threads(run, 8)
    assert not wrong


def test_errors_stay_in_their_thread(recorder):
    lib = recorder.library

    def kernel(x, i):
        raise ValueError(str(i))

    lib.define("fails(Tensor x, int i) -> ()")
    lib.impl("fails", kernel, "CompositeImplicitAutograd")
    op = getattr(lamella.ops, recorder.ns).fails
    big = lamella.empty(100_000)
    wrong = []

    def run(number):
        for _ in range(100):
            try:
                op(big, number)
            except ValueError as error:
                if str(error) != str(number):
                    wrong.append(number)
            else:
                wrong.append(number)

    in_threads(run, over=range(8))
    assert not wrong


def test_registrations_while_others_call(recorder, many_switches):
    lib = recorder.library
    lib.define("steady(int a) -> int")
    lib.impl("steady", lambda a: a + 1, "CompositeImplicitAutograd")
    op = getattr(lamella.ops, recorder.ns).steady
    stop = threading.Event()
    wrong = []

    def call():
        while not stop.is_set():
            if op(1) != 2:
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(30):
        other = lamella.library.Library(recorder.ns, "FRAGMENT")
        other.define(f"extra{i}(int a) -> int")
        other.impl(f"extra{i}", lambda a: a, "CompositeImplicitAutograd")
        assert getattr(getattr(lamella.ops, recorder.ns), f"extra{i}")(i) == i
        other.close()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_objects_of_one_tensor_in_many_threads():
    x = lamella.empty(8)
    y = lamella.tensor([1.0] * 8)
    wrong = []

    def run():
        for _ in range(500):
            if x.add_(y) is not x:
                wrong.append(1)

    in_threads(run)
    assert not wrong
