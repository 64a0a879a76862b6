// What machine code that is made at run time needs of the kernels. For liblamella_compiler.so.
#pragma once
#include <cstdint>

#include "lamella/core/macros.h"
#include "lamella/core/storage.h"

namespace lamella::native {

// batch times c = a b: a is m x k, b k x n, c m x n and dense. Strides in elements. Laid out as the
// code has it among its constants.
struct CodeProduct {
  int64_t dtype;  // a ScalarType
  int64_t batch, m, n, k;
  int64_t a_batch, a_row, a_column;
  int64_t b_batch, b_row, b_column;
};

// The CPU capability that kernels run with: 0, 1 or 2 as in CPUCapability.
LAMELLA_PRIVATE_API int code_capability();
// `storage` is that of b where b may be a constant, or null.
LAMELLA_PRIVATE_API void code_product(const CodeProduct& p, const void* a, const void* b, void* c,
                                      lamella_storage* storage);
// function(buffers, begin, end) for disjoint ranges that cover [0, count), on the threads of the
// kernels' pool.
LAMELLA_PRIVATE_API void code_parallel(void (*function)(void* const* buffers, int64_t begin,
                                                        int64_t end),
                                       void* const* buffers, int64_t count, int64_t grain);

}  // namespace lamella::native
