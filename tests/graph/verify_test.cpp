// Each violated shape rule is reported with the instruction. One row, one rule.
#include <gtest/gtest.h>

#include <string>

#include "lamella/graph/hlo/module.h"

namespace {

using namespace lamella::hlo;

// In a module with a few values of each kind and computations to call.
std::string error_of(const std::string& line) {
  std::string text = R"(HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
same {
  ROOT a = f32[2,3] parameter(0)
}
ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[3,2] parameter(1)
  v = f32[3] parameter(2)
  s = f32[] parameter(3)
  i = s32[] parameter(4)
  p = pred[] parameter(5)
  z = c64[3] parameter(6)
  t = (f32[2,3], s32[]) parameter(7)
  )" + line + "\n}\n";
  try {
    parse_module(text);
  } catch (const lamella::Error& e) {
    return e.what();
  }
  return "none";
}

TEST(Verify, NamesTheInstructionAndTheRule) {
  const std::pair<const char*, const char*> rows[] = {
      {"r = f32[2,3] add(x, y)",
       "hlo: 'r' (add): expected operands of one shape, got f32[2,3] and f32[3,2]"},
      {"r = f32[3,2] negate(x)",
       "hlo: 'r' (negate): expected the shape to be f32[2,3], got f32[3,2]"},
      {"r = f32[3] not(v)", "hlo: 'r' (not): expected pred or integers, got f32"},
      {"r = s32[] exponential(i)",
       "hlo: 'r' (exponential): expected floating-point or complex numbers, got s32"},
      {"r = f32[3] abs(t)",
       "hlo: 'r' (abs): expected operand 0 to be an array, got (f32[2,3], s32[])"},
      {"r = pred[3] compare(v, v), direction=LESS",
       "hlo: 'r' (compare): expected direction to be EQ, NE, LT, LE, GT or GE, got 'LESS'"},
      {"r = pred[3] compare(z, z), direction=LT",
       "hlo: 'r' (compare): expected direction to be EQ or NE for complex numbers, got LT"},
      {"r = f32[3] select(v, v, v)",
       "hlo: 'r' (select): expected operand 0 to be pred, got f32[3]"},
      {"r = f32[2,3] clamp(v, x, s)",
       "hlo: 'r' (clamp): expected operand 0 to be a scalar or a bound for each element of "
       "f32[2,3], got f32[3]"},
      {"r = f32[2,3] broadcast(v), dimensions={0}",
       "hlo: 'r' (broadcast): expected dimension 0 of the result to be 3 as dimension 0 of the "
       "operand, got 2"},
      {"r = f32[2,3] broadcast(v), dimensions={2}",
       "hlo: 'r' (broadcast): expected dimensions to name dimensions below 2, got {2}"},
      {"r = f32[7] reshape(x)",
       "hlo: 'r' (reshape): expected 6 elements as in f32[2,3], got f32[7]"},
      {"r = f32[3,2] transpose(x), dimensions={1,1}",
       "hlo: 'r' (transpose): expected dimensions to name each dimension once, got {1,1}"},
      {"r = f32[2] slice(v), slice={[2:4]}",
       "hlo: 'r' (slice): expected the range of dimension 0 to lie in 0 to 3 with a positive "
       "stride, got [2:4:1]"},
      {"r = f32[2] dynamic-slice(v, s), dynamic_slice_sizes={2}",
       "hlo: 'r' (dynamic-slice): expected operand 1 to be an integer, got f32[]"},
      {"r = f32[2] dynamic-slice(v), dynamic_slice_sizes={2}",
       "hlo: 'r' (dynamic-slice): expected 1 operands with start indices, got 0"},
      {"r = f32[2] dynamic-update-slice(v, x, i)",
       "hlo: 'r' (dynamic-update-slice): expected operand 1 to fit into f32[3], got f32[2,3]"},
      {"r = f32[5,3] concatenate(x, y), dimensions={0}",
       "hlo: 'r' (concatenate): expected operands that differ in dimension 0 alone, got f32[2,3] "
       "and f32[3,2]"},
      {"r = f32[4] pad(v, i), padding=0_1",
       "hlo: 'r' (pad): expected operand 1 to be a scalar of f32, got s32[]"},
      {"r = f32[1] pad(v, s), padding=-4_0",
       "hlo: 'r' (pad): expected padding to leave a size that is not negative in dimension 0, got "
       "-1"},
      {"r = f32[3] pad(v, s), padding=9223372036854775807_1",
       "hlo: 'r' (pad): expected numbers of padding within 2^60, got 9223372036854775807"},
      {"r = f32[3] pad(v, s), padding=-9223372036854775808_9223372036854775807",
       "hlo: 'r' (pad): expected numbers of padding within 2^60, got -9223372036854775808"},
      {"r = f32[3] pad(v, s), padding=0_0_1152921504606846976",
       "hlo: 'r' (pad): expected 3 elements to reach over at most 2^60 places, got "
       "1152921504606846977 for each"},
      {"r = f32[3] pad(v, s), padding=1152921504606846976_0",
       "hlo: 'r' (pad): expected at most 2^60 elements, got {1152921504606846979}"},
      {"r = f32[1] slice(v), slice={[0:3:9223372036854775807]}", "none"},
      {"r = f32[2,3] bitcast(t)",
       "hlo: 'r' (bitcast): expected operand 0 to be an array, got (f32[2,3], s32[])"},
      {"r = (f32[6]) bitcast(x)",
       "hlo: 'r' (bitcast): expected 24 bytes as in f32[2,3]{1,0}, got (f32[6]{0})"},
      {"r = (f32[3]) negate(v)",
       "hlo: 'r' (negate): expected the shape to be f32[3], got (f32[3])"},
      {"r = (f32[0]) dynamic-reshape(v)",
       "hlo: 'r' (dynamic-reshape): expected as many elements as (f32[0]) and a size for each of "
       "its dimensions, got f32[3] and 0"},
      {"r = (u64[9], u32[2]) rng-bit-generator(v), algorithm=rng_default",
       "hlo: 'r' (rng-bit-generator): expected the shape to be (f32[3], u32[2]), got (u64[9], "
       "u32[2])"},
      {"r = (u32[2]) rng-bit-generator(v), algorithm=rng_default",
       "hlo: 'r' (rng-bit-generator): expected a tuple of the state and the bits, got (u32[2])"},
      {"r = s32[3] iota(), iota_dimension=1",
       "hlo: 'r' (iota): expected iota_dimension to name a dimension of s32[3], got 1"},
      {"r = f32[2] reduce(x, i), dimensions={1}, to_apply=sum",
       "hlo: 'r' (reduce): expected operand 1 to be a scalar of f32, got s32[]"},
      {"r = f32[2] reduce(x, s), dimensions={1}, to_apply=less",
       "hlo: 'r' (reduce): expected 'less' to give f32[], got pred[]"},
      {"r = f32[2] reduce(x, s), dimensions={1}",
       "hlo: 'r' (reduce): expected the attribute to_apply, got none"},
      {"r = f32[3] sort(v), dimensions={0}, to_apply=sum",
       "hlo: 'r' (sort): expected 'sum' to give pred[], got f32[]"},
      {"r = f32[2,2] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
       "hlo: 'r' (dot): expected contracting dimensions of equal sizes, got {0} of f32[2,3] and "
       "{0} of f32[3,2]"},
      {"r = c64[2] fft(v), fft_type=FFT, fft_length={3}",
       "hlo: 'r' (fft): expected c64 or c128, got f32"},
      {"r = f32[2,3] cholesky(x), lower=true",
       "hlo: 'r' (cholesky): expected operand 0 to be square matrices, got f32[2,3]"},
      {"r = s32[] get-tuple-element(t), index=2",
       "hlo: 'r' (get-tuple-element): expected index to name an element of (f32[2,3], s32[]), got "
       "2"},
      {"r = f32[2,3] while(x), condition=same, body=same",
       "hlo: 'r' (while): expected 'same' to give pred[], got f32[2,3]"},
      {"r = f32[2,3] conditional(i, x, x), true_computation=same, false_computation=same",
       "hlo: 'r' (conditional): expected operand 0 to be pred[], got s32[]"},
      {"r = f32[2,3] call(y), to_apply=same",
       "hlo: 'r' (call): expected parameter 0 of 'same' to be f32[3,2], got f32[2,3]"},
      {"r = f32[3] custom-call(v)",
       "hlo: 'r' (custom-call): expected the attribute custom_call_target, got none"},
      {"r = f32[3] custom-call(v), custom_call_target=\"f\", "
       "output_to_operand_aliasing={{}: (1, {})}",
       "hlo: 'r' (custom-call): expected output_to_operand_aliasing to name an operand below 1, "
       "got 1"},
      {"r = f32[2] gather(v, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=0, slice_sizes={2}",
       "hlo: 'r' (gather): expected slice_sizes to be 1 in dimension 0, which is collapsed, got 2"},
      {"r = pred[] negate(p)", "hlo: 'r' (negate): expected numbers, got pred"},
      {"r = pred[] subtract(p, p)", "hlo: 'r' (subtract): expected numbers, got pred"},
      {"r = c64[3] maximum(z, z)",
       "hlo: 'r' (maximum): expected pred, integers or floating-point numbers, got c64"},
      {"r = c64[3] clamp(z, z, z)",
       "hlo: 'r' (clamp): expected pred, integers or floating-point numbers, got c64"},
      {"r = c64[3] remainder(z, z)",
       "hlo: 'r' (remainder): expected integers or floating-point numbers, got c64"},
      {"r = f32[3] mulhi(v, v)", "hlo: 'r' (mulhi): expected integers, got f32"},
      {"r = s32[] asin(i)", "hlo: 'r' (asin): expected floating-point or complex numbers, got s32"},
      {"k = s32[2,1] iota(), iota_dimension=0\n  r = f32[2,2,3] gather(x, k), offset_dims={2,1}, "
       "collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,3}",
       "hlo: 'r' (gather): expected offset_dims in ascending order, got {2,1}"},
      {"k = s32[2,1] iota(), iota_dimension=0\n  r = f32[2,3] gather(x, k), offset_dims={1}, "
       "collapsed_slice_dims={}, operand_batching_dims={0}, start_indices_batching_dims={}, "
       "start_index_map={1}, index_vector_dim=1, slice_sizes={1,3}",
       "hlo: 'r' (gather): expected start_indices_batching_dims to name 1 dimensions as "
       "operand_batching_dims, got {}"},
      {"k = s32[2,1] iota(), iota_dimension=0\n  r = f32[2,3] gather(x, k), offset_dims={1}, "
       "collapsed_slice_dims={}, operand_batching_dims={0}, start_indices_batching_dims={1}, "
       "start_index_map={1}, index_vector_dim=1, slice_sizes={1,3}",
       "hlo: 'r' (gather): expected start_indices_batching_dims to leave out dimension 1, which "
       "holds the index vectors, got {1}"},
      {"k = s32[4,1] iota(), iota_dimension=0\n  r = f32[4,3] gather(x, k), offset_dims={1}, "
       "collapsed_slice_dims={}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
       "start_index_map={1}, index_vector_dim=1, slice_sizes={1,3}",
       "hlo: 'r' (gather): expected dimension 0 of the indices to be 2 as dimension 0 of the "
       "operand, got 4"},
      {"k = s32[2,1] iota(), iota_dimension=0\n  r = f32[2,3] gather(x, k), offset_dims={1}, "
       "collapsed_slice_dims={}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
       "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
       "hlo: 'r' (gather): expected dimension 0 to be named by operand_batching_dims alone, got "
       "start_index_map"},
      {"r = f32[3] scatter(v, i, s), update_window_dims={}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=less",
       "hlo: 'r' (scatter): expected 'less' to give f32[], got pred[]"},
  };
  for (const auto& [line, expected] : rows) EXPECT_EQ(error_of(line), expected) << line;
}

