// How tensors of the Python key are detached, and how tensors lose their history. Internal.
#pragma once
#include "lamella/core/macros.h"
#include "lamella/core/tensor_base.h"

namespace lamella {

// Set by the Python layer. Calls the handler of the class of a tensor that carries the key Python
// to get a detached alias. Returns an undefined tensor where the handler is disabled on this
// thread. May throw what the handler raised.
LAMELLA_PRIVATE_API extern TensorBase (*detach_by_class)(const TensorBase& source);

// Set by the autograd layer. Makes the tensor a leaf without history and without a tangent. Throws
// for a view.
extern void (*detach_history)(lamella_tensor* tensor);

}  // namespace lamella
