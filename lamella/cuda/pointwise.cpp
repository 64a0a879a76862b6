// Chooses and launches the kernels of pointwise loops: Note [One kernel for a function and a type].
//
// Note [Operators with loops for devices]
//   A pointwise operator has one kernel for the CPU and for devices: it promotes, broadcasts and
//   allocates by its iterator, and runs the loop of the device's type (kernels/device_loops.h). So
//   an operator is registered here by running its CPU kernel with the device's tensors. Where a
//   loop serves no operands of that kind, it says so before anything is written, and the operator
//   runs on the CPU.
#include "lamella/cuda/pointwise.h"

#include <atomic>
#include <cstring>
#include <string>

#include "lamella/core/visit_dtype.h"
#include "lamella/cuda/driver.h"
#include "lamella/cuda/kernels/pointwise.h"
#include "lamella/cuda/launch.h"
#include "lamella/kernels/device_loops.h"

namespace lamella::cuda {
namespace {

using native::DeviceLoopCall;
static_assert(native::kLoopDims == kPointwiseDims);

// -1: kernels do not read the dtype.
int kind_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Bool:
      return kBool;
    case ScalarType::Byte:
      return kU8;
    case ScalarType::Char:
      return kI8;
    case ScalarType::Short:
      return kI16;
    case ScalarType::Int:
      return kI32;
    case ScalarType::Long:
      return kI64;
    case ScalarType::Float:
      return kF32;
    case ScalarType::Double:
      return kF64;
    case ScalarType::Half:
      return kF16;
    case ScalarType::BFloat16:
      return kBF16;
    default:
      return -1;
  }
}
constexpr const char* kSuffixes[] = {"b8", "u8", "i8", "i16", "i32", "i64", "f32", "f64"};
bool is_floating(int kind) { return kind >= kF32; }
Kind computed(int kind) { return kind == kF16 || kind == kBF16 ? kF32 : static_cast<Kind>(kind); }
// The kind whose elements have so many bytes, for kernels that only move; -1: none.
int kind_of_bytes(size_t bytes) {
  return bytes == 1 ? kU8 : bytes == 2 ? kI16 : bytes == 4 ? kI32 : bytes == 8 ? kI64 : -1;
}

struct Loop {
  const char* name;
  bool gives_bool = false;
  int scalars = 0;
};
constexpr Loop kLoops[] = {{"copy"},
                           {"add"},
                           {"sub"},
                           {"mul"},
                           {"div_true"},
                           {"maximum"},
                           {"minimum"},
                           {"neg"},
                           {"abs"},
                           {"sqrt"},
                           {"rsqrt"},
                           {"reciprocal"},
                           {"bitwise_and"},
                           {"bitwise_or"},
                           {"bitwise_xor"},
                           {"where"},
                           {"ceil"},
                           {"floor"},
                           {"trunc"},
                           {"round"},
                           {"frac"},
                           {"sign"},
                           {"hardswish"},
                           {"hardsigmoid"},
                           {"prelu"},
                           {"lerp"},
                           {"sigmoid_backward"},
                           {"tanh_backward"},
                           {"hardswish_backward"},
                           {"hardsigmoid_backward"},
                           {"exp"},
                           {"exp2"},
                           {"expm1"},
                           {"sinh"},
                           {"cosh"},
                           {"tanh"},
                           {"sigmoid"},
                           {"log"},
                           {"log2"},
                           {"log10"},
                           {"log1p"},
                           {"sin"},
                           {"cos"},
                           {"tan"},
                           {"erf"},
                           {"erfc"},
                           {"silu"},
                           {"eq", true},
                           {"ne", true},
                           {"lt", true},
                           {"le", true},
                           {"gt", true},
                           {"ge", true},
                           {"logical_and", true},
                           {"logical_or", true},
                           {"logical_xor", true},
                           {"logical_not", true},
                           {"isnan", true},
                           {"isinf", true},
                           {"isfinite", true},
                           {"isposinf", true},
                           {"isneginf", true},
                           {"add_alpha", false, 1},
                           {"addcmul", false, 1},
                           {"addcdiv", false, 1},
                           {"nan_to_num", false, 3},
                           {"clamp_scalar", false, 2},
                           {"clamp_min_scalar", false, 1},
                           {"clamp_max_scalar", false, 1},
                           {"threshold", false, 2},
                           {"leaky_relu", false, 1},
                           {"lerp_scalar", false, 1},
                           {"threshold_backward", false, 1},
                           {"leaky_relu_backward", false, 1},
                           {"hardtanh_backward", false, 2}};
