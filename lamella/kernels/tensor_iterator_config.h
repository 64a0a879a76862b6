// TensorIteratorConfig: builds an iterator for a kernel outside of structured operators.
#pragma once
#include <optional>
#include <vector>

#include "lamella/kernels/tensor_iterator.h"

namespace lamella {

// Outputs are added before inputs. Tensors are borrowed and must outlive the iterator, except those
// added as owned. The setters and their defaults are PyTorch's.
class TensorIteratorConfig final {
 public:
  friend class TensorIteratorBase;

  TensorIteratorConfig& add_output(const TensorBase& output) { return add(output, true, false); }
  TensorIteratorConfig& add_borrowed_output(const TensorBase& output) {
    return add(output, true, false);
  }
  TensorIteratorConfig& add_owned_output(const TensorBase& output) {
    return add(output, true, true);
  }
  TensorIteratorConfig& add_input(const TensorBase& input) { return add(input, false, false); }
  TensorIteratorConfig& add_const_input(const TensorBase& input) {
    return add(input, false, false);
  }
  TensorIteratorConfig& add_borrowed_input(const TensorBase& input) {
    return add(input, false, false);
  }
  TensorIteratorConfig& add_borrowed_const_input(const TensorBase& input) {
    return add(input, false, false);
  }
  TensorIteratorConfig& add_owned_input(const TensorBase& input) { return add(input, false, true); }
  TensorIteratorConfig& add_owned_const_input(const TensorBase& input) {
    return add(input, false, true);
  }

  TensorIteratorConfig& set_check_mem_overlap(bool on) {
    return set(TensorIteratorBase::kCheckOverlap, on);
  }
  // On by default; off if a common dtype is requested.
  TensorIteratorConfig& check_all_same_dtype(bool on) {
    return set(TensorIteratorBase::kCheckSameDtype, on);
  }
  TensorIteratorConfig& check_all_same_device(bool on) {
    return set(TensorIteratorBase::kCheckSameDevice, on);
  }
  TensorIteratorConfig& enforce_safe_casting_to_output(bool on) {
    return set(TensorIteratorBase::kSafeCast, on);
  }
  TensorIteratorConfig& enforce_linear_iteration(bool on = true) {
    return set(TensorIteratorBase::kLinear, on);
  }
  TensorIteratorConfig& promote_inputs_to_common_dtype(bool on) {
    if (on) set(TensorIteratorBase::kCheckSameDtype, false);
    return set(TensorIteratorBase::kPromoteInputs, on);
  }
  TensorIteratorConfig& promote_integer_inputs_to_float(bool on) {
    return set(TensorIteratorBase::kIntegersToFloat, on);
  }
  TensorIteratorConfig& is_reduction(bool on) { return set(TensorIteratorBase::kReduction, on); }
  TensorIteratorConfig& allow_cpu_scalars(bool on) {
    return set(TensorIteratorBase::kAllowCpuScalars, on);
  }
  TensorIteratorConfig& cast_common_dtype_to_outputs(bool on) {
    if (on) set(TensorIteratorBase::kCheckSameDtype, false);
    return set(TensorIteratorBase::kEagerOutputs, on);
  }
  TensorIteratorConfig& resize_outputs(bool on) {
    return set(TensorIteratorBase::kResizeOutputs, on);
  }
  TensorIteratorConfig& declare_static_dtype(ScalarType dtype) {
    set(TensorIteratorBase::kCheckSameDtype, false);
    static_dtype_ = dtype;
    return *this;
  }
  TensorIteratorConfig& declare_static_device(Device device) {
    static_device_ = device;
    return *this;
  }
  TensorIteratorConfig& declare_static_dtype_and_device(ScalarType dtype, Device device) {
    return declare_static_dtype(dtype).declare_static_device(device);
  }
  TensorIteratorConfig& declare_static_shape(IntArrayRef shape) {
    resize_outputs(false);
    static_shape_ = shape.vec();
    return *this;
  }
  // The operator's name, with which messages begin. PyTorch's class does not have this setter.
  TensorIteratorConfig& set_name(const char* op) {
    name_ = op;
    return *this;
  }

  TensorIterator build();

 private:
  TensorIteratorConfig& add(const TensorBase& tensor, bool output, bool owned);
  TensorIteratorConfig& set(uint32_t flag, bool on) {
    flags_ = on ? flags_ | flag : flags_ & ~flag;
    return *this;
  }

  lamella_tensor* operands_[TensorIteratorBase::kMaxOperands];
  int count_ = 0;
  int outputs_ = 0;
  std::vector<TensorBase> owned_;
  uint32_t flags_ = TensorIteratorBase::kCheckOverlap | TensorIteratorBase::kCheckSameDtype |
                    TensorIteratorBase::kCheckSameDevice | TensorIteratorBase::kResizeOutputs |
                    TensorIteratorBase::kEagerInputs;
  ScalarType static_dtype_ = ScalarType::Undefined;
  std::optional<Device> static_device_;
  std::optional<std::vector<int64_t>> static_shape_;
  const char* name_ = "TensorIterator";
};

}  // namespace lamella
