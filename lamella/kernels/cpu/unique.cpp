// Runs of equal elements, the basis of the unique operators.
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/selecting.h"

namespace lamella::native {

namespace {

int64_t runs_kernel(const Tensor& line, const RunsOut* out) {
  int64_t n = line.numel();
  return visit_all(signed_type(line.scalar_type()), "unique", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    auto* x = static_cast<const Stored<T>*>(line.const_data_ptr());
    auto begins = [&](int64_t i) {
      return static_cast<compute_type<T>>(static_cast<T>(x[i])) !=
             static_cast<compute_type<T>>(static_cast<T>(x[i - 1]));
    };
    if (out == nullptr) {
      int64_t runs = n > 0 ? 1 : 0;
      for (int64_t i = 1; i < n; ++i) runs += begins(i) ? 1 : 0;
      return runs;
    }
    auto* values = static_cast<Stored<T>*>(out->values);
    int64_t *starts = out->starts, *groups = out->groups;
    const int64_t* order = out->order;
    // Iterates from the end, so that the first element of each run is stored last: zeros of both
    // signs are equal, and the first one stands for the run.
    int64_t run = out->runs - 1;
    for (int64_t i = n - 1; i >= 0; --i) {
      values[run] = x[i];
      if (starts != nullptr) starts[run] = i;
      if (groups != nullptr) groups[order != nullptr ? order[i] : i] = run;
      if (i > 0) run -= begins(i) ? 1 : 0;
    }
    return out->runs;
  });
}

}  // namespace

LAMELLA_REGISTER_KERNEL(runs_on, &runs_kernel);

}  // namespace lamella::native
