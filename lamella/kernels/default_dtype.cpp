// The process-wide default dtype.
#include "lamella/kernels/default_dtype.h"

#include <atomic>

namespace lamella {

namespace {
std::atomic<ScalarType> chosen{ScalarType::Float};
}

ScalarType get_default_dtype() { return chosen.load(std::memory_order_relaxed); }
void set_default_dtype(ScalarType dtype) {
  LAMELLA_CHECK_TYPE(is_floating_point(dtype) && !is_float8(dtype),
                     "set_default_dtype: expected a floating-point dtype, got ", dtype);
  chosen.store(dtype, std::memory_order_relaxed);
}
ScalarType get_default_complex_dtype() { return to_complex_type(get_default_dtype()); }

}  // namespace lamella
