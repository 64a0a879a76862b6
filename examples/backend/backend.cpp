// Devices, memory, streams and their registration.
#include "backend.h"

#include <cstring>
#include <map>

namespace sim {

namespace {
constexpr size_t kDeviceBytes = size_t{8} << 30;  // address space; pages are allocated on first use
constexpr int kMostDevices = 8;

// The current device of a thread, for each device type. Plain memory: an object with a destructor
// would keep the library loaded while the thread lives.
struct Current {
  DeviceIndex device;
  int64_t streams[kMostDevices];
};
Current& current_of(lamella::DeviceType type) {
  thread_local Current all[lamella::kDeviceTypes];
  return all[static_cast<size_t>(type)];
}
}  // namespace

Backend::Device::Device() : memory(kDeviceBytes) { streams.push_back(std::make_unique<Stream>()); }
std::vector<Stream*> Backend::Device::all() {
  std::lock_guard lock(mutex);
  std::vector<Stream*> result;
  for (auto& stream : streams) result.push_back(stream.get());
  return result;
}

Backend::Backend(lamella::DeviceType type, int devices) : type_(type) {
  LAMELLA_CHECK(devices >= 1 && devices <= kMostDevices, "sim: expected 1 to ", kMostDevices,
                " devices, got ", devices);
  for (int i = 0; i < devices; ++i) devices_.push_back(std::make_unique<Device>());
}

// ---- Memory ----

void* Backend::allocate(size_t bytes, DeviceIndex index, void**) {
  void* data = device(index).memory.allocate(bytes);
  if (data == nullptr) {  // a block may be waiting to be freed
    synchronize_device(index);
    data = device(index).memory.allocate(bytes);
  }
  if (data == nullptr) {
    throw lamella::OutOfMemoryError(
        lamella::str("could not allocate ", bytes, " bytes on ", lamella::Device(type_, index)));
  }
  return data;
}

// The block becomes free when all work launched before has finished.
void Backend::deallocate(void* data, size_t, DeviceIndex index, void*) {
  Memory& memory = device(index).memory;
  std::shared_ptr<void> block(data, [&memory](void* p) { memory.free(p); });
  for (Stream* stream : device(index).all()) stream->enqueue([block] {});
}

void Backend::copy(lamella_place to, lamella_place from, size_t bytes, bool non_blocking) {
  const bool to_host = to.device_type == 0, from_host = from.device_type == 0;
  if (from_host) {
    // The caller may change its memory after this returns.
    std::shared_ptr<char[]> staged(new char[bytes]);
    std::memcpy(staged.get(), from.data, bytes);
    void* target = device(to.device_index).memory.worker_view(to.data);
    launch(to.device_index, [=] { std::memcpy(target, staged.get(), bytes); });
    if (!non_blocking) current(to.device_index).synchronize();
    return;
  }
  const void* source = device(from.device_index).memory.worker_view(from.data);
  if (to_host) {
    launch(from.device_index, [=] { std::memcpy(to.data, source, bytes); });
    current(from.device_index).synchronize();
    return;
  }
  void* target = device(to.device_index).memory.worker_view(to.data);
  if (to.device_index == from.device_index) {
    launch(to.device_index, [=] { std::memmove(target, source, bytes); });
    return;
  }
  // Runs after the pending work on the source, and before work that is launched on either later.
  Event ready, copied;
  ready.record(current(from.device_index));
  ready.wait(current(to.device_index));
  launch(to.device_index, [=] { std::memcpy(target, source, bytes); });
  copied.record(current(to.device_index));
  copied.wait(current(from.device_index));
}

// ---- Devices and streams ----

DeviceIndex Backend::current_device() { return current_of(type_).device; }
void Backend::set_device(DeviceIndex device) { current_of(type_).device = device; }
int64_t Backend::current_stream(DeviceIndex device) { return current_of(type_).streams[device]; }
void Backend::set_stream(DeviceIndex device, int64_t number) {
  stream(device, number);  // checks the stream's number
  current_of(type_).streams[device] = number;
}

Stream& Backend::stream(DeviceIndex index, int64_t number) {
  Device& d = device(index);
  std::lock_guard lock(d.mutex);
  LAMELLA_CHECK(number >= 0 && number < static_cast<int64_t>(d.streams.size()),
                "Stream: expected a stream of ", lamella::Device(type_, index), ", got number ",
                number);
  return *d.streams[static_cast<size_t>(number)];
}
int64_t Backend::make_stream(DeviceIndex index, int) {
  Device& d = device(index);
  std::lock_guard lock(d.mutex);
  d.streams.push_back(std::make_unique<Stream>());
  return static_cast<int64_t>(d.streams.size()) - 1;
}
bool Backend::query_stream(DeviceIndex device, int64_t number) {
  return stream(device, number).idle();
}
void Backend::synchronize_stream(DeviceIndex device, int64_t number) {
  stream(device, number).synchronize();
}
void Backend::synchronize_device(DeviceIndex index) {
  for (Stream* stream : device(index).all()) stream->synchronize();
}

void Backend::launch(DeviceIndex device, std::function<void()> work) {
  current(device).enqueue(std::move(work));
}

// ---- Events ----

void* Backend::make_event(DeviceIndex, bool) { return new Event; }
void Backend::free_event(void* event) { delete static_cast<Event*>(event); }
void Backend::record_event(void* event, DeviceIndex device, int64_t number) {
  static_cast<Event*>(event)->record(stream(device, number));
}
void Backend::wait_event(void* event, DeviceIndex device, int64_t number) {
  static_cast<Event*>(event)->wait(stream(device, number));
}
bool Backend::query_event(void* event) { return static_cast<Event*>(event)->done(); }
void Backend::synchronize_event(void* event) { static_cast<Event*>(event)->synchronize(); }
double Backend::elapsed_time(void* start, void* end) {
  return static_cast<Event*>(start)->elapsed_until(*static_cast<Event*>(end));
}

// ---- Registration ----

namespace {

// A backend with its registrations, created when the library is loaded.
struct Registered {
  Registered(lamella::DeviceType type, const char* name)
      : backend(type), devices(lamella::backend_table(type, name, &backend)) {}
  Backend backend;
  lamella::BackendRegistration devices;
  std::vector<lamella::Library> kernels;
};
std::mutex mutex;
std::map<lamella::DeviceType, std::unique_ptr<Registered>> registered;

void add_backend(lamella::DeviceType type, const char* name) {
  std::lock_guard lock(mutex);
  auto made = std::make_unique<Registered>(type, name);
  register_kernels(lamella::dispatch_key_of(type), made->kernels);
  registered[type] = std::move(made);
}

}  // namespace

Backend& backend_of(lamella::DeviceType type) {
  std::lock_guard lock(mutex);
  return registered.at(type)->backend;
}

}  // namespace sim

// Registers the same devices under another type and name, for programs that need many backends at
// once. Returns null, or the text of the error.
extern "C" __attribute__((visibility("default"))) const char* sim_add_backend(int type,
                                                                              const char* name) {
  try {
    sim::add_backend(static_cast<lamella::DeviceType>(type), name);
    return nullptr;
  } catch (const std::exception& error) {
    lamella_fail(LAMELLA_ERROR, error.what(), std::strlen(error.what()));
    return lamella_error_text();
  }
}

namespace {
// Nothing may throw while a library is loaded: a failure is kept for load_library().
const bool loaded = [] {
  const char* error = sim_add_backend(static_cast<int>(lamella::DeviceType::PrivateUse1), "sim");
  if (error != nullptr) lamella_defer_failure(error, __FILE__, __LINE__);
  return error == nullptr;
}();
}  // namespace
