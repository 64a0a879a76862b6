// Chooses and launches the kernels of pointwise loops: Note [One kernel for a function and a type].
//
// Note [Operators with loops for devices]
//   A pointwise operator has one kernel for the CPU and for devices: it promotes, broadcasts and
//   allocates by its iterator, and runs the loop of the device's type (kernels/device_loops.h). So
//   an operator is registered here by running its CPU kernel with the device's tensors. Where a
//   loop serves no operands of that kind, it says so before anything is written, and the operator
//   runs on the CPU.
#include "lamella/cuda/families.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <string>

#include "lamella/core/visit_dtype.h"
#include "lamella/cuda/driver.h"
#include "lamella/cuda/kernels/pointwise_parameters.h"
#include "lamella/cuda/kernels/pointwise_table.h"
#include "lamella/cuda/launch.h"
#include "lamella/kernels/device_loops.h"

namespace lamella::cuda {

namespace {

using native::DeviceLoopCall;
static_assert(native::kLoopDims == kPointwiseDims);

// The type in which a kind is computed.
Kind computed(int kind) {
  static constexpr Kind kComputed[] = {kI32, kI32, kI32, kI32, kI32, kI64, kF32, kF64,
                                       kF32, kF32, kI32, kI64, kU64, kC64, kC128};
  return kComputed[kind];
}
// Bool, integers, floating point, complex.
int category(int kind) {
  return kind == kBool ? 0 : kind >= kC64 ? 3 : kind >= kF32 && kind <= kBF16 ? 2 : 1;
}
// The kind and the type of kernels that only move elements of so many bytes; -1: none.
int kind_of_bytes(size_t bytes) {
  static constexpr int kKinds[] = {kU8, kI16, kI32, kI64, kC128};
  return bytes <= 16 && std::has_single_bit(bytes) ? kKinds[std::countr_zero(bytes)] : -1;
}

enum class Result : uint8_t { kSame, kBool, kReal };
struct Loop {
  const char* name;
  int inputs;
  Result result;
  int scalars;
  bool takes_bool, takes_u64;
};
constexpr bool has_letter(const char* text, char letter) {
  for (; *text != '\0'; ++text) {
    if (*text == letter) return true;
  }
  return false;
}
#define LAMELLA_LOOP(loop, F, n, result, scalars, types, accepts) \
  {#loop, n, Result::k##result, scalars, has_letter(#accepts, 'B'), has_letter(#accepts, 'W')},
constexpr Loop kLoops[] = {LAMELLA_ARITHMETIC_LOOPS(LAMELLA_LOOP) LAMELLA_LOGIC_LOOPS(LAMELLA_LOOP)
                               LAMELLA_ACTIVATION_LOOPS(LAMELLA_LOOP)
                                   LAMELLA_ELEMENTARY_LOOPS(LAMELLA_LOOP)
                                       LAMELLA_SPECIAL_LOOPS(LAMELLA_LOOP)};
constexpr size_t kLoopCount = sizeof(kLoops) / sizeof(kLoops[0]);
constexpr int index_of(const char* name) {
  for (int i = 0;; ++i) {
    const char *a = kLoops[i].name, *b = name;
    while (*a != '\0' && *a == *b) ++a, ++b;
    if (*a == *b) return i;
  }
}
constexpr const Loop& kCopy = kLoops[0];
constexpr const Loop* kDivisions[] = {&kLoops[index_of("div_trunc")],
                                      &kLoops[index_of("div_floor")], &kLoops[index_of("floordiv")],
                                      &kLoops[index_of("remainder")], &kLoops[index_of("fmod")]};
constexpr const Loop& kWhere = kLoops[index_of("where")];
constexpr const Loop& kLogicalNot = kLoops[index_of("logical_not")];
constexpr const Loop& kBitwiseNot = kLoops[index_of("bitwise_not")];
const Loop* loop_of(const char* name) {
  for (const Loop& loop : kLoops) {
    if (std::strcmp(loop.name, name) == 0) return &loop;
  }
  return nullptr;
}
// The same for the names of calls, which are one string for each loop: found by its address.
const Loop* loop_of_call(const char* name) {
  struct Known {
    const char* name;
    const Loop* loop;
  };
  static std::atomic<const Known*> known[512];
  std::atomic<const Known*>& place = known[(reinterpret_cast<uintptr_t>(name) >> 2) % 512];
  const Known* found = place.load(std::memory_order_acquire);
  if (LAMELLA_LIKELY(found != nullptr && found->name == name)) return found->loop;
  const Loop* loop = loop_of(name);
  if (found == nullptr) {  // a place keeps its first name
    const auto* made = new Known{name, loop};
    if (!place.compare_exchange_strong(found, made)) delete made;
  }
  return loop;
}
bool has_loop(const char* name) { return loop_of(name) != nullptr; }

// A number in the type of a kernel, converted to `dtype` before. The CPU computes uint16 and uint32
// as int64, and halves as float.
void store_scalar(const Scalar& scalar, ScalarType dtype, Kind type, char* to) {
  auto store = [to](auto converted) { std::memcpy(to, &converted, sizeof(converted)); };
  visit_stored(dtype, "", [&](auto tag) {
    using S = type_of<decltype(tag)>;
    constexpr bool kIsWide = std::is_same_v<S, uint16_t> || std::is_same_v<S, uint32_t>;
    if constexpr (is_complex_type_v<S>) {
      if constexpr (sizeof(S) >= 8) store(scalar.to<S>());
    } else if constexpr (std::is_integral_v<S>) {
      const auto value = scalar.to<std::conditional_t<kIsWide, int64_t, S>>();
      type == kI32 ? store(static_cast<int32_t>(value)) : store(static_cast<int64_t>(value));
    } else {
      const auto value = scalar.to<std::conditional_t<std::is_same_v<S, double>, double, float>>();
      type == kF32 ? store(static_cast<float>(value)) : store(static_cast<double>(value));
    }
  });
}

// The kernel of a loop and type, whose context must be current; NULL: there is none.
void* kernel_of(int device, const Loop& loop, Kind type) {
  static std::atomic<void*> known[16][kLoopCount][kC128 + 1];
  static char absent;  // what `known` has for no kernel
  std::atomic<void*>* place = device < 16 ? &known[device][&loop - kLoops][type] : nullptr;
  void* kernel = place != nullptr ? place->load(std::memory_order_acquire) : nullptr;
  if (LAMELLA_LIKELY(kernel != nullptr)) return kernel == &absent ? nullptr : kernel;
  kernel = find_kernel(device, str(loop.name, "_", suffix_of_kind(type)).c_str());
  // Many functions of int64 are those of uint64.
  if (kernel == nullptr && type == kU64 && loop.takes_u64) {
    kernel = find_kernel(device, str(loop.name, "_i64").c_str());
  }
  if (place != nullptr) {
    place->store(kernel != nullptr ? kernel : &absent, std::memory_order_release);
  }
  return kernel;
}

// What a launch needs beside the places of its operands.
struct Launch {
  int device;
  void* kernel;
  const Loop* loop;
  Kind type;
  bool moves;  // the kernel reads every kind by vectors
  PointwiseParameters p;
};

Divisor divisor_of(uint32_t size) {
  uint32_t shift = 0;
  while (shift < 32 && (uint64_t{1} << shift) < size) ++shift;
  const uint64_t one = uint64_t{1} << shift;
  return {static_cast<uint32_t>(((one - size) << 32) / size + 1), shift};
}
// Whether a thread may compute neighbours: Note [Vectors of a thread].
bool takes_vectors(const DeviceLoopCall& call, const Launch& launch) {
  const PointwiseParameters& p = launch.p;
  const int64_t elements = launch.type == kC128                         ? 2
                           : launch.type == kI32 || launch.type == kF32 ? 8
                           : launch.type == kBool                       ? 8
                                                                        : 4;
  if (call.ndim > 1 && call.sizes[0] % elements != 0) return false;
  uint64_t misaligned = 0;
  for (int i = 0; i < call.count; ++i) {
    const PointwiseOperand& operand = p.operands[i];
    if (operand.data == 0) continue;
    const int64_t* strides = call.operands[i].strides;
    const auto bytes = static_cast<int64_t>(element_size(call.operands[i].dtype));
    const int64_t inner = call.ndim == 0 ? bytes : strides[0];
    if (inner == 0 && i != 0) continue;
    const bool is_read_so =
        launch.moves || natural(launch.type, operand.kind) ||
        (i == 0 ? launch.loop->result != Result::kSame : i == 1 && launch.loop == &kWhere);
    if (inner != bytes || !is_read_so) return false;
    uint64_t all = operand.data;
    for (int d = 1; d < call.ndim; ++d) all |= static_cast<uint64_t>(strides[d]);
    const int64_t align = bytes * elements < 16 ? bytes * elements : 16;
    misaligned |= all & static_cast<uint64_t>(align - 1);
  }
  return misaligned == 0;
}
// Launches a call, in parts whose offsets fit 32 bits.
void launch_part(const DeviceLoopCall& call, Launch& launch) {
  constexpr int64_t kEnd = int64_t{1} << 31;
  bool fits = call.numel < kEnd;
  for (int i = 0; i < call.count && fits; ++i) {
    int64_t extent = 0;
    for (int d = 0; d < call.ndim; ++d) {
      const int64_t stride = call.operands[i].strides[d];
      extent += (stride < 0 ? -stride : stride) * (call.sizes[d] - 1);
    }
    fits = call.operands[i].on_host || extent < kEnd;
  }
  if (LAMELLA_UNLIKELY(!fits)) {
    // The outermost dimension that can be divided.
    int d = call.ndim - 1;
    while (call.sizes[d] < 2) --d;
    DeviceLoopCall part = call;
    const int64_t middle = call.sizes[d] / 2, half = middle < 32 ? middle : (middle + 31) / 32 * 32;
    for (int64_t begin = 0; begin < call.sizes[d]; begin += half) {
      part.sizes[d] = call.sizes[d] - begin < half ? call.sizes[d] - begin : half;
      part.numel = call.numel / call.sizes[d] * part.sizes[d];
      for (int i = 0; i < call.count; ++i) {
        if (call.operands[i].on_host) continue;
        part.operands[i].data =
            static_cast<char*>(call.operands[i].data) + begin * call.operands[i].strides[d];
      }
      launch_part(part, launch);
    }
    return;
  }
  PointwiseParameters& p = launch.p;
  p.numel = static_cast<uint32_t>(call.numel);
  p.ndim = call.ndim;
  for (int d = 0; d < call.ndim; ++d) {
    p.sizes[d] = static_cast<uint32_t>(call.sizes[d]);
    if (call.ndim > 1) p.divisors[d] = divisor_of(p.sizes[d]);
  }
  for (int i = 0; i < call.count; ++i) {
    if (call.operands[i].on_host) continue;
    p.operands[i].data = reinterpret_cast<uint64_t>(call.operands[i].data);
    for (int d = 0; d < call.ndim; ++d) {
      p.operands[i].strides[d] = static_cast<int32_t>(call.operands[i].strides[d]);
    }
  }
  p.vectors = takes_vectors(call, launch) ? 1 : 0;
  const int64_t elements = launch.type == kF64 || launch.type == kC128 ? 2 : 4;
  cuda::launch(launch.device, launch.kernel, launch.loop->name, &p,
               (call.numel + elements - 1) / elements);
}

// Launches the kernel of a loop and type; `kinds`: of the operands. False: there is none.
// `common`: the operator's dtype.
bool launch_loop(const DeviceLoopCall& call, const Loop& loop, Kind type, const int* kinds,
                 ScalarType common = ScalarType::Undefined) {
  Launch launch;
  launch.device = call.device.index();
  ContextGuard guard(launch.device);
  launch.kernel = kernel_of(launch.device, loop, type);
  if (launch.kernel == nullptr) return false;
  launch.loop = &loop;
  launch.type = type;
  launch.moves = &loop == &kCopy;
  PointwiseParameters& p = launch.p;
  p.small = common == ScalarType::Half ? 1 : common == ScalarType::BFloat16 ? 2 : 0;
  for (int i = 0; i < call.count; ++i) {
    p.operands[i].kind = static_cast<Kind>(kinds[i]);
    p.operands[i].data = 0;
    p.operands[i].strides[0] = 0;
    if (call.operands[i].on_host) {
      std::memcpy(p.numbers[i], call.operands[i].data, element_size(call.operands[i].dtype));
    }
  }
  for (int i = 0; i < loop.scalars; ++i) {
    store_scalar(call.scalars[i], common, type, p.scalars[i]);
  }
  launch_part(call, launch);
  return true;
}

// The type of the kernel that converts to a kind: integers wrap as the CPU's conversions do.
Kind type_of_copy(int to, int from) {
  if (to == kBool) return kBool;
  const bool wide = (to == kU8 || to == kU16) && category(from) >= 2;
  return wide ? kI64 : computed(to);
}
// A dense temporary in the place of an operand.
auto dense_operand(const DeviceLoopCall& call, const Tensor& made) {
  auto operand = call.operands[0];
  operand = {made.data_ptr(), made.scalar_type(), false, {}};
  auto stride = static_cast<int64_t>(made.itemsize());
  for (int d = 0; d < call.ndim; ++d) {
    operand.strides[d] = stride;
    stride *= call.sizes[d];
  }
  return operand;
}
// Computes into a dense temporary in the loop's type, and converts it to the result's dtype.
bool run_converted(DeviceLoopCall call, bool (*run)(const DeviceLoopCall&), ScalarType dtype) {
  const int kinds[] = {kind_of(call.operands[0].dtype), kind_of(dtype)};
  if (kinds[0] < 0) return false;
  Tensor made = lamella::empty({call.numel}, TensorOptions(dtype).device(call.device));
  DeviceLoopCall copy = call;
  copy.count = 2;
  copy.operands[1] = dense_operand(call, made);
  call.operands[0] = copy.operands[1];
  return run(call) && launch_loop(copy, kCopy, type_of_copy(kinds[0], kinds[1]), kinds);
}

// Operands of another dtype than the result are converted first: numbers here, tensors by a kernel.
bool run_where(DeviceLoopCall call, const Loop& loop) {
  auto* operands = call.operands;
  if (operands[1].dtype != ScalarType::Bool || operands[1].on_host) return false;
  const ScalarType dtype = operands[0].dtype;
  const int kind = kind_of_bytes(element_size(dtype)), kind_there = kind_of(dtype);
  char numbers[2][16];
  Tensor tensors[2];
  for (int i = 2; i < 4; ++i) {
    auto& operand = operands[i];
    if (operand.dtype == dtype) continue;
    const int kinds[] = {kind_there, kind_of(operand.dtype)};
    if (kinds[0] < 0 || kinds[1] < 0) return false;
    if (operand.on_host) {
      visit_numbers(operand.dtype, call.name, [&](auto from) {
        type_of<decltype(from)> given;
        std::memcpy(&given, operand.data, sizeof(given));
        visit_numbers(dtype, call.name, [&](auto to) {
          const auto number = Scalar(given).template to<type_of<decltype(to)>>();
          std::memcpy(numbers[i - 2], &number, sizeof(number));
        });
      });
      operand.data = numbers[i - 2];
      operand.dtype = dtype;
      continue;
    }
    tensors[i - 2] = lamella::empty({call.numel}, TensorOptions(dtype).device(call.device));
    DeviceLoopCall copy = call;
    copy.count = 2;
    copy.operands[0] = dense_operand(call, tensors[i - 2]);
    copy.operands[1] = operand;
    if (!launch_loop(copy, kCopy, type_of_copy(kinds[0], kinds[1]), kinds)) return false;
    operand = copy.operands[0];
  }
  const int kinds[] = {kind, kBool, kind, kind};
  return kind >= 0 && launch_loop(call, loop, computed(kind), kinds);
}

bool run_loop(const DeviceLoopCall& call) {
  const Loop* loop = loop_of_call(call.name);
  if (loop == &kWhere) return run_where(call, *loop);
  const ScalarType common =
      call.common == ScalarType::Undefined ? call.operands[1].dtype : call.common;
  const int common_kind = kind_of(common);
  if (common_kind < 0 || call.count != loop->inputs + 1) return false;
  if ((common_kind == kBool && !loop->takes_bool) || (common_kind == kU64 && !loop->takes_u64)) {
    return false;
  }
  if (common_kind == kBool && loop == &kBitwiseNot) loop = &kLogicalNot;
  // Division of integers by the number 0 is the CPU's to refuse.
  if (call.count == 3 && call.operands[2].on_host && category(common_kind) <= 1) {
    const char zero[16] = {};
    const auto& number = call.operands[2];
    const bool is_zero = std::memcmp(number.data, zero, element_size(number.dtype)) == 0;
    for (const Loop* division : kDivisions) {
      if (is_zero && loop == division) return false;
    }
  }
  const Kind type = computed(common_kind);
  int kinds[native::kLoopOperands];
  for (int i = 0; i < call.count; ++i) {
    kinds[i] = kind_of(call.operands[i].dtype);
    if (kinds[i] < 0) return false;
    // What promotes to the type.
    if (i != 0 && category(kinds[i]) > category(common_kind)) return false;
  }
  ScalarType made = loop->result == Result::kBool   ? ScalarType::Bool
                    : loop->result == Result::kReal ? to_real_type(common)
                                                    : common;
  const bool fits = call.operands[0].dtype == made ||
                    (type == kF32 && computed(kinds[0]) == kF32 && loop->result != Result::kBool);
  if (fits) return launch_loop(call, *loop, type, kinds, common);
  // Halves are computed, and converted, as float32.
  if (made == ScalarType::Half || made == ScalarType::BFloat16) made = ScalarType::Float;
  return run_converted(call, &run_loop, made);
}
constexpr native::DeviceLoops kDeviceLoops{&has_loop, &run_loop};

}  // namespace

lamella_status run_structured(const lamella_kernel* kernel, const lamella_operator* op,
                              uint64_t key_set, const lamella_value* arguments,
                              lamella_value* returns) noexcept {
  for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = lamella_value{{0}, 0, 0, 0, 0};
  const lamella_status status = call_kernel_of_cpu(op, arguments, returns);
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
    return kind >= 0 && launch_loop(call, kCopy, computed(kind), kinds);
  }
  const int kinds[] = {kind_of(to.scalar_type()), kind_of(from.scalar_type())};
  if (kinds[0] < 0 || kinds[1] < 0) return false;
  return launch_loop(call, kCopy, type_of_copy(kinds[0], kinds[1]), kinds);
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
  return call_kernel_of_cpu(op, arguments, returns);
}

// Writes one element everywhere; false: it has too many dimensions.
bool fill_by_kernel(const Tensor& self, const void* element) {
  const int kind = kind_of_bytes(self.itemsize());
  DeviceLoopCall call{};
  if (kind < 0 || !describe_copy(self, self, &call)) return false;
  call.operands[1].data = const_cast<void*>(element);
  call.operands[1].on_host = true;
  const int kinds[] = {kind, kind};
  return launch_loop(call, kCopy, computed(kind), kinds);
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
    return counted_fallback<lamella::ops::fill__Scalar>(self, value);
  }
  lamella_tensor_bump_version(self.impl());
  return self;
}
Tensor& zero(Tensor& self) { return fill(self, Scalar(0)); }

