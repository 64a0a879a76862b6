"""Texts of HLO for the mutations of tests/fuzz/mutate.py, and edits that know the grammar."""

from __future__ import annotations

import random
import re

CALLED = """HloModule m, buffer_donor={ (0, {}) }, replica_count=1
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
more {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
step {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = f32[4] get-tuple-element(t), index=1
  ROOT r = (s32[], f32[4]) tuple(i, v)
}
twice {
  a = f32[4] parameter(0)
  ROOT b = f32[4] add(a, a)
}
along {
  x = f32[2] parameter(0)
  c = f32[2] parameter(1)
  s = f32[2] add(x, c)
  ROOT t = (f32[2], f32[2]) tuple(s, s)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[2,3]{1,0:T(8,128)} parameter(1)
  i = s32[] constant(1)
  z = f32[] constant(0)
"""

BODIES = [
    "c = f32[4] convert(s32[4] constant({1, 2, 3, 4}))\n  ROOT r = f32[4] add(p, c)",
    "t = transpose(q), dimensions={1,0}\n  d = dot(q, t), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0}\n  ROOT r = reduce(d, z), dimensions={0,1}, to_apply=add",
    "x = f32[1,5,5,2] broadcast(z), dimensions={}\n  k = f32[3,3,2,4] broadcast(z), dimensions={}\n"
    "  ROOT c = f32[1,3,3,4] convolution(x, k), window={size=3x3 pad=0_0x0_0 lhs_dilate=1x1}, "
    "dim_labels=b01f_01io->b01f, feature_group_count=1, convolution_kind=fprop",
    "s = f32[2] slice(p), slice={[0:4:2]}\n  d = f32[2] dynamic-slice(p, i), "
    "dynamic_slice_sizes={2}\n  u = f32[4] dynamic-update-slice(p, s, i)\n  ROOT y = f32[8] "
    "pad(u, z), padding=1_3_0",
    "n = s32[2,1] constant({{0}, {1}})\n  g = f32[2] gather(p, n), offset_dims={}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
    "  ROOT s = f32[4] scatter(p, n, g), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "t = (s32[], f32[4]) tuple(i, p)\n  w = while(t), condition=more, body=step\n"
    "  ROOT g = f32[4] get-tuple-element(w), index=1",
    "c = conditional(i, p, p), branch_computations={twice, twice}\n  b = pred[] constant(true)\n"
    "  ROOT d = f32[4] conditional(b, c, p), true_computation=twice, false_computation=twice",
    "s = f32[4] sort(p), dimensions={0}, is_stable=true, to_apply=less\n  v = f32[4] "
    "reduce-window(s, z), window={size=2 pad=1_0}, to_apply=add\n  m = f32[4] map(v), "
    "to_apply={\n    a = f32[] parameter(0)\n    ROOT n = f32[] negate(a)\n  }\n"
    "  ROOT x = f32[4] select-and-scatter(m, m, z), window={size=1}, select=less, scatter=add",
    'c = (f32[4], b(f32[4])) custom-call(p, q), custom_call_target="t", '
    "operand_layout_constraints={f32[4]{0}, f32[2,3]{1,0}}, output_to_operand_aliasing={{0}: (0, "
    "{})}, literal=(s32[2]{0} {1, 2}, f32[] nan(0x1)), api_version=API_VERSION_TYPED_FFI, "
    'backend_config={"a": {"b": [1]}}, frontend_attributes={k="v",temporary_bytes="4"}\n'
    '  ROOT n = f32[4] get-tuple-element(c), index=0, origin={{"x" {0}}}',
    'd = ((f32[4]), f32[4], u32[]) negate-start(p), async_execution_thread="t"\n  u = ((f32[4]), '
    "f32[4], u32[]) negate-update(d)\n  f = f32[4] negate-done(u)\n  g = (f32[4], f32[8]) "
    "all-gather-start(f), dimensions={0}, replica_groups={{0,1}}\n  h = f32[8] all-gather-done(g)\n"
    "  j = (f32[8], f32[8]) collective-permute-start(h), source_target_pairs={{0,1}}\n  ROOT k = "
    "f32[8] collective-permute-done(j)",
    "r = bf16[4] all-reduce(p), replica_groups=mesh['a'=2] {'a'}, to_apply=add\n  s = f32[2] "
    "reduce-scatter(p), dimensions={0}, replica_groups=[1,2]<=[2], to_apply=add\n  a = f32[4] "
    "all-to-all(p), dimensions={0}\n  ROOT y = f32[8] concatenate(p, a), dimensions={0}",
    "k = after-all()\n  s = (f32[4], u32[], token[]) send(p, k), channel_id=1\n  d = token[] "
    "send-done(s), channel_id=1\n  v = (f32[4], u32[], token[]) recv(d), channel_id=2\n  w = "
    "(f32[4], token[]) recv-done(v), channel_id=2\n  x = (f32[2], token[]) infeed(d)\n"
    "  ROOT o = token[] outfeed(p, d), outfeed_shape=f32[4]",
    "b = (f32[2,3], f32[3], f32[3]) batch-norm-training(q, f32[3] constant({1,1,1}), f32[3] "
    "constant({0,0,0})), epsilon=0.001, feature_index=1\n  "
    "k = f32[2] constant({0, 0})\n  s = (f32[2,3], f32[2]) scan(q, k), "
    "dimensions={1}, num_carries=1, "
    "to_apply=along\n  t = (f32[2], s32[2]) topk(p), k=2\n"
    "  ROOT f = c64[3] fft(p), fft_type=RFFT, fft_length={4}",
    "l = f32[] constant(1)\n  r = f32[4] rng(z, l), distribution=rng_uniform\n  n = f32[2,<=3] "
    "set-dimension-size(q, i), dimensions={1}\n  g = s32[] get-dimension-size(n), dimensions={1}\n"
    "  m = f32[3,2] reshape(q), inferred_dimension=0\n  c = (f32[3,2], f32[3,2], u32[]) "
    "copy-start(m), cross_program_prefetch_index=0\n  e = f32[3,2] copy-done(c)\n  y = f32[?,2] "
    'negate(e)\n  ROOT u = f32[4] fusion(p), kind=kLoop, calls=twice, metadata={op_name="a/b" '
    'source_file="x.py" source_line=3}, sharding={devices=[2]<=[2]}',
    "h = f32[3,3] constant({...})\n  c = cholesky(h), lower=true\n  v = triangular-solve(c, h), "
    "left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE\n  a = f32[3,3] "
    "exponential(v), result_accuracy={mode=highest}\n  w = f32[2,2,3] "
    "constant({ { { 1, 2, 3 }, { 4, 5, 6 } }, /*i0=1*/ { { 7, 8, 9 }, { -inf, nan, 1e10 } "
    "} })\n  ROOT s = select(pred[2,2,3] "
    "is-finite(w), w, w)",
]


