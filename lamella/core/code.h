// Finds the shared library of a code address and counts the uses that keep it mapped. Internal.
//
// Note [Code of libraries]
//   Nodes, hooks, deleters and derivatives carry pointers to functions of the library that made
//   them, and may outlive its registrations. Each counts as a use of that library, found by the
//   function's address. A library that is unloaded (lamella/dispatch/loading.cpp) stays mapped
//   while it has uses. It is not unmapped at the moment its last use ends, because its own code may
//   be further up the stack; the next load or unload of any library unmaps it.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "lamella/core/macros.h"

namespace lamella::code {

// A shared library of the process. Never freed.
struct Library {
  std::atomic<uintptr_t> first{0};
  std::atomic<uintptr_t> last{0};  // one past its end; 0: it is no longer mapped
  std::atomic<int64_t> uses{0};
  bool stays = false;  // never unloaded: the program, and Lamella itself
  std::string path;
  Library* next = nullptr;
  // The rest belongs to loading.cpp and is guarded by its mutex.
  int loads = 0;
  uint64_t device = 0, inode = 0;  // of its file when it was loaded
  void* kept = nullptr;            // the handle of a library that was unloaded while it had uses
};

// The library that contains the address; NULL if there is none.
Library* library_of(const void* address);
// Marks the library as no longer mapped. It must have no uses.
void forget(Library* library);
// While the calling thread unloads a library, addresses that were not seen before are not looked
// up: the library may be on its way out.
void set_closing(bool on);
// Adds or drops one use of the library that contains the function. Does nothing for NULL.
LAMELLA_PRIVATE_API void retain(const void* function) noexcept;
LAMELLA_PRIVATE_API void release(const void* function) noexcept;
template <class R, class... A>
const void* address_of(R (*function)(A...)) {
  return reinterpret_cast<const void*>(function);
}
// Holds one use of a library for its lifetime.
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

// The head of the list of known libraries, the most recent first.
Library* first_library();
// Calls visit(Library&) for each known library.
template <class Visit>
void each_library(Visit&& visit) {
  for (Library* at = first_library(); at != nullptr; at = at->next) visit(*at);
}

}  // namespace lamella::code
