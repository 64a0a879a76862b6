// Tensors that have no memory of their own. Internal: for the layers that wrap tensors.
#pragma once
#include "lamella/core/tensor_impl.h"

namespace lamella {

// A tensor with LAMELLA_TENSOR_WRAPPER and neither storage nor data. The caller hangs on it what it
// stands for. `key_set` says which layer it belongs to.
LAMELLA_PRIVATE_API TensorBase make_wrapper(IntArrayRef sizes, IntArrayRef strides,
                                            ScalarType dtype, Device device, uint64_t key_set);

}  // namespace lamella
