// Which shared library code belongs to, and what of it is still needed. Internal.
//
// Note [Code of libraries]
//   Nodes, hooks, deleters and derivatives carry pointers to functions of the library that made
//   them, and may outlive its registrations. Each counts as a use of that library, found by the
//   function's address. A library that is unloaded (lamella/dispatch/loading.cpp) stays mapped
//   while it has uses. Nobody unmaps it in the moment when the last use ends, because its own code
//   may be up the stack then: the next load or unload does.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "lamella/core/macros.h"

namespace lamella::code {

// A shared library of the process. Never freed.
struct Library {
  std::atomic<uintptr_t> first{0};
  std::atomic<uintptr_t> last{0};  // the address behind it; 0: it is gone
  std::atomic<int64_t> uses{0};
  bool stays = false;  // the program, and Lamella itself
  std::string path;
  Library* next = nullptr;
  // The rest belongs to loading.cpp and is guarded by its mutex.
  int loads = 0;
  uint64_t device = 0, inode = 0;  // of its file when it was loaded
  void* kept = nullptr;            // the handle of a library that was unloaded while it had uses
};

// NULL where the address is in no library.
Library* library_of(const void* address);
// Forgets that the library is mapped. It has no uses.
void forget(Library* library);
// While the calling thread unloads a library, addresses that were not seen before are not looked
// up: the library may be on its way out.
void set_closing(bool on);
// One more, or one less, thing that needs the library of this function. NULL needs none.
LAMELLA_PRIVATE_API void retain(const void* function) noexcept;
LAMELLA_PRIVATE_API void release(const void* function) noexcept;
template <class R, class... A>
const void* address_of(R (*function)(A...)) {
  return reinterpret_cast<const void*>(function);
}
// The same for the time that it lives.
class Use {
 public:
  Use() = default;
  explicit Use(const void* function) : function_(function) { retain(function_); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { release(function_); }

 private:
  const void* function_ = nullptr;
};

// All that were seen, the youngest first.
Library* first_library();
// Calls visit(Library&) for each.
template <class Visit>
void each_library(Visit&& visit) {
  for (Library* at = first_library(); at != nullptr; at = at->next) visit(*at);
}

}  // namespace lamella::code
