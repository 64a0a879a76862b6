// c10::GeneratorImpl, at::CPUGeneratorImpl and the members of at::Generator. Classes that derive
// from these are generators of their own, for the kernels of their keys; Lamella's own kernels
// refuse them.
#pragma once
#include <c10/lamella_names.h>
#include <sys/random.h>

#include <torch/standard_headers.h>

#include <typeinfo>

#include "lamella/abi/backend.h"
#include "lamella/core/tensor_object.h"

namespace lamella {

class GeneratorObject : public intrusive_ptr_target {
 public:
  using GeneratorImpl = GeneratorObject;  // as constructors of derived classes name it

  GeneratorObject(Device device, DispatchKeySet keys)
      : mutex_(own_mutex_), device_(device), key_set_(keys) {}

  virtual void set_current_seed(uint64_t seed) = 0;
  virtual uint64_t current_seed() const = 0;
  virtual uint64_t seed() = 0;
  virtual void set_offset(uint64_t offset) = 0;
  virtual uint64_t get_offset() const = 0;
  virtual void set_state(const TensorObject& state) = 0;
  virtual intrusive_ptr<TensorObject> get_state() const = 0;
  template <class T = Tensor>
  T state() const {
    return T(TensorBase(get_state()));
  }
  intrusive_ptr<GeneratorObject> clone() const {
    return intrusive_ptr<GeneratorObject>::unsafe_steal_from_new(clone_impl());
  }
  Device device() const { return device_; }
  DispatchKeySet key_set() const { return key_set_; }

  // What operators take. The object is one that intrusive_ptr made.
  virtual Generator handle() { return Generator::borrow(as_generator(key_set_.raw_repr())); }
  static GeneratorObject* of(lamella_object* object) {
    return static_cast<GeneratorObject*>(intrusive_ptr_target::of(object));
  }

 private:
  std::mutex own_mutex_;

 public:
  // Held while numbers are drawn.
  std::mutex& mutex_;

 protected:
  GeneratorObject(Device device, std::mutex& mutex) : mutex_(mutex), device_(device) {}
  virtual GeneratorObject* clone_impl() const = 0;

  Device device_;
  DispatchKeySet key_set_;
};

// A generator of Lamella. One that is made here has a stream of its own; the one of a handle is
// kept with the handle's generator, which outlives it.
class LibraryGenerator : public GeneratorObject {
 public:
  LibraryGenerator(Device device, uint64_t seed) : LibraryGenerator(device, make(device, seed)) {}
  LibraryGenerator(Device device, lamella_object* kept_by)
      : GeneratorObject(device, *static_cast<std::mutex*>(parts(kept_by).mutex)),
        stream_(kept_by) {}

  void set_current_seed(uint64_t seed) override {
    detail::check(lamella_generator_seed(stream_, seed));
  }
  uint64_t current_seed() const override { return parts(stream_).seed; }
  uint64_t seed() override {
    uint64_t bits = 0;
    LAMELLA_CHECK(getentropy(&bits, sizeof(bits)) == 0, "seed: the system gives no random bits");
    set_current_seed(bits >> 11);  // 53 bits, so that every language reads them
    return bits >> 11;
  }
  // The state of a generator with an offset is its seed and the offset.
  void set_offset(uint64_t offset) override {
    uint64_t state[] = {current_seed(), offset};
    check_offset("set_offset");
    detail::check(lamella_generator_set_state(stream_, reinterpret_cast<const uint8_t*>(state),
                                              sizeof(state)));
  }
  uint64_t get_offset() const override {
    uint64_t state[2];
    size_t size = sizeof(state);
    check_offset("get_offset");
    detail::check(lamella_generator_state(stream_, reinterpret_cast<uint8_t*>(state), &size));
    return state[1];
  }
  void set_state(const TensorObject& state) override {
    const TensorBase tensor = state.tensor();
    LAMELLA_CHECK_TYPE(
        tensor.scalar_type() == kByte && tensor.is_contiguous() && tensor.device().is_cpu(),
        "set_state: expected 'new_state' to be a contiguous uint8 tensor on cpu");
    detail::check(lamella_generator_set_state(stream_, static_cast<const uint8_t*>(state.data()),
                                              static_cast<size_t>(state.numel())));
  }
  intrusive_ptr<TensorObject> get_state() const override {
    size_t size = 0;
    detail::check(lamella_generator_state(stream_, nullptr, &size));
    lamella_tensor* made = nullptr;
    const auto count = static_cast<int64_t>(size);
    detail::check(
        lamella_tensor_empty(1, &count, static_cast<uint8_t>(ScalarType::Byte), 0, -1, &made));
    TensorBase state = TensorBase::adopt(made);
    detail::check(lamella_generator_state(stream_, static_cast<uint8_t*>(made->data), &size));
    return state;
  }
  Generator handle() override;

