// MetaBase: the base of structured kernels, which allocates, checks or resizes their outputs.
//
// Note [Structured kernels]
//   A structured operator states shapes and dtypes once, in its meta function, and the computation
//   once per backend, in its impl function. The generated wrappers run both for the functional, the
//   in-place and the out form, and meta alone for the Meta backend. meta() calls one of the
//   set_output functions for each output, which allocates, checks, or resizes it depending on the
//   form. impl() then writes the outputs that it is given.
//   There are no virtual functions, and only the result is allocated.
//
// Note [Outputs over the memory of arguments]
//   A kernel may read an argument after it wrote an output, so an out tensor that shares memory
//   with an argument is neither resized nor written before impl() is done: the result is computed
//   in a temporary and copied. Only operators with an in-place form handle an out tensor that is
//   `self`. Iterators check their operands themselves, and let outputs that they write over
//   operands be, unless they would have to be resized.
//
// Usable from separately built libraries: everything is inline over the C ABI and operators.
#pragma once
#include "lamella/api/basic_calls.h"
#include "lamella/core/memory_overlap.h"

namespace lamella {

// The type of `precomputed` members that are declared as DimVector.
using DimVector = std::vector<int64_t>;

// An operator and its outputs, as error messages name them.
struct OutputInfo {
  const char* op;            // "add"; "add_" for the in-place form
  const char* const* names;  // of out arguments; {"self"} for the in-place form
};

class MetaBase {
 public:
  enum class OutputMode : uint8_t { kFunctional, kInplace, kOut };
  static constexpr int kMaxOutputs = 8;

  MetaBase() = default;
  MetaBase(const MetaBase&) = delete;
  MetaBase& operator=(const MetaBase&) = delete;
  ~MetaBase() {
    if (LAMELLA_UNLIKELY(owned_ != 0)) release_owned();
  }

  // ---- For meta functions and iterators ----

  // Output `i` has these sizes, strides and options (dtype and device count). Empty strides mean
  // contiguous. The kernel handles any strides, so an out tensor of the right shape keeps its own.
  void set_output_raw_strided(int i, IntArrayRef sizes, IntArrayRef strides,
                              const TensorOptions& options) {
    if (LAMELLA_LIKELY(mode_ == OutputMode::kFunctional)) {
      allocate(i, sizes, strides, options);
    } else {
      check_given(i, sizes, strides, options);
    }
  }
  // The same for a kernel that needs exactly these strides. An out tensor of the right shape with
  // other strides is replaced by a temporary, which is copied back after impl().
  void set_output_strided(int i, IntArrayRef sizes, IntArrayRef strides,
                          const TensorOptions& options) {
    set_output_raw_strided(i, sizes, strides, options);
    if (LAMELLA_UNLIKELY(mode_ != OutputMode::kFunctional))
      use_temporary(i, sizes, strides, options);
  }
  // The same, contiguous.
  void set_output_contiguous(int i, IntArrayRef sizes, const TensorOptions& options) {
    set_output_strided(i, sizes, {}, options);
  }
  // Hands over a tensor that the caller has made: the result of the functional form.
  void set_output_tensor(int i, TensorBase&& tensor) {
    LAMELLA_DEBUG_ASSERT(mode_ == OutputMode::kFunctional && outputs_[i] == nullptr);
    outputs_[i] = tensor.unsafe_release();
    owned_ |= static_cast<uint8_t>(1u << i);
  }

  // Output `i`: what will be written. In the functional form undefined until it is set; in the
  // others the tensor that the caller gave, from the beginning.
  const Tensor& maybe_get_output(int i = 0) const {
    return reinterpret_cast<const Tensor&>(outputs_[i]);
  }
  OutputMode output_mode() const { return mode_; }
  const char* op_name() const { return info_->op; }
  const char* output_name(int i) const { return info_->names[i]; }

  // Throws if output `i` was given by the caller and shares memory with an argument: for operators
  // for which PyTorch refuses this.
  void check_no_overlap(int i, const char* name, const TensorBase& argument) const {
    if (mode_ == OutputMode::kFunctional) return;
    lamella::check_no_overlap(info_->op, info_->names[i], maybe_get_output(i), name, argument);
  }

  // ---- For generated wrappers ----

  void begin_functional(const OutputInfo& info, int count) {
    info_ = &info;
    mode_ = OutputMode::kFunctional;
    for (int i = 0; i < count; ++i) outputs_[i] = nullptr;
  }
  void begin_inplace(const OutputInfo& info, const TensorBase& self) {
    info_ = &info;
    mode_ = OutputMode::kInplace;
    outputs_[0] = given(0, self);
  }
  template <class... T>
  void begin_out(const OutputInfo& info, const T&... outs) {
    info_ = &info;
    mode_ = OutputMode::kOut;
    int i = 0;
    ((outputs_[i] = given(i, outs), ++i), ...);
    output_count_ = sizeof...(T);
    if constexpr (sizeof...(T) > 1) detail::check_outputs_apart(info.op, info.names, outs...);
  }
  // Registers the arguments that the operator reads: Note [Outputs over the memory of arguments].
  // `self` is the argument that may be output 0 itself, or null.
  template <class... T>
  void read_arguments(const TensorBase* self, const T&... arguments) {
    if (self != nullptr && !self->is_same(maybe_get_output(0))) see_argument(*self);
    self_is_output_ = self != nullptr && self->is_same(maybe_get_output(0));
    (see_argument(arguments), ...);
  }
  // The caller's output `i` shares memory with an argument.
  void keep_apart(int i) { apart_ |= static_cast<uint8_t>(1u << i); }
  // The functional form's result.
  Tensor take_output(int i) {
    owned_ &= static_cast<uint8_t>(~(1u << i));
    Tensor result(TensorBase::adopt(outputs_[i]));
    outputs_[i] = nullptr;
    return result;
  }
  // Ends the in-place and out forms: temporaries are copied back, writes are counted.
  template <class... T>
  void finish(const T&... outs) {
    int i = 0;
    (finish_one(i++, outs), ...);
  }

