// Loads and unloads libraries of operators: see Note [Unloading] in lamella/abi/loading.h.
#include "lamella/dispatch/loading.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "lamella/abi/loading.h"
#include "lamella/abi/operators.h"
#include "lamella/core/fork.h"
#include "lamella/core/warning_hook.h"

namespace lamella {
namespace {

// One load or unload at a time. Recursive: a library's static initialisers may load others.
fork::Held<std::recursive_mutex> loading{fork::Level::kLoading};

code::Library* library_of_handle(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return nullptr;
  return code::library_of(map->l_ld);
}

bool is_mapped(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

// Nothing of the library is needed any more; static destructors of it may run. Libraries that came
// with it, and are needed still, stay.
void unmap(code::Library& library, void* handle) {
  code::each_library([&](code::Library& other) {
    if (&other == &library || other.stays || other.loads != 0 || other.kept != nullptr ||
        other.last.load() == 0 || other.uses.load(std::memory_order_acquire) == 0) {
      return;
    }
    other.kept = dlopen(other.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  });
  code::set_closing(true);
  dlclose(handle);
  if (!has_blocks(&library) && !is_mapped(library.path)) code::forget(&library);
  code::set_closing(false);
}

// Removes the library's registrations, and unmaps the library if nothing needs it.
void let_go(code::Library& library, void* handle) {
  const bool left = park_blocks(&library) && !reclaim::inside_call();
  reclaim::collect();
  if (left && library.uses.load(std::memory_order_acquire) == 0) {
    unmap(library, handle);
  } else if (library.kept == nullptr) {
    library.kept = handle;
  } else {
    dlclose(handle);
  }
}

void unmap_unused() {
  if (reclaim::inside_call()) return;
  code::each_library([](code::Library& library) {
    if (library.kept == nullptr || library.uses.load(std::memory_order_acquire) != 0) return;
    if (reclaim::wait_for_readers(0)) unmap(library, std::exchange(library.kept, nullptr));
  });
}

// The loader identifies files by name: a rebuilt library whose old version is still mapped under
// the same path is opened through a symbolic link with another name.
void* open_under_another_name(const char* path) {
  char folder[] = "/tmp/lamella-XXXXXX";
  char* whole = realpath(path, nullptr);
  void* handle = nullptr;
  if (whole != nullptr && mkdtemp(folder) != nullptr) {
    const char* file = strrchr(whole, '/') + 1;
    std::string link = std::string(folder) + "/" + file;
    if (symlink(whole, link.c_str()) == 0) {
      handle = dlopen(link.c_str(), RTLD_NOW | RTLD_LOCAL);
      unlink(link.c_str());
    }
    rmdir(folder);
  }
  std::free(whole);
  return handle;
}

bool same_file(const code::Library& library, const char* path) {
  struct stat now;
  return stat(path, &now) != 0 || (library.device == now.st_dev && library.inode == now.st_ino);
}
void note_file(code::Library& library, const char* path) {
  struct stat now;
  if (stat(path, &now) != 0) return;
  library.device = now.st_dev;
  library.inode = now.st_ino;
}

// Guarded by the registry's mutex.
std::vector<std::string>& failures() {
  static auto* kept = new std::vector<std::string>;
  return *kept;
}

constexpr std::string_view kOwnFile = "liblamella.so";

}  // namespace

void defer_load_failure(std::string text) {
  std::lock_guard lock(Registry::get().mutex());
  failures().push_back(std::move(text));
}
std::vector<std::string> load_failures() {
  std::lock_guard lock(Registry::get().mutex());
  return failures();
}
std::vector<std::string> take_load_failures() {
  std::lock_guard lock(Registry::get().mutex());
  return std::exchange(failures(), {});
}

Loaded load_shared(const char* path) {
  std::lock_guard lock(loading);
  unmap_unused();
  // Earlier failures belong to other libraries; they are put aside and kept.
  std::vector<std::string> before = take_load_failures();
  const uint64_t blocks = blocks_opened();
  Loaded result;
  code::Library* library = nullptr;
  try {
    result.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (result.handle != nullptr) {
      library = library_of_handle(result.handle);
      if (library != nullptr && library->loads == 0 && library->device != 0 &&
          !same_file(*library, path)) {
        void* other = open_under_another_name(path);
        if (other != nullptr) {
          dlclose(std::exchange(result.handle, other));
          library = library_of_handle(other);
        }
      }
    }
    if (result.handle == nullptr) {
      const char* reason = dlerror();
      result.problem = reason != nullptr ? reason : path;
    }
  } catch (const std::exception& error) {
    result.problem = std::string(path) + ": its static initialisers threw: " + error.what();
    park_blocks_since(blocks);
  } catch (...) {
    result.problem = std::string(path) + ": its static initialisers threw";
    park_blocks_since(blocks);
  }
  if (library != nullptr && library->loads == 0) {
    try {
      resume_blocks(library);
    } catch (const std::exception& error) {
      defer_load_failure(error.what());
    }
  }
  result.failures = take_load_failures();
  for (std::string& failure : before) defer_load_failure(std::move(failure));
  if (result.handle == nullptr || library == nullptr) return result;
  if (!result.failures.empty()) {
    void* handle = std::exchange(result.handle, nullptr);
    if (library->loads == 0) {
      let_go(*library, handle);
    } else {
      dlclose(handle);
    }
    return result;
  }
  note_file(*library, path);
  if (library->loads++ == 0) result.warnings = misspelt_kernels(library);
  if (library->kept != nullptr) dlclose(std::exchange(library->kept, nullptr));
  return result;
}

namespace {
std::atomic<bool> no_families{false};
}  // namespace

bool families_are_missing() { return no_families.load(std::memory_order_relaxed); }

bool load_families() {
  static std::atomic<bool> tried{false};
  static bool loading_it = false;
  if (tried.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(loading);
  if (loading_it) return false;  // asked by the library's own registrations
  if (tried.load(std::memory_order_relaxed)) return true;
  // A program that has Lamella's code in itself has operators that no library could reach.
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&load_families), &info) != 0) {
    const std::string path = info.dli_fname != nullptr ? info.dli_fname : "";
    const size_t name = path.rfind('/') + 1;
    if (path.compare(name, kOwnFile.size(), kOwnFile) == 0) {
      loading_it = true;
      const std::string library = path.substr(0, name) + "liblamella_more.so";
      load_shared(library.c_str());
      no_families.store(access(library.c_str(), F_OK) != 0, std::memory_order_relaxed);
      loading_it = false;
    }
  }
  tried.store(true, std::memory_order_release);
  return true;
}

void unload_shared(void* handle) {
  std::lock_guard lock(loading);
  code::Library* library = library_of_handle(handle);
  LAMELLA_CHECK(library != nullptr && library->loads > 0,
                "unload_library: expected the handle of a library that is loaded");
  if (--library->loads > 0) {
    dlclose(handle);
    return;
  }
  let_go(*library, handle);
  unmap_unused();
}

}  // namespace lamella

