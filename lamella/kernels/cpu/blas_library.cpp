// Loading liblamella_blas.so.
#include "lamella/kernels/cpu/blas_library.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>

#include "lamella/core/error.h"
#include "lamella/core/fork.h"

namespace lamella::native {

namespace {
constexpr const char* kName = "liblamella_blas.so";

std::atomic<const lamella_blas*> loaded{nullptr};

std::string folder_of_this_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&blas_library), &info) == 0) return "";
  std::string path = info.dli_fname != nullptr ? info.dli_fname : "";
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// While it is loaded, OpenBLAS starts a thread for each processor, and ends the process if the
// system refuses one. This object sets an environment variable for that time, so that OpenBLAS
// starts none: Note [Threads of the libraries].
class OneThread {
 public:
  OneThread() {
    const char* before = std::getenv(kVariable);
    if (before != nullptr) before_ = before;
    setenv(kVariable, "1", 1);
  }
  ~OneThread() {
    if (before_) {
      setenv(kVariable, before_->c_str(), 1);
    } else {
      unsetenv(kVariable);
    }
  }

 private:
  static constexpr const char* kVariable = "OPENBLAS_NUM_THREADS";
  std::optional<std::string> before_;
};

fork::Once once;

void load() {
  OneThread openblas;
  std::string tried;
  auto attempt = [&](const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = dlerror();
      tried += str("\n  ", why != nullptr ? why : path.c_str());
    }
    return handle;
  };
  void* handle = nullptr;
  if (const char* folder = std::getenv("LAMELLA_LIBRARY_PATH")) {
    handle = attempt(str(folder, "/", kName));
  }
  if (handle == nullptr) handle = attempt(folder_of_this_library() + "/" + kName);
  if (handle == nullptr) handle = attempt(kName);
  LAMELLA_CHECK(
      handle != nullptr, "expected ", kName,
      " for matrix products beside liblamella.so or in LAMELLA_LIBRARY_PATH, got:", tried);
  using Table = const lamella_blas* (*)();
  auto table = reinterpret_cast<Table>(dlsym(handle, "lamella_blas_table"));
  LAMELLA_CHECK(table != nullptr && table()->version == LAMELLA_BLAS_VERSION, "expected ", kName,
                " of version ", LAMELLA_BLAS_VERSION, ", got another version");
  loaded.store(table(), std::memory_order_release);
  std::atexit(&close_blas_library);
}
}  // namespace

const lamella_blas& blas_library() {
  once([] { load(); });
  return *loaded.load(std::memory_order_acquire);
}

void close_blas_library() {
  if (const lamella_blas* library = loaded.load(std::memory_order_acquire)) library->close();
}

}  // namespace lamella::native
