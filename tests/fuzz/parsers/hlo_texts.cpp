// The seed programs of hlo_texts.h.
#include "hlo_texts.h"

namespace lamella::fuzz {
namespace {

const char* kCalled = R"(
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER
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
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[4] get-tuple-element(t), index=1
  ROOT r = (s32[], f32[4]) tuple(next, v)
}
twice {
  a = f32[4] parameter(0)
  ROOT b = f32[4] add(a, a)
}
same {
  a = f32[4] parameter(0)
  ROOT b = f32[4] copy(a)
}
along {
  x = f32[2] parameter(0)
  c = f32[2] parameter(1)
  s = f32[2] add(x, c)
  ROOT t = (f32[2], f32[2]) tuple(s, s)
}
)";

// Bodies of entry computations, with the parameters that their names begin.
const char* kBodies[] = {
    R"(x = f32[4,3] parameter(0)
  y = f32[4,3] parameter(1)
  d = f32[4,3] divide(x, y)
  r = f32[4,3] remainder(d, y)
  p = f32[4,3] power(r, x)
  c = pred[4,3] compare(x, y), direction=GE
  s = f32[4,3] select(c, p, d)
  ROOT m = f32[4,3] maximum(s, x))",
    R"(x = s32[5] parameter(0)
  y = s32[5] parameter(1)
  d = s32[5] divide(x, y)
  r = s32[5] remainder(x, y)
  l = s32[5] shift-left(d, y)
  a = s32[5] shift-right-arithmetic(r, l)
  g = s32[5] shift-right-logical(a, y)
  p = s32[5] power(g, x)
  m = s32[5] mulhi(p, y)
  n = s32[5] negate(m)
  ROOT b = s32[5] abs(n))",
    R"(x = f64[6] parameter(0)
  a = s8[6] convert(x)
  b = u4[6] convert(a)
  c = f8e4m3fn[6] convert(x)
  d = u64[6] convert(x)
  e = s4[6] convert(d)
  f = bf16[6] convert(e)
  h = f16[6] convert(f)
  g = f16[6] reduce-precision(h), exponent_bits=3, mantissa_bits=4
  ROOT t = (u4[6], f8e4m3fn[6], f16[6]) tuple(b, c, g))",
    R"(x = f32[4] parameter(0)
  b = u8[4,4] bitcast-convert(x)
  c = u32[4] bitcast-convert(b)
  d = s4[4,8] bitcast-convert(c)
  e = u32[4] bitcast(x)
  ROOT t = (s4[4,8], u32[4]) tuple(d, e))",
    R"(x = c64[3] parameter(0)
  r = f32[3] real(x)
  i = f32[3] imag(x)
  a = f32[3] abs(x)
  z = c64[3] complex(r, a)
  e = c64[3] exponential(z)
  ROOT d = c64[3] divide(e, x))",
    R"(x = f32[4,3] parameter(0)
  z = f32[] parameter(1)
  p = f32[9,4] pad(x, z), padding=1_1_1x-1_2_0
  s = f32[3,2] slice(p), slice={[1:8:3], [0:4:2]}
  t = f32[2,3] transpose(s), dimensions={1,0}
  r = f32[6] reshape(t)
  v = f32[6] reverse(r), dimensions={0}
  b = f32[2,6] broadcast(v), dimensions={1}
  i = s32[6] iota(), iota_dimension=0
  ROOT c = f32[2,12] concatenate(b, b), dimensions={1})",
    R"(x = f32[5,4] parameter(0)
  i = s64[] parameter(1)
  j = s64[] parameter(2)
  d = f32[2,2] dynamic-slice(x, i, j), dynamic_slice_sizes={2,2}
  ROOT u = f32[5,4] dynamic-update-slice(x, d, j, i))",
    R"(x = f32[5,4] parameter(0)
  i = s64[3,1] parameter(1)
  ROOT g = f32[3,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,4})",
    R"(x = f32[5,4] parameter(0)
  i = s64[3,1] parameter(1)
  u = f32[3,4] parameter(2)
  ROOT s = f32[5,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum)",
    R"(x = f32[4,3] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=sum)",
    R"(x = f32[6,6] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[3,4] reduce-window(x, z), window={size=2x3 stride=2x2 pad=0_0x1_2 rhs_dilate=1x1},
    to_apply=sum)",
    R"(x = f32[4,4] parameter(0)
  s = f32[2,2] parameter(1)
  z = f32[] constant(0)
  ROOT r = f32[4,4] select-and-scatter(x, s, z), window={size=2x2 stride=2x2}, select=less, scatter=sum)",
    R"(x = f32[7] parameter(0)
  s = f32[7] sort(x), dimensions={0}, is_stable=true, to_apply=less
  ROOT k = (f32[3], s32[3]) topk(s), k=3, largest=true)",
    R"(x = f32[4] parameter(0)
  ROOT m = f32[4] map(x, x), dimensions={0}, to_apply=sum)",
    R"(x = f32[5,2] parameter(0)
  c = f32[2] parameter(1)
  ROOT s = (f32[5,2], f32[2]) scan(x, c), dimensions={0}, num_carries=1, to_apply=along)",
    R"(v = f32[4] parameter(0)
  k = s32[] parameter(1)
  t = (s32[], f32[4]) tuple(k, v)
  w = (s32[], f32[4]) while(t), condition=more, body=step
  ROOT g = f32[4] get-tuple-element(w), index=1)",
    R"(p = pred[] parameter(0)
  v = f32[4] parameter(1)
  n = s32[] parameter(2)
  c = f32[4] conditional(p, v, v), true_computation=twice, false_computation=same
  d = f32[4] conditional(n, c, v, c), branch_computations={twice, same, twice}
  e = f32[4] call(d), to_apply=twice
  ROOT f = f32[4] fusion(e), kind=kLoop, calls=same)",
    R"(x = f32[2,3,4] parameter(0)
  y = f32[2,4,5] parameter(1)
  ROOT d = f32[2,3,5] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0},
    rhs_contracting_dims={1})",
    R"(x = f32[6,4] parameter(0)
  y = f32[2,4,5] parameter(1)
  g = s64[2] parameter(2)
  ROOT d = f32[6,5] ragged-dot(x, y, g), lhs_contracting_dims={1}, rhs_contracting_dims={1},
    lhs_ragged_dims={0}, rhs_group_dims={0})",
    R"(x = f32[1,5,5,4] parameter(0)
  k = f32[3,3,2,6] parameter(1)
  ROOT c = f32[1,3,7,6] convolution(x, k), window={size=3x3 stride=2x1 pad=1_1x0_0 lhs_dilate=1x2},
    dim_labels=b01f_01io->b01f, feature_group_count=2)",
    R"(x = c64[2,6] parameter(0)
  f = c64[2,6] fft(x), fft_type=FFT, fft_length={6}
  ROOT r = f32[2,10] fft(f), fft_type=IRFFT, fft_length={10})",
    R"(a = f64[2,3,3] parameter(0)
  b = f64[2,3,2] parameter(1)
  c = f64[2,3,3] cholesky(a), lower=true
  ROOT t = f64[2,3,2] triangular-solve(c, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE)",
    R"(x = f32[2,3,4] parameter(0)
  s = f32[3] parameter(1)
  ROOT b = (f32[2,3,4], f32[3], f32[3]) batch-norm-training(x, s, s), epsilon=0.001, feature_index=1)",
    R"(s = u64[2] parameter(0)
  a = s32[] parameter(1)
  b = s32[] parameter(2)
  r = s32[5] rng(a, b), distribution=rng_uniform
  g = (u64[2], u32[3,5]) rng-bit-generator(s), algorithm=rng_three_fry
  ROOT u = u64[2] rng-get-and-update-state(), delta=3)",
    R"(x = f32[2,3] parameter(0)
  c = f32[2,3]{0,1} custom-call(x), custom_call_target="Sharding", sharding={devices=[2,1]0,1},
    metadata={op_type="t" op_name="a/b" source_file="f.py" source_line=7}
  ROOT d = f32[2,3] custom-call(c, c), custom_call_target="aten::add.Tensor", backend_config="{}",
    output_to_operand_aliasing={{}: (0, {})})",
    R"(x = f32[4] parameter(0)
  t = token[] after-all()
  s = (f32[4], u32[], token[]) send(x, t), channel_id=1
  d = token[] send-done(s), channel_id=1
  a = ((f32[4]), f32[4]) async-start(x), calls=twice
  b = f32[4] async-done(a), calls=twice
  c = f32[4] all-reduce(b), replica_groups={{0}}, to_apply=sum
  p = f32[4] collective-permute(c), source_target_pairs={{0,0}}
  n = s32[] get-dimension-size(p), dimensions={0}
  ROOT z = f32[4] set-dimension-size(p, n), dimensions={0})",
    R"(k = s4[2,3] constant({{1,-2,3},{4,5,-6}})
  f = f8e5m2[2] constant({1.5, inf})
  c = c128[1] constant({(1, -nan)})
  p = pred[2] constant({1, 0})
  u = (s4[2,3], f8e5m2[2]) tuple(k, f)
  t = ((s4[2,3], f8e5m2[2]), c128[1], pred[2]) tuple(u, c, p)
  e = f32[0,3] iota(), iota_dimension=1
  ROOT o = f32[3,0] transpose(e), dimensions={1,0})",
};

}  // namespace