// The operators whose loops are those of kLoops.
constexpr const char* kOperators =
    "add sub mul div floor_divide floordiv maximum minimum fmax fmin neg abs sgn conj_physical "
    "sqrt rsqrt reciprocal pow copysign heaviside gcd lcm fmod remainder nextafter hypot atan2 "
    "addcmul addcdiv eq ne lt le gt ge logical_and logical_or logical_xor logical_not "
    "bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift isnan "
    "isinf isfinite isposinf isneginf signbit where ceil floor trunc round frac sign nan_to_num "
    "clamp clamp_min clamp_max relu hardtanh threshold leaky_relu hardswish hardsigmoid "
    "hardshrink softshrink softplus elu mish silu gelu log_sigmoid _prelu_kernel lerp "
    "sigmoid_backward tanh_backward threshold_backward leaky_relu_backward hardtanh_backward "
    "hardswish_backward hardsigmoid_backward hardshrink_backward softshrink_backward "
    "softplus_backward elu_backward mish_backward silu_backward gelu_backward "
    "log_sigmoid_backward logit_backward exp exp2 expm1 sinh cosh tanh sigmoid log log2 log10 "
    "log1p sin cos tan asin acos atan asinh acosh atanh erf erfc erfinv special_erfcx "
    "special_ndtri special_log_ndtr lgamma digamma polygamma i0 special_i0e special_i1 "
    "special_i1e special_entr xlogy special_xlog1py sinc logit logaddexp logaddexp2 ";
