// Backends from outside: registration in parts, names, guards, streams, and their end.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lamella/core/backend.h"
#include "lamella/core/generator_impl.h"
#include "lamella/core/stream.h"
#include "lamella/core/tensor_impl.h"
#include "tests/core/testing.h"

namespace lamella {
namespace {

// Two devices on memory of the host, which say what they were asked for.
struct Recording {
  std::vector<std::string> calls;
  DeviceIndex now = 0;
  int live = 0;

  void* allocate(size_t bytes, DeviceIndex device, void** block) {
    calls.push_back(str("allocate ", bytes, " on ", static_cast<int>(device)));
    ++live;
    *block = this;
    return std::malloc(bytes);
  }
  void deallocate(void* data, size_t, DeviceIndex, void* block) {
    EXPECT_EQ(block, this);
    --live;
    std::free(data);
  }
  void copy(lamella_place to, lamella_place from, size_t bytes, bool) {
    calls.push_back(str("copy ", bytes, " from ", static_cast<int>(from.device_index), " to ",
                        static_cast<int>(to.device_index)));
    std::memcpy(to.data, from.data, bytes);
  }
  int device_count() { return 2; }
  DeviceIndex current_device() { return now; }
  void set_device(DeviceIndex device) { now = device; }
};
struct Streams {
  int64_t current_stream(DeviceIndex) { return stream; }
  void set_stream(DeviceIndex, int64_t number) { stream = number; }
  int64_t make_stream(DeviceIndex, int) { return ++made; }
  bool query_stream(DeviceIndex, int64_t number) {
    if (number == 7) throw ValueError("seven");
    return number != 3;
  }
  int64_t stream = 0, made = 0;
};

TEST(Backend, Devices) {
  Recording backend;
  {
    BackendRegistration registration(
        backend_table(DeviceType::PrivateUse11, "testing_devices", &backend));
    Device second("testing_devices:1");
    EXPECT_EQ(second, Device(DeviceType::PrivateUse11, 1));
    EXPECT_EQ(second.str(), "testing_devices:1");
    EXPECT_STREQ(device_type_name(DeviceType::PrivateUse11, false), "TESTING_DEVICES");
    EXPECT_EQ(Device("privateuse11:1"), second);
    TensorBase t = make_empty({4}, kFloat, second);
    EXPECT_EQ(backend.calls.back(), "allocate 16 on 1");
    {
      DeviceGuard guard(second);
      EXPECT_EQ(backend.now, 1);
      EXPECT_EQ(guard.original_device(), Device("testing_devices:0"));
      DeviceGuard none(Device("testing_devices"));
      EXPECT_EQ(none.current_device(), second);
    }
    EXPECT_EQ(backend.now, 0);
    EXPECT_EQ(error_of([] { DeviceGuard guard(Device("testing_devices:2")); }),
              "DeviceGuard: expected a device of testing_devices from 0 to 1, got 2");
    EXPECT_EQ(error_of([] { make_empty({1}, kFloat, Device("testing_devices:5")); }),
              "empty: expected a device of testing_devices from 0 to 1, got 5");
    resize_tensor(TensorImpl::of(t), {100}, MemoryFormat::Contiguous, true);
    EXPECT_EQ(backend.calls.back(), "copy 16 from 1 to 1");
    EXPECT_EQ(default_generator(second).get(), default_generator(second).get());
  }
  EXPECT_EQ(backend.live, 0);
  EXPECT_EQ(
      error_of<NotImplementedError>([] { make_empty({1}, kFloat, Device("testing_devices")); }),
      "empty: expected a device with an allocator, got testing_devices");
}

TEST(Backend, Parts) {
  Recording memory;
  Streams streams;
  BackendRegistration first(backend_table(DeviceType::PrivateUse12, nullptr, &memory));
  Device device(DeviceType::PrivateUse12, 0);
  EXPECT_EQ(current_stream(device), Stream(Stream::DEFAULT, device));
  EXPECT_EQ(error_of<NotImplementedError>([&] { Stream::make(device); }),
            "Stream: expected a backend with streams, got privateuse12");
  BackendRegistration second(backend_table(DeviceType::PrivateUse12, nullptr, &streams));
  Stream made = Stream::make(device);
  EXPECT_EQ(made.id(), 1);
  {
    StreamGuard guard(made);
    EXPECT_EQ(current_stream(device), made);
    EXPECT_EQ(guard.original_stream(), Stream(Stream::DEFAULT, device));
  }
  EXPECT_EQ(current_stream(device).id(), 0);
  EXPECT_FALSE(Stream(Stream::UNSAFE, device, 3).query());
  EXPECT_EQ(error_of<ValueError>([&] { Stream(Stream::UNSAFE, device, 7).query(); }), "seven");
  EXPECT_EQ(
      error_of([&] {
        BackendRegistration again(backend_table(DeviceType::PrivateUse12, nullptr, &streams));
      }),
      "register_backend: expected a part of the backend privateuse12 that gives something new, got "
      "one that repeats another's");
  EXPECT_EQ(error_of<NotImplementedError>([&] {
              Event event(DeviceType::PrivateUse12);
              event.record(made);
            }),
            "Event: expected a backend with events, got privateuse12");
}

TEST(Backend, Mistakes) {
  Recording backend;
  EXPECT_EQ(error_of([&] { BackendRegistration r(backend_table(kCPU, "host", &backend)); }),
            "register_backend: expected a device type other than cpu and meta, got cpu");
  EXPECT_EQ(error_of([&] {
              BackendRegistration r(backend_table(DeviceType::PrivateUse13, "a b", &backend));
            }),
            "rename_privateuse1_backend: expected 'name' to be lower-case letters, digits and _, "
            "got 'a b'");
  EXPECT_EQ(error_of([&] {
              BackendRegistration r(backend_table(DeviceType::PrivateUse13, "xpu", &backend));
            }),
            "rename_privateuse1_backend: expected a 'name' that no device type has, got 'xpu'");
  lamella_backend table = backend_table(DeviceType::PrivateUse13, nullptr, &backend);
  table.bytes = 10000;
  EXPECT_EQ(error_of([&] { BackendRegistration r(table); }),
            str("register_backend: expected 'bytes' of at most ", sizeof(lamella_backend),
                ", got 10000; the library was built for a newer Lamella"));
  EXPECT_EQ(lamella_has_backend(static_cast<uint8_t>(DeviceType::PrivateUse13)), 0);
}

// Memory that is freed after its backend has ended is left alone.
TEST(Backend, MemoryOutlivesIt) {
  Recording backend;
  TensorBase t;
  {
    BackendRegistration registration(backend_table(DeviceType::PrivateUse14, nullptr, &backend));
    t = make_empty({4}, kFloat, Device(DeviceType::PrivateUse14, 0));
  }
  EXPECT_EQ(backend.live, 1);
  void* data = t.impl()->data;
  t = TensorBase();
  EXPECT_EQ(backend.live, 1);
  std::free(data);
}

// Unregistering waits for running calls of the backend's functions.
TEST(Backend, EndsWhileOthersAllocate) {
  for (int round = 0; round < 20; ++round) {
    auto backend = std::make_unique<Recording>();
    std::atomic<bool> stop{false};
    BackendRegistration registration(
        backend_table(DeviceType::PrivateUse15, nullptr, backend.get()));
    std::thread thread([&] {
      lamella_place place{nullptr, static_cast<uint8_t>(DeviceType::PrivateUse15), 0};
      while (!stop) {
        lamella_device_current(place.device_type);
        lamella_device_count(place.device_type);
      }
    });
    registration = BackendRegistration();
    backend = nullptr;  // no call may be running
    stop = true;
    thread.join();
  }
}

TEST(Backend, CopiesBetweenAnyTwoPlaces) {
  Recording a, b;
  BackendRegistration first(backend_table(DeviceType::PrivateUse13, nullptr, &a));
  BackendRegistration second(backend_table(DeviceType::PrivateUse14, nullptr, &b));
  TensorBase x = make_empty({2}, kFloat, kCPU), y = make_empty({2}, kFloat, kCPU);
  static_cast<float*>(x.impl()->data)[1] = 2.5f;
  static_cast<float*>(x.impl()->data)[0] = 1.5f;
  TensorBase there = make_empty({2}, kFloat, Device(DeviceType::PrivateUse13, 1));
  TensorBase other = make_empty({2}, kFloat, Device(DeviceType::PrivateUse14, 0));
  auto place = [](const TensorBase& t) {
    return lamella_place{t.impl()->data, t.impl()->device_type, t.impl()->device_index};
  };
  detail::check(lamella_device_copy(place(there), place(x), 8, 0));
  detail::check(lamella_device_copy(place(other), place(there), 8, 0));
  detail::check(lamella_device_copy(place(y), place(other), 8, 0));
  EXPECT_EQ(static_cast<float*>(y.impl()->data)[1], 2.5f);
  EXPECT_EQ(a.calls.back(), "copy 8 from 1 to -1");
  EXPECT_EQ(b.calls.back(), "copy 8 from 0 to -1");
}

}  // namespace
}  // namespace lamella
