// Factories: uninitialised tensors, and those filled with one number, on the CPU, on meta and
// through empty() on other devices.
#include "lamella/abi/backend.h"
#include "lamella/core/cuda_loading.h"
#include "lamella/kernels/default_dtype.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {

#define OPTIONS                                                                                \
  std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device, \
      std::optional<bool> pin_memory

[[noreturn]] LAMELLA_COLD void throw_layout(const char* op) {
  throw NotImplementedError(str(op, ": expected 'layout' to be strided, got another layout"));
}
LAMELLA_ALWAYS_INLINE void check_options(const char* op, std::optional<Layout> layout) {
  if (LAMELLA_UNLIKELY(layout && *layout != Layout::Strided)) throw_layout(op);
}
// A tensor like `made` in pinned memory.
LAMELLA_COLD Tensor make_pinned(const char* op, const Tensor& made) {
  const PinnedMemory* memory = load_pinned_memory();
  LAMELLA_CHECK(memory != nullptr, op,
                ": expected 'pin_memory' to be False on a machine without an accelerator");
  LAMELLA_CHECK(made.is_cpu(), op, ": expected 'pin_memory' to be False for a tensor on ",
                made.device());
  const size_t bytes = TensorImpl::of(made)->storage->nbytes;
  if (bytes == 0) return made;
  void* block = nullptr;
  void* data = memory->allocate(bytes, &block);
  Storage* storage = make_foreign_storage(data, bytes, kCPU, memory->free, block);
  return Tensor(make_tensor(storage, made.sizes(), made.strides(), 0, made.scalar_type(),
                            default_key_set(DeviceType::CPU, true)));
}
LAMELLA_ALWAYS_INLINE Tensor placed(const char* op, Tensor made, std::optional<bool> pin_memory) {
  if (LAMELLA_UNLIKELY(pin_memory && *pin_memory)) return make_pinned(op, made);
  return made;
}
bool is_own(Device device) { return device.is_cpu() || device.is_meta(); }
// A backend's device without an index is its current device.
LAMELLA_NOINLINE Device with_index(Device device) {
  auto type = static_cast<uint8_t>(device.type());
  // Asking for the count loads a backend that is loaded at first use.
  if (lamella_device_count(type) > 0) device.set_index(lamella_device_current(type));
  return device;
}
LAMELLA_ALWAYS_INLINE Device device_or_cpu(std::optional<Device> device) {
  if (LAMELLA_LIKELY(!device)) return Device(kCPU);
  if (LAMELLA_LIKELY(is_own(*device)) || device->has_index()) return *device;
  return with_index(*device);
}

// A tensor of these sizes on any device.
Tensor make_on(IntArrayRef size, OPTIONS, std::optional<MemoryFormat> format = std::nullopt) {
  Device where = device.value_or(Device(kCPU));
  if (is_own(where)) {
    check_options("empty", layout);
    return placed("empty",
                  Tensor(make_empty(size, dtype ? *dtype : get_default_dtype(), where,
                                    format.value_or(MemoryFormat::Contiguous))),
                  pin_memory);
  }
  return lamella::empty(size, dtype, layout, device, pin_memory, format);
}
ScalarType number_dtype(const Scalar& value) {
  if (value.isBoolean()) return kBool;
  if (value.isIntegral(false)) return kLong;
  return value.isComplex() ? get_default_complex_dtype() : get_default_dtype();
}

}  // namespace

Tensor empty(IntArrayRef size, OPTIONS, std::optional<MemoryFormat> memory_format) {
  check_options("empty", layout);
  return placed("empty",
                Tensor(make_empty(size, dtype ? *dtype : get_default_dtype(), device_or_cpu(device),
                                  memory_format ? *memory_format : MemoryFormat::Contiguous)),
                pin_memory);
}
Tensor& empty_out(IntArrayRef size, std::optional<MemoryFormat> memory_format, Tensor& out) {
  LAMELLA_CHECK(memory_format != MemoryFormat::Preserve,
                "empty: expected a 'memory_format' other than preserve_format");
  resize_tensor(TensorImpl::of(out), size, memory_format.value_or(MemoryFormat::Contiguous));
  return out;
}
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, OPTIONS) {
  check_options("empty_strided", layout);
  return placed("empty_strided",
                Tensor(make_empty_strided(size, stride, dtype ? *dtype : get_default_dtype(),
                                          device_or_cpu(device))),
                pin_memory);
}