const Loop* loop_of(const char* name) {
  for (const Loop& loop : kLoops) {
    if (std::strcmp(loop.name, name) == 0) return &loop;
  }
  return nullptr;
}
bool has_loop(const char* name) { return loop_of(name) != nullptr; }

void store_scalar(const Scalar& scalar, Kind kind, char* to) {
  auto store = [to](auto value) { std::memcpy(to, &value, sizeof(value)); };
  switch (kind) {
    case kF32:
      return store(scalar.to<float>());
    case kF64:
      return store(scalar.to<double>());
    case kI64:
      return store(scalar.to<int64_t>());
    case kI32:
      return store(scalar.to<int32_t>());
    case kI16:
      return store(scalar.to<int16_t>());
    case kI8:
      return store(scalar.to<int8_t>());
    case kU8:
      return store(scalar.to<uint8_t>());
    default:
      return store(scalar.to<bool>());
  }
}

// The kernel of a loop and type, whose context must be current; NULL: there is none.
void* kernel_of(int device, const Loop& loop, Kind type) {
  constexpr int kTypes = sizeof(kSuffixes) / sizeof(kSuffixes[0]);
  static std::atomic<void*> known[16][sizeof(kLoops) / sizeof(kLoops[0])][kTypes];
  std::atomic<void*>* place = device < 16 ? &known[device][&loop - kLoops][type] : nullptr;
  void* kernel = place != nullptr ? place->load(std::memory_order_acquire) : nullptr;
  if (kernel != nullptr) return kernel;
  kernel = find_kernel(device, str(loop.name, "_", kSuffixes[type]).c_str());
  if (place != nullptr) place->store(kernel, std::memory_order_release);
  return kernel;
}

// Launches the kernel of a loop and type; `kinds`: of the operands.
bool launch_loop(const DeviceLoopCall& call, const Loop& loop, Kind type, const int* kinds) {
  const int device = call.device.index();
  ContextGuard guard(device);
  void* kernel = kernel_of(device, loop, type);
  if (kernel == nullptr) return false;
  PointwiseParameters p{};
  p.numel = call.numel;
  p.ndim = call.ndim;
  p.dense = call.ndim <= 1 ? 1 : 0;
  for (int d = 0; d < call.ndim; ++d) p.sizes[d] = call.sizes[d];
  for (int i = 0; i < call.count; ++i) {
    const auto& from = call.operands[i];
    PointwiseOperand& to = p.operands[i];
    to.kind = static_cast<Kind>(kinds[i]);
    if (from.on_host) {
      std::memcpy(p.numbers[i], from.data, element_size(from.dtype));
      continue;
    }
    to.data = reinterpret_cast<uint64_t>(from.data);
    for (int d = 0; d < call.ndim; ++d) to.strides[d] = from.strides[d];
  }
  for (int i = 0; i < loop.scalars; ++i) store_scalar(call.scalars[i], type, p.scalars[i]);
  launch(device, kernel, loop.name, &p, call.numel);
  return true;
}

bool run_where(const DeviceLoopCall& call, const Loop& loop) {
  const auto* operands = call.operands;
  if (operands[1].dtype != ScalarType::Bool || operands[1].on_host) return false;
  const int kind = kind_of_bytes(element_size(operands[0].dtype));
  int kinds[] = {kind, kBool, kind, kind};
  for (int i = 2; i < 4; ++i) {
    if (operands[i].dtype != operands[0].dtype) return false;
  }
  return kind >= 0 && launch_loop(call, loop, static_cast<Kind>(kind), kinds);
}

