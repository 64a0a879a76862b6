// The table of backends: their parts, their names, and the C functions that ask them.
#include "lamella/abi/backend.h"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "lamella/core/allocator.h"
#include "lamella/core/cuda_loading.h"
#include "lamella/core/device.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"

namespace lamella {
namespace {

bool may_have_backend(uint8_t type) {
  return type < kDeviceTypes && type != static_cast<uint8_t>(DeviceType::CPU) &&
         type != static_cast<uint8_t>(DeviceType::Meta);
}

}  // namespace
}  // namespace lamella

using namespace lamella;

// One registration. Never freed, because storages that outlive it still refer to it as allocator.
struct lamella_backend_part final : lamella::Allocator {
  lamella_backend given{};
  std::string name;
  // The number of threads inside one of the functions, and whether the part has ended: Note [The
  // end of a backend] in abi/backend.h.
  std::atomic<int64_t> inside{0};
  std::atomic<bool> ended{false};
  lamella_backend_part* next_ended = nullptr;  // in the list of ended parts

  void* allocate(size_t bytes, DeviceIndex index, void** context) override;
  void deallocate(void* data, size_t bytes, DeviceIndex index, void* context) noexcept override;
};

namespace {

constexpr int kParts = 4;  // of one device type
std::atomic<lamella_backend_part*> parts[kDeviceTypes][kParts];
lamella_backend_part* ended_parts = nullptr;
fork::Held<std::mutex> mutex{fork::Level::kCore};  // of registrations and names

// Keeps a part from ending while one of its functions is called.
class Use {
 public:
  explicit Use(lamella_backend_part* part) : part_(part) {
    if (part_ == nullptr) return;
    part_->inside.fetch_add(1);
    if (!part_->ended.load()) return;
    part_->inside.fetch_sub(1);
    part_ = nullptr;
  }
  Use(Use&& other) noexcept : part_(other.part_) { other.part_ = nullptr; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (part_ != nullptr) part_->inside.fetch_sub(1);
  }
  explicit operator bool() const { return part_ != nullptr; }
  const lamella_backend* operator->() const { return &part_->given; }
  void* context() const { return part_->given.context; }

 private:
  lamella_backend_part* part_;
};

template <auto Function>
Use find_among(uint8_t type, bool* any) {
  for (auto& slot : parts[type]) {
    lamella_backend_part* part = slot.load(std::memory_order_acquire);
    *any |= part != nullptr;
    if (part != nullptr && part->given.*Function != nullptr) return Use(part);
  }
  return Use(nullptr);
}
// The part of a device type that gives a function.
template <auto Function>
Use find(uint8_t type) {
  if (!may_have_backend(type)) return Use(nullptr);
  bool any = false;
  Use found = find_among<Function>(type, &any);
  if (LAMELLA_LIKELY(any || type != static_cast<uint8_t>(DeviceType::CUDA))) return found;
  load_cuda();
  return find_among<Function>(type, &any);
}

template <auto... Functions>
bool gives_same(const lamella_backend& a, const lamella_backend& b) {
  return ((a.*Functions != nullptr && b.*Functions != nullptr) || ...);
}
bool overlap(const lamella_backend& a, const lamella_backend& b) {
  using B = lamella_backend;
  return gives_same<&B::allocate, &B::deallocate, &B::copy, &B::device_count, &B::current_device,
                    &B::set_device, &B::current_stream, &B::set_stream, &B::make_stream,
                    &B::query_stream, &B::synchronize_stream, &B::synchronize_device,
                    &B::make_event, &B::free_event, &B::record_event, &B::wait_event,
                    &B::query_event, &B::synchronize_event, &B::elapsed_time>(a, b);
}

std::string device_name(uint8_t type) { return lamella_device_type_name(type, 1); }

template <class F>
lamella_status guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    return detail::status_of_current_exception();
  }
}
[[noreturn]] LAMELLA_COLD void throw_without(const char* what, const char* wanted, uint8_t type) {
  throw NotImplementedError(
      str(what, ": expected a backend with ", wanted, ", got ", device_name(type)));
}
void check_device(const char* what, uint8_t type, int8_t device) {
  int32_t count = lamella_device_count(type);
  LAMELLA_CHECK(device >= 0 && device < count, what, ": expected a device of ", device_name(type),
                " from 0 to ", count - 1, ", got ", static_cast<int>(device));
}

// ---- Names ----