std::vector<std::string> hlo_texts() {
  std::vector<std::string> all;
  for (const char* body : kBodies) {
    all.push_back("HloModule m\n" + std::string(kCalled) + "\nENTRY main {\n  " + body + "\n}\n");
  }
  return all;
}

std::vector<std::string> hlo_words() {
  return {"f32[]",
          "s32[2]",
          "pred[]",
          "token[]",
          "(f32[2], s32[])",
          "{1,0}",
          "f32[0]",
          "u4[8]",
          "c128[2]",
          "bf16[3]",
          "f32[4]{0}",
          "<=",
          "ROOT ",
          " parameter(",
          " constant({...})",
          ", dimensions={",
          ", to_apply=sum",
          ", index=",
          "direction=LT",
          "window={size=",
          "pad=1_1",
          "lhs_dilate=",
          "/*index=5*/",
          "nan",
          "-inf",
          "9223372036854775807",
          "-9223372036854775808",
          "288230376151711744",
          "custom-call(",
          "custom_call_target=\"",
          "dynamic-reshape(",
          "bitcast(",
          "copy(",
          "domain(",
          "shuffle(",
          "opt-barrier(",
          "infeed(",
          "recv(",
          "scaled-dot(",
          "clamp(",
          "negate("};
}

}  // namespace lamella::fuzz