bool run_loop(const DeviceLoopCall& call) {
  const Loop& loop = *loop_of(call.name);
  if (std::strcmp(loop.name, "where") == 0) return run_where(call, loop);
  const ScalarType common =
      call.common == ScalarType::Undefined ? call.operands[1].dtype : call.common;
  if (kind_of(common) < 0) return false;
  const Kind type = computed(kind_of(common));
  int kinds[4];
  for (int i = 0; i < call.count; ++i) {
    kinds[i] = kind_of(call.operands[i].dtype);
    if (kinds[i] < 0) return false;
    if (i == 0) continue;
    // What promotes to the type; a bool that stands for a number is only read as such.
    if (is_floating(kinds[i]) && !is_floating(type)) return false;
    if (type == kBool && kinds[i] != kBool) return false;
  }
  const bool fits = loop.gives_bool ? kinds[0] == kBool : kinds[0] == kind_of(common);
  return fits && launch_loop(call, loop, type, kinds);
}
constexpr native::DeviceLoops kDeviceLoops{&has_loop, &run_loop};

}  // namespace

lamella_status run_structured(const lamella_kernel* kernel, const lamella_operator* op,
                              uint64_t key_set, const lamella_value* arguments,
                              lamella_value* returns) noexcept {
  for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = lamella_value{{0}, 0, 0, 0, 0};
  const uint64_t cpu = DispatchKeySet(DispatchKey::CPU).raw_repr();
  const lamella_status status = lamella::abi::call_boxed(op, cpu, arguments, returns);
  if (status != LAMELLA_NOT_IMPLEMENTED) return status;
  return counting_fallback(kernel, op, key_set, arguments, returns);
}

namespace {

// ---- Copies and fills ----

// The call of a loop over two tensors of one device, the second broadcast to the first. False: it
// has too many dimensions.
bool describe_copy(const Tensor& to, const Tensor& from, DeviceLoopCall* call) {
  call->device = to.device();
  call->count = 2;
  call->numel = to.numel();
  call->operands[0] = {to.data_ptr(), to.scalar_type(), false, {}};
  call->operands[1] = {from.data_ptr(), from.scalar_type(), false, {}};
  const int64_t missing = to.dim() - from.dim();
  for (int64_t d = to.dim() - 1; d >= 0; --d) {
    const int64_t size = to.size(d);
    if (size == 1) continue;
    int64_t strides[2] = {to.stride(d) * static_cast<int64_t>(to.itemsize()), 0};
    const int64_t other = d - missing;
    if (other >= 0 && from.size(other) != 1) {
      strides[1] = from.stride(other) * static_cast<int64_t>(from.itemsize());
    }
    int at = call->ndim - 1;
    const bool joins = at >= 0 && strides[0] == call->sizes[at] * call->operands[0].strides[at] &&
                       strides[1] == call->sizes[at] * call->operands[1].strides[at];
    if (joins) {
      call->sizes[at] *= size;
      continue;
    }
    if (++at == kPointwiseDims) return false;
    call->ndim = at + 1;
    call->sizes[at] = size;
    for (int i = 0; i < 2; ++i) call->operands[i].strides[at] = strides[i];
  }
  return true;
}

bool copy_by_kernel(const Tensor& to, const Tensor& from) {
  if (to.is_alias_of(from)) return false;  // they may overlap
  DeviceLoopCall call{};
  if (!describe_copy(to, from, &call)) return false;
  if (to.scalar_type() == from.scalar_type()) {
    const int kind = kind_of_bytes(to.itemsize());
    const int kinds[] = {kind, kind};
    return kind >= 0 && launch_loop(call, kLoops[0], static_cast<Kind>(kind), kinds);
  }
  const int kinds[] = {kind_of(to.scalar_type()), kind_of(from.scalar_type())};
  if (kinds[0] < 0 || kinds[1] < 0) return false;
  // Out of range, the CPU's conversions to integers are its own; halves come from float.
  if (!is_floating(kinds[0]) && is_floating(kinds[1])) return false;
  if (kinds[0] >= kF16 && (kinds[1] < kF32 || kinds[1] == kF64)) return false;
  return launch_loop(call, kLoops[0], computed(kinds[0]), kinds);
}

lamella_status copy_from(const lamella_kernel*, const lamella_operator* op, uint64_t,
                         const lamella_value* arguments, lamella_value* returns) noexcept {
  bool done = false;
  const lamella_status status = lamella::detail::guarded([&] {
    Tensor from(TensorBase::borrow(arguments[0].as.tensor));
    Tensor to(TensorBase::borrow(arguments[1].as.tensor));
    const bool alike = from.scalar_type() == to.scalar_type() && from.sizes() == to.sizes() &&
                       to.is_non_overlapping_and_dense() && from.strides() == to.strides();
    if (from.device() != to.device() || alike || to.numel() == 0) return;
    done = copy_by_kernel(to, from);
    if (done) returns[0] = IValue(TensorBase(to)).unsafe_release();
  });
  if (done || status != LAMELLA_OK) return status;
  const uint64_t cpu = DispatchKeySet(DispatchKey::CPU).raw_repr();
  return lamella::abi::call_boxed(op, cpu, arguments, returns);
}

// Writes one element everywhere; false: it has 16 bytes.
bool fill_by_kernel(const Tensor& self, const void* element) {
  const int kind = kind_of_bytes(self.itemsize());
  DeviceLoopCall call{};
  if (kind < 0 || !describe_copy(self, self, &call)) return false;
  call.operands[1].data = const_cast<void*>(element);
  call.operands[1].on_host = true;
  const int kinds[] = {kind, kind};
  return launch_loop(call, kLoops[0], static_cast<Kind>(kind), kinds);
}
Tensor& fill(Tensor& self, const Scalar& value) {
  alignas(16) char element[16] = {};
  if (self.numel() == 0) return self;
  visit_stored(self.scalar_type(), "fill_", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    T converted = value.to<T>();
    std::memcpy(element, &converted, sizeof(T));
  });
  if (!fill_by_kernel(self, element)) {
    return lamella::call_cpu_fallback<lamella::ops::fill__Scalar>(self, value);
  }
  lamella_tensor_bump_version(self.impl());
  return self;
}
Tensor& zero(Tensor& self) {
  const char element[16] = {};
  if (self.numel() == 0) return self;
  if (!fill_by_kernel(self, element)) {
    return lamella::call_cpu_fallback<lamella::ops::zero_>(self);
  }
  lamella_tensor_bump_version(self.impl());
  return self;
}

