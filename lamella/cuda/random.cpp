// Launches the kernels of random numbers: Note [Streams of numbers on a device] in
// kernels/random.h.
#include "lamella/cuda/families.h"

#include <algorithm>
#include <cmath>

#include "lamella/core/generator_impl.h"
#include "lamella/cuda/driver.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/kernels/random_parameters.h"
#include "lamella/cuda/launch.h"
#include "lamella/kernels/dims.h"

namespace lamella::cuda {
namespace {

using MaybeGenerator = std::optional<Generator>;
constexpr unsigned kBlock = 256;

// Sets the seed and the offset of a launch to those of a generator, which it moves on; on a
// captured stream to the device's memory of them, and what is added to the offset.
void take(const char* op, const MaybeGenerator& given, Device device, uint64_t draws, Drawing* to) {
  const bool is_given = given && given->defined();
  const Generator handle = is_given ? *given : default_device_generator(device);
  GeneratorImpl& generator = GeneratorImpl::of(handle);
  LAMELLA_CHECK(generator.device == device, op, ": expected 'generator' on ", device,
                ", got one on ", generator.device);
  draws = (draws + 3) / 4 * 4;
  if (is_any_captured()) {
    const CapturedDraw draw = captured_draw(device.index(), handle, draws);
    to->offset = draw.offset;
    to->state = draw.state;
    if (draw.state != 0) return;
  }
  std::lock_guard lock(generator.mutex);
  const PhiloxState state = take_philox(generator, draws);
  to->seed = state.seed;
  to->offset = state.offset;
}

// As many blocks as the elements need and the device runs at once; and what a launch draws, of
// `each` numbers at a time.
Shape shape_of(int device, int64_t numel, int64_t each, uint64_t* draws) {
  const DeviceFacts& facts = Driver::facts(device);
  const int64_t most =
      int64_t{facts.multiprocessors} * (facts.threads_of_multiprocessor / static_cast<int>(kBlock));
  const int64_t wanted = (numel + kBlock - 1) / kBlock;
  Shape shape;
  shape.grid[0] = static_cast<unsigned>(wanted < most ? wanted : most);
  shape.block[0] = kBlock;
  *draws = static_cast<uint64_t>((numel - 1) / (int64_t{kBlock} * shape.grid[0] * each) + 1) * 4;
  return shape;
}

// Gives a tensor the numbers that f draws into dense memory of its order: its own, or a copy.
template <class F>
Tensor& draw(Tensor& self, F&& f) {
  Tensor dense = self.is_non_overlapping_and_dense() ? self : lamella::empty_like(self);
  f(dense);
  if (!dense.is_alias_of(self)) return self.copy_(dense);
  lamella_tensor_bump_version(self.impl());
  return self;
}
void launch_drawing(Device device, const char* name, const char* suffix, const Drawing& parameters,
                    const Shape& shape) {
  ContextGuard guard(device.index());
  LAMELLA_CHECK(launch_named(device.index(), name, suffix, &parameters, shape),
                "expected kernels of CUDA, got a build without them");
}
bool is_served(const Tensor& self) {
  ContextGuard guard(self.device().index());
  return kind_of(self.scalar_type()) >= 0 && find_kernel(self.device().index(), "random_f32");
}

// A number as a dtype rounds it.
double rounded(ScalarType dtype, double x) {
  return dtype == kDouble ? x
         : dtype == kHalf ? static_cast<double>(static_cast<float>(Half(static_cast<float>(x))))
         : dtype == kBFloat16
             ? static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(x))))
             : static_cast<double>(static_cast<float>(x));
}

