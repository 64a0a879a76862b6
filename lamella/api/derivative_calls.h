// Functions that the derivatives from lamella-gen call: they read saved values, and return
// gradients and tangents. Usable from separately built libraries.
#pragma once
#include <array>
#include <tuple>
#include <utility>

#include "lamella/abi/autograd.h"
#include "lamella/api/basic_calls.h"

namespace lamella {

// Shape and place of a tensor in its memory, for formulas that use TensorGeometry(x).
struct TensorGeometry {
  IntArrayRef sizes;
  IntArrayRef strides;
  int64_t storage_offset;
};

// `tensor` if it is wanted, else nothing: formulas use it for values that only some gradients need.
inline std::optional<Tensor> wrap_opt_if(const Tensor& tensor, bool wanted) {
  return wanted ? std::optional<Tensor>(tensor) : std::nullopt;
}

// Whether tensors of the dtype may have gradients: for the conditions of output_differentiability.
inline bool isDifferentiableType(ScalarType dtype) {
  return is_floating_point(dtype) || is_complex(dtype);
}

namespace detail {

struct ZerosEntry {
  static constexpr const char* texts = "aten::zeros\0\0";
};
using Zeros =
    Operator<ZerosEntry, Tensor(IntArrayRef, std::optional<ScalarType>, std::optional<Layout>,
                                std::optional<Device>, std::optional<bool>)>;

inline Tensor zeros_of(IntArrayRef sizes, ScalarType dtype, Device device) {
  return Zeros::call(sizes, dtype, std::nullopt, device, std::nullopt);
}

// ---- Values ----

// A borrowed tensor; undefined for NONE.
inline const Tensor& tensor_in(const lamella_value& value) {
  static lamella_tensor* const none = nullptr;
  return *reinterpret_cast<const Tensor*>(value.tag == LAMELLA_TENSOR ? &value.as.tensor : &none);
}

// Any other value, as the C++ type of its argument. Lists and texts are borrowed.
template <class T>
T value_in(const lamella_value& value) {
  typename abi::Param<T>::Form form{};
  LAMELLA_INTERNAL_ASSERT(abi::Param<T>::unbox(value, &form), "a value of tag ",
                          static_cast<int>(value.tag), " does not have the type of its argument");
  typename abi::Param<T>::Holder holder(form);
  return std::move(holder.get());
}

// Attributes of a tensor. Those of an undefined tensor are NONE, for which these return empty or
// zero values; formulas use them only if the tensor is defined.
inline IntArrayRef ints_in(const lamella_value& value) {
  return value.tag == LAMELLA_NONE ? IntArrayRef() : value_in<IntArrayRef>(value);
}
inline int64_t int_in(const lamella_value& value) {
  return value.tag == LAMELLA_NONE ? 0 : value_in<int64_t>(value);
}
inline bool bool_in(const lamella_value& value) {
  return value.tag != LAMELLA_NONE && value_in<bool>(value);
}
inline ScalarType dtype_in(const lamella_value& value) {
  return value.tag == LAMELLA_NONE ? ScalarType::Undefined : value_in<ScalarType>(value);
}
inline Device device_in(const lamella_value& value) {
  return value.tag == LAMELLA_NONE ? Device(DeviceType::CPU) : value_in<Device>(value);
}
// One list of integers for each tensor of a list.
inline std::vector<IntArrayRef> int_lists_in(const lamella_value& value) {
  std::vector<IntArrayRef> lists;
  const auto* items = static_cast<const lamella_value*>(value.as.pointer);
  for (size_t i = 0; i < value.size; ++i) lists.push_back(ints_in(items[i]));
  return lists;
}
inline std::vector<ScalarType> dtypes_in(const lamella_value& value) {
  std::vector<ScalarType> dtypes;
  for (int64_t dtype : ints_in(value)) dtypes.push_back(static_cast<ScalarType>(dtype));
  return dtypes;
}
inline TensorOptions options_in(const lamella_value& dtype, const lamella_value& device) {
  return TensorOptions().dtype(dtype_in(dtype)).device(device_in(device));
}
inline TensorGeometry geometry_in(const lamella_value& sizes, const lamella_value& strides,
                                  const lamella_value& offset) {
  return {ints_in(sizes), ints_in(strides), int_in(offset)};
}
inline Tensor zeros_in(const lamella_value& sizes, const lamella_value& dtype,
                       const lamella_value& device) {
  if (sizes.tag == LAMELLA_NONE) return Tensor();
  return zeros_of(ints_in(sizes), dtype_in(dtype), device_in(device));
}
// Entry `dim` of sizes or strides; counts from the end if negative.
inline int64_t entry_at(IntArrayRef list, int64_t dim) {
  return list[static_cast<size_t>(maybe_wrap_dim(dim, static_cast<int64_t>(list.size()), "size"))];
}

inline TensorList tensors_in(lamella_tensor* const* tensors, size_t count) {
  return {reinterpret_cast<const Tensor*>(tensors), count};
}
inline bool any_defined(TensorList tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) return true;
  }
  return false;
}

