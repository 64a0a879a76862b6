// Loads the libraries of built-in targets.
#include "lamella/graph/custom_call/builtin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/graph/custom_call/near_names.h"

namespace lamella::hlo {
namespace {

struct Library {
  std::string_view prefix;  // of the targets' names
  const char* file;
  const char* what;
};
constexpr Library kLibraries[] = {
    {"lapack_", "liblamella_lapack.so", "linear algebra"},
    {"tridiagonal_solve_", "liblamella_lapack.so", "linear algebra"},
};
constexpr size_t kCount = sizeof(kLibraries) / sizeof(kLibraries[0]);
fork::Once loaded[kCount];

std::string folder_of_this_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&load_built_in), &info) == 0) return ".";
  std::string path = info.dli_fname != nullptr ? info.dli_fname : "";
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

void load(const Library& library) {
  std::string tried;
  auto attempt = [&](const std::string& path) {
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return true;
    const char* why = dlerror();
    tried += str("\n  ", why != nullptr ? why : path.c_str());
    return false;
  };
  if (const char* folder = std::getenv("LAMELLA_LIBRARY_PATH")) {
    if (attempt(str(folder, "/", library.file))) return;
  }
  if (attempt(folder_of_this_library() + "/" + library.file)) return;
  LAMELLA_CHECK(attempt(library.file), "hlo: expected ", library.file, " for ", library.what,
                " beside liblamella_graph.so or in LAMELLA_LIBRARY_PATH, got:", tried);
}

}  // namespace

void load_built_in(std::string_view target) {
  for (size_t i = 0; i < kCount; ++i) {
    if (target.substr(0, kLibraries[i].prefix.size()) != kLibraries[i].prefix) continue;
    loaded[i]([&] {
      load(kLibraries[i]);
      detail::check(lamella_raise_deferred());
    });
  }
}

void load_near_built_in(std::string_view target) {
  for (const Library& library : kLibraries) {
    std::string prefix(library.prefix);
    if (!near_names(target.substr(0, prefix.size()), {prefix}).empty()) load_built_in(prefix);
  }
}

}  // namespace lamella::hlo