// Parameters for an output.
template <class P>
P drawing(const Tensor& to, P p = {}) {
  p.out = address_of(to);
  p.numel = static_cast<uint64_t>(to.numel());
  p.kind = static_cast<Kind>(kind_of(to.scalar_type()));
  return p;
}
Tensor& draw_numbers(const char* op, Tensor& self, const RandomParameters& what, bool wide,
                     const MaybeGenerator& generator) {
  return draw(self, [&](Tensor& to) {
    const Device device = to.device();
    auto p = drawing<RandomParameters>(to, what);
    uint64_t draws = 0;
    const Shape shape = shape_of(device.index(), to.numel(), wide ? 2 : 4, &draws);
    take(op, generator, device, draws, &p);
    const bool whole = p.what == kIntegers;
    launch_drawing(device, "random", whole ? wide ? "u64" : "u32" : wide ? "f64" : "f32", p, shape);
  });
}
Tensor& draw_floats(const char* op, Tensor& self, Distribution what, double a, double b,
                    const MaybeGenerator& generator) {
  RandomParameters p{};
  p.what = what;
  p.a = a;
  p.b = b;
  return draw_numbers(op, self, p, self.scalar_type() == kDouble, generator);
}
Tensor& draw_integers(const char* op, Tensor& self, int64_t base, uint64_t range, bool wide,
                      const MaybeGenerator& generator) {
  RandomParameters p{};
  p.what = kIntegers;
  p.range = range;
  p.base = base;
  return draw_numbers(op, self, p, wide, generator);
}

// The CPU's checks of an operator's arguments, on a tensor without elements.
template <class F>
void check_as_cpu(const Tensor& self, F&& f) {
  Tensor none = lamella::empty({0}, TensorOptions(self.scalar_type()));
  f(none);
}
constexpr int64_t kPastNarrow = int64_t{1} << 28;  // longer ranges are drawn from 64 bits

