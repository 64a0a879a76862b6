// What the generated kernels do about writes: a call counts as one write to each tensor that it
// changes, what it makes starts at no writes, and what was made in inference mode is written there
// alone.
#pragma once
#include <tuple>
#include <vector>

#include "lamella/api/generated_kernels.h"
#include "lamella/core/version_counter.h"

namespace lamella::detail {

// Lowers the count to `version` after a kernel that called operators that write. A form that is
// kept with the memory is known by the count, so such memory keeps its count; so do wrappers.
inline void set_writes(const Tensor& tensor, uint32_t version) {
  lamella_tensor* t = tensor.impl();
  if ((t->flags & LAMELLA_TENSOR_WRAPPER) != 0 || t->storage == nullptr) return;
  if (TensorImpl::of(tensor)->version_counter != 0) return;
  if (__atomic_load_n(&t->storage->has_kept_forms, __ATOMIC_RELAXED) != 0) return;
  __atomic_store_n(&t->storage->version, version, __ATOMIC_RELAXED);
}

// A result that nothing else holds yet: the writes of its kernel are forgotten. A result that is an
// argument, or shares memory with one, keeps its count.
LAMELLA_ALWAYS_INLINE void forget_writes(const Tensor& made) {
  lamella_tensor* t = made.impl();
  if (t == nullptr || t->storage == nullptr) return;
  if (__atomic_load_n(&t->storage->version, __ATOMIC_RELAXED) == 0) return;
  if (__atomic_load_n(&t->references, __ATOMIC_RELAXED) != 1 || t->autograd != nullptr) return;
  if (__atomic_load_n(&t->storage->references, __ATOMIC_RELAXED) == 1) set_writes(made, 0);
}
LAMELLA_ALWAYS_INLINE Tensor as_made(Tensor made) {
  forget_writes(made);
  return made;
}
inline std::vector<Tensor> as_made(std::vector<Tensor> made) {
  for (const Tensor& tensor : made) forget_writes(tensor);
  return made;
}
template <class... T>
std::tuple<T...> as_made(std::tuple<T...> made) {
  auto forget = [](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Tensor>) forget_writes(value);
  };
  std::apply([&](const T&... value) { (forget(value), ...); }, made);
  return made;
}

// Counts one write since `before`, however many the kernel's own calls counted.
inline void wrote_once(uint64_t before, const Tensor& written) {
  uint64_t now = writes_to(written);
  if (now == before) return wrote(written);
  if (now > before + 1) set_writes(written, static_cast<uint32_t>(before + 1));
}
inline void wrote_once(uint64_t before, const std::optional<Tensor>& written) {
  if (written.has_value()) wrote_once(before, *written);
}
inline void wrote_once(uint64_t before, TensorList written) { wrote_since(before, written); }

// Throws for a tensor that was made in inference mode and is written outside of it, unless it
// counts its own writes, as `x.data` does.
LAMELLA_ALWAYS_INLINE void check_writable(const char* op, const char* name, const Tensor& tensor) {
  if (LAMELLA_LIKELY(!tensor.defined() || !tensor.is_inference())) return;
  const auto* t = TensorImpl::of(tensor);
  if (t->version_counter != 0 && t->base == nullptr) return;
  LAMELLA_CHECK((lamella_modes() & LAMELLA_MODE_INFERENCE) != 0, op, ": expected '", name,
                "' not to be made in inference mode, since it is written outside of it; clone it "
                "first");
}
inline void check_writable(const char* op, const char* name, const std::optional<Tensor>& tensor) {
  if (tensor.has_value()) check_writable(op, name, *tensor);
}
inline void check_writable(const char* op, const char* name, TensorList list) {
  for (const Tensor& tensor : list) check_writable(op, name, tensor);
}

}  // namespace lamella::detail
