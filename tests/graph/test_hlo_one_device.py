"""Collectives, transfers and asynchronous pairs in the evaluator, with a single device."""

from __future__ import annotations

import numpy as np
import pytest
from hlo_programs import COMPUTATIONS, arguments, error_of, hlo, ours, program

ALONE = [
    "f32[4] all-reduce(p0), replica_groups={}, to_apply=add",
    "(f32[4], f32[2]) all-reduce(p0, p1), replica_groups={{0}}, to_apply=add",
    "f32[4] all-gather(p0), replica_groups={{0}}, dimensions={0}",
    "f32[4] reduce-scatter(p0), replica_groups={{0}}, dimensions={0}, to_apply=add",
    "f32[4] collective-permute(p0), source_target_pairs={{0,0}}",
    "f32[4] all-to-all(p0), replica_groups={{0}}, dimensions={0}",
    "(f32[4]) all-to-all(p0), replica_groups={{0}}",
    "f32[4] collective-broadcast(p0), replica_groups={{0}}",
]


@pytest.mark.parametrize("root", ALONE)
def test_collectives_alone_give_what_they_take(root):
    given = arguments("f32[4] f32[2]")
    got = ours(program("f32[4] f32[2]", root), *given)
    for one, other in zip(got, given):
        np.testing.assert_array_equal(one, other)


def test_permute_without_a_source_gives_zeros():
    root = "f32[4] collective-permute(p0), source_target_pairs={{0,1}}"
    np.testing.assert_array_equal(
        ours(program("f32[4]", root), *arguments("f32[4]"))[0], np.zeros(4, np.float32)
    )


def test_collectives_of_several_devices_are_refused():
    root = "f32[8] all-gather(p0), replica_groups={{0,1}}, dimensions={0}"
    assert (
        "hlo: 'r' (all-gather): expected f32[4] to become f32[4] on one device, got f32[8]"
    ) in error_of("f32[4]", root, *arguments("f32[4]"))
    root = "f32[4] collective-permute(p0), source_target_pairs={{1,0}}"
    assert (
        "hlo: 'r' (collective-permute): expected replica 0 to be the only one, got source 1 in "
        "{{1,0}}"
    ) in error_of("f32[4]", root, *arguments("f32[4]"))


def test_pairs_of_start_and_done():
    text = f"""HloModule m
{COMPUTATIONS}
work {{
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  ROOT r = f32[4] multiply(a, b)
}}
ENTRY e {{
  x = f32[4] parameter(0)
  gs = (f32[4], f32[4]) all-gather-start(x), replica_groups={{{{0}}}}, dimensions={{0}}
  gd = f32[4] all-gather-done(gs)
  rs = f32[4] all-reduce-start(x), replica_groups={{{{0}}}}, to_apply=add
  rd = f32[4] all-reduce-done(rs)
  ps = (f32[4], f32[4], u32[], u32[]) collective-permute-start(x), source_target_pairs={{{{0,0}}}}
  pd = f32[4] collective-permute-done(ps)
  cs = (f32[4], f32[4], u32[]) copy-start(x)
  cd = f32[4] copy-done(cs)
  as = ((f32[4], f32[4]), f32[4], s32[]) async-start(x, x), calls=work
  au = ((f32[4], f32[4]), f32[4], s32[]) async-update(as)
  ad = f32[4] async-done(au)
  i = u32[] replica-id()
  k = u32[] partition-id()
  ROOT t = (f32[4], f32[4], f32[4], f32[4], f32[4], u32[], u32[]) tuple(gd, rd, pd, cd, ad, i, k)
}}
"""
    x = arguments("f32[4]")[0]
    got = ours(text, x)
    for one in got[:4]:
        np.testing.assert_array_equal(one, x)
    np.testing.assert_array_equal(got[4], x * x)
    assert [int(one) for one in got[5:]] == [0, 0]