Tensor empty_like(const Tensor& self, OPTIONS, std::optional<MemoryFormat> memory_format) {
  ScalarType type = dtype ? *dtype : self.scalar_type();
  Device where = device ? *device : self.device();
  MemoryFormat format = memory_format.value_or(MemoryFormat::Preserve);
  Dims strides;
  IntArrayRef layout_strides;
  if (format != MemoryFormat::Preserve) {
    if (is_own(where)) {
      check_options("empty_like", layout);
      return placed("empty_like", Tensor(make_empty(self.sizes(), type, where, format)),
                    pin_memory);
    }
    return lamella::empty(self.sizes(), type, layout, where, pin_memory, format);
  }
  if (self.is_contiguous()) return make_on(self.sizes(), type, layout, where, pin_memory);
  if (self.is_non_overlapping_and_dense()) {
    layout_strides = self.strides();
  } else {
    strides = infer_dense_strides(self.sizes(), self.strides());
    layout_strides = strides;
  }
  if (is_own(where)) {
    check_options("empty_like", layout);
    return placed("empty_like", new_strided(self.sizes(), layout_strides, type, where), pin_memory);
  }
  return lamella::empty_strided(self.sizes(), layout_strides, type, layout, where, pin_memory);
}

Tensor new_empty(const Tensor& self, IntArrayRef size, OPTIONS) {
  return make_on(size, dtype.value_or(self.scalar_type()), layout, device.value_or(self.device()),
                 pin_memory);
}
Tensor new_empty_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, OPTIONS) {
  return lamella::empty_strided(size, stride, dtype.value_or(self.scalar_type()), layout,
                                device.value_or(self.device()), pin_memory);
}
Tensor new_full(const Tensor& self, IntArrayRef size, const Scalar& fill_value, OPTIONS) {
  Tensor result = native::new_empty(self, size, dtype, layout, device, pin_memory);
  result.fill_(fill_value);
  return result;
}
Tensor new_zeros(const Tensor& self, IntArrayRef size, OPTIONS) {
  Tensor result = native::new_empty(self, size, dtype, layout, device, pin_memory);
  result.zero_();
  return result;
}
Tensor new_ones(const Tensor& self, IntArrayRef size, OPTIONS) {
  return native::new_full(self, size, 1, dtype, layout, device, pin_memory);
}

Tensor zeros(IntArrayRef size, OPTIONS) {
  Tensor result = make_on(size, dtype, layout, device, pin_memory);
  result.zero_();
  return result;
}
Tensor& zeros_out(IntArrayRef size, Tensor& out) {
  resize_output(out, size);
  return out.zero_();
}
Tensor ones(IntArrayRef size, OPTIONS) {
  Tensor result = make_on(size, dtype, layout, device, pin_memory);
  result.fill_(1);
  return result;
}
Tensor& ones_out(IntArrayRef size, Tensor& out) {
  resize_output(out, size);
  return out.fill_(1);
}
Tensor full(IntArrayRef size, const Scalar& fill_value, OPTIONS) {
  Tensor result =
      make_on(size, dtype ? *dtype : number_dtype(fill_value), layout, device, pin_memory);
  result.fill_(fill_value);
  return result;
}
Tensor& full_out(IntArrayRef size, const Scalar& fill_value, Tensor& out) {
  resize_output(out, size);
  return out.fill_(fill_value);
}
Tensor zeros_like(const Tensor& self, OPTIONS, std::optional<MemoryFormat> memory_format) {
  Tensor result = native::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  result.zero_();
  return result;
}
Tensor ones_like(const Tensor& self, OPTIONS, std::optional<MemoryFormat> memory_format) {
  Tensor result = native::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  result.fill_(1);
  return result;
}
Tensor full_like(const Tensor& self, const Scalar& fill_value, OPTIONS,
                 std::optional<MemoryFormat> memory_format) {
  Tensor result = native::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  result.fill_(fill_value);
  return result;
}
Tensor scalar_tensor(const Scalar& s, OPTIONS) {
  Tensor result = make_on({}, dtype, layout, device, pin_memory);
  result.fill_(s);
  return result;
}

// ---- Ranges and grids: shape and dtype here, values in the out variants ----

