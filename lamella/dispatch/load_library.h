// load_library: brings the operators of a separately built library into the process.
#pragma once
#include "lamella/abi/loading.h"
#include "lamella/core/error.h"

namespace lamella {

// A library of operators; its registrations end when it is closed, which waits for calls in flight.
// Note [Unloading] in lamella/abi/loading.h says when its code goes.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(void* handle) : handle_(handle) {}
  LoadedLibrary(LoadedLibrary&& other) noexcept : handle_(detail::take(other.handle_)) {}
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(LoadedLibrary&& other) noexcept {
    detail::swap_plain(handle_, other.handle_);
    return *this;
  }
  // Stays loaded unless it is closed.
  ~LoadedLibrary() = default;
  void* handle() const { return handle_; }
  void close() {
    void* handle = detail::take(handle_);
    if (handle != nullptr) detail::check(lamella_unload_library(handle));
  }

 private:
  void* handle_;
};

// Throws Error if the file cannot be loaded, or with what went wrong in its registrations; the
// library is not kept then.
inline LoadedLibrary load_library(const std::string& path) {
  void* handle = nullptr;
  detail::check(lamella_load_library(path.c_str(), &handle));
  return LoadedLibrary(handle);
}

}  // namespace lamella