TEST(Verify, TakesWhatIsRight) {
  for (const char* line : {
           "r = f32[2,3] add(x, x)",
           "r = pred[3] compare(z, z), direction=NE",
           "r = f32[4,3] concatenate(x, x), dimensions={0}",
           "r = f32[2] reduce(x, s), dimensions={1}, to_apply=sum",
           "r = f32[2,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
           "r = c64[2] fft(v), fft_type=RFFT, fft_length={3}",
           "r = f32[1] gather(v, i), offset_dims={0}, collapsed_slice_dims={}, "
           "start_index_map={0}, index_vector_dim=0, slice_sizes={1}",
           "r = f32[3] scatter(v, i, s), update_window_dims={}, inserted_window_dims={0}, "
           "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=sum",
       }) {
    EXPECT_EQ(error_of(line), "none") << line;
  }
}

TEST(Verify, CallsNestAsDeeplyAsMemoryAllows) {
  auto nested = [](int depth) {
    std::string text = "HloModule m\nc0 { ROOT x = f32[] parameter(0) }\n";
    for (int d = 1; d < depth - 1; ++d) {
      text += "c" + std::to_string(d) + " {\n  x = f32[] parameter(0)\n  ROOT y" +
              " = f32[] call(x), to_apply=c" + std::to_string(d - 1) + "\n}\n";
    }
    return text + "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT last = f32[] call(x), to_apply=c" +
           std::to_string(depth - 2) + "\n}\n";
  };
  EXPECT_NO_THROW(parse_module(nested(20000)));
}

}  // namespace
