// GeneratorImpl: the target of a Generator handle, and the CPU's Mersenne twister. Internal.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "lamella/core/device.h"
#include "lamella/core/generator.h"

namespace lamella {

// The seed of a generator that was not seeded explicitly.
inline constexpr uint64_t kDefaultSeed = 67280421310721;

// One stream of random numbers on a device. Hold `mutex` while drawing.
struct LAMELLA_PRIVATE_API GeneratorImpl : lamella_object {
  explicit GeneratorImpl(Device device_value);
  GeneratorImpl(const GeneratorImpl&) = delete;
  GeneratorImpl& operator=(const GeneratorImpl&) = delete;
  virtual ~GeneratorImpl() { ObjectRef<>::adopt(companion); }

  virtual void set_current_seed(uint64_t seed) = 0;
  virtual uint64_t current_seed() const = 0;
  // Seeds from the system's source of randomness and returns the seed.
  uint64_t seed();
  // The whole state as bytes, and back. set_state throws if the bytes are not a state.
  virtual std::vector<uint8_t> get_state() const = 0;
  virtual void set_state(const uint8_t* bytes, size_t size) = 0;
  virtual Generator clone() const = 0;

  // Throws if the generator is undefined or of a class of another library.
  static GeneratorImpl& of(const Generator& generator);

  const Device device;
  std::mutex mutex;
  lamella_object* companion = nullptr;  // of lamella_generator_parts
};

// The 32-bit Mersenne twister MT19937 (M. Matsumoto, T. Nishimura, ACM TOMACS 8 (1998) 3) with
// PyTorch's conventions: the words, the numbers derived from them and the state's bytes are equal.
class CpuGenerator final : public GeneratorImpl {
 public:
  static constexpr size_t kStateBytes = 5056;

  // `owner`: the device whose operators may draw from it; the words are generated on the host.
  explicit CpuGenerator(uint64_t seed = kDefaultSeed, Device owner = DeviceType::CPU);
  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  std::vector<uint8_t> get_state() const override;
  void set_state(const uint8_t* bytes, size_t size) override;
  Generator clone() const override;

  uint32_t random() {
    if (--left_ == 0) refill();
    uint32_t y = words_[next_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  // Writes the next n words of random(); faster than n calls.
  void random_words(uint32_t* to, int64_t n);
  uint64_t random64() {
    uint64_t high = random();
    return (high << 32) | random();
  }
  // [0, 1) with as many random bits as the type has digits.
  float uniform_float() { return static_cast<float>(random() & 0xffffffu) * 0x1p-24f; }
  double uniform_double() {
    return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }
  // Mean 0 and deviation 1, by the Box-Muller transform; every second call returns the other number
  // of the pair. Narrower types round this result.
  LAMELLA_PRIVATE_API double normal_double();
  // Throws unless the generator is defined and the CPU's.
  LAMELLA_PRIVATE_API static CpuGenerator& of(const Generator& generator);

 private:
  static constexpr int kWords = 624;
  void refill();

  uint64_t seed_ = 0;
  uint32_t words_[kWords];
  int left_ = 1;       // draws until the next refill
  uint32_t next_ = 0;  // the next word to draw
  bool has_next_double_ = false;
  double next_double_ = 0;
};

LAMELLA_PRIVATE_API Generator make_cpu_generator(uint64_t seed = kDefaultSeed);
// The generator that operators use when they are given none; the same object each time.
LAMELLA_PRIVATE_API const Generator& default_cpu_generator();
// The same functions for any device that has a backend.
LAMELLA_PRIVATE_API Generator make_generator(Device device, uint64_t seed = kDefaultSeed);
LAMELLA_PRIVATE_API Generator default_generator(Device device);
// The given generator, or the default one if there is none.
inline CpuGenerator& cpu_generator_or_default(const Generator& generator) {
  return CpuGenerator::of(generator.defined() ? generator : default_cpu_generator());
}
// A seed from the system's source of randomness, 53 bits so that every language reads it.
LAMELLA_PRIVATE_API uint64_t random_seed();

}  // namespace lamella