Tensor& uniform_(Tensor& self, double from, double to, MaybeGenerator generator) {
  check_as_cpu(self, [&](Tensor& none) { none.uniform_(from, to); });
  if (self.numel() == 0) return self;
  if (self.is_complex()) {
    Tensor parts = lamella::view_as_real(self);
    uniform_(parts, from, to, generator);
    return self;
  }
  if (!is_served(self)) {
    return counted_fallback<lamella::ops::uniform_>(self, from, to, generator);
  }
  const ScalarType dtype = self.scalar_type();
  return draw_floats("uniform_", self, kUniform, rounded(dtype, from), rounded(dtype, to),
                     generator);
}
Tensor& normal_(Tensor& self, double mean, double std, MaybeGenerator generator) {
  check_as_cpu(self, [&](Tensor& none) { none.normal_(mean, std); });
  if (self.numel() == 0) return self;
  if (self.is_complex()) {  // the variance is shared by both parts
    Tensor parts = lamella::view_as_real(self);
    normal_(parts, mean, std / 1.41421356237309504880, generator);
    return self;
  }
  if (!is_served(self)) {
    return counted_fallback<lamella::ops::normal_>(self, mean, std, generator);
  }
  return draw_floats("normal_", self, kNormal, mean, std, generator);
}
// One operator of a floating-point distribution.
#define LAMELLA_DRAWN(op, name, what, arguments, first, second, ...)           \
  Tensor& op arguments {                                                       \
    check_as_cpu(self, [&](Tensor& none) { none.name(__VA_ARGS__); });         \
    if (self.numel() == 0) return self;                                        \
    if (!is_served(self)) {                                                    \
      return counted_fallback<lamella::ops::op>(self, __VA_ARGS__, generator); \
    }                                                                          \
    return draw_floats(#name, self, what, first, second, generator);           \
  }
LAMELLA_DRAWN(exponential_, exponential_, kExponential,
              (Tensor & self, double lambd, MaybeGenerator generator), lambd, 0, lambd)
LAMELLA_DRAWN(log_normal_, log_normal_, kLogNormal,
              (Tensor & self, double mean, double std, MaybeGenerator generator), mean, std, mean,
              std)
LAMELLA_DRAWN(cauchy_, cauchy_, kCauchy,
              (Tensor & self, double median, double sigma, MaybeGenerator generator), median, sigma,
              median, sigma)
LAMELLA_DRAWN(geometric_, geometric_, kGeometric,
              (Tensor & self, double p, MaybeGenerator generator), p, 0, p)
LAMELLA_DRAWN(bernoulli__float, bernoulli_, kBernoulli,
              (Tensor & self, double p, MaybeGenerator generator), p, 0, p)

Tensor& bernoulli__Tensor(Tensor& self, const Tensor& p, MaybeGenerator generator) {
  const bool fits = p.is_floating_point() && native::is_expandable(p.sizes(), self.sizes());
  if (!fits || self.numel() == 0 || !is_served(self)) {  // the CPU says what is expected
    return counted_fallback<lamella::ops::bernoulli__Tensor>(self, p, generator);
  }
  const Device device = self.device();
  const bool wide = self.scalar_type() == kDouble;
  Tensor chances =
      p.to(TensorOptions(wide ? kDouble : kFloat).device(device)).expand(self.sizes()).contiguous();
  Tensor drawn =
      self.is_contiguous()
          ? self
          : lamella::empty(self.sizes(), TensorOptions(self.scalar_type()).device(device));
  auto r = drawing<RandomParameters>(drawn);
  take("bernoulli_", generator, device, 10, &r);
  r.what = kBernoulli;
  r.chances = address_of(chances);
  uint64_t draws = 0;
  const Shape shape = shape_of(device.index(), (drawn.numel() + 3) / 4, 1, &draws);
  launch_drawing(device, "chances", wide ? "f64" : "f32", r, shape);
  if (!drawn.is_alias_of(self)) return self.copy_(drawn);
  lamella_tensor_bump_version(self.impl());
  return self;
}

// The largest integer that random_ without bounds draws, plus one.
uint64_t end_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Bool:
      return 2;
    case kByte:
      return 256;
    case kDouble:
      return (uint64_t{1} << 53) + 1;
    case kFloat:
      return (uint64_t{1} << 24) + 1;
    case kHalf:
      return (uint64_t{1} << 11) + 1;
    case kBFloat16:
      return (uint64_t{1} << 8) + 1;
    default:
      return uint64_t{1} << (element_size(dtype) * 8 - 1);
  }
}
Tensor& random_(Tensor& self, MaybeGenerator generator) {
  check_as_cpu(self, [&](Tensor& none) { none.random_(); });
  if (self.numel() == 0) return self;
  if (!is_served(self)) {
    return counted_fallback<lamella::ops::random_>(self, generator);
  }
  const ScalarType dtype = self.scalar_type();
  return draw_integers("random_", self, 0, end_of(dtype), dtype == kLong || dtype == kDouble,
                       generator);
}
Tensor& random__from(Tensor& self, int64_t from, std::optional<int64_t> to,
                     MaybeGenerator generator) {
  check_as_cpu(self, [&](Tensor& none) { none.random_(from, to); });
  if (self.numel() == 0) return self;
  if (!is_served(self)) {
    return counted_fallback<lamella::ops::random__from>(self, from, to, generator);
  }
  const ScalarType dtype = self.scalar_type();
  const uint64_t end = to ? static_cast<uint64_t>(*to) : end_of(dtype);
  const uint64_t range = end - static_cast<uint64_t>(from);
  return draw_integers("random_", self, from, range, range == 0 || range >= kPastNarrow, generator);
}
Tensor& random__to(Tensor& self, int64_t to, MaybeGenerator generator) {
  return random__from(self, 0, to, generator);
}

