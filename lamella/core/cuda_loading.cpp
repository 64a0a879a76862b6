// See Note [CUDA at first use] in cuda_loading.h.
#include "lamella/core/cuda_loading.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "lamella/core/fork.h"

namespace lamella {
namespace {

fork::Once cuda_once;
bool is_loading = false;  // guarded by `cuda_once`
// Never destroyed: it may be read at any time.
std::string& cuda_problem() {
  static auto* text = new std::string();
  return *text;
}
[[maybe_unused]] const std::string& problem_at_load = cuda_problem();

std::string load_cuda_library() {
  // A program that has Lamella's code in itself has no folder of libraries.
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&load_cuda), &info) == 0) return "";
  const std::string path = info.dli_fname != nullptr ? info.dli_fname : "";
  const size_t name = path.rfind('/') + 1;
  if (path.compare(name, 13, "liblamella.so") != 0) return "this build has no CUDA";
  const std::string library = path.substr(0, name) + "liblamella_cuda.so";
  if (access(library.c_str(), F_OK) != 0) return "this build has no CUDA";
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* start = handle == nullptr ? nullptr : dlsym(handle, "lamella_cuda_start");
  const char* why = start == nullptr ? dlerror() : reinterpret_cast<const char* (*)()>(start)();
  return why == nullptr ? "" : "there is no CUDA: " + std::string(why);
}

}  // namespace

void load_cuda() {
  cuda_once([] {
    if (is_loading) return;  // asked by the library's own registrations
    is_loading = true;
    cuda_problem() = load_cuda_library();
    is_loading = false;
  });
}

std::string cuda_obstacle() {
  return cuda_problem().empty() ? "whose backend is gone" : cuda_problem();
}

namespace {
std::atomic<const PinnedMemory*> pinned{nullptr};
// Never destroyed.
std::string& folders_of_packages() {
  static auto* text = new std::string();
  return *text;
}
fork::Held<std::mutex> folders_mutex{fork::Level::kCore};
}  // namespace

void set_package_folders(const std::string& folders) {
  std::lock_guard lock(folders_mutex);
  folders_of_packages() = folders;
}
std::string package_folders() {
  std::lock_guard lock(folders_mutex);
  return folders_of_packages();
}
void set_pinned_memory(const PinnedMemory* memory) { pinned.store(memory); }
const PinnedMemory* load_pinned_memory() {
  load_cuda();
  return pinned.load();
}

}  // namespace lamella
