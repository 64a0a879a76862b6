// DLPack 1.x both ways: the published structures and the exchange. Internal; the Python layer wraps
// the pointers into capsules.
// Layout: the DLPack specification, https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/core/tensor_base.h"

namespace lamella::dlpack {

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 1;

enum DeviceCode : int32_t {
  kDeviceCpu = 1,
  kDeviceCuda = 2,
  kDeviceCudaHost = 3,
  kDeviceVulkan = 7,
  kDeviceMetal = 8,
  kDeviceRocm = 10,
  kDeviceRocmHost = 11,
  kDeviceExtension = 12,
  kDeviceOneApi = 14,
};

enum TypeCode : uint8_t {
  kTypeInt = 0,
  kTypeUInt = 1,
  kTypeFloat = 2,
  kTypeBfloat = 4,
  kTypeComplex = 5,
  kTypeBool = 6,
  kTypeFloat8_e3m4 = 7,
  kTypeFloat8_e4m3 = 8,
  kTypeFloat8_e4m3b11fnuz = 9,
  kTypeFloat8_e4m3fn = 10,
  kTypeFloat8_e4m3fnuz = 11,
  kTypeFloat8_e5m2 = 12,
  kTypeFloat8_e5m2fnuz = 13,
  kTypeFloat8_e8m0fnu = 14,
};

enum Flags : uint64_t { kFlagReadOnly = 1, kFlagCopied = 2 };

struct DeviceField {
  int32_t device_type;
  int32_t device_id;
};
struct TypeField {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct TensorField {
  void* data;
  DeviceField device;
  int32_t ndim;
  TypeField dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: row-major
  uint64_t byte_offset;
};
// The target of a capsule named "dltensor".
struct Managed {
  TensorField tensor;
  void* context;
  void (*deleter)(Managed* self);
};
// The target of a capsule named "dltensor_versioned".
struct ManagedVersioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  TensorField tensor;
};
static_assert(sizeof(TensorField) == 48 && offsetof(TensorField, shape) == 24);
static_assert(sizeof(Managed) == 64 && offsetof(Managed, context) == 48);
static_assert(sizeof(ManagedVersioned) == 80 && offsetof(ManagedVersioned, tensor) == 32);

// A view of the tensor's memory for another library, which must call its deleter. Throws if the
// tensor requires gradients, is conjugated or negated lazily, or its dtype or device has no code.
// The unversioned form cannot say "read only" and refuses such a tensor.
LAMELLA_PRIVATE_API Managed* export_tensor(const TensorBase& tensor);
// `copied`: the tensor was copied for this exchange.
LAMELLA_PRIVATE_API ManagedVersioned* export_tensor_versioned(const TensorBase& tensor,
                                                              bool copied = false);

// A tensor over another library's memory; runs the deleter once when the last alias is gone. If
// this throws, the structure still belongs to the caller and its deleter has not run.
LAMELLA_PRIVATE_API TensorBase import_tensor(Managed* managed);
LAMELLA_PRIVATE_API TensorBase import_tensor_versioned(ManagedVersioned* managed);

// DLPack's codes of a device and a dtype. They throw if DLPack has no such code.
LAMELLA_PRIVATE_API DeviceField device_field(Device device);
TypeField type_field(ScalarType dtype);
Device device_of(DeviceField field);
ScalarType scalar_type_of(TypeField field);
// Whether the memory must not be written through this tensor.
LAMELLA_PRIVATE_API bool is_read_only(const TensorBase& tensor);

}  // namespace lamella::dlpack
