// Stream, Event and StreamGuard: the order of work on a device whose backend has streams. On other
// devices there is one stream, and its work is done at once.
#pragma once
#include "lamella/core/device_guard.h"

namespace lamella {

using StreamId = int64_t;
class Event;

// A stream of one device. Cheap to copy; not an owner.
class Stream {
 public:
  enum Unsafe { UNSAFE };
  enum Default { DEFAULT };
  // The number is the backend's own.
  Stream(Unsafe, Device device, StreamId id) : device_(device), id_(id) {}
  Stream(Default, Device device) : device_(device), id_(0) {}
  // Creates a stream.
  static Stream make(Device device, int priority = 0) {
    StreamId id = 0;
    if (!device.has_index()) device = detail::current_device(device);
    detail::check(
        lamella_stream_make(static_cast<uint8_t>(device.type()), device.index(), priority, &id));
    return Stream(UNSAFE, device, id);
  }
  bool operator==(const Stream& other) const = default;
  Device device() const { return device_; }
  DeviceType device_type() const { return device_.type(); }
  DeviceIndex device_index() const { return device_.index(); }
  StreamId id() const { return id_; }
  // True if all work of the stream is done.
  bool query() const {
    int32_t idle = 0;
    detail::check(lamella_stream_query(type(), device_.index(), id_, &idle));
    return idle != 0;
  }
  // Returns when all of its work is done.
  void synchronize() const {
    detail::check(lamella_stream_synchronize(type(), device_.index(), id_));
  }
  // Makes work that is submitted from now on wait for the event.
  void wait(const Event& event) const;

 private:
  uint8_t type() const { return static_cast<uint8_t>(device_.type()); }
  Device device_;
  StreamId id_;
};

// The current stream of this thread on the device; without an index, on the current device.
inline Stream current_stream(Device device) {
  if (!device.has_index()) device = detail::current_device(device);
  return Stream(Stream::UNSAFE, device,
                lamella_stream_current(static_cast<uint8_t>(device.type()), device.index()));
}
// Returns when all work on the device is done.
inline void synchronize(Device device) {
  if (!device.has_index()) device = detail::current_device(device);
  detail::check(lamella_device_synchronize(static_cast<uint8_t>(device.type()), device.index()));
}

// Makes a stream, and its device, the current ones of this thread for as long as it lives.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream) : device_(stream.device()), current_(stream) {
    detail::check(lamella_stream_exchange(static_cast<uint8_t>(stream.device_type()),
                                          stream.device_index(), stream.id(), &former_));
  }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;
  ~StreamGuard() {
    lamella_stream_exchange(static_cast<uint8_t>(current_.device_type()), current_.device_index(),
                            former_, nullptr);
  }
  Stream original_stream() const { return Stream(Stream::UNSAFE, current_.device(), former_); }
  Stream current_stream() const { return current_; }

 private:
  DeviceGuard device_;
  Stream current_;
  StreamId former_ = 0;
};

// A mark in a stream: made when it is first recorded, on that stream's device.
class Event {
 public:
  explicit Event(DeviceType type, bool timing = false) : type_(type), timing_(timing) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event(Event&& other) noexcept
      : type_(other.type_), timing_(other.timing_), event_(detail::take(other.event_)) {}
  ~Event() {
    if (event_ != nullptr) lamella_event_free(number(), event_);
  }
  DeviceType device_type() const { return type_; }
  bool recorded() const { return event_ != nullptr; }
  void record(const Stream& stream) {
    if (event_ == nullptr) {
      detail::check(lamella_event_make(number(), stream.device_index(), timing_, &event_));
    }
    detail::check(lamella_event_record(number(), event_, stream.device_index(), stream.id()));
  }
  // Makes the stream wait until the event is done.
  void block(const Stream& stream) const {
    if (event_ == nullptr) return;
    detail::check(lamella_event_wait(number(), event_, stream.device_index(), stream.id()));
  }
  bool query() const {
    int32_t done = 1;
    if (event_ != nullptr) detail::check(lamella_event_query(number(), event_, &done));
    return done != 0;
  }
  void synchronize() const {
    if (event_ != nullptr) detail::check(lamella_event_synchronize(number(), event_));
  }
  // Milliseconds from this event to a later one; both recorded, done and with timing.
  double elapsed_time(const Event& later) const {
    LAMELLA_CHECK(event_ != nullptr && later.event_ != nullptr,
                  "elapsed_time: expected both events to be recorded");
    double milliseconds = 0;
    detail::check(lamella_event_elapsed(number(), event_, later.event_, &milliseconds));
    return milliseconds;
  }
  double elapsedTime(const Event& later) const { return elapsed_time(later); }

 private:
  uint8_t number() const { return static_cast<uint8_t>(type_); }
  DeviceType type_;
  bool timing_;
  void* event_ = nullptr;
};

inline void Stream::wait(const Event& event) const { event.block(*this); }

}  // namespace lamella