 private:
  lamella_tensor* given(int i, const TensorBase& tensor) {
    LAMELLA_CHECK(tensor.defined(), info_->op, ": expected '", info_->names[i],
                  "' to be a tensor, got an undefined one");
    return tensor.impl();
  }

  void allocate(int i, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
    ScalarType dtype = options.dtype();
    Device device = options.device();
    if (LAMELLA_LIKELY(strides.empty())) {
      detail::check(lamella_tensor_empty(
          static_cast<int32_t>(sizes.size()), sizes.data(), static_cast<uint8_t>(dtype),
          static_cast<uint8_t>(device.type()), device.index(), &outputs_[i]));
    } else {
      outputs_[i] =
          detail::EmptyStrided::call(sizes, strides, dtype, std::nullopt, device, std::nullopt)
              .unsafe_release();
    }
    owned_ |= static_cast<uint8_t>(1u << i);
  }

  void see_argument(const TensorBase& argument) {
    if (!argument.defined()) return;
    for (int i = 0; i < output_count_; ++i) {
      if (may_share_memory(maybe_get_output(i), argument)) apart_ |= static_cast<uint8_t>(1u << i);
    }
  }
  void see_argument(const std::optional<Tensor>& argument) {
    if (argument.has_value()) see_argument(*argument);
  }
  void see_argument(TensorList arguments) {
    for (const Tensor& argument : arguments) see_argument(argument);
  }

  // Checks that the caller's output has the result's dtype and device. Another shape is an error
  // for the in-place form; an out tensor is resized.
  void check_given(int i, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
    const Tensor& out = maybe_get_output(i);
    const char* name = info_->names[i];
    LAMELLA_CHECK(out.dtype() == options.dtype(), info_->op, ": expected '", name,
                  "' to have dtype ", options.dtype(), ", got ", out.dtype());
    LAMELLA_CHECK(detail::same_device(out.device(), options.device()), info_->op, ": expected '",
                  name, "' to be on ", options.device(), ", got ", out.device());
    bool fits = out.sizes() == sizes;
    LAMELLA_CHECK(fits || mode_ == OutputMode::kOut, info_->op, ": expected '", name,
                  "' to have the shape of the result, ", sizes, ", got ", out.sizes());
    if (fits) check_no_internal_overlap(info_->op, name, out);
    bool apart = ((apart_ >> i) & 1) || (!fits && i == 0 && self_is_output_);
    if (LAMELLA_UNLIKELY(apart)) {
      outputs_[i] = nullptr;
      allocate(i, sizes, strides, options);
    } else if (!fits) {
      detail::resize_out(out, sizes, strides);
    }
  }
  // Replaces an output with other strides by a temporary with the requested ones.
  LAMELLA_COLD void use_temporary(int i, IntArrayRef sizes, IntArrayRef strides,
                                  const TensorOptions& options) {
    const Tensor& out = maybe_get_output(i);
    bool fits = strides.empty() ? out.is_contiguous() : out.strides() == strides;
    if (fits) return;
    outputs_[i] = nullptr;
    allocate(i, sizes, strides, options);
  }

  void finish_one(int i, const TensorBase& out) {
    if (LAMELLA_UNLIKELY((owned_ >> i) & 1)) {
      copy_back(out, i);  // counts the write
      return;
    }
    lamella_tensor_bump_version(out.impl());
  }
  LAMELLA_COLD void copy_back(const TensorBase& out, int i) {
    Tensor target(out);
    const Tensor& result = maybe_get_output(i);
    if (target.sizes() != result.sizes()) {
      bool plain = result.is_contiguous();
      detail::resize_out(target, result.sizes(), plain ? IntArrayRef() : result.strides());
    }
    detail::Copy::call(target, result, false);
  }
  LAMELLA_COLD void release_owned() {
    for (int i = 0; i < kMaxOutputs; ++i) {
      if ((owned_ >> i) & 1) TensorBase::adopt(outputs_[i]);
    }
  }

  lamella_tensor* outputs_[kMaxOutputs];
  const OutputInfo* info_ = nullptr;
  OutputMode mode_ = OutputMode::kFunctional;
  uint8_t output_count_ = 1;  // outputs given by the caller
  uint8_t owned_ = 0;         // bit i: outputs_[i] holds a reference
  uint8_t apart_ = 0;         // bit i: the caller's output shares memory with an argument
  bool self_is_output_ = false;
};

}  // namespace lamella

// The meta function of a structured operator: LAMELLA_META_FUNC(mm)(const Tensor& self, ...) {...}
#define LAMELLA_META_FUNC(name) structured_##name::meta_return_ty structured_##name::meta
#define LAMELLA_META_FUNC2(name, overload) \
  structured_##name##_##overload::meta_return_ty structured_##name##_##overload::meta
// The result of a meta function with `precomputed`, to be filled by its set_ functions.
#define LAMELLA_PRECOMPUTE_STRUCT(name) structured_##name::precompute_out<>
#define LAMELLA_PRECOMPUTE_STRUCT2(name, overload) structured_##name##_##overload::precompute_out<>
// The computation of one backend: LAMELLA_IMPL_FUNC(mm_cpu)(const Tensor& self, ..., const Tensor&
// out) {...}
#define LAMELLA_IMPL_FUNC(name) void structured_##name::impl
