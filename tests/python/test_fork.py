"""Forking while other threads register, allocate, call, draw and differentiate."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = """
import concurrent.futures, os, sys, threading, time
import lamella

# Threads take turns fifty times as often as they would.
sys.setswitchinterval(1e-4)

class Block(lamella.library.Library):
    # Registrations that end with the block.
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._destroy()

stop = threading.Event()

def forever(f):
    def run():
        n = 0
        while not stop.is_set():
            f(n)
            n += 1
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread

def register(n):
    # A child has what its parent's thread had just defined, so its own operator has another name.
    name = f"f{n % 7}" if n >= 0 else "of_the_child"
    with Block("forked", "FRAGMENT") as m:
        m.define(f"{name}(Tensor x) -> Tensor")
        m.impl(name, lambda x: x.clone(), "CPU")

def allocate(n):
    lamella.empty(100 + n % 50)
    lamella.empty(3_000_000)

def call(n):
    x = lamella.ones(50_000)
    (x * 2 + 1).sum()

def draw(n):
    lamella.randn(200_000)

def differentiate(n):
    x = lamella.ones(64, requires_grad=True)
    (x * x).sum().backward()

everything = [register, allocate, call, draw, differentiate]

def child():
    began = time.monotonic()
    for f in everything:
        f(-1)
    with Block("forked_child", "FRAGMENT") as m:
        m.define("g(Tensor x) -> Tensor")
        m.impl("g", lambda x: x + 1, "CPU")
        assert lamella.ops.forked_child.g(lamella.ones(2)).tolist() == [2.0, 2.0]
    took = time.monotonic() - began
    assert took < LIMIT, f"the child took {took:.1f} s"

def fork():
    pid = os.fork()
    if pid == 0:
        try:
            child()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, f"the child ended with {status}"
            return
        time.sleep(0.001)
    os.kill(pid, 9)
    raise SystemExit("the child hangs")
"""


def run(body: str, limit: float = 30) -> None:
    program = textwrap.dedent(PROGRAM).replace("LIMIT", str(limit)) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "done" in done.stdout


def test_while_others_work():
    run(
        """
        threads = [forever(f) for f in everything]
        for _ in range(20):
            fork()
        stop.set()
        for thread in threads:
            thread.join()
        print("done")
        """
    )


def test_while_others_compile():
    run(
        """
        import lamella.hlo

        def compile_another(n):
            text = (
                "HloModule another\\nENTRY e {\\n  x = f32[8] parameter(0)\\n"
                f"  c = f32[] constant({n})\\n  all = f32[8] broadcast(c), dimensions={{}}\\n"
                "  ROOT sum = f32[8] add(x, all)\\n}"
            )
            (result,) = lamella.hlo.compile(text)(lamella.ones(8))
            assert result.tolist() == [n + 1.0] * 8

        # Threads and the child meet in what is made when a program is first compiled.
        everything[:] = [compile_another]
        threads = [forever(compile_another) for _ in range(2)]
        for _ in range(20):
            fork()
        stop.set()
        for thread in threads:
            thread.join()
        print("done")
        """
    )


def test_from_a_thread():
    run(
        """
        threads = [forever(f) for f in (register, allocate, call)]
        # A plain thread would end silently with what fork() raises; result() raises it here.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: [fork() for _ in range(5)]).result()
        stop.set()
        for thread in threads:
            thread.join()
        print("done")
        """
    )


def test_a_child_does_not_wait_for_threads_that_it_does_not_have():
    run(
        """
        inside, leave = threading.Event(), threading.Event()
        with Block("stays", "FRAGMENT") as m:
            m.define("inside(Tensor x) -> Tensor")

            def body(x):
                inside.set()
                leave.wait()
                return x.clone()

            m.impl("inside", body, "CPU")
            thread = threading.Thread(target=lambda: lamella.ops.stays.inside(lamella.ones(1)))
            thread.start()
            inside.wait()
            fork()
            leave.set()
            thread.join()
        print("done")
        """,
        limit=3,
    )
