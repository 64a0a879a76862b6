// The innermost loops of matrix products, one set for each CPU capability.
//
// Note [Order of the sums of a product]
//   The order of the sum of each element depends only on the shape of the problem: stretches of
//   kStretch elements of k are summed term by term and added up from the first to the last. If the
//   vectors run along k instead (few rows, and both operands contiguous along k), each lane sums
//   over all of k and the lanes are added at the end. So results do not depend on threads, on how
//   the problem is cut into blocks, or on whether b is packed.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Elements of k that are summed before the sum is added to c.
inline constexpr int64_t kStretch = 512;

// Columns [0, n) of c = alpha * a b + d, for `k` elements of the inner dimension; distances in
// bytes. b lies in panels of as many columns as a tile has; the remaining columns form a panel
// `tail`, whose rows are padded to whole vectors.
struct GemmBlock {
  const char* a;
  int64_t a_row, a_step;
  const char* b;
  int64_t b_row, b_panel;
  const char* tail;
  int64_t tail_row;
  char* c;
  int64_t c_row;
  const char* d;  // of c's dtype; may be c, or NULL if nothing is added
  int64_t d_row;
  bool d_repeats;  // d has the columns of two tiles alone, which are added to all columns
  int64_t m, n, k;
  const void* alpha;  // of c's dtype
  bool b_is_far;      // b is not packed, and is larger than the second-level cache
  const char* after;  // the part of b that is read after this block, or NULL if it is unknown
};

// A series of products, each with at most as many columns as a vector has lanes, and b not packed:
// `first` describes the first one, and the distances in bytes lead from one to the next.
struct GemmSmall {
  GemmBlock first;
  int64_t count, a_next, b_next, c_next, d_next;
};

// c[i, j] = alpha * sum of a[i, :] b[j, :] + d[i, j] for few rows i; a and b are contiguous along
// k, c and d of any strides, in bytes.
struct GemmDots {
  const char* a;
  int64_t a_row;
  const char* b;
  int64_t b_row;
  char* c;
  int64_t c_row, c_column;
  const char* d;
  int64_t d_row, d_column;
  int64_t m, n, k;
  const void* alpha;
  bool b_is_far;    // b is larger than the second-level cache
  bool b_is_short;  // its rows are: the prefetcher of the hardware does not follow them
};

// Packs columns of b into panels, or into rows. Both are padded to whole vectors.
struct GemmPacking {
  const char* b;
  int64_t row, column;  // bytes between numbers; one of them is the size of a number
  char* to;
  int64_t n, k;
  int64_t to_row;  // bytes between rows; 0 for panels
};

// An element of a and b is one number, or a group of consecutive numbers along k whose products are
// summed by one instruction. If k is not a multiple of the group, zeros must follow.
struct GemmKernels {
  int64_t columns;       // of a tile
  int64_t lanes;         // columns of one vector
  int64_t group;         // numbers in an element
  int64_t number_bytes;  // of a and b
  int64_t sum_bytes;     // of c, d and alpha
  void (*block)(const GemmBlock& block);
  void (*small)(const GemmSmall& problems);  // may be NULL, as may `dots`
  void (*dots)(const GemmDots& problem);
  void (*pack)(const GemmPacking& packing);
};

// For a and b of float32, float64, int32 and int64 (which wrap); of bfloat16 with c of float32
// where the processor multiplies pairs of them, otherwise NULL.
using gemm_kernels_fn = const GemmKernels* (*)(ScalarType dtype);
LAMELLA_KERNEL(gemm_kernels_fn, gemm_kernels_on);
// For a of int8 or uint8 with b of int8, or for both of int16, with c of int32; NULL if the
// processor has no instruction that multiplies groups of them.
LAMELLA_KERNEL(gemm_kernels_fn, byte_gemm_kernels_on);
// Computes the corrections of Note [Products of bytes] for rows [begin, end) of a product, repeated
// n times in each row. Rows of a are `row` bytes apart and have k bytes.
using byte_corrections_fn = void (*)(const int8_t* a, int64_t row, int64_t k, int64_t begin,
                                     int64_t end, int32_t* to, int64_t n);
LAMELLA_KERNEL(byte_corrections_fn, byte_corrections_on);

}  // namespace lamella::native
