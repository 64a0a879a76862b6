// A backend from a class: LAMELLA_REGISTER_BACKEND(PrivateUse1, "sim", backend) makes a kind of
// device known for as long as the library is loaded. Streams and events: stream.h.
//
// The class defines those of these members that its devices support; lamella/abi/backend.h says
// what each must do. They report failures by throwing.
//
//   void* allocate(size_t bytes, DeviceIndex device, void** block);
//   void deallocate(void* data, size_t bytes, DeviceIndex device, void* block);
//   void copy(lamella_place to, lamella_place from, size_t bytes, bool non_blocking);
//   DeviceIndex device_count();
//   DeviceIndex current_device();
//   void set_device(DeviceIndex device);
//   int64_t current_stream(DeviceIndex device);
//   void set_stream(DeviceIndex device, int64_t stream);
//   int64_t make_stream(DeviceIndex device, int priority);
//   bool query_stream(DeviceIndex device, int64_t stream);
//   void synchronize_stream(DeviceIndex device, int64_t stream);
//   void synchronize_device(DeviceIndex device);
//   void* make_event(DeviceIndex device, bool timing);
//   void free_event(void* event);
//   void record_event(void* event, DeviceIndex device, int64_t stream);
//   void wait_event(void* event, DeviceIndex device, int64_t stream);
//   bool query_event(void* event);
//   void synchronize_event(void* event);
//   double elapsed_time(void* start, void* end);
#pragma once
#include "lamella/abi/backend.h"
#include "lamella/core/device.h"

