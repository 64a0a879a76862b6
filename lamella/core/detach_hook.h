// How tensors of the Python key are detached. Internal.
#pragma once
#include "lamella/core/macros.h"
#include "lamella/core/tensor_base.h"

namespace lamella {

// Set by the Python layer. Asks the class of a tensor that carries the key Python for an alias
// without a history; an undefined tensor where its class is not to be asked on this thread. May
// throw what the class's handler raised.
LAMELLA_PRIVATE_API extern TensorBase (*detach_by_class)(const TensorBase& source);

}  // namespace lamella
