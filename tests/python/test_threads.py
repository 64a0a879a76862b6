"""Threads: their number, forks, exit during running work, and Ctrl-C.

Each case is a process of its own, which must print nothing on standard error.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import lamella

TIMEOUT = 120


def run(code, env=None, **options):
    """The output of the code."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env={**os.environ, **(env or {})},
        **options,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


# ---- How many ----

WITHOUT_VARIABLE = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
ALL_KINDS = """
    import lamella
    import lamella.nn.functional as F

    def compute():
        x = lamella.arange(2 * 16 * 20 * 20, dtype=lamella.float32).reshape(2, 16, 20, 20) / 7000
        w = lamella.arange(32 * 16 * 9, dtype=lamella.float32).reshape(32, 16, 3, 3) / 4000
        w.requires_grad_()
        y = F.conv2d(x, w, padding=1)
        (g,) = lamella.autograd.grad(y.sum(), w)
        a = lamella.arange(200000, dtype=lamella.float32).reshape(400, 500) / 1e5
        d = a.double()
        return [
            y.detach(), g, a @ a.T, d @ d.T, a.bfloat16() @ a.bfloat16().T, a.sin().sum(),
            lamella.linalg.solve(d @ d.T + 500 * lamella.eye(400, dtype=lamella.float64), d),
            lamella.sort(a.flatten(), descending=True)[0], a.cumsum(1), lamella.softmax(a, 1),
        ]
"""


def test_the_variable_counts():
    code = "import lamella; print(lamella.get_num_threads())"
    assert run(code, {"OMP_NUM_THREADS": "3"}) == "3"
    assert run(code, {"OMP_NUM_THREADS": "5,2"}) == "5"
    assert run(code, {"OMP_NUM_THREADS": "none"}) == str(lamella.get_num_threads())


def test_what_was_set_counts_before_the_variable():
    code = "import lamella; lamella.set_num_threads(2); print(lamella.get_num_threads())"
    assert run(code, {"OMP_NUM_THREADS": "3"}) == "2"


def test_the_affinity_counts_and_nothing_is_printed():
    # The affinity is narrowed before the number is asked for, and more are asked for later.
    code = """
        import os
        os.environ.pop("OMP_NUM_THREADS", None)
        core = min(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {core})
    """
    code = textwrap.dedent(code) + textwrap.dedent(ALL_KINDS)
    code += textwrap.dedent("""
        print(lamella.get_num_threads())
        one = compute()
        lamella.set_num_threads(4)
        four = compute()
        assert all(lamella.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(one, four))
    """)
    assert run(code) == "1"


@pytest.mark.parametrize("bad", [0, -1, 4097, 10**9, 2**63, -(2**70)])
def test_numbers_out_of_bounds(bad):
    text = f"set_num_threads: expected a number of threads from 1 to 4096, got {bad}"
    with pytest.raises(RuntimeError, match=f"^{re.escape(text)}$"):
        lamella.set_num_threads(bad)


def test_results_do_not_depend_on_the_number_of_threads_much():
    code = textwrap.dedent(ALL_KINDS) + textwrap.dedent("""
        lamella.set_num_threads(1)
        one = compute()
        for threads in (2, 3, 8):
            lamella.set_num_threads(threads)
            for a, b in zip(one, compute()):
                assert lamella.allclose(a, b, rtol=1e-4, atol=1e-4)
    """)
    run(code)


NO_THREADS = """
#include <errno.h>
#include <pthread.h>
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* x) {
  (void)t; (void)a; (void)f; (void)x;
  return EAGAIN;
}
"""


