// at::TensorIterator, at::TensorIteratorConfig.
#pragma once
#include <ATen/core/Tensor.h>

#include "lamella/api/element_iterator.h"

namespace at {
using TensorIteratorConfig = lamella::ElementIteratorConfig;
using TensorIteratorBase = lamella::ElementIterator;
class TensorIterator : public TensorIteratorBase {
 public:
  TensorIterator() = default;
  TensorIterator(TensorIteratorBase made) : TensorIteratorBase(std::move(made)) {}  // NOLINT

  static TensorIterator unary_op(TensorBase& out, const TensorBase& a) {
    return pointwise().add_owned_output(out).add_owned_input(a).build();
  }
  static TensorIterator unary_float_op(TensorBase& out, const TensorBase& a) {
    auto config = pointwise();
    config.promote_integer_inputs_to_float(true).add_owned_output(out).add_owned_input(a);
    return config.build();
  }
  static TensorIterator binary_op(TensorBase& out, const TensorBase& a, const TensorBase& b) {
    return pointwise().add_owned_output(out).add_owned_input(a).add_owned_input(b).build();
  }
  static TensorIterator borrowing_binary_op(const TensorBase& out, const TensorBase& a,
                                            const TensorBase& b) {
    return pointwise().add_output(out).add_input(a).add_input(b).build();
  }
  static TensorIterator binary_float_op(TensorBase& out, const TensorBase& a, const TensorBase& b) {
    auto config = pointwise();
    config.promote_integer_inputs_to_float(true).add_owned_output(out);
    return config.add_owned_input(a).add_owned_input(b).build();
  }
  static TensorIterator comparison_op(TensorBase& out, const TensorBase& a, const TensorBase& b) {
    auto config = TensorIteratorConfig().promote_inputs_to_common_dtype(true);
    config.declare_static_dtype(lamella::kBool).allow_cpu_scalars(true);
    return config.add_owned_output(out).add_owned_input(a).add_owned_input(b).build();
  }
  static TensorIterator borrowing_nullary_op(const TensorBase& out) {
    auto config = TensorIteratorConfig().check_all_same_dtype(false).resize_outputs(false);
    return config.add_output(out).build();
  }
  static TensorIterator nullary_op(TensorBase& out) {
    auto config = TensorIteratorConfig().check_all_same_dtype(false).resize_outputs(false);
    return config.add_owned_output(out).build();
  }
  // `out` keeps the reduced dimensions, with size 1.
  static TensorIterator reduce_op(TensorBase& out, const TensorBase& a) {
    auto config = TensorIteratorConfig().set_check_mem_overlap(false).is_reduction(true);
    config.check_all_same_dtype(false).resize_outputs(false).promote_inputs_to_common_dtype(true);
    return config.add_owned_output(out).add_owned_input(a).build();
  }

 private:
  static TensorIteratorConfig pointwise() {
    return TensorIteratorConfig()
        .promote_inputs_to_common_dtype(true)
        .cast_common_dtype_to_outputs(true)
        .enforce_safe_casting_to_output(true)
        .allow_cpu_scalars(true);
  }
};
}  // namespace at