using namespace lamella;

extern "C" {

lamella_status lamella_load_library(const char* path, void** handle) noexcept {
  return lamella::detail::guarded([&] {
    *handle = nullptr;
    LAMELLA_CHECK(path != nullptr, "load_library: expected a path, got NULL");
    Loaded loaded = load_shared(path);
    LAMELLA_CHECK(loaded.problem.empty(), "load_library: ", loaded.problem);
    std::string text;
    for (const std::string& failure : loaded.failures) text += (text.empty() ? "" : "\n") + failure;
    LAMELLA_CHECK(text.empty(), "load_library: ", text);
    try {
      for (const std::string& warning : loaded.warnings) warn_user(warning);
    } catch (...) {
      unload_shared(loaded.handle);
      throw;
    }
    *handle = loaded.handle;
  });
}

lamella_status lamella_unload_library(void* handle) noexcept {
  return lamella::detail::guarded([&] {
    LAMELLA_CHECK(handle != nullptr, "unload_library: expected a handle, got NULL");
    unload_shared(handle);
  });
}

lamella_status lamella_visit_operators(void* handle,
                                       lamella_status (*visit)(void* context,
                                                               const lamella_operator* op),
                                       void* context) noexcept {
  return lamella::detail::guarded([&] {
    std::vector<const OperatorEntry*> found;
    {
      std::lock_guard lock(loading);
      code::Library* library = handle != nullptr ? library_of_handle(handle) : nullptr;
      LAMELLA_CHECK(library != nullptr && library->loads > 0,
                    "visit_operators: expected the handle of a library that is loaded");
      found = operators_of(library);
    }
    for (const OperatorEntry* op : found) {
      const lamella_operator* ready = lamella_lookup_operator(op->name, op->overload, 1);
      if (ready != nullptr) lamella::detail::check(visit(context, ready));
    }
  });
}

lamella_status lamella_visit_all_operators(lamella_status (*visit)(void* context,
                                                                   const lamella_operator* op),
                                           void* context) noexcept {
  return lamella::detail::guarded([&] {
    for (const OperatorEntry* op : Registry::get().entries()) {
      const lamella_operator* ready = lamella_lookup_operator(op->name, op->overload, 1);
      lamella::detail::check(visit(context, ready != nullptr ? ready : op));
    }
  });
}
lamella_status lamella_watch_operators(void (*changed)(void* context, const lamella_operator* op,
                                                       int32_t defined),
                                       void* context) noexcept {
  return lamella::detail::guarded([&] { Registry::get().watch({changed, context}); });
}
void lamella_unwatch_operators(void* context) noexcept { Registry::get().unwatch(context); }

}  // extern "C"
