// Loading liblamella_blas.so.
#include "lamella/kernels/cpu/blas_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "lamella/core/error.h"

namespace lamella::native {

namespace {
constexpr const char* kName = "liblamella_blas.so";

std::string folder_of_this_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&blas_library), &info) == 0) return "";
  std::string path = info.dli_fname != nullptr ? info.dli_fname : "";
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// OpenMP's threads wait for the next loop by spinning, unless its library is told otherwise while
// it is loaded. Beside a second pool of threads, or another program, that takes the cores from
// those who have work: a step of a small network went from 1 ms to 300. Says so for as long as it
// lives, where the user says nothing.
class PassiveWaiting {
 public:
  PassiveWaiting() {
    if (!had_) setenv(kVariable, "passive", 0);
  }
  ~PassiveWaiting() {
    if (!had_) unsetenv(kVariable);
  }

 private:
  static constexpr const char* kVariable = "OMP_WAIT_POLICY";
  const bool had_ = std::getenv(kVariable) != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr;
};

const lamella_blas& load() {
  PassiveWaiting passive;
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
                " of version ", LAMELLA_BLAS_VERSION, ", got another one");
  return *table();
}
}  // namespace

const lamella_blas& blas_library() {
  static const lamella_blas& library = load();
  return library;
}

}  // namespace lamella::native