 protected:
  template <class T>
  T* copied(T* copy) const {
    copy->set_state(*get_state());
    return copy;
  }
  LibraryGenerator* clone_impl() const override {
    return copied(new LibraryGenerator(device_, current_seed()));
  }
  lamella_object* stream_;

 private:
  LibraryGenerator(Device device, Generator made) : LibraryGenerator(device, made.get()) {
    owned_ = std::move(made);
  }
  static Generator make(Device device, uint64_t seed) {
    lamella_object* made = nullptr;
    detail::check(
        lamella_generator_make(static_cast<uint8_t>(device.type()), device.index(), seed, &made));
    return Generator::adopt(made);
  }
  static lamella_generator_parts parts(lamella_object* stream) {
    lamella_generator_parts parts;
    detail::check(lamella_generator_inspect(stream, &parts));
    return parts;
  }
  void check_offset(const char* name) const {
    LAMELLA_CHECK(device_.is_cuda(), name, ": expected a generator with an offset, got one on ",
                  device_);
  }
  Generator owned_;
};

class CPUGeneratorImpl : public LibraryGenerator {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;
  explicit CPUGeneratorImpl(uint64_t seed = kDefaultSeed)
      : LibraryGenerator(DeviceType::CPU, seed) {}
  explicit CPUGeneratorImpl(lamella_object* kept_by) : LibraryGenerator(DeviceType::CPU, kept_by) {}
  static DeviceType device_type() { return DeviceType::CPU; }

  uint32_t random() {
    uint32_t word = 0;
    detail::check(lamella_generator_words(stream_, &word, 1));
    return word;
  }
  uint64_t random64() {
    uint64_t high = random();
    return (high << 32) | random();
  }
  // The second number of a pair of normal ones, for the next draw; not part of the state.
  std::optional<float> next_float_normal_sample() const { return next_float_; }
  std::optional<double> next_double_normal_sample() const { return next_double_; }
  void set_next_float_normal_sample(std::optional<float> sample) { next_float_ = sample; }
  void set_next_double_normal_sample(std::optional<double> sample) { next_double_ = sample; }

 protected:
  CPUGeneratorImpl* clone_impl() const override {
    return copied(new CPUGeneratorImpl(current_seed()));
  }

 private:
  std::optional<float> next_float_;
  std::optional<double> next_double_;
};

// A class that derives from these is a generator of its own.
inline Generator LibraryGenerator::handle() {
  const std::type_info& type = typeid(*this);
  const bool is_own = type != typeid(LibraryGenerator) && type != typeid(CPUGeneratorImpl);
  return is_own ? GeneratorObject::handle() : Generator::borrow(stream_);
}

inline GeneratorObject* Generator::unsafeGetGeneratorImpl() const {
  if (!defined()) return nullptr;
  if (get()->reserved == LAMELLA_OBJECT_OF_GENERATOR) return GeneratorObject::of(get());
  lamella_generator_parts parts;
  detail::check(lamella_generator_inspect(get(), &parts));
  lamella_object* kept = __atomic_load_n(parts.companion, __ATOMIC_ACQUIRE);
  if (kept != nullptr) return GeneratorObject::of(kept);
  const Device device(static_cast<DeviceType>(parts.device_type), parts.device_index);
  intrusive_ptr<LibraryGenerator> made;
  if (device.is_cpu()) {
    made = make_intrusive<CPUGeneratorImpl>(get());
  } else {
    made = make_intrusive<LibraryGenerator>(device, get());
  }
  Generator companion = made->GeneratorObject::handle();
  if (__atomic_compare_exchange_n(parts.companion, &kept, companion.get(), false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    kept = companion.unsafe_release();
  }
  return GeneratorObject::of(kept);
}

template <class T, class... A>
Generator make_generator(A&&... arguments) {
  return Generator(make_intrusive<T>(std::forward<A>(arguments)...));
}
// The generator as an object of a class, which must be its own.
template <class T>
T* check_generator(const std::optional<Generator>& generator) {
  LAMELLA_CHECK(generator.has_value() && generator->defined(),
                "check_generator: expected a generator, got none");
  T* object = dynamic_cast<T*>(generator->unsafeGetGeneratorImpl());
  LAMELLA_CHECK(object != nullptr, "check_generator: expected a generator of class ",
                typeid(T).name(), " on ", Device(T::device_type()), ", got another on ",
                generator->device());
  return object;
}
template <class T>
T* get_generator_or_default(const std::optional<Generator>& generator, const Generator& otherwise) {
  return check_generator<T>(generator.has_value() && generator->defined() ? *generator : otherwise);
}

}  // namespace lamella

namespace c10 {
using GeneratorImpl = lamella::GeneratorObject;
namespace detail {
constexpr uint64_t default_rng_seed_val = lamella::CPUGeneratorImpl::kDefaultSeed;
}
}  // namespace c10
namespace at {
using c10::detail::default_rng_seed_val;
}  // namespace at
