// Batching rules of operators that are defined outside of Lamella. Public, inline over
// lamella/abi/vmap.h.
//
//   Tensor scale_batched(const Tensor& x, const Tensor& factor) {
//     auto level = vmap::highest_level(x, factor);
//     auto [values, x_is_batched] = vmap::unwrap(x, level);
//     auto [factors, factor_is_batched] = vmap::unwrap(factor, level);
//     ...                                      // calls on values: the batch is in dimension 0
//     return vmap::wrap(result, level);
//   }
//   LAMELLA_LIBRARY_IMPL(mine, Batched, m) { m.impl("scale", &scale_batched); }
//
// A kernel for the key Batched (also spelled FuncTorchBatched) is called whenever an argument is
// batched, at any level. The operators that it calls are dispatched as usual, so nested vmaps and
// gradients need no code of their own.
#pragma once
#include <utility>

#include "lamella/abi/vmap.h"
#include "lamella/api/tensor.h"
#include "lamella/core/error.h"

namespace lamella::vmap {

using LevelInfo = lamella_vmap_level;

// The highest level at which one of the tensors is batched; its number is 0 if none is.
template <class... T>
LevelInfo highest_level(const T&... tensors) {
  LevelInfo highest{};
  auto see = [&highest](const TensorBase& tensor) {
    LevelInfo level{};
    lamella::detail::check(lamella_vmap_level_of(tensor.impl(), &level));
    if (level.number > highest.number) highest = level;
  };
  (see(tensors), ...);
  return highest;
}
// The tensor of all examples with the batch in dimension 0, and true; or the tensor itself and
// false if it is not batched at the level.
LAMELLA_LAZY inline std::pair<Tensor, bool> unwrap(const Tensor& tensor, const LevelInfo& level) {
  lamella_tensor* value = lamella_vmap_unwrap(tensor.impl(), level.number);
  if (value == nullptr) return {tensor, false};
  return {Tensor(TensorBase::adopt(value)), true};
}
// A batched tensor over `value`, which holds all examples with the batch in dimension 0.
inline Tensor wrap(const Tensor& value, const LevelInfo& level) {
  lamella_tensor* result = nullptr;
  lamella::detail::check(lamella_vmap_wrap(value.impl(), level.number, &result));
  return Tensor(TensorBase::adopt(result));
}

}  // namespace lamella::vmap