def test_a_system_that_gives_no_threads(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None
    source, library = tmp_path / "no_threads.c", tmp_path / "no_threads.so"
    source.write_text(NO_THREADS)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    code = textwrap.dedent(ALL_KINDS) + textwrap.dedent("""
        lamella.set_num_threads(4)
        print(len(compute()))
    """)
    assert run(code, {"LD_PRELOAD": str(library)}) == "10"


# ---- Forks ----

FORKS = """
    import os, signal

    def in_child(work):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if work() else 1)
        return os.waitpid(child, 0)[1]

    def same():
        return all(lamella.equal(a, b) for a, b in zip(compute(), before))

    lamella.set_num_threads(4)
"""


def test_a_child_computes():
    code = textwrap.dedent(ALL_KINDS + FORKS) + textwrap.dedent("""
        before = compute()
        print(in_child(same), in_child(lambda: in_child(same) == 0), same())
    """)
    assert run(code) == "0 0 True"


def test_a_child_computes_when_its_parent_did_not():
    code = textwrap.dedent(ALL_KINDS + FORKS) + "print(in_child(lambda: len(compute()) == 10))"
    assert run(code) == "0"


def test_a_child_of_a_process_whose_threads_are_inside_of_kernels():
    code = textwrap.dedent(ALL_KINDS + FORKS) + textwrap.dedent("""
        import threading
        before = compute()
        stopped = False
        def work():
            while not stopped:
                compute()
                lamella.randn(100000)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads: t.start()
        def in_it():
            lamella.randn(1000)
            return same()
        found = {in_child(in_it) for _ in range(12)}
        stopped = True
        for t in threads: t.join()
        print(found)
    """)
    assert run(code) == "{0}"


def test_multiprocessing():
    code = textwrap.dedent(ALL_KINDS) + textwrap.dedent("""
        import multiprocessing
        def work(n):
            return float(sum(part.double().sum() for part in compute()[:3])) + n
        first = work(0)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            print(pool.map(work, range(6)) == [first + n for n in range(6)])
    """)
    assert run(code) == "True"


# ---- The end of the process ----

DAEMONS = {
    "pointwise": "x.sin()",
    "product": "m @ m",
    "product of float64": "d @ d",
    "convolution": "F.conv2d(c, w)",
    "sort": "x.sort()",
    "svd": "lamella.linalg.svd(d)",
    "random": "lamella.randn(1000000)",
    "small": "m[0, :4] + 1",
    "backward with a hook": "hooked()",
    "kernel in Python": "lamella.ops.ended.twice(x)",
    "program": "loop()",
}


@pytest.mark.parametrize("kind", DAEMONS)
def test_daemon_threads_at_the_end(kind):
    code = f"""
        import threading, time
        import lamella
        import lamella.hlo
        import lamella.nn.functional as F
        x = lamella.rand(1000000)
        m, d = lamella.rand(400, 400), lamella.rand(300, 300, dtype=lamella.float64)
        c, w = lamella.rand(4, 16, 40, 40), lamella.rand(32, 16, 3, 3)
        library = lamella.library.Library("ended", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        def twice(x):
            time.sleep(0)
            return x + x
        library.impl("twice", twice, "CPU")
        def hooked():
            p = lamella.rand(200000, requires_grad=True)
            p.register_hook(lambda g: (time.sleep(0), g * 2)[1])
            (p * p).sum().backward()
        loop = lamella.hlo.compile('''
            HloModule m
            body {{ s = s32[] parameter(0)  o = s32[] constant(1)  ROOT r = s32[] add(s, o) }}
            cond {{ s = s32[] parameter(0)  n = s32[] constant(100000)
                   ROOT r = pred[] compare(s, n), direction=LT }}
            ENTRY e {{ z = s32[] constant(0)  ROOT w = s32[] while(z), condition=cond, body=body }}
        ''')
        def work():
            while True:
                {DAEMONS[kind]}
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
    """
    for _ in range(3):
        run(code)


# ---- Ctrl-C ----

ENDLESS = """
    HloModule endless
    body { s = s32[] parameter(0)  ROOT r = s32[] copy(s) }
    cond { s = s32[] parameter(0)  ROOT r = pred[] constant(true) }
    ENTRY e { z = s32[] constant(0)  ROOT w = s32[] while(z), condition=cond, body=body }
"""
# Each takes several times as long as the test waits before its signal, on fast machines too: work
# that ignores signals prints "done" first.
LONG = {
    "endless program": "lamella.hlo.evaluate(ENDLESS)",
    "endless compiled program": "lamella.hlo.compile(ENDLESS)()",
    "product in a program": "lamella.hlo.evaluate(DOT, *[lamella.ones(4000, 4000)] * 2)",
    "pointwise": "lamella.ones(10**8).polygamma(3)",
    "product of integers": "lamella.ones(10000, 8000, dtype=lamella.int64) @ "
    "lamella.ones(8000, 10000, dtype=lamella.int64)",
    "product": "lamella.ones(30000, 2000) @ lamella.ones(2000, 30000)",
    "product of float64": "lamella.ones(16000, 4000).double() @ lamella.ones(4000, 16000).double()",
    "convolution": "F.conv2d(lamella.ones(32, 128, 128, 128), lamella.ones(256, 128, 7, 7))",
    "convolution of float64": "F.conv2d(lamella.ones(32, 64, 128, 128).double(), "
    "lamella.ones(128, 64, 7, 7).double())",
    "weights' gradient": "lamella.ops.aten.convolution_backward(lamella.ones(32, 128, 122, 122), "
    "lamella.ones(32, 256, 128, 128), lamella.ones(128, 256, 7, 7), None, [1, 1], [0, 0], [1, 1], "
    "False, [0, 0], 1, [False, True, False])",
    "sort": "lamella.rand(10**8).sort()",
    "logcumsumexp": "lamella.ones(10**8).logcumsumexp(0)",
    "unique": "lamella.rand(10**8, dtype=lamella.float64).unique()",
    "random": "[lamella.randn(2 * 10**8) for _ in range(100)]",
    "permutation": "lamella.randperm(3 * 10**8)",
    "categories": "lamella.ones(1000).multinomial(10**8, True)",
    "topk": "[lamella.empty(10**8).topk(1000) for _ in range(2000)]",
    "elements of a program": "[lamella.hlo.evaluate(EXP, lamella.ones(10**8)) for _ in range(50)]",
    "pooling": "[F.avg_pool2d(lamella.ones(1, 1, 3000, 3000), 1000, 1) for _ in range(100)]",
    "decompositions": "lamella.linalg.svd(lamella.rand(8000, 100, 100, dtype=lamella.float64))",
    "backward": "[(leaf * leaf).sum().backward() for _ in range(10**5)]",
}


@pytest.mark.parametrize(
    "kind, threads",
    [(kind, 2) for kind in LONG] + [(kind, 1) for kind in ("pointwise", "product", "convolution")],
)
def test_ctrl_c(kind, threads):
    code = f"""
        import signal, sys, time
        # A shell has its background jobs ignore Ctrl-C, and they pass that on to their children.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import lamella
        import lamella.hlo
        import lamella.nn.functional as F
        ENDLESS = {ENDLESS!r}
        DOT = '''
            HloModule dot
            ENTRY e {{ a = f32[4000,4000] parameter(0)  b = f32[4000,4000] parameter(1)
              ROOT r = f32[4000,4000] dot(a, b), lhs_contracting_dims={{1}},
                rhs_contracting_dims={{0}} }}
        '''
        EXP = "HloModule e ENTRY e {{ a = f32[100000000] parameter(0) ROOT r = f32[100000000] " \
              "exponential(a) }}"
        lamella.set_num_threads({threads})
        leaf = lamella.ones(10**6, requires_grad=True)
        print("go", flush=True)
        try:
            {LONG[kind]}
        except KeyboardInterrupt:
            pass
        else:
            print("done")
        # What was interrupted left nothing behind.
        assert lamella.equal(lamella.ones(300, 300) @ lamella.ones(300, 300),
                             lamella.full((300, 300), 300.0))
        print("stopped", flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # A process that does not end is killed, so that readline() cannot block for ever.
        last = threading.Timer(TIMEOUT, process.kill)
        last.start()
        try:
            assert process.stdout.readline() == "go\n"
            time.sleep(0.7)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "stopped\n"
            assert (process.wait(), process.stderr.read()) == (0, "")
        finally:
            last.cancel()
            process.kill()


def test_the_first_signal_reaches_the_call():
    """A handler's exception ends the call, also when nothing has looked for signals before."""
    out = run("""
        import signal
        import lamella

        class Late(Exception):
            pass

        def handler(number, frame):
            raise Late

        lamella.set_num_threads(1)
        signal.signal(signal.SIGALRM, handler)
        a = lamella.empty(8000, 8000)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:
            while True:
                a @ a
        except Late:
            print("stopped")
    """)
    assert out == "stopped"
