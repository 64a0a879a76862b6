// DLPack 1.x both ways. Internal; the Python layer wraps the pointers into capsules, named
// "dltensor" for DLManagedTensor and "dltensor_versioned" for DLManagedTensorVersioned.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/core/dlpack_structs.h"
#include "lamella/core/tensor_base.h"

namespace lamella::dlpack {

// What an exchange asks for and exports.
inline constexpr uint32_t kMajorVersion = DLPACK_MAJOR_VERSION;
inline constexpr uint32_t kMinorVersion = 0;

static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, manager_ctx) == 48);
static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

// A view of the tensor's memory for another library, which must call its deleter. Throws if the
// tensor requires gradients, is conjugated or negated lazily, or its dtype or device has no code.
// The unversioned form cannot say "read only" and refuses such a tensor.
LAMELLA_PRIVATE_API DLManagedTensor* export_tensor(const TensorBase& tensor);
// `copied`: the tensor was copied for this exchange.
LAMELLA_PRIVATE_API DLManagedTensorVersioned* export_tensor_versioned(const TensorBase& tensor,
                                                                      bool copied = false);

// A tensor over another library's memory; runs the deleter once when the last alias is gone. If
// this throws, the structure still belongs to the caller and its deleter has not run.
LAMELLA_PRIVATE_API TensorBase import_tensor(DLManagedTensor* managed);
LAMELLA_PRIVATE_API TensorBase import_tensor_versioned(DLManagedTensorVersioned* managed);

// DLPack's codes of a device and a dtype. They throw if DLPack has no such code.
LAMELLA_PRIVATE_API DLDevice device_field(Device device);
DLDataType type_field(ScalarType dtype);
Device device_of(DLDevice field);
ScalarType scalar_type_of(DLDataType field);
// Whether the memory must not be written through this tensor.
LAMELLA_PRIVATE_API bool is_read_only(const TensorBase& tensor);

}  // namespace lamella::dlpack