// ---- Backward ----

// The gradients of the returns; undefined for returns without one.
inline TensorList gradients(const lamella_backward* call) {
  return tensors_in(call->grads, call->grad_count);
}

inline bool is_needed(const lamella_backward* call, uint32_t slot) {
  return ((call->needs >> slot) & 1) != 0;
}

inline void set_result(const lamella_backward* call, uint32_t slot, Tensor gradient) {
  if (!is_needed(call, slot) || call->first[slot] == call->first[slot + 1]) return;
  call->results[call->first[slot]] = gradient.unsafe_release();
}
// The gradients of a list of tensors; an empty list stands for none.
inline void set_result(const lamella_backward* call, uint32_t slot, TensorList gradients) {
  if (!is_needed(call, slot) || gradients.empty()) return;
  const size_t count = call->first[slot + 1] - call->first[slot];
  LAMELLA_INTERNAL_ASSERT(gradients.size() == count, "a formula gave ", gradients.size(),
                          " gradients for a list of ", count, " tensors");
  for (size_t i = 0; i < count; ++i) {
    call->results[call->first[slot] + i] = Tensor(gradients[i]).unsafe_release();
  }
}
inline void set_result(const lamella_backward* call, uint32_t slot,
                       const std::vector<Tensor>& gradients) {
  set_result(call, slot, TensorList(gradients));
}

// Stores the gradients of a formula that computes those of several arguments.
template <uint32_t... slots, class... Gradients>
void set_results(const lamella_backward* call, std::tuple<Gradients...> gradients) {
  static_assert(sizeof...(slots) == sizeof...(Gradients),
                "a formula for several arguments returns a gradient for each");
  [&]<size_t... i>(std::index_sequence<i...>) {
    (set_result(call, slots, std::move(std::get<i>(gradients))), ...);
  }(std::index_sequence_for<Gradients...>());
}
template <uint32_t... slots>
void set_results(const lamella_backward* call, const std::vector<Tensor>& gradients) {
  LAMELLA_INTERNAL_ASSERT(gradients.size() == sizeof...(slots), "a formula gave ", gradients.size(),
                          " gradients for ", sizeof...(slots), " arguments");
  size_t next = 0;
  (set_result(call, slots, gradients[next++]), ...);
}

// Stores formula(i) as the gradient of each entry of a list.
template <class F>
void set_each_result(const lamella_backward* call, uint32_t slot, F&& formula) {
  for (size_t i = 0; call->first[slot] + i < call->first[slot + 1]; ++i) {
    if (i < call->grad_count && call->grads[i] == nullptr) continue;
    call->results[call->first[slot] + i] = Tensor(formula(i)).unsafe_release();
  }
}

[[noreturn]] LAMELLA_COLD inline void throw_not_implemented(const char* what,
                                                            const char* argument) {
  throw NotImplementedError(str(what, ": the derivative for '", argument, "' is not implemented"));
}

// ---- Forward mode ----

inline TensorList tangents(const lamella_forward* call, uint32_t slot) {
  return tensors_in(call->tangents + call->first[slot], call->first[slot + 1] - call->first[slot]);
}
inline bool has_tangent(const lamella_forward* call, uint32_t slot) {
  return any_defined(tangents(call, slot));
}
// The tangent of an argument: zeros if it has none; undefined if the argument is undefined.
inline Tensor tangent_in(const lamella_forward* call, uint32_t slot, uint32_t argument) {
  const TensorList given = tangents(call, slot);
  if (!given.empty() && given[0].defined()) return given[0];
  const Tensor& primal = tensor_in(call->arguments[argument]);
  if (!primal.defined()) return primal;
  return zeros_of(primal.sizes(), primal.scalar_type(), primal.device());
}

inline void set_tangent(const lamella_forward* call, uint32_t result, Tensor tangent) {
  call->results[result] = tangent.unsafe_release();
}
// The tangents of a returned list of tensors.
inline void set_tangent(const lamella_forward* call, uint32_t result,
                        const std::vector<Tensor>& tangents) {
  for (const Tensor& tangent : tangents) call->results[result++] = Tensor(tangent).unsafe_release();
}
template <uint32_t... returns, class... Tangents>
void set_tangents(const lamella_forward* call, std::tuple<Tangents...> tangents) {
  static_assert(sizeof...(returns) == sizeof...(Tangents),
                "a formula for several returns gives a tangent for each");
  [&]<size_t... i>(std::index_sequence<i...>) {
    (set_tangent(call, returns, std::move(std::get<i>(tangents))), ...);
  }(std::index_sequence_for<Tangents...>());
}

}  // namespace detail

// Throws; for formulas that have no derivative in some cases.
[[noreturn]] inline Tensor not_implemented(const char* what) {
  throw NotImplementedError(str(what, ": the derivative is not implemented"));
}

}  // namespace lamella
