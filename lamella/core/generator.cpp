// The CPU's random number generator, and the default generators of all devices.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "lamella/abi/backend.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/core/generator_impl.h"
#include "lamella/core/philox.h"

namespace lamella {
namespace {

// PyTorch's bytes of a state; every word of the twister stands in 64 bits.
struct StateBytes {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[624];
  double normal_x;
  double normal_y;  // the second double of a normal pair
  double normal_rho;
  int32_t normal_is_valid;
  int32_t padding;
  float next_float;  // unused: all normals are drawn in double
  int32_t next_float_is_valid;
};
static_assert(sizeof(StateBytes) == CpuGenerator::kStateBytes);

void destroy_generator(lamella_object* object) { delete static_cast<GeneratorImpl*>(object); }

}  // namespace

uint64_t random_seed() {
  std::random_device device;
  uint64_t high = device();
  return ((high << 32) | device()) & ((uint64_t{1} << 53) - 1);
}

GeneratorImpl::GeneratorImpl(Device device_value)
    : lamella_object{1, 0, &destroy_generator}, device(device_value) {}

GeneratorImpl& GeneratorImpl::of(const Generator& generator) {
  LAMELLA_CHECK(generator.defined(), "Generator: expected a defined generator");
  LAMELLA_CHECK(generator.get()->reserved == 0,
                "Generator: expected a generator of Lamella, got one of a class of its own");
  return *static_cast<GeneratorImpl*>(generator.get());
}

uint64_t GeneratorImpl::seed() {
  uint64_t value = random_seed();
  set_current_seed(value);
  return value;
}

CpuGenerator::CpuGenerator(uint64_t seed, Device owner) : GeneratorImpl(owner) {
  CpuGenerator::set_current_seed(seed);
}

void CpuGenerator::set_current_seed(uint64_t seed) {
  seed_ = seed;
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) {
    words_[i] = 1812433253u * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  }
  left_ = 1;
  next_ = 0;
  has_next_double_ = false;
}

namespace {
// Four words, which need not lie at a multiple of their size.
using Words = uint32_t __attribute__((vector_size(16), aligned(4), may_alias));
constexpr int kLanes = 4;
Words& words_at(uint32_t* p) { return *reinterpret_cast<Words*>(p); }

// Works on one word and on a vector of four.
template <class W>
W twist(W u, W v, W far) {
  W mixed = (u & 0x80000000u) | (v & 0x7fffffffu);
  return far ^ (mixed >> 1) ^ (-(v & 1u) & 0x9908b0dfu);
}
template <class W>
W temper(W y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}
// Replaces words [begin, end) of the state: each new word depends on the old one, the next one and
// the one `far` words away. Not inlined: GCC 12 would confuse the end of the array with the loop's.
LAMELLA_NOINLINE void replace(uint32_t* words, int begin, int end, int far) {
  int i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    words_at(words + i) =
        twist<Words>(words_at(words + i), words_at(words + i + 1), words_at(words + i + far));
  }
  for (; i < end; ++i) words[i] = twist(words[i], words[i + 1], words[i + far]);
}
}  // namespace

void CpuGenerator::refill() {
  constexpr int shift = 397;
  replace(words_, 0, kWords - shift, shift);
  replace(words_, kWords - shift, kWords - 1, shift - kWords);
  words_[kWords - 1] = twist(words_[kWords - 1], words_[0], words_[shift - 1]);
  left_ = kWords;
  next_ = 0;
}

void CpuGenerator::random_words(uint32_t* to, int64_t n) {
  while (n > 0) {
    if (left_ == 1) {
      refill();
      ++left_;  // random() counts the word that it takes before it refills
    }
    int count = n < left_ - 1 ? static_cast<int>(n) : left_ - 1;
    uint32_t* from = words_ + next_;
    int i = 0;
    for (; i + kLanes <= count; i += kLanes) words_at(to + i) = temper<Words>(words_at(from + i));
    for (; i < count; ++i) to[i] = temper(from[i]);
    next_ += static_cast<uint32_t>(count);
    left_ -= count;
    to += count;
    n -= count;
  }
}

double CpuGenerator::normal_double() {
  if (has_next_double_) {
    has_next_double_ = false;
    return next_double_;
  }
  constexpr double two_pi = 2.0 * 3.14159265358979323846;
  double u1 = uniform_double();
  double u2 = uniform_double();
  double radius = std::sqrt(-2.0 * std::log1p(-u2));
  next_double_ = radius * std::sin(two_pi * u1);
  has_next_double_ = true;
  return radius * std::cos(two_pi * u1);
}