Tensor arange(const Scalar& end, OPTIONS) {
  return native::arange(Scalar(0), end, Scalar(1), dtype, layout, device, pin_memory);
}
Tensor arange(const Scalar& start, const Scalar& end, OPTIONS) {
  return native::arange(start, end, Scalar(1), dtype, layout, device, pin_memory);
}
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, OPTIONS) {
  bool whole = start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  ScalarType type = dtype ? *dtype : whole ? kLong : get_default_dtype();
  Tensor result = make_on({0}, type, layout, device, pin_memory);
  return lamella::arange_out(result, start, end, step);
}
Tensor& arange_out(const Scalar& end, Tensor& out) {
  return lamella::arange_out(out, Scalar(0), end, Scalar(1));
}
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, OPTIONS) {
  Tensor result = make_on({0}, dtype, layout, device, pin_memory);
  return lamella::range_out(result, start, end, step);
}
Tensor range(const Scalar& start, const Scalar& end, OPTIONS) {
  return native::range(start, end, Scalar(1), dtype, layout, device, pin_memory);
}

namespace {
ScalarType space_dtype(const char* op, const Scalar& start, const Scalar& end,
                       std::optional<ScalarType> dtype) {
  bool complex_ends = start.isComplex() || end.isComplex();
  if (!dtype) return complex_ends ? get_default_complex_dtype() : get_default_dtype();
  LAMELLA_CHECK(!complex_ends || is_complex(*dtype), op,
                ": expected a complex 'dtype' for complex ends, got ", *dtype);
  return *dtype;
}
Scalar end_value(const char* op, const char* name, const Tensor& end) {
  LAMELLA_CHECK(end.dim() == 0, op, ": expected '", name, "' to have no dimensions, got ",
                end.sizes());
  return end.item();
}
}  // namespace

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, OPTIONS) {
  LAMELLA_CHECK(steps >= 0, "linspace: expected 'steps' of at least 0, got ", steps);
  Tensor result =
      make_on({steps}, space_dtype("linspace", start, end, dtype), layout, device, pin_memory);
  return lamella::linspace_out(result, start, end, steps);
}
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, OPTIONS) {
  LAMELLA_CHECK(steps >= 0, "logspace: expected 'steps' of at least 0, got ", steps);
  Tensor result =
      make_on({steps}, space_dtype("logspace", start, end, dtype), layout, device, pin_memory);
  return lamella::logspace_out(result, start, end, steps, base);
}
Tensor linspace(const Tensor& start, const Tensor& end, int64_t steps, OPTIONS) {
  return native::linspace(end_value("linspace", "start", start), end_value("linspace", "end", end),
                          steps, dtype, layout, device, pin_memory);
}
Tensor linspace(const Tensor& start, const Scalar& end, int64_t steps, OPTIONS) {
  return native::linspace(end_value("linspace", "start", start), end, steps, dtype, layout, device,
                          pin_memory);
}
Tensor linspace(const Scalar& start, const Tensor& end, int64_t steps, OPTIONS) {
  return native::linspace(start, end_value("linspace", "end", end), steps, dtype, layout, device,
                          pin_memory);
}
Tensor logspace(const Tensor& start, const Tensor& end, int64_t steps, double base, OPTIONS) {
  return native::logspace(end_value("logspace", "start", start), end_value("logspace", "end", end),
                          steps, base, dtype, layout, device, pin_memory);
}
Tensor logspace(const Tensor& start, const Scalar& end, int64_t steps, double base, OPTIONS) {
  return native::logspace(end_value("logspace", "start", start), end, steps, base, dtype, layout,
                          device, pin_memory);
}
Tensor logspace(const Scalar& start, const Tensor& end, int64_t steps, double base, OPTIONS) {
  return native::logspace(start, end_value("logspace", "end", end), steps, base, dtype, layout,
                          device, pin_memory);
}

Tensor eye(int64_t n, OPTIONS) { return native::eye(n, n, dtype, layout, device, pin_memory); }
Tensor eye(int64_t n, int64_t m, OPTIONS) {
  LAMELLA_CHECK(n >= 0 && m >= 0, "eye: expected 'n' and 'm' of at least 0, got ", n, " and ", m);
  Tensor result = make_on({n, m}, dtype, layout, device, pin_memory);
  return lamella::eye_out(result, n, m);
}
Tensor& eye_out(int64_t n, Tensor& out) { return lamella::eye_out(out, n, n); }
Tensor& eye_out(int64_t n, int64_t m, Tensor& out) {
  LAMELLA_CHECK(n >= 0 && m >= 0, "eye: expected 'n' and 'm' of at least 0, got ", n, " and ", m);
  resize_output(out, {n, m});
  out.zero_();
  out.diagonal().fill_(1);
  return out;
}

// ---- Random factories ----

