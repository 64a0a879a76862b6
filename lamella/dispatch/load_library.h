// load_library: brings the operators of a separately built library into the process.
#pragma once
#include <dlfcn.h>

#include "lamella/core/error.h"

namespace lamella {

// A library of operators; its registrations end when it is closed, which waits for calls in flight.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(void* handle) : handle_(handle) {}
  LoadedLibrary(LoadedLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  // Stays loaded unless it is closed.
  ~LoadedLibrary() = default;
  void* handle() const { return handle_; }
  void close() {
    if (handle_ != nullptr) dlclose(handle_);
    handle_ = nullptr;
  }

 private:
  void* handle_;
};

// Throws Error if the file cannot be loaded, or with what went wrong in its registrations; the
// library is not kept then.
inline LoadedLibrary load_library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw Error(str("load_library: ", reason != nullptr ? reason : path.c_str()));
  }
  lamella_status status = lamella_raise_deferred();
  if (status != LAMELLA_OK) {
    std::string text = lamella_error_text();
    dlclose(handle);
    throw Error(str("load_library: ", text));
  }
  return LoadedLibrary(handle);
}

}  // namespace lamella