// The order of random keys, as many low bits of which count as make equal ones unlikely; keys that
// are equal there are ordered by their other bits.
Tensor& randperm(int64_t n, MaybeGenerator generator, Tensor& out) {
  Tensor checked =
      lamella::empty({0}, TensorOptions(out.scalar_type()).device(Device(DeviceType::Meta)));
  lamella::randperm_out(checked, n, std::nullopt);
  if (out.numel() != n) out.resize_({n});
  if (n == 0) return out;
  const auto count = static_cast<double>(n);
  const double most = std::log2(count - (6 * count * count + 1) / (12 * std::log(0.9)));
  const int bits = std::min(64, static_cast<int>(std::ceil(most)));
  const int width = bits <= 32 ? 32 : 64;
  const TensorOptions options = TensorOptions(width == 32 ? ScalarType::Int : ScalarType::Long);
  Tensor keys = lamella::empty({n}, options.device(out.device()));
  const int64_t least = width == 32 ? INT32_MIN : INT64_MIN;
  keys.random_(least, -(least + 1), generator);
  Drawing unused{};
  take("randperm", generator, out.device(), static_cast<uint64_t>(n), &unused);  // as PyTorch does
  keys = keys.to(ScalarType::Long);
  if (bits < width) {  // turned, so that the bits that count lead
    const Tensor low = keys.bitwise_and((int64_t{1} << bits) - 1);
    const int spare = width - bits;
    const Tensor high =
        lamella::bitwise_right_shift(keys, bits).bitwise_and((int64_t{1} << spare) - 1);
    keys = lamella::bitwise_left_shift(low, spare).bitwise_or(high);
    if (width == 64) keys = keys.bitwise_xor(INT64_MIN);
  }
  return out.copy_(lamella::argsort(keys, -1, false).reshape(out.sizes()));
}
Tensor& randperm_default(int64_t n, Tensor& out) { return randperm(n, std::nullopt, out); }

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  LAMELLA_CHECK(p >= 0 && p <= 1, "native_dropout: expected 'p' in [0, 1], got ", p);
  const TensorOptions truth(ScalarType::Bool);
  if (input.numel() == 0) return {input.clone(), lamella::empty_like(input, truth)};
  if (train && !*train) return {input.clone(), lamella::ones_like(input, truth)};
  if (p == 1) return {lamella::zeros_like(input), lamella::zeros_like(input, truth)};
  const ScalarType dtype = input.scalar_type();
  if (!input.is_floating_point() || !is_served(input)) {
    return counted_fallback<lamella::ops::native_dropout>(input, p, train);
  }
  Tensor dense = input.is_non_overlapping_and_dense() ? input : input.contiguous();
  Tensor result = lamella::empty_like(dense), mask = lamella::empty_like(dense, truth);
  const Device device = input.device();
  uint64_t draws = 0;
  const Shape shape = shape_of(device.index(), input.numel(), 4, &draws);
  auto d = drawing<DropoutParameters>(result);
  take("native_dropout", std::nullopt, device, draws, &d);
  d.in = address_of(dense);
  d.mask = address_of(mask);
  d.kept = 1 - p;
  // PyTorch's layout follows from the input's address and size, if it is dense.
  d.neighbours = input.is_non_overlapping_and_dense() ? 4 : 1;
  const uint64_t bytes = element_size(dtype);
  while (d.neighbours > 1 && (d.in % (static_cast<uint64_t>(d.neighbours) * bytes) != 0 ||
                              input.numel() % d.neighbours != 0)) {
    d.neighbours /= 2;
  }
  launch_drawing(device, "dropout", dtype == kDouble ? "f64" : "f32", d, shape);
  return {result, mask};
}
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  LAMELLA_CHECK(mask.scalar_type() == ScalarType::Bool,
                "native_dropout_backward: expected 'mask' to be bool, got ", mask.scalar_type());
  return grad_output.mul(mask).mul(scale);
}

}  // namespace

void register_random(Library& aten) {
  aten.impl("uniform_", LAMELLA_FN(&uniform_));
  aten.impl("normal_", LAMELLA_FN(&normal_));
  aten.impl("exponential_", LAMELLA_FN(&exponential_));
  aten.impl("log_normal_", LAMELLA_FN(&log_normal_));
  aten.impl("cauchy_", LAMELLA_FN(&cauchy_));
  aten.impl("geometric_", LAMELLA_FN(&geometric_));
  aten.impl("bernoulli_.float", LAMELLA_FN(&bernoulli__float));
  aten.impl("bernoulli_.Tensor", LAMELLA_FN(&bernoulli__Tensor));
  aten.impl("random_", LAMELLA_FN(&random_));
  aten.impl("random_.from", LAMELLA_FN(&random__from));
  aten.impl("random_.to", LAMELLA_FN(&random__to));
  aten.impl("randperm.generator_out", LAMELLA_FN(&randperm));
  aten.impl("randperm.out", LAMELLA_FN(&randperm_default));
  aten.impl("native_dropout", LAMELLA_FN(&native_dropout));
  aten.impl("native_dropout_backward", LAMELLA_FN(&native_dropout_backward));
}

}  // namespace lamella::cuda
