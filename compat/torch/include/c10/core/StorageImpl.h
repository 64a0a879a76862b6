// c10::TensorImpl and c10::StorageImpl, as far as code reads them and makes tensors over memory.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/util/intrusive_ptr.h>
#include <c10/util/typeid.h>

#include "lamella/core/tensor_object.h"

namespace c10 {
using TensorImpl = lamella::TensorObject;
using StorageImpl = lamella::StorageObject;
using lamella::UndefinedTensorImpl;
}  // namespace c10
namespace at::detail {
// T can be c10::TensorImpl only: a class that derives from it holds no tensor.
template <class T = c10::TensorImpl, class Made = lamella::Tensor, class... A>
Made make_tensor(A&&... arguments) {
  static_assert(std::is_same_v<T, c10::TensorImpl>);
  return Made(c10::intrusive_ptr<T>::make(std::forward<A>(arguments)...));
}
}  // namespace at::detail
