// See Note [Code of libraries] in code.h.
#include "lamella/core/code.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>

#include "lamella/core/fork.h"

namespace lamella::code {
namespace {

std::atomic<Library*> head{nullptr};
std::atomic<pthread_t> closing{};
fork::Held<std::mutex> adding{fork::Level::kLibraries};

Library* seen(uintptr_t address) {
  for (Library* at = head.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    if (address >= at->first.load(std::memory_order_relaxed) &&
        address < at->last.load(std::memory_order_acquire)) {
      return at;
    }
  }
  return nullptr;
}

// Where a library's segments are, from its program headers.
struct Range {
  uintptr_t first, last;
};
Range range_of(const void* base) {
  const auto* header = static_cast<const ElfW(Ehdr)*>(base);
  const auto* segments =
      reinterpret_cast<const ElfW(Phdr)*>(static_cast<const char*>(base) + header->e_phoff);
  uintptr_t size = 0;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_LOAD) continue;
    size = std::max<uintptr_t>(size, segments[i].p_vaddr + segments[i].p_memsz);
  }
  const auto first = reinterpret_cast<uintptr_t>(base);
  // The program headers of a non-position-independent executable hold addresses, not offsets.
  return {first, header->e_type == ET_EXEC ? size : first + size};
}

}  // namespace

Library* first_library() { return head.load(std::memory_order_acquire); }

Library* library_of(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  if (address == nullptr) return nullptr;
  if (Library* found = seen(wanted)) return found;
  if (closing.load(std::memory_order_relaxed) == pthread_self()) return nullptr;
  // Called without holding the mutex, because dladdr1 takes the loader's lock.
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr || info.dli_fbase == nullptr) {
    return nullptr;
  }
  Range range = range_of(info.dli_fbase);
  std::lock_guard<std::mutex> lock(adding);
  if (Library* found = seen(wanted)) return found;
  auto* library = new Library;
  library->path = map->l_name != nullptr ? map->l_name : "";
  const auto own = reinterpret_cast<uintptr_t>(&first_library);
  library->stays = library->path.empty() || (own >= range.first && own < range.last);
  library->first.store(range.first, std::memory_order_relaxed);
  library->last.store(range.last, std::memory_order_relaxed);
  library->next = head.load(std::memory_order_relaxed);
  head.store(library, std::memory_order_release);
  return library;
}

void forget(Library* library) { library->last.store(0, std::memory_order_release); }

void set_closing(bool on) {
  closing.store(on ? pthread_self() : pthread_t{}, std::memory_order_relaxed);
}

void retain(const void* function) noexcept {
  try {
    Library* library = library_of(function);
    if (library != nullptr) library->uses.fetch_add(1, std::memory_order_relaxed);
  } catch (...) {  // no memory to record it: the library is not tracked
  }
}
void release(const void* function) noexcept {
  if (function == nullptr) return;
  Library* library = seen(reinterpret_cast<uintptr_t>(function));
  if (library != nullptr) library->uses.fetch_sub(1, std::memory_order_acq_rel);
}

}  // namespace lamella::code