// The names given to PrivateUse1 to 16, in lower and upper case; null: the table's name holds.
// Strings are never freed.
constexpr int kFirstNamed = static_cast<int>(DeviceType::PrivateUse1);
std::atomic<const char*> names[kDeviceTypes - kFirstNamed][2];

const char* table_name(uint8_t type, bool lower_case) {
  switch (static_cast<DeviceType>(type)) {
#define LAMELLA_CASE(name, number, text, ...) \
  case DeviceType::name:                      \
    return lower_case ? text : #name;
    LAMELLA_DEVICE_TYPES(LAMELLA_CASE)
#undef LAMELLA_CASE
    case DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES:
      break;
  }
  return "unknown";
}
int32_t type_in_table(std::string_view text) {
#define LAMELLA_MATCH(name, number, spelled, ...) \
  if (text == spelled) return number;
  LAMELLA_DEVICE_TYPES(LAMELLA_MATCH)
#undef LAMELLA_MATCH
  return -1;
}

void rename(uint8_t type, std::string_view name) {
  constexpr const char* what = "rename_privateuse1_backend";
  LAMELLA_CHECK(type >= kFirstNamed && type < kDeviceTypes, what,
                ": expected one of the device types privateuseone and privateuse2 to 16, got ",
                table_name(type, true));
  bool good = !name.empty() && name[0] >= 'a' && name[0] <= 'z';
  for (char c : name) good = good && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
  LAMELLA_CHECK(good, what, ": expected 'name' to be lower-case letters, digits and _, got '", name,
                "'");
  auto& own = names[type - kFirstNamed];
  const char* before = own[0].load();
  if (before != nullptr && before == name) return;
  LAMELLA_CHECK(before == nullptr, what, ": expected a device type without a name, got ",
                table_name(type, true), ", which is called '", before == nullptr ? "" : before,
                "'");
  int32_t taken = lamella_device_type_from_name(name.data(), name.size());
  LAMELLA_CHECK(taken < 0 || taken == type, what, ": expected a 'name' that no device type has, ",
                "got '", name, "'");
  std::string upper(name);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  own[1].store(strdup(upper.c_str()));
  own[0].store(strdup(std::string(name).c_str()));
}

}  // namespace

void* lamella_backend_part::allocate(size_t bytes, DeviceIndex index, void** context) {
  Use use(this);
  LAMELLA_CHECK_NOT_IMPLEMENTED(use, "empty: expected a device with an allocator, got ",
                                device_name(given.device_type), ", whose backend is gone");
  if (index < 0) index = lamella_device_current(given.device_type);
  check_device("empty", given.device_type, index);
  void* data = nullptr;
  detail::check(given.allocate(given.context, bytes, index, &data, context));
  return data;
}
void lamella_backend_part::deallocate(void* data, size_t bytes, DeviceIndex index,
                                      void* context) noexcept {
  if (Use use(this); use) given.deallocate(given.context, data, bytes, index, context);
}

