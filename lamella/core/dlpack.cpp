// DLPack exchange: export of tensors and import of memory of other libraries.
#include "lamella/core/dlpack.h"

#include <memory>

#include "lamella/core/code.h"
#include "lamella/core/dlpack_types.h"
#include "lamella/core/error.h"
#include "lamella/core/kept_forms.h"
#include "lamella/core/tensor_impl.h"

namespace lamella::dlpack {
namespace {

struct DeviceRow {
  DeviceType type;
  DLDeviceType code;
};
constexpr DeviceRow kDevices[] = {
    {DeviceType::CPU, kDLCPU},
    {DeviceType::CUDA, kDLCUDA},
    {DeviceType::HIP, kDLROCM},
    {DeviceType::Vulkan, kDLVulkan},
    {DeviceType::MPS, kDLMetal},
    {DeviceType::XPU, kDLOneAPI},
    {DeviceType::PrivateUse1, kDLExtDev},
};

// The exported structure, the tensor that it keeps alive, and its sizes and strides.
template <class M>
struct Exported {
  M managed{};
  TensorBase tensor;
  int64_t shape[64];
  int64_t strides[64];
};

template <class M>
void delete_exported(M* managed) {
  auto* exported = static_cast<Exported<M>*>(managed->manager_ctx);
  if (exported->tensor.has_storage()) end_exposure(exported->tensor.storage_impl());
  delete exported;
}

template <class M>
M* make_exported(const TensorBase& tensor) {
  LAMELLA_CHECK(tensor.defined(), "to_dlpack: expected a defined tensor");
  LAMELLA_CHECK(!tensor.requires_grad(),
                "to_dlpack: expected a tensor that does not require gradients; detach it first");
  LAMELLA_CHECK(!tensor.is_conj() && !tensor.is_neg(),
                "to_dlpack: expected a tensor without a pending conjugation or negation; "
                "resolve it first");
  LAMELLA_CHECK(tensor.layout() == Layout::Strided, "to_dlpack: expected a strided tensor, got ",
                tensor.layout());
  DLDevice device = device_field(tensor.device());
  DLDataType type = type_field(tensor.dtype());
  auto exported = std::make_unique<Exported<M>>();
  exported->tensor = tensor;
  if (tensor.has_storage()) begin_exposure(exported->tensor.storage_impl());
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    // The stride of a dimension of size 0 or 1 is never used; consumers expect 1.
    exported->shape[d] = tensor.sizes()[static_cast<size_t>(d)];
    exported->strides[d] = exported->shape[d] < 2 ? 1 : tensor.strides()[static_cast<size_t>(d)];
  }
  M& m = exported->managed;
  m.dl_tensor = {
      tensor.data_ptr(), device, static_cast<int32_t>(tensor.dim()), type, exported->shape,
      exported->strides, 0};
  m.manager_ctx = exported.get();
  m.deleter = &delete_exported<M>;
  return &exported.release()->managed;
}

template <class M>
void delete_imported(void* context) {
  auto* managed = static_cast<M*>(context);
  if (managed->deleter == nullptr) return;
  const void* function = code::address_of(managed->deleter);
  managed->deleter(managed);
  code::release(function);
}

template <class M>
TensorBase make_imported(M* managed, uint8_t flags) {
  const DLTensor& t = managed->dl_tensor;
  LAMELLA_CHECK(t.ndim >= 0 && t.ndim <= 64, "from_dlpack: expected 0 to 64 dimensions, got ",
                t.ndim);
  LAMELLA_CHECK(t.ndim == 0 || t.shape != nullptr, "from_dlpack: expected a shape, got none");
  Device device = device_of(t.device);
  ScalarType dtype = scalar_type_of(t.dtype);
  IntArrayRef sizes(t.shape, static_cast<size_t>(t.ndim));
  int64_t row_major[64];
  int64_t numel = checked_numel(sizes, "from_dlpack");
  if (t.strides == nullptr) contiguous_strides(sizes, row_major);
  IntArrayRef strides(t.strides == nullptr ? row_major : t.strides, sizes.size());
  int64_t elements = storage_elements(sizes, strides, "from_dlpack");
  LAMELLA_CHECK(t.data != nullptr || numel == 0, "from_dlpack: expected data for ", numel,
                " elements, got a null pointer");
  size_t item = element_size(dtype), bytes = 0;
  uintptr_t first = reinterpret_cast<uintptr_t>(t.data), end = 0;
  LAMELLA_CHECK(!__builtin_mul_overflow(static_cast<size_t>(elements), item, &bytes) &&
                    bytes <= static_cast<size_t>(INT64_MAX) &&
                    !__builtin_add_overflow(first, t.byte_offset, &first) &&
                    !__builtin_add_overflow(first, bytes, &end) && end <= size_t{INT64_MAX},
                "from_dlpack: expected elements within the address space, got shape ", sizes,
                " with strides ", strides, " at byte_offset ", t.byte_offset);
  void* data = numel == 0 ? nullptr : reinterpret_cast<void*>(first);
  LAMELLA_CHECK(reinterpret_cast<uintptr_t>(data) % element_size(to_real_type(dtype)) == 0,
                "from_dlpack: expected data aligned to its elements of ",
                element_size(to_real_type(dtype)), " bytes");
  // All checks have passed, so the storage takes over the deleter here.
  Storage* storage = make_foreign_storage(data, bytes, device, nullptr, managed);
  storage->flags |= flags;
  TensorBase tensor =
      make_tensor(storage, sizes, strides, 0, dtype, default_key_set(device.type()));
  if (managed->deleter != nullptr) code::retain(code::address_of(managed->deleter));
  storage->deleter = &delete_imported<M>;
  return tensor;
}

}  // namespace

