// Helpers that the files of the operator families share.
#pragma once
#include <string>
#include <vector>

#include "lamella/core/wrap_dim.h"
#include "lamella/kernels/default_dtype.h"
#include "lamella/kernels/dims.h"
#include "lamella/kernels/machine_code.h"
#include "lamella/kernels/plain_tensor.h"
#include "lamella/lamella.h"
#include "lamella_more/functions.h"
#include "lamella_more/native_functions.h"

namespace aten::native {

using namespace ::lamella;  // NOLINT(google-build-using-namespace): this library is a part of it

using Dims = std::vector<int64_t>;
using lamella::native::is_plain;

inline Dims sizes_of(const Tensor& self) { return Dims(self.sizes().begin(), self.sizes().end()); }

// The shape that a and b broadcast to; throws `op: expected 'name' to be broadcastable to ...`.
inline Dims broadcast(const char* op, const char* name, IntArrayRef a, IntArrayRef b) {
  const auto shape = lamella::native::broadcast_shapes(a, b, op, name);
  return Dims(shape.begin(), shape.end());
}

// Wraps a negative dimension, which counts from the end.
inline int64_t wrapped(const char* op, int64_t dim, int64_t ndim) {
  const int64_t n = ndim > 0 ? ndim : 1;
  LAMELLA_CHECK_INDEX(dim >= -n && dim < n, op, ": expected 'dim' to be in [", -n, ", ", n - 1,
                      "], got ", dim);
  return dim < 0 ? dim + n : dim;
}

// The floating-point dtype in which elements of `type` are computed.
inline ScalarType floating(ScalarType type) {
  return is_integral(type, true) ? lamella::get_default_dtype() : type;
}

// Calls f(begin, end) on the kernels' threads, for ranges of at least `grain` items.
template <class F>
void in_parallel(int64_t count, int64_t grain, const F& f) {
  void* buffers[] = {const_cast<void*>(static_cast<const void*>(&f))};
  lamella::native::code_parallel([](void* const* b, int64_t begin,
                                    int64_t end) { (*static_cast<const F*>(b[0]))(begin, end); },
                                 buffers, count, grain);
}

}  // namespace aten::native
