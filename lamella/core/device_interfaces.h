// Allocator and DeviceGuardImplInterface: classes that a backend written for PyTorch derives, and
// their registration as parts of a backend (Note [A backend in parts] in abi/backend.h).
#pragma once
#include "lamella/core/backend.h"
#include "lamella/core/stream.h"

namespace lamella {
namespace interfaces {

using DeleterFnPtr = void (*)(void*);

// Memory with the function that frees it: deleter(context).
class DataPtr {
 public:
  DataPtr() : device_(DeviceType::CPU) {}
  DataPtr(void* data, Device device) : data_(data), device_(device) {}
  DataPtr(void* data, void* context, DeleterFnPtr deleter, Device device)
      : data_(data), context_(context), deleter_(deleter), device_(device) {}
  DataPtr(DataPtr&& other) noexcept
      : data_(detail::take(other.data_)),
        context_(other.release_context()),
        deleter_(other.deleter_),
        device_(other.device_) {}
  DataPtr& operator=(DataPtr&& other) noexcept {
    detail::swap_plain(data_, other.data_);
    detail::swap_plain(context_, other.context_);
    detail::swap_plain(deleter_, other.deleter_);
    detail::swap_plain(device_, other.device_);
    return *this;
  }
  ~DataPtr() { clear(); }
  void* get() const { return data_; }
  void* operator->() const { return data_; }
  explicit operator bool() const { return data_ != nullptr || context_ != nullptr; }
  void* get_context() const { return context_; }
  void* release_context() { return detail::take(context_); }
  DeleterFnPtr get_deleter() const { return deleter_; }
  Device device() const { return device_; }
  void clear() {
    data_ = nullptr;
    void* context = release_context();
    if (context != nullptr && deleter_ != nullptr) deleter_(context);
  }

 private:
  void* data_ = nullptr;
  void* context_ = nullptr;
  DeleterFnPtr deleter_ = nullptr;
  Device device_;
};

// allocate() serves the current device.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual DataPtr allocate(size_t bytes) = 0;
  virtual DeleterFnPtr raw_deleter() const { return nullptr; }
  // Returns memory without its deleter; only for allocators whose raw_deleter() frees it.
  void* raw_allocate(size_t bytes) {
    DataPtr memory = allocate(bytes);
    LAMELLA_CHECK(raw_deleter() != nullptr && memory.get() == memory.get_context(),
                  "raw_allocate: expected an allocator with a raw_deleter(), got one without");
    return memory.release_context();
  }
  void raw_deallocate(void* data) {
    DeleterFnPtr deleter = raw_deleter();
    LAMELLA_CHECK(deleter != nullptr,
                  "raw_deallocate: expected an allocator with a raw_deleter(), got one without");
    deleter(data);
  }
  // Between two places on the same device.
  virtual void copy_data(void* to, const void* from, size_t bytes) const = 0;
};

enum class EventFlag { PYTORCH_DEFAULT, BACKEND_DEFAULT, INVALID };

class DeviceGuardImplInterface {
 public:
  virtual ~DeviceGuardImplInterface() = default;
  virtual DeviceType type() const = 0;
  virtual Device exchangeDevice(Device device) const = 0;
  virtual Device getDevice() const = 0;
  virtual void setDevice(Device device) const = 0;
  virtual void uncheckedSetDevice(Device device) const noexcept = 0;
  virtual Stream getStream(Device device) const = 0;
  virtual Stream getDefaultStream(Device device) const { return Stream(Stream::DEFAULT, device); }
  virtual Stream getStreamFromGlobalPool(Device device, bool high_priority = false) const {
    return getNewStream(device, high_priority ? -1 : 0);
  }
  virtual Stream getNewStream(Device, int priority = 0) const {
    static_cast<void>(priority);
    throw NotImplementedError(str("Stream: expected a backend with streams, got ", type()));
  }
  virtual Stream exchangeStream(Stream stream) const = 0;
  virtual DeviceIndex deviceCount() const noexcept = 0;
  virtual void destroyEvent(void*, const DeviceIndex) const noexcept {}
  virtual void record(void** event, const Stream&, const DeviceIndex, const EventFlag) const {
    static_cast<void>(event);
    throw NotImplementedError(str("Event: expected a backend with events, got ", type()));
  }
  virtual void block(void*, const Stream&) const {
    throw NotImplementedError(str("Event: expected a backend with events, got ", type()));
  }
  virtual bool queryEvent(void*) const {
    throw NotImplementedError(str("Event: expected a backend with events, got ", type()));
  }
  virtual bool queryStream(const Stream&) const { return true; }
  virtual void synchronizeStream(const Stream&) const {}
  virtual void synchronizeEvent(void* event) const {
    while (!queryEvent(event)) {
    }
  }
  virtual void synchronizeDevice(const DeviceIndex) const {}
  virtual double elapsedTime(void*, void*, const DeviceIndex) const {
    throw NotImplementedError(str("Event: expected a backend with times, got ", type()));
  }
};

// ---- Adapters from those classes to the functions that Lamella calls ----

struct AllocatorPart {
  DeviceType type;
  Allocator* allocator;

