// The process-wide default dtype.
#include "lamella/kernels/default_dtype.h"

#include <atomic>

#include "lamella/abi/operators.h"
#include "lamella/core/error.h"

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

extern "C" {
uint8_t lamella_default_dtype() noexcept {
  return static_cast<uint8_t>(lamella::get_default_dtype());
}
lamella_status lamella_set_default_dtype(uint8_t dtype) noexcept {
  return lamella::detail::guarded(
      [&] { lamella::set_default_dtype(static_cast<lamella::ScalarType>(dtype)); });
}
}