DLDevice device_field(Device device) {
  for (const DeviceRow& row : kDevices) {
    if (row.type == device.type()) {
      return {row.code, device.index() < 0 ? 0 : device.index()};
    }
  }
  LAMELLA_CHECK(false, "to_dlpack: expected a device that DLPack knows, got ", device);
}

DLDataType type_field(ScalarType dtype) {
  if (const TypeRow* row = find_type(dtype)) return type_of(*row);
  LAMELLA_CHECK(false, "to_dlpack: expected a dtype that DLPack knows, got ", dtype);
}

Device device_of(DLDevice field) {
  // The CPU can read pinned host memory like any other.
  if (field.device_type == kDLCPU || field.device_type == kDLCUDAHost ||
      field.device_type == kDLROCMHost) {
    return Device(DeviceType::CPU);
  }
  for (const DeviceRow& row : kDevices) {
    if (row.code == field.device_type) {
      LAMELLA_CHECK(field.device_id >= 0 && field.device_id <= 127,
                    "from_dlpack: expected a device index from 0 to 127, got ", field.device_id);
      return Device(row.type, static_cast<DeviceIndex>(field.device_id));
    }
  }
  LAMELLA_CHECK(false, "from_dlpack: expected a device that Lamella knows, got code ",
                static_cast<int32_t>(field.device_type));
}

ScalarType scalar_type_of(DLDataType field) {
  if (const TypeRow* row = find_type(field)) return row->type;
  LAMELLA_CHECK_TYPE(false, "from_dlpack: expected a dtype that Lamella knows, got code ",
                     field.code, ", ", field.bits, " bits, ", field.lanes, " lanes");
}

bool is_read_only(const TensorBase& tensor) {
  return tensor.has_storage() && (tensor.storage_impl()->flags & kStorageReadOnly) != 0;
}

DLManagedTensor* export_tensor(const TensorBase& tensor) {
  LAMELLA_CHECK(!tensor.defined() || !is_read_only(tensor),
                "to_dlpack: expected a writable tensor, which is all that DLPack before 1.0 "
                "knows, got a read-only one");
  return make_exported<DLManagedTensor>(tensor);
}

DLManagedTensorVersioned* export_tensor_versioned(const TensorBase& tensor, bool copied) {
  auto* managed = make_exported<DLManagedTensorVersioned>(tensor);
  managed->version = {kMajorVersion, kMinorVersion};
  managed->flags = (is_read_only(tensor) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0) |
                   (copied ? DLPACK_FLAG_BITMASK_IS_COPIED : 0);
  return managed;
}

TensorBase import_tensor(DLManagedTensor* managed) { return make_imported(managed, 0); }

TensorBase import_tensor_versioned(DLManagedTensorVersioned* managed) {
  LAMELLA_CHECK(managed->version.major == kMajorVersion, "from_dlpack: expected DLPack version ",
                kMajorVersion, ", got ", managed->version.major, ".", managed->version.minor);
  uint8_t flags = 0;
  if ((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) flags |= kStorageReadOnly;
  if ((managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0) flags |= kStorageCopied;
  return make_imported(managed, flags);
}

}  // namespace lamella::dlpack
