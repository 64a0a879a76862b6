// How tensors of the Python key are detached. Internal.
#pragma once
#include "lamella/core/macros.h"
#include "lamella/core/tensor_base.h"

namespace lamella {

// Set by the Python layer. Calls the handler of the class of a tensor that carries the key Python
// to get a detached alias. Returns an undefined tensor where the handler is disabled on this
// thread. May throw what the handler raised.
LAMELLA_PRIVATE_API extern TensorBase (*detach_by_class)(const TensorBase& source);

}  // namespace lamella