extern "C" {

lamella_status lamella_register_backend(const lamella_backend* backend,
                                        lamella_backend_part** result) noexcept {
  return guarded([&] {
    constexpr const char* what = "register_backend";
    *result = nullptr;
    uint8_t type = backend->device_type;
    LAMELLA_CHECK(may_have_backend(type), what,
                  ": expected a device type other than cpu and meta, ", "got ",
                  type < kDeviceTypes ? table_name(type, true) : "an unknown one");
    LAMELLA_CHECK(backend->bytes >= offsetof(lamella_backend, allocate) &&
                      backend->bytes <= sizeof(lamella_backend),
                  what, ": expected 'bytes' of at most ", sizeof(lamella_backend), ", got ",
                  backend->bytes, "; the library was built for a newer Lamella");
    auto part = std::make_unique<lamella_backend_part>();
    std::memcpy(&part->given, backend, backend->bytes);
    if (backend->name != nullptr) part->name = backend->name;
    part->given.name = nullptr;
    LAMELLA_CHECK((part->given.allocate == nullptr) == (part->given.deallocate == nullptr), what,
                  ": expected 'allocate' and 'deallocate' together");
    LAMELLA_CHECK((part->given.current_device == nullptr) == (part->given.set_device == nullptr),
                  what, ": expected 'current_device' and 'set_device' together");
    std::lock_guard lock(mutex);
    std::atomic<lamella_backend_part*>* free_slot = nullptr;
    for (auto& slot : parts[type]) {
      lamella_backend_part* other = slot.load();
      if (other == nullptr) {
        if (free_slot == nullptr) free_slot = &slot;
        continue;
      }
      LAMELLA_CHECK(!overlap(other->given, part->given), what, ": expected a part of the backend ",
                    device_name(type), " that gives something new, got one that repeats another's");
    }
    LAMELLA_CHECK(free_slot != nullptr, what, ": expected at most ", kParts,
                  " parts of one backend");
    if (!part->name.empty()) {
      if (type >= kFirstNamed) {
        rename(type, part->name);
      } else {
        LAMELLA_CHECK(part->name == table_name(type, true), what, ": expected the name '",
                      table_name(type, true), "', got '", part->name, "'");
      }
    }
    *result = part.release();
    free_slot->store(*result, std::memory_order_release);
    if ((*result)->given.allocate != nullptr) set_allocator(static_cast<DeviceType>(type), *result);
    return LAMELLA_OK;
  });
}

void lamella_unregister_backend(lamella_backend_part* part) noexcept {
  if (part == nullptr) return;
  {
    std::lock_guard lock(mutex);
    uint8_t type = part->given.device_type;
    for (auto& slot : parts[type]) {
      if (slot.load() == part) slot.store(nullptr);
    }
    if (part->given.allocate != nullptr) set_allocator(static_cast<DeviceType>(type), nullptr);
    part->next_ended = std::exchange(ended_parts, part);
  }
  part->ended.store(true);
  while (part->inside.load() != 0) std::this_thread::yield();
}

const char* lamella_device_type_name(uint8_t type, int32_t lower_case) noexcept {
  if (type >= kFirstNamed && type < kDeviceTypes) {
    const char* own = names[type - kFirstNamed][lower_case != 0 ? 0 : 1].load();
    if (own != nullptr) return own;
  }
  return table_name(type, lower_case != 0);
}
int32_t lamella_device_type_from_name(const char* name, size_t size) noexcept {
  std::string_view text(name, size);
  for (int i = 0; i < kDeviceTypes - kFirstNamed; ++i) {
    const char* own = names[i][0].load();
    if (own != nullptr && text == own) return kFirstNamed + i;
  }
  return type_in_table(text);
}
lamella_status lamella_rename_device_type(uint8_t type, const char* name) noexcept {
  return guarded([&] {
    std::lock_guard lock(mutex);
    rename(type, name);
    return LAMELLA_OK;
  });
}

// ---- Devices ----

int32_t lamella_has_backend(uint8_t type) noexcept {
  if (!may_have_backend(type)) return 0;
  for (auto& slot : parts[type]) {
    if (slot.load(std::memory_order_acquire) != nullptr) return 1;
  }
  return 0;
}
int32_t lamella_device_count(uint8_t type) noexcept {
  if (Use use = find<&lamella_backend::device_count>(type)) {
    return use->device_count(use.context());
  }
  return lamella_has_backend(type) != 0 || !may_have_backend(type) ? 1 : 0;
}
int8_t lamella_device_current(uint8_t type) noexcept {
  Use use = find<&lamella_backend::current_device>(type);
  return use ? use->current_device(use.context()) : int8_t{0};
}
lamella_status lamella_device_exchange(uint8_t type, int8_t device, int8_t* former) noexcept {
  return guarded([&] {
    Use use = find<&lamella_backend::set_device>(type);
    int8_t before = use ? use->current_device(use.context()) : int8_t{0};
    if (former != nullptr) *former = before;
    if (before == device) return static_cast<lamella_status>(LAMELLA_OK);
    if (!use) {
      Device only(static_cast<DeviceType>(type), 0);
      LAMELLA_CHECK(device == 0, "DeviceGuard: expected the only device of its type, ", only,
                    ", got ", Device(only.type(), device));
    }
    check_device("DeviceGuard", type, device);
    return use->set_device(use.context(), device);
  });
}
lamella_status lamella_device_synchronize(uint8_t type, int8_t device) noexcept {
  return guarded([&] {
    Use use = find<&lamella_backend::synchronize_device>(type);
    if (!use) return static_cast<lamella_status>(LAMELLA_OK);
    check_device("synchronize", type, device);
    return use->synchronize_device(use.context(), device);
  });
}
lamella_status lamella_device_copy(lamella_place to, lamella_place from, size_t bytes,
                                   int32_t non_blocking) noexcept {
  return guarded([&] {
    constexpr auto cpu = static_cast<uint8_t>(DeviceType::CPU);
    if (bytes == 0) return static_cast<lamella_status>(LAMELLA_OK);
    if (to.device_type == cpu && from.device_type == cpu) {
      std::memmove(to.data, from.data, bytes);
      return static_cast<lamella_status>(LAMELLA_OK);
    }
    bool two =
        to.device_type != cpu && from.device_type != cpu && to.device_type != from.device_type;
    if (two) {
      void* between = cpu_allocate(bytes);
      lamella_place host{between, cpu, -1};
      lamella_status status = lamella_device_copy(host, from, bytes, 0);
      if (status == LAMELLA_OK) status = lamella_device_copy(to, host, bytes, 0);
      cpu_free(between, bytes);
      return status;
    }
    uint8_t type = to.device_type != cpu ? to.device_type : from.device_type;
    Use use = find<&lamella_backend::copy>(type);
    if (!use) throw_without("copy", "a copy", type);
    return use->copy(use.context(), to, from, bytes, non_blocking);
  });
}

// ---- Streams and events ----

int64_t lamella_stream_current(uint8_t type, int8_t device) noexcept {
  Use use = find<&lamella_backend::current_stream>(type);
  return use ? use->current_stream(use.context(), device) : 0;
}
lamella_status lamella_stream_exchange(uint8_t type, int8_t device, int64_t stream,
                                       int64_t* former) noexcept {
  return guarded([&] {
    if (former != nullptr) *former = lamella_stream_current(type, device);
    Use use = find<&lamella_backend::set_stream>(type);
    if (!use) {
      if (stream == 0) return static_cast<lamella_status>(LAMELLA_OK);
      throw_without("Stream", "streams", type);
    }
    check_device("Stream", type, device);
    return use->set_stream(use.context(), device, stream);
  });
}
lamella_status lamella_stream_make(uint8_t type, int8_t device, int32_t priority,
                                   int64_t* stream) noexcept {
  return guarded([&] {
    Use use = find<&lamella_backend::make_stream>(type);
    if (!use) throw_without("Stream", "streams", type);
    check_device("Stream", type, device);
    return use->make_stream(use.context(), device, priority, stream);
  });
}
lamella_status lamella_stream_query(uint8_t type, int8_t device, int64_t stream,
                                    int32_t* idle) noexcept {
  return guarded([&] {
    Use use = find<&lamella_backend::query_stream>(type);
    *idle = 1;
    return use ? use->query_stream(use.context(), device, stream, idle)
               : static_cast<lamella_status>(LAMELLA_OK);
  });
}
lamella_status lamella_stream_synchronize(uint8_t type, int8_t device, int64_t stream) noexcept {
  return guarded([&] {
    Use use = find<&lamella_backend::synchronize_stream>(type);
    return use ? use->synchronize_stream(use.context(), device, stream)
               : static_cast<lamella_status>(LAMELLA_OK);
  });
}

lamella_status lamella_event_make(uint8_t type, int8_t device, int32_t timing,
                                  void** event) noexcept {
  return guarded([&] {
    Use use = find<&lamella_backend::make_event>(type);
    if (!use) throw_without("Event", "events", type);
    check_device("Event", type, device);
    return use->make_event(use.context(), device, timing, event);
  });
}
void lamella_event_free(uint8_t type, void* event) noexcept {
  if (Use use = find<&lamella_backend::free_event>(type)) use->free_event(use.context(), event);
}
#define LAMELLA_EVENT(function, ...)                   \
  return guarded([&] {                                 \
    Use use = find<&lamella_backend::function>(type);  \
    if (!use) throw_without("Event", #function, type); \
    return use->function(use.context(), __VA_ARGS__);  \
  })
lamella_status lamella_event_record(uint8_t type, void* event, int8_t device,
                                    int64_t stream) noexcept {
  LAMELLA_EVENT(record_event, event, device, stream);
}
lamella_status lamella_event_wait(uint8_t type, void* event, int8_t device,
                                  int64_t stream) noexcept {
  LAMELLA_EVENT(wait_event, event, device, stream);
}
lamella_status lamella_event_query(uint8_t type, void* event, int32_t* done) noexcept {
  LAMELLA_EVENT(query_event, event, done);
}
lamella_status lamella_event_synchronize(uint8_t type, void* event) noexcept {
  LAMELLA_EVENT(synchronize_event, event);
}
lamella_status lamella_event_elapsed(uint8_t type, void* start, void* end,
                                     double* milliseconds) noexcept {
  LAMELLA_EVENT(elapsed_time, start, end, milliseconds);
}
#undef LAMELLA_EVENT

}  // extern "C"