std::vector<uint8_t> CpuGenerator::get_state() const {
  StateBytes state{};
  state.seed = seed_;
  state.left = left_;
  state.seeded = 1;
  state.next = next_;
  for (int i = 0; i < kWords; ++i) state.words[i] = words_[i];
  state.normal_y = has_next_double_ ? next_double_ : 0;
  state.normal_is_valid = has_next_double_ ? 1 : 0;
  std::vector<uint8_t> bytes(sizeof(state));
  std::memcpy(bytes.data(), &state, sizeof(state));
  return bytes;
}

void CpuGenerator::set_state(const uint8_t* bytes, size_t size) {
  LAMELLA_CHECK(size == kStateBytes, "set_state: expected a state of ", kStateBytes, " bytes, got ",
                size);
  StateBytes state;
  std::memcpy(&state, bytes, sizeof(state));
  LAMELLA_CHECK(state.left >= 1 && state.left <= kWords && state.next <= kWords,
                "set_state: expected the state of a CPU generator, got other bytes");
  seed_ = state.seed;
  left_ = state.left;
  next_ = static_cast<uint32_t>(state.next);
  for (int i = 0; i < kWords; ++i) words_[i] = static_cast<uint32_t>(state.words[i]);
  has_next_double_ = state.normal_is_valid != 0;
  next_double_ = state.normal_y;
}

Generator CpuGenerator::clone() const {
  auto* copy = new CpuGenerator(seed_, device);
  Generator result = Generator::adopt(copy);
  std::vector<uint8_t> state = get_state();
  copy->set_state(state.data(), state.size());
  return result;
}

CpuGenerator& CpuGenerator::of(const Generator& generator) {
  GeneratorImpl& impl = GeneratorImpl::of(generator);
  LAMELLA_CHECK(impl.device.is_cpu(), "Generator: expected a generator on cpu, got one on ",
                impl.device);
  return static_cast<CpuGenerator&>(impl);
}

Generator make_cpu_generator(uint64_t seed) { return Generator::adopt(new CpuGenerator(seed)); }

namespace {

// The generator of a device "cuda", whose kernels compute numbers by Philox from a seed and an
// offset. Each launch moves the offset on by a multiple of 4; the state's bytes are PyTorch's.
class PhiloxGenerator final : public GeneratorImpl {
 public:
  PhiloxGenerator(uint64_t seed, Device owner) : GeneratorImpl(owner), seed_(seed) {}
  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  uint64_t current_seed() const override { return seed_; }
  std::vector<uint8_t> get_state() const override {
    std::vector<uint8_t> bytes(kStateBytes);
    std::memcpy(bytes.data(), &seed_, sizeof(seed_));
    std::memcpy(bytes.data() + sizeof(seed_), &offset_, sizeof(offset_));
    return bytes;
  }
  void set_state(const uint8_t* bytes, size_t size) override {
    LAMELLA_CHECK(size == kStateBytes, "set_state: expected a state of ", kStateBytes,
                  " bytes, got ", size);
    uint64_t offset;
    std::memcpy(&offset, bytes + sizeof(seed_), sizeof(offset));
    LAMELLA_CHECK(offset % 4 == 0, "set_state: expected an offset that is a multiple of 4, got ",
                  offset);
    std::memcpy(&seed_, bytes, sizeof(seed_));
    offset_ = offset;
  }
  Generator clone() const override {
    auto* copy = new PhiloxGenerator(seed_, device);
    copy->offset_ = offset_;
    return Generator::adopt(copy);
  }
  void draw(uint64_t* words, size_t count) {
    for (size_t i = 0; i < count; i += 2, offset_ += 4) {
      PhiloxWords now = philox(seed_, 0, offset_ / 4);
      for (size_t k = 0; k < 2 && i + k < count; ++k) {
        words[i + k] = uint64_t{now.word[2 * k]} << 32 | now.word[2 * k + 1];
      }
    }
  }

 private:
  static constexpr size_t kStateBytes = 16;
  uint64_t seed_;
  uint64_t offset_ = 0;
};

// Never destroyed: operators may run in static destructors.
const Generator& cpu_generator = *[] {
  auto* made = new Generator(make_cpu_generator());
  fork::hold(fork::Level::kLayers, &GeneratorImpl::of(*made).mutex);
  return made;
}();
}  // namespace