// The first overload has no name.
constexpr const char* kOverloads =
    " out Tensor Tensor_out Scalar Scalar_out self self_out grad_input Tensor_mode out_mode "
    "decimals Scalar_mode Scalar_mode_out Scalar_Tensor OutTensor Tensor_Tensor "
    "Scalar_Tensor_out Tensor_Tensor_out Tensor_Scalar OutScalar_Other OutScalar_Self "
    "Scalar_Other Scalar_Self Tensor_Scalar_out decimals_out ";

}  // namespace

const native::DeviceLoops* register_pointwise(Library& aten) {
  each_word(kOperators, [&](const std::string& base) {
    for (const std::string& name : {base, base + "_"}) {
      each_word(kOverloads, [&](const std::string& overload) {
        if (!lamella_lookup_operator(("aten::" + name).c_str(), overload.c_str(), 1)) return;
        const std::string full = overload.empty() ? name : name + "." + overload;
        aten.impl(full.c_str(), CppFunction::makeFromBoxedKernel(&run_structured));
      });
    }
  });
  aten.impl("_copy_from", CppFunction::makeFromBoxedKernel(&copy_from));
  aten.impl("fill_.Scalar", LAMELLA_FN(&fill));
  aten.impl("zero_", LAMELLA_FN(&zero));
  return &kDeviceLoops;
}

}  // namespace lamella::cuda
