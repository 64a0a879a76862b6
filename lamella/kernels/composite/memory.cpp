// Copies and conversions of whole tensors: contiguous, clone, to, copy, resize.
#include <algorithm>

#include "lamella/abi/backend.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  if (self.is_contiguous(memory_format)) return self;
  LAMELLA_CHECK(memory_format != MemoryFormat::Preserve,
                "contiguous: expected a 'memory_format' other than preserve_format");
  return self.clone(memory_format);
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  Tensor result = lamella::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                                      memory_format.value_or(MemoryFormat::Preserve));
  result.copy_(self);
  return result;
}

Tensor _to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                std::optional<MemoryFormat> memory_format) {
  LAMELLA_CHECK(!layout || *layout == Layout::Strided,
                "_to_copy: expected 'layout' to be strided, got another layout");
  Tensor result = lamella::empty_like(self, dtype, layout, device, pin_memory,
                                      memory_format.value_or(MemoryFormat::Preserve));
  result.copy_(self, non_blocking);
  return result;
}

namespace {
bool stays(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
           std::optional<Device> device, bool copy, std::optional<MemoryFormat> memory_format) {
  MemoryFormat format = memory_format.value_or(MemoryFormat::Preserve);
  if (copy || (dtype && *dtype != self.scalar_type())) return false;
  if (layout && *layout != self.layout()) return false;
  if (device) {
    Device have = self.device();
    if (device->type() != have.type()) return false;
    DeviceIndex index = device->index();
    auto type = static_cast<uint8_t>(device->type());
    if (index < 0 && lamella_has_backend(type) != 0) index = lamella_device_current(type);
    if (index >= 0 && have.has_index() && index != have.index()) return false;
  }
  return format == MemoryFormat::Preserve || self.suggest_memory_format() == format;
}
Tensor convert(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
               std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
               bool copy, std::optional<MemoryFormat> memory_format) {
  if (stays(self, dtype, layout, device, copy, memory_format)) return self;
  return lamella::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
}
}  // namespace

Tensor to(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
          std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
          bool copy, std::optional<MemoryFormat> memory_format) {
  return convert(self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format);
}
Tensor to(const Tensor& self, Device device, ScalarType dtype, bool non_blocking, bool copy,
          std::optional<MemoryFormat> memory_format) {
  return convert(self, dtype, std::nullopt, device, std::nullopt, non_blocking, copy,
                 memory_format);
}
Tensor to(const Tensor& self, ScalarType dtype, bool non_blocking, bool copy,
          std::optional<MemoryFormat> memory_format) {
  return convert(self, dtype, std::nullopt, std::nullopt, std::nullopt, non_blocking, copy,
                 memory_format);
}
Tensor to(const Tensor& self, const Tensor& other, bool non_blocking, bool copy,
          std::optional<MemoryFormat> memory_format) {
  return convert(self, other.scalar_type(), other.layout(), other.device(), std::nullopt,
                 non_blocking, copy, memory_format);
}
Tensor type_as(const Tensor& self, const Tensor& other) {
  return convert(self, other.scalar_type(), other.layout(), other.device(), std::nullopt, false,
                 false, std::nullopt);
}

namespace {
// Whether the elements lie one after the other in an order of dimensions, with space between them.
bool is_spread(const Tensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1) steps.emplace_back(tensor.stride(d), tensor.size(d));
  }
  std::sort(steps.begin(), steps.end());
  int64_t last = 0;
  for (auto [stride, size] : steps) {
    if (stride <= last) return false;
    last += (size - 1) * stride;
  }
  return true;
}
}  // namespace

Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking) {
  Tensor result = is_spread(self)
                      ? lamella::empty_strided(self.sizes(), self.strides(), self.options())
                      : lamella::empty_like(self);
  result.copy_(src, non_blocking);
  return result;
}

Scalar item(const Tensor& self) {
  LAMELLA_CHECK(self.numel() == 1, "item: expected 'self' to have one element, got ", self.numel(),
                " in ", self.sizes());
  return lamella::_local_scalar_dense(self);
}

const Tensor& resize_(const Tensor& self, IntArrayRef size,
                      std::optional<MemoryFormat> memory_format) {
  for (int64_t s : size) {
    LAMELLA_CHECK(s >= 0, "resize_: expected sizes of at least 0, got ", size);
  }
  if (!self.sizes().equals(size) || memory_format) {
    LAMELLA_CHECK(memory_format != MemoryFormat::Preserve,
                  "resize_: expected a 'memory_format' other than preserve_format");
    resize_tensor(TensorImpl::of(self), size, memory_format.value_or(MemoryFormat::Contiguous),
                  true);
  }
  return self;
}
const Tensor& resize_as_(const Tensor& self, const Tensor& the_template,
                         std::optional<MemoryFormat> memory_format) {
  if (memory_format == MemoryFormat::Preserve) {
    memory_format = the_template.suggest_memory_format();
  }
  return self.resize_(the_template.sizes(), memory_format);
}

namespace {
void check_set(const Tensor& self, const Tensor& source) {
  LAMELLA_CHECK(self.scalar_type() == source.scalar_type(), "set_: expected 'source' to be ",
                self.scalar_type(), ", got ", source.scalar_type());
  LAMELLA_CHECK(self.device() == source.device(), "set_: expected 'source' to be on ",
                self.device(), ", got one on ", source.device());
}
}  // namespace
Tensor& set_(Tensor& self, const Tensor& source) {
  check_set(self, source);
  shallow_copy_from(TensorImpl::of(self), TensorImpl::of(source));
  return self;
}
Tensor& set_(Tensor& self, const Tensor& source, int64_t storage_offset, IntArrayRef size,
             IntArrayRef stride) {
  check_set(self, source);
  Dims strides = stride.empty() && !size.empty() ? contiguous_strides_of(size) : Dims(stride);
  Tensor view(make_checked_view(source, size, strides, storage_offset));
  shallow_copy_from(TensorImpl::of(self), TensorImpl::of(view));
  return self;
}
Tensor& set_(Tensor& self) {
  Tensor none = new_tensor({0}, self.scalar_type(), self.device());
  shallow_copy_from(TensorImpl::of(self), TensorImpl::of(none));
  return self;
}

bool is_contiguous(const Tensor& self) { return self.is_contiguous(); }
bool is_contiguous(const Tensor& self, MemoryFormat memory_format) {
  return self.is_contiguous(memory_format);
}
bool is_floating_point(const Tensor& self) { return self.is_floating_point(); }
bool is_complex(const Tensor& self) { return self.is_complex(); }
bool is_signed(const Tensor& self) { return self.is_signed(); }
int64_t size(const Tensor& self, int64_t dim) { return self.size(dim); }
int64_t stride(const Tensor& self, int64_t dim) { return self.stride(dim); }
int64_t numel(const Tensor& self) { return self.numel(); }

}  // namespace lamella::native