const Generator& default_cpu_generator() { return cpu_generator; }

namespace {
fork::Held<std::mutex> device_generators{fork::Level::kLayers};

// Returns the device with an index that its backend has, or throws.
Device checked_owner(const char* what, Device device) {
  if (device.is_cpu()) return device;
  auto type = static_cast<uint8_t>(device.type());
  int32_t count = lamella_device_count(type);
  if (!device.has_index()) device.set_index(lamella_device_current(type));
  LAMELLA_CHECK(lamella_has_backend(type) != 0 && device.index() >= 0 && device.index() < count,
                what, ": expected cpu or a device of a backend that is loaded, got ", device);
  return device;
}
}  // namespace

Generator make_generator(Device device, uint64_t seed) {
  device = checked_owner("Generator", device);
  if (device.is_cuda()) return Generator::adopt(new PhiloxGenerator(seed, device));
  return Generator::adopt(new CpuGenerator(seed, device));
}

Generator default_generator(Device device) {
  if (device.is_cpu()) return default_cpu_generator();
  device = checked_owner("Generator", device);
  std::lock_guard lock(device_generators);
  static auto* all = new std::map<std::pair<int, int>, Generator>();  // never destroyed, as above
  Generator& one = (*all)[{static_cast<int>(device.type()), device.index()}];
  // A backend may be loaded after the program has seeded the generators of all devices.
  if (!one.defined()) one = make_generator(device, GeneratorImpl::of(cpu_generator).current_seed());
  return one;
}

}  // namespace lamella

using namespace lamella;

extern "C" {

lamella_status lamella_generator_make(uint8_t type, int8_t device, uint64_t seed,
                                      lamella_object** generator) noexcept {
  return detail::guarded([&] {
    *generator =
        make_generator(Device(static_cast<DeviceType>(type), device), seed).unsafe_release();
  });
}

lamella_status lamella_generator_default(uint8_t type, int8_t device,
                                         lamella_object** generator) noexcept {
  return detail::guarded([&] {
    *generator = default_generator(Device(static_cast<DeviceType>(type), device)).unsafe_release();
  });
}

lamella_status lamella_generator_seed(lamella_object* generator, uint64_t seed) noexcept {
  return detail::guarded(
      [&] { GeneratorImpl::of(Generator::borrow(generator)).set_current_seed(seed); });
}
lamella_status lamella_generator_inspect(lamella_object* generator,
                                         lamella_generator_parts* parts) noexcept {
  return detail::guarded([&] {
    GeneratorImpl& engine = GeneratorImpl::of(Generator::borrow(generator));
    *parts = {&engine.mutex, &engine.companion, engine.current_seed(),
              static_cast<uint8_t>(engine.device.type()), engine.device.index()};
  });
}
lamella_status lamella_generator_state(lamella_object* generator, uint8_t* bytes,
                                       size_t* size) noexcept {
  return detail::guarded([&] {
    std::vector<uint8_t> state = GeneratorImpl::of(Generator::borrow(generator)).get_state();
    if (bytes != nullptr) std::memcpy(bytes, state.data(), std::min(*size, state.size()));
    *size = state.size();
  });
}
lamella_status lamella_generator_set_state(lamella_object* generator, const uint8_t* bytes,
                                           size_t size) noexcept {
  return detail::guarded(
      [&] { GeneratorImpl::of(Generator::borrow(generator)).set_state(bytes, size); });
}
lamella_status lamella_generator_words(lamella_object* generator, uint32_t* words,
                                       size_t count) noexcept {
  return detail::guarded([&] {
    CpuGenerator::of(Generator::borrow(generator)).random_words(words, static_cast<int64_t>(count));
  });
}
lamella_status lamella_generator_draw(lamella_object* generator, uint64_t* words,
                                      size_t count) noexcept {
  return detail::guarded([&] {
    GeneratorImpl& engine = GeneratorImpl::of(Generator::borrow(generator));
    std::lock_guard lock(engine.mutex);
    if (engine.device.is_cuda()) return static_cast<PhiloxGenerator&>(engine).draw(words, count);
    for (size_t i = 0; i < count; ++i) words[i] = static_cast<CpuGenerator&>(engine).random64();
  });
}

}  // extern "C"
