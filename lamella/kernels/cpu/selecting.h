// Loops over contiguous memory for selection by masks and by indices, one set for each CPU
// capability.
#pragma once
#include <cstdint>

#include "lamella/core/scalar_type.h"
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Flags are bytes, true unless they are 0.
struct Selecting {
  // The number of flags that are true.
  int64_t (*count)(const uint8_t* flags, int64_t n);
  // Writes the positions of the true flags, ascending, to `out`, which has room up to `end`.
  // Returns the number of positions.
  int64_t (*positions)(const uint8_t* flags, int64_t n, int64_t* out, const int64_t* end);

  // Returns kOutside if an index lies outside [low, high), and kNegative if one is negative.
  static constexpr int kOutside = 1, kNegative = 2;
  int (*check)(const int64_t* index, int64_t n, int64_t low, int64_t high);
  // out = or += scale * index, where a negative index has `size` added.
  void (*offsets)(const int64_t* index, int64_t n, int64_t size, int64_t scale, bool first,
                  int64_t* out);
};
using selecting_fn = const Selecting& (*)();
LAMELLA_KERNEL(selecting_fn, selecting_on);

// The same for elements of 1, 2, 4, 8 or 16 bytes.
struct SelectingElements {
  // Writes the elements of src, `stride` bytes apart, whose flag is true, to `out`, which has room
  // up to `end`. Returns the number of elements.
  int64_t (*select)(const char* src, int64_t stride, const uint8_t* flags, int64_t n, char* out,
                    const char* end);
  // The opposite: elements of dst whose flag is true are replaced by those of contiguous src, which
  // ends at `end`. Returns their number.
  int64_t (*spread)(char* dst, int64_t stride, const uint8_t* flags, int64_t n, const char* src,
                    const char* end);
  // Elements of dst whose flag is true become the value.
  void (*fill)(char* dst, int64_t stride, const uint8_t* flags, int64_t flag_stride, int64_t n,
               const char* value);
};
using selecting_elements_fn = const SelectingElements& (*)(int64_t bytes);
LAMELLA_KERNEL(selecting_elements_fn, selecting_elements_on);

// to[i] += from[i], rounded after each addition; null for types without a fast loop.
using AddRun = void (*)(void* to, const void* from, int64_t n);
using add_run_fn = AddRun (*)(ScalarType dtype);
LAMELLA_KERNEL(add_run_fn, add_run_on);

// The loop of mul, maximum or minimum for a dtype, or null if it has none.
enum class Combining : uint8_t { kMultiply, kMaximum, kMinimum };
using combining_loop_fn = LoopFn (*)(Combining how, ScalarType dtype);
LAMELLA_KERNEL(combining_loop_fn, combining_loop_on);

}  // namespace lamella::native