Tensor rand(IntArrayRef size, std::optional<Generator> generator, OPTIONS) {
  Tensor result = make_on(size, dtype, layout, device, pin_memory);
  return result.uniform_(0, 1, generator);
}
Tensor rand(IntArrayRef size, OPTIONS) {
  return native::rand(size, std::nullopt, dtype, layout, device, pin_memory);
}
Tensor& rand_out(IntArrayRef size, std::optional<Generator> generator, Tensor& out) {
  resize_output(out, size);
  return out.uniform_(0, 1, generator);
}
Tensor& rand_out(IntArrayRef size, Tensor& out) { return rand_out(size, std::nullopt, out); }
Tensor randn(IntArrayRef size, std::optional<Generator> generator, OPTIONS) {
  Tensor result = make_on(size, dtype, layout, device, pin_memory);
  return result.normal_(0, 1, generator);
}
Tensor randn(IntArrayRef size, OPTIONS) {
  return native::randn(size, std::nullopt, dtype, layout, device, pin_memory);
}
namespace {
Tensor drawn(const char* op, const Tensor& result, int64_t low, int64_t high,
             const std::optional<Generator>& generator) {
  LAMELLA_CHECK(low < high, op, ": expected 'low' to be below 'high', got ", low, " and ", high);
  return result.random_(low, high, generator);
}
}  // namespace
Tensor randint(int64_t low, int64_t high, IntArrayRef size, std::optional<Generator> generator,
               OPTIONS) {
  Tensor result = make_on(size, dtype, layout, device, pin_memory);
  return drawn("randint", result, low, high, generator);
}
Tensor randint(int64_t low, int64_t high, IntArrayRef size, OPTIONS) {
  return native::randint(low, high, size, std::nullopt, dtype, layout, device, pin_memory);
}
Tensor randint(int64_t high, IntArrayRef size, std::optional<Generator> generator, OPTIONS) {
  return native::randint(0, high, size, generator, dtype, layout, device, pin_memory);
}
Tensor randint(int64_t high, IntArrayRef size, OPTIONS) {
  return native::randint(0, high, size, std::nullopt, dtype, layout, device, pin_memory);
}
Tensor randperm(int64_t n, std::optional<Generator> generator, OPTIONS) {
  LAMELLA_CHECK(n >= 0, "randperm: expected 'n' of at least 0, got ", n);
  Tensor result = make_on({n}, dtype.value_or(kLong), layout, device, pin_memory);
  return lamella::randperm_out(result, n, generator);
}
Tensor randperm(int64_t n, OPTIONS) {
  return native::randperm(n, std::nullopt, dtype, layout, device, pin_memory);
}
Tensor rand_like(const Tensor& self, std::optional<Generator> generator, OPTIONS,
                 std::optional<MemoryFormat> memory_format) {
  Tensor result = native::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return result.uniform_(0, 1, generator);
}
Tensor rand_like(const Tensor& self, OPTIONS, std::optional<MemoryFormat> memory_format) {
  return native::rand_like(self, std::nullopt, dtype, layout, device, pin_memory, memory_format);
}
Tensor randn_like(const Tensor& self, std::optional<Generator> generator, OPTIONS,
                  std::optional<MemoryFormat> memory_format) {
  Tensor result = native::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return result.normal_(0, 1, generator);
}
Tensor randn_like(const Tensor& self, OPTIONS, std::optional<MemoryFormat> memory_format) {
  return native::randn_like(self, std::nullopt, dtype, layout, device, pin_memory, memory_format);
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high,
                    std::optional<Generator> generator, OPTIONS,
                    std::optional<MemoryFormat> memory_format) {
  Tensor result = native::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return drawn("randint_like", result, low, high, generator);
}
Tensor randint_like(const Tensor& self, int64_t high, std::optional<Generator> generator, OPTIONS,
                    std::optional<MemoryFormat> memory_format) {
  return native::randint_like(self, 0, high, generator, dtype, layout, device, pin_memory,
                              memory_format);
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, OPTIONS,
                    std::optional<MemoryFormat> memory_format) {
  return native::randint_like(self, low, high, std::nullopt, dtype, layout, device, pin_memory,
                              memory_format);
}
Tensor randint_like(const Tensor& self, int64_t high, OPTIONS,
                    std::optional<MemoryFormat> memory_format) {
  return native::randint_like(self, 0, high, std::nullopt, dtype, layout, device, pin_memory,
                              memory_format);
}

#undef OPTIONS

}  // namespace lamella::native