def test_ragged_all_to_all_moves_runs():
    operands = "f32[4,2] f32[6,2] s32[1] s32[1] s32[1] s32[1]"
    root = "f32[6,2] ragged-all-to-all(p0, p1, p2, p3, p4, p5), replica_groups={{0}}"
    x, y = arguments("f32[4,2] f32[6,2]")
    one, two, three = (np.array([n], np.int32) for n in (1, 2, 3))
    want = y.copy()
    want[3:5] = x[1:3]
    np.testing.assert_array_equal(
        ours(program(operands, root), x, y, one, two, three, two)[0], want
    )
    assert (
        "hlo: 'r' (ragged-all-to-all): expected run 0 to lie in f32[4,2] and f32[6,2] and to be "
        "received as sent, got 3 rows from 2 to 1, received as 3"
    ) in error_of(operands, root, x, y, two, three, one, three)


def test_a_send_is_what_the_next_recv_of_its_channel_takes():
    text = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  first = token[] after-all()
  s = (f32[4], u32[], token[]) send(x, first), channel_id=41
  sd = token[] send-done(s), channel_id=41
  r = (f32[4], u32[], token[]) recv(sd), channel_id=41
  rd = (f32[4], token[]) recv-done(r), channel_id=41
  ROOT y = f32[4] get-tuple-element(rd), index=0
}
"""
    x = arguments("f32[4]")[0]
    np.testing.assert_array_equal(ours(text, x)[0], x)


def test_nothing_to_take_is_an_error():
    text = """HloModule m
ENTRY e {
  first = token[] after-all()
  r = (f32[4], token[]) infeed(first)
  ROOT y = f32[4] get-tuple-element(r), index=0
}
"""
    with pytest.raises(RuntimeError) as caught:
        hlo.evaluate(text)
    assert ("hlo: 'r' (infeed): expected f32[4] in the queue, got nothing") in str(caught.value)


def test_pairs_written_the_short_way():
    text = """HloModule m
twice {
  a = f32[4] parameter(0)
  ROOT r = f32[4] add(a, a)
}
ENTRY e {
  x = f32[4] parameter(0)
  s = ((f32[4], f32[4]), f32[4], s32[]) multiply-start(x, x), async_execution_thread="main"
  u = ((f32[4], f32[4]), f32[4], s32[]) multiply-update(s)
  d = f32[4] multiply-done(u)
  cs = ((f32[4]), f32[4]) call-start(d), to_apply=twice
  ROOT cd = f32[4] call-done(cs)
}
"""
    x = arguments("f32[4]")[0]
    np.testing.assert_array_equal(ours(text, x)[0], 2 * x * x)
    printed = str(hlo.parse(text))
    assert 'async-start(x, x), calls=s.async, async_execution_thread="main"' in printed
    np.testing.assert_array_equal(ours(printed, x)[0], 2 * x * x)
    assert str(hlo.parse(printed)) == printed
    pytest.importorskip("jaxlib._hlo").hlo_module_from_text(printed)
    with pytest.raises(RuntimeError) as caught:
        hlo.parse(text.replace("= ((f32[4]), f32[4]) call-start", "= f32[4] call-start"))
    assert (
        "hlo: line 11, column 15: expected the start of a pair to give its operands and its "
        "result, got f32[4]"
    ) in str(caught.value)
    with pytest.raises(RuntimeError) as caught:
        hlo.parse(text.replace("multiply-done(u)", "multiply-done(u, u)"))
    assert "expected 'multiply-done' to have 1 operand, got 2" in str(caught.value)


def test_what_only_orders_or_names_gives_its_operand():
    text = """HloModule m
fused {
  a = f32[2,2] parameter(0)
  ROOT r = f32[2,2] add(a, a)
}
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY e {
  x = f32[2,2] parameter(0)
  t = token[] after-all()
  o = f32[2,2] add-dependency(x, t)
  p = (f32[2,2], f32[2,2]) tuple(o, x)
  b = (f32[2,2], f32[2,2]) opt-barrier(p)
  g = f32[2,2] get-tuple-element(b), index=0
  d = f32[2,2] domain(g), domain={kind="sharding", entry={replicated}, exit={maximal device=0}}
  c = f32[2,2] collective-reduce(d), replica_groups={{0}}, to_apply=add
  f = f32[2,2] fusion(c), kind=kLoop, calls=fused
  two = s32[] constant(2)
  ROOT r = f32[2,2] dynamic-reshape(f, two, two)
}
"""
    x = arguments("f32[2,2]")[0]
    np.testing.assert_array_equal(ours(text, x)[0], 2 * x)
    printed = str(hlo.parse(text))
    assert str(hlo.parse(printed)) == printed