namespace lamella {

namespace detail {
template <class B>
struct BackendOf {
  static B& of(void* context) { return *static_cast<B*>(context); }
};
}  // namespace detail

// The C table of a backend object, which must outlive the registration.
template <class B>
lamella_backend backend_table(DeviceType type, const char* name, B* backend) {
  using Self = detail::BackendOf<B>;
  lamella_backend t{};
  t.bytes = sizeof(t);
  t.device_type = static_cast<uint8_t>(type);
  t.name = name;
  t.context = backend;
  if constexpr (requires { &B::allocate; }) {
    t.allocate = [](void* c, size_t bytes, int8_t device, void** data, void** block) {
      return detail::guarded([&] { *data = Self::of(c).allocate(bytes, device, block); });
    };
  }
  if constexpr (requires { &B::deallocate; }) {
    t.deallocate = [](void* c, void* data, size_t bytes, int8_t device, void* block) {
      Self::of(c).deallocate(data, bytes, device, block);
    };
  }
  if constexpr (requires { &B::copy; }) {
    t.copy = [](void* c, lamella_place to, lamella_place from, size_t bytes, int32_t non_blocking) {
      return detail::guarded([&] { Self::of(c).copy(to, from, bytes, non_blocking != 0); });
    };
  }
  if constexpr (requires { &B::device_count; }) {
    t.device_count = [](void* c) { return static_cast<int32_t>(Self::of(c).device_count()); };
  }
  if constexpr (requires { &B::current_device; }) {
    t.current_device = [](void* c) { return static_cast<int8_t>(Self::of(c).current_device()); };
  }
  if constexpr (requires { &B::set_device; }) {
    t.set_device = [](void* c, int8_t device) {
      return detail::guarded([&] { Self::of(c).set_device(device); });
    };
  }
  if constexpr (requires { &B::current_stream; }) {
    t.current_stream = [](void* c, int8_t device) {
      return static_cast<int64_t>(Self::of(c).current_stream(device));
    };
  }
  if constexpr (requires { &B::set_stream; }) {
    t.set_stream = [](void* c, int8_t device, int64_t stream) {
      return detail::guarded([&] { Self::of(c).set_stream(device, stream); });
    };
  }
  if constexpr (requires { &B::make_stream; }) {
    t.make_stream = [](void* c, int8_t device, int32_t priority, int64_t* stream) {
      return detail::guarded([&] { *stream = Self::of(c).make_stream(device, priority); });
    };
  }
  if constexpr (requires { &B::query_stream; }) {
    t.query_stream = [](void* c, int8_t device, int64_t stream, int32_t* idle) {
      return detail::guarded([&] { *idle = Self::of(c).query_stream(device, stream); });
    };
  }
  if constexpr (requires { &B::synchronize_stream; }) {
    t.synchronize_stream = [](void* c, int8_t device, int64_t stream) {
      return detail::guarded([&] { Self::of(c).synchronize_stream(device, stream); });
    };
  }
  if constexpr (requires { &B::synchronize_device; }) {
    t.synchronize_device = [](void* c, int8_t device) {
      return detail::guarded([&] { Self::of(c).synchronize_device(device); });
    };
  }
  if constexpr (requires { &B::make_event; }) {
    t.make_event = [](void* c, int8_t device, int32_t timing, void** event) {
      return detail::guarded([&] { *event = Self::of(c).make_event(device, timing != 0); });
    };
  }
  if constexpr (requires { &B::free_event; }) {
    t.free_event = [](void* c, void* event) { Self::of(c).free_event(event); };
  }
  if constexpr (requires { &B::record_event; }) {
    t.record_event = [](void* c, void* event, int8_t device, int64_t stream) {
      return detail::guarded([&] { Self::of(c).record_event(event, device, stream); });
    };
  }
  if constexpr (requires { &B::wait_event; }) {
    t.wait_event = [](void* c, void* event, int8_t device, int64_t stream) {
      return detail::guarded([&] { Self::of(c).wait_event(event, device, stream); });
    };
  }
  if constexpr (requires { &B::query_event; }) {
    t.query_event = [](void* c, void* event, int32_t* done) {
      return detail::guarded([&] { *done = Self::of(c).query_event(event); });
    };
  }
  if constexpr (requires { &B::synchronize_event; }) {
    t.synchronize_event = [](void* c, void* event) {
      return detail::guarded([&] { Self::of(c).synchronize_event(event); });
    };
  }
  if constexpr (requires { &B::elapsed_time; }) {
    t.elapsed_time = [](void* c, void* start, void* end, double* milliseconds) {
      return detail::guarded([&] { *milliseconds = Self::of(c).elapsed_time(start, end); });
    };
  }
  return t;
}

// Owns a registration, or a part of one; the destructor ends it. Throws if registering fails.
class BackendRegistration {
 public:
  BackendRegistration() = default;
  explicit BackendRegistration(const lamella_backend& table) {
    detail::check(lamella_register_backend(&table, &part_));
  }
  BackendRegistration(BackendRegistration&& other) noexcept : part_(detail::take(other.part_)) {}
  BackendRegistration& operator=(BackendRegistration&& other) noexcept {
    detail::swap_plain(part_, other.part_);
    return *this;
  }
  ~BackendRegistration() { lamella_unregister_backend(part_); }

 private:
  lamella_backend_part* part_ = nullptr;
};

namespace detail {
// Registers at load time, when exceptions cannot be thrown: see lamella_defer_failure().
class BackendInit {
 public:
  BackendInit(const lamella_backend& table, const char* file, uint32_t line) {
    try {
      check(lamella_handshake(LAMELLA_ABI_MAJOR, LAMELLA_ABI_MINOR, sizeof(lamella_tensor),
                              sizeof(lamella_value), sizeof(lamella_operator), file));
      registration_ = BackendRegistration(table);
    } catch (const std::exception& error) {
      lamella_defer_failure(error.what(), file, line);
    }
  }

 private:
  BackendRegistration registration_;
};
}  // namespace detail

// LAMELLA_REGISTER_BACKEND(PrivateUse1, "sim", object), at namespace scope, after the object.
#define LAMELLA_REGISTER_BACKEND(type, name, object)                                      \
  static const ::lamella::detail::BackendInit LAMELLA_UNIQUE_NAME(lamella_backend_init_)( \
      ::lamella::backend_table(::lamella::DeviceType::type, name, &(object)), __FILE__, __LINE__);

}  // namespace lamella
