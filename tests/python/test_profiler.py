"""lamella.profiler: events, the table, the trace, and unchanged results of calls."""

import json

import pytest
from in_threads import in_threads

lamella = pytest.importorskip("lamella")
from lamella import nn  # noqa: E402
from lamella.profiler import profile, record_function  # noqa: E402


def names(p, kind="operator"):
    return [event.name for event in p.events() if event.kind == kind]


def test_operators_with_shapes():
    x = lamella.ones(2, 3)
    with profile() as p:
        y = lamella.cat([x, x], 0)
        lamella.add(y, 1.5)
    first, last = (e for e in p.events() if e.name in ("aten::cat", "aten::add.Scalar"))
    assert first.arguments == "float32[2, 3], float32[2, 3]"
    assert last.arguments.startswith("float32[4, 3]")
    assert 0 <= first.start_ns <= last.start_ns
    assert 0 < first.own_ns <= first.duration_ns
    lamella.add(x, x)
    assert "aten::add.Tensor" not in names(p)  # that was afterwards


def test_own_times_and_ranges():
    layer, x = nn.Linear(3, 2), lamella.ones(4, 3)

    @record_function("a function")
    def run():
        with record_function("inside"):
            layer(x).sum().backward()

    with profile() as p:
        run()
    outer, inner = (e for e in p.events() if e.kind == "range")
    assert (outer.name, inner.name) == ("a function", "inside")
    assert outer.own_ns == outer.duration_ns - inner.duration_ns
    assert sum(e.own_ns for e in p.events()) == outer.duration_ns
    assert "aten::linear_backward" in names(p)
    with record_function("of nobody"):
        pass


def test_table_and_averages():
    x = lamella.ones(2)
    with profile() as p:
        for _ in range(3):
            lamella.exp(x)
        lamella.sin(x)
    head, *rows = p.table(sort_by="calls").splitlines()
    assert head.split() == "name kind calls total ms own ms mean us share".split()
    assert rows[0].split()[:3] == ["aten::exp", "operator", "3"]
    assert len(p.table(row_limit=1).splitlines()) == 2
    averages = p.key_averages()
    row = next(row for row in averages if row.key == "aten::exp")
    assert row.count == 3 and row.cpu_time == pytest.approx(row.cpu_time_total / 3)
    assert "aten::sin" in averages.table(sort_by="cpu_time_total")
    with pytest.raises(
        ValueError, match="table: expected 'sort_by' to be own, total, mean or calls"
    ):
        p.table(sort_by="name")


def test_trace_file(tmp_path):
    with profile() as p, record_function('a "name"\n'):
        lamella.ones(2) + 1
    p.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert events[0]["name"] == 'a "name"\n' and events[0]["ph"] == "X"
    assert {"operator", "range"} == {event["cat"] for event in events}
    assert any(event.get("args", {}).get("arguments") for event in events)


def test_threads_that_begin_meanwhile():
    def work():
        lamella.ones(1)  # the first call of a thread readies it
        lamella.exp(lamella.ones(1))

    with profile() as p:
        lamella.sin(lamella.ones(1))
        in_threads(work, 1)
    events = {event.name: event for event in p.events()}
    assert events["aten::exp"].thread != events["aten::sin"].thread


def test_programs():
    pytest.importorskip("lamella.hlo")
    run = lamella.compile(lambda x: x.exp().sort().values)
    x = lamella.ones(3)
    with profile() as p:
        run(x)
        run(x)
    assert any("machine code" in name for name in names(p, "compile"))
    assert names(p, "run").count("forward") == 2
    # A profile is no reason to compile again, or not to compile.
    run(x)
    assert len(run.explanation().splitlines()) == 1


def test_one_at_a_time():
    with pytest.raises(RuntimeError, match="profile: expected the profile to have ended"):
        profile().table()
    with profile() as p:
        with pytest.raises(RuntimeError, match="profile: expected no other profile to be running"):
            profile().start()
        lamella.ones(1)
    assert names(p)
    with pytest.raises(RuntimeError, match="profile: expected a profile to be running"):
        p.stop()


def test_layers_are_as_before():
    x, layer = lamella.ones(2, 3), nn.Linear(3, 3)
    with profile() as p:
        with lamella.autocast("cpu"):
            assert layer(x).dtype == lamella.bfloat16
        made = lamella.vmap(lambda row: row.sum())(x)
        grad = lamella.func.grad(lambda t: (t * t).sum())(x)
        with pytest.raises(RuntimeError):
            lamella.mm(x, x)
    assert made.tolist() == [3, 3] and grad.tolist() == [[2] * 3] * 2
    assert "aten::mm" in names(p)