  void* allocate(size_t bytes, DeviceIndex device, void** block) {
    DeviceGuard guard(Device(type, device));
    auto* held = new DataPtr(allocator->allocate(bytes));
    *block = held;
    return held->get();
  }
  void deallocate(void*, size_t, DeviceIndex, void* block) { delete static_cast<DataPtr*>(block); }
  void copy(lamella_place to, lamella_place from, size_t bytes, bool) {
    LAMELLA_CHECK_NOT_IMPLEMENTED(
        to.device_type == from.device_type && to.device_index == from.device_index,
        "copy: expected a backend that registers aten::_copy_from, got ", type);
    DeviceGuard guard(Device(type, to.device_index));
    allocator->copy_data(to.data, from.data, bytes);
  }
};

struct GuardPart {
  const DeviceGuardImplInterface* guard;

  struct HeldEvent {
    void* event = nullptr;
    DeviceIndex device;
    EventFlag flag;
  };
  static HeldEvent& held(void* event) { return *static_cast<HeldEvent*>(event); }
  Device at(DeviceIndex device) const { return Device(guard->type(), device); }
  Stream stream(DeviceIndex device, int64_t id) const {
    return Stream(Stream::UNSAFE, at(device), id);
  }

  int device_count() { return guard->deviceCount(); }
  DeviceIndex current_device() { return guard->getDevice().index(); }
  void set_device(DeviceIndex device) { guard->setDevice(at(device)); }
  int64_t current_stream(DeviceIndex device) { return guard->getStream(at(device)).id(); }
  void set_stream(DeviceIndex device, int64_t id) { guard->exchangeStream(stream(device, id)); }
  int64_t make_stream(DeviceIndex device, int priority) {
    return guard->getNewStream(at(device), priority).id();
  }
  bool query_stream(DeviceIndex device, int64_t id) {
    return guard->queryStream(stream(device, id));
  }
  void synchronize_stream(DeviceIndex device, int64_t id) {
    guard->synchronizeStream(stream(device, id));
  }
  void synchronize_device(DeviceIndex device) { guard->synchronizeDevice(device); }
  void* make_event(DeviceIndex device, bool timing) {
    return new HeldEvent{nullptr, device,
                         timing ? EventFlag::BACKEND_DEFAULT : EventFlag::PYTORCH_DEFAULT};
  }
  void free_event(void* event) {
    if (held(event).event != nullptr) guard->destroyEvent(held(event).event, held(event).device);
    delete &held(event);
  }
  void record_event(void* event, DeviceIndex device, int64_t id) {
    guard->record(&held(event).event, stream(device, id), device, held(event).flag);
  }
  void wait_event(void* event, DeviceIndex device, int64_t id) {
    guard->block(held(event).event, stream(device, id));
  }
  bool query_event(void* event) { return guard->queryEvent(held(event).event); }
  void synchronize_event(void* event) { guard->synchronizeEvent(held(event).event); }
  double elapsed_time(void* start, void* end) {
    return guard->elapsedTime(held(start).event, held(end).event, held(start).device);
  }
};

// Registers a part of a backend at load time and owns the part.
template <class Part>
class RegisteredPart {
 public:
  RegisteredPart(DeviceType type, Part part, const char* file, uint32_t line)
      : part_(part), init_(backend_table(type, nullptr, &part_), file, line) {}

 private:
  Part part_;
  detail::BackendInit init_;
};

}  // namespace interfaces

}  // namespace lamella
