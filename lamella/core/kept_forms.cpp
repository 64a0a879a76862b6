// Other forms of a tensor's elements: Note [What is kept with a storage].
#include "lamella/core/kept_forms.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "lamella/core/fork.h"

namespace lamella {

namespace {

// The most forms that one storage keeps: a weight that is split into parts has one form for each
// part, and another for its transpose.
constexpr size_t kMaxForms = 8;

struct Form {
  KeptFormKey key{};
  Storage* made = nullptr;  // NULL: requested once, not yet made
};
struct Record {
  uint64_t writes = 0;  // to the storage when the forms were made
  size_t count = 0, next = 0;
  Form forms[kMaxForms];
  int64_t exposures = 0;  // exposures that have not ended; no forms are kept meanwhile

  Form* find(const KeptFormKey& key) {
    for (size_t i = 0; i < count; ++i) {
      if (forms[i].key == key) return &forms[i];
    }
    return nullptr;
  }
  // Replaces the oldest form if all slots are used.
  Form& add(const KeptFormKey& key) {
    Form& form = count < kMaxForms ? forms[count++] : forms[next++ % kMaxForms];
    form.key = key;
    return form;
  }
};

fork::Held<std::mutex> mutex{fork::Level::kCore};
int64_t bytes_kept = 0;

std::unordered_map<const Storage*, Record>& records() {
  static auto* all = new std::unordered_map<const Storage*, Record>;  // storages may outlive it
  return *all;
}

int64_t most_bytes() {
  static const int64_t most = [] {
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t memory = pages > 0 && page > 0 ? pages * page : 0;
    return std::min(memory / 8, int64_t{1} << 30);
  }();
  return most;
}

uint64_t writes_to(const Storage* s) {
  return static_cast<uint64_t>(__atomic_load_n(&s->writes_apart, __ATOMIC_RELAXED)) << 32 |
         __atomic_load_n(&s->version, __ATOMIC_RELAXED);
}
bool may_have_forms(const Storage* s) {
  return __atomic_load_n(&s->is_exposed, __ATOMIC_RELAXED) == 0 &&
         s->device_type == DeviceType::CPU && s->allocator != nullptr &&
         !__atomic_load_n(&detail::cpu_allocator_replaced, __ATOMIC_ACQUIRE) &&
         s->allocator == get_allocator(DeviceType::CPU);
}

// The record of the storage, made if needed; NULL if there is no memory for it.
Record* record_of(Storage* storage) {
  try {
    Record& record = records()[storage];
    __atomic_store_n(&storage->has_kept_forms, uint8_t{1}, __ATOMIC_RELAXED);
    return &record;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Storages whose release waits until the lock is free.
struct Dropped {
  size_t count = 0;
  Storage* all[kMaxForms];

  void take(Form& form) {
    if (form.made == nullptr) return;
    bytes_kept -= static_cast<int64_t>(form.made->nbytes);
    all[count++] = std::exchange(form.made, nullptr);
  }
  void take(Record& record) {
    for (size_t i = 0; i < record.count; ++i) take(record.forms[i]);
    record.count = record.next = 0;
  }
  ~Dropped() {
    for (size_t i = 0; i < count; ++i) storage_release(all[i]);
  }
};

}  // namespace

KeptForm::KeptForm(Storage* storage, const KeptFormKey& key, int64_t bytes)
    : storage_(storage), key_(key), bytes_(bytes) {
  bool may = may_have_forms(storage);
  if (!may && __atomic_load_n(&storage->has_kept_forms, __ATOMIC_RELAXED) == 0) return;
  Dropped dropped;
  std::lock_guard lock(mutex);
  if (!may) {
    auto found = records().find(storage);
    if (found != records().end()) dropped.take(found->second);
    return;
  }
  writes_ = writes_to(storage);
  Record* record = record_of(storage);
  if (record == nullptr || record->exposures != 0) return;
  if (record->writes != writes_) dropped.take(*record);
  record->writes = writes_;
  if (Form* form = record->find(key)) {
    if (form->made != nullptr) {
      storage_retain(form->made);
      form_ = form->made;
    } else {
      is_wanted_ = bytes_kept + bytes <= most_bytes();
    }
    return;
  }
  if (record->count == kMaxForms) dropped.take(record->forms[record->next % kMaxForms]);
  record->add(key);
}

void* KeptForm::make() {
  form_ = make_storage(static_cast<size_t>(bytes_), kCPU);
  return form_->data;
}

void KeptForm::keep() noexcept {
  std::lock_guard lock(mutex);
  // Another thread may meanwhile have made the same form or dropped the request.
  auto found = records().find(storage_);
  if (found == records().end() || found->second.writes != writes_ ||
      writes_to(storage_) != writes_ || !may_have_forms(storage_)) {
    return;
  }
  Form* form = found->second.find(key_);
  if (form == nullptr || form->made != nullptr) return;
  storage_retain(form_);
  form->made = form_;
  bytes_kept += static_cast<int64_t>(form_->nbytes);
}

void begin_exposure(Storage* storage) noexcept {
  if (!may_have_forms(storage)) return expose_storage(storage);
  Dropped dropped;
  std::lock_guard lock(mutex);
  Record* record = record_of(storage);
  if (record == nullptr) return expose_storage(storage);
  dropped.take(*record);
  ++record->exposures;
}

void end_exposure(Storage* storage) noexcept {
  if (__atomic_load_n(&storage->has_kept_forms, __ATOMIC_RELAXED) == 0) return;
  std::lock_guard lock(mutex);
  auto found = records().find(storage);
  if (found != records().end() && found->second.exposures != 0) --found->second.exposures;
}

int64_t kept_form_bytes() {
  std::lock_guard lock(mutex);
  return bytes_kept;
}

namespace detail {
void forget_kept_forms(const Storage* storage) noexcept {
  Dropped dropped;
  std::lock_guard lock(mutex);
  auto found = records().find(storage);
  if (found == records().end()) return;
  dropped.take(found->second);
  records().erase(found);
}
}  // namespace detail

}  // namespace lamella