// The operators whose loops are those of kLoops.
constexpr const char* kOperators =
    "add sub mul div maximum minimum neg abs sqrt rsqrt reciprocal addcmul addcdiv eq ne "
    "lt le gt ge logical_and logical_or logical_xor logical_not bitwise_and bitwise_or "
    "bitwise_xor isnan where ceil floor trunc round frac sign isinf isfinite isposinf "
    "isneginf nan_to_num clamp clamp_min clamp_max relu hardtanh threshold leaky_relu "
    "hardswish hardsigmoid _prelu_kernel lerp sigmoid_backward tanh_backward "
    "threshold_backward leaky_relu_backward hardtanh_backward hardswish_backward "
    "hardsigmoid_backward exp exp2 expm1 sinh cosh tanh sigmoid log log2 log10 log1p sin "
    "cos tan erf erfc silu ";
constexpr const char* kOverloads[] = {"",           "Tensor",     "Scalar",     "self",    "out",
                                      "grad_input", "Tensor_out", "Scalar_out", "self_out"};

}  // namespace

void register_pointwise(Library& aten) {
  native::set_device_loops(DeviceType::CUDA, &kDeviceLoops);
  for (std::string rest = kOperators; !rest.empty(); rest.erase(0, rest.find(' ') + 1)) {
    const std::string base = rest.substr(0, rest.find(' '));
    for (const std::string& name : {base, base + "_"}) {
      for (const char* overload : kOverloads) {
        const std::string full = "aten::" + name;
        if (lamella_lookup_operator(full.c_str(), overload, 1) == nullptr) continue;
        const std::string qualified = *overload != '\0' ? name + "." + overload : name;
        aten.impl(qualified.c_str(), CppFunction::makeFromBoxedKernel(&run_structured));
      }
    }
  }
  aten.impl("_copy_from", CppFunction::makeFromBoxedKernel(&copy_from));
  aten.impl("fill_.Scalar", LAMELLA_FN(&fill));
  aten.impl("zero_", LAMELLA_FN(&zero));
}

}  // namespace lamella::cuda