def texts() -> list[str]:
    return [f"{CALLED}  {body}\n}}\n" for body in BODIES]


OPCODES = sorted(set(re.findall(r"([a-z][a-z0-9-]+)\(", "".join(BODIES)))) + ["add", "bitcast"]
ATTRIBUTES = re.findall(r", ([a-z_]+=(?:\{[^{}]*\}|[\w.+-]+))", "".join(BODIES))
SHAPES = ["f32[4]", "f32[]", "()", "(f32[4], f32[4])", "token[]", "s32[2,3]", "pred[4]", "f32[0]"]
SHAPES += ["f32[?]", "b(f32[4])", "((f32[4]), f32[4])", "c64[4]", "f32[<=4]"]


def changed(text: str, rng: random.Random) -> str:
    """The text with one to four calls, operands, attributes or shapes changed."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        line, kind = lines[at], rng.randrange(9)
        call = re.search(r"([a-z][\w-]*)\(([^()]*)\)", line.partition(" = ")[2])
        if kind == 0 and call:  # operands are left out
            kept = call[2].split(", ")[: rng.randint(0, 2)]
            line = line.replace(call[0], f"{call[1]}({', '.join(kept)})", 1)
        elif kind == 1 and call:
            line = line.replace(call[0], f"{call[1]}({call[2]}, {rng.choice('pqiz')})", 1)
        elif kind == 2 and call:
            line = line.replace(call[1] + "(", rng.choice(OPCODES) + "(", 1)
        elif kind == 3:
            line += ", " + rng.choice(ATTRIBUTES)
        elif kind == 4:  # an attribute is left out
            line = re.sub(r", [a-z_]+=(\{[^{}]*\}|[\w.+-]+)", "", line, count=1)
        elif kind == 5:
            line = re.sub(r"= [a-z0-9]+\[[^ ]*", f"= {rng.choice(SHAPES)}", line, count=1)
        elif kind == 6:  # another number
            numbers = list(re.finditer(r"\d+", line))
            if numbers:
                one = rng.choice(numbers)
                number = rng.choice(["0", "-1", "7", "65", "2147483648", "9223372036854775807"])
                line = line[: one.start()] + number + line[one.end() :]
        elif kind == 7:
            line = rng.choice(lines)
        else:
            line = re.sub(r"= [a-z0-9]+\[[^ ]* ", "= ", line, count=1)
        lines[at] = line
    return "\n".join(lines)
