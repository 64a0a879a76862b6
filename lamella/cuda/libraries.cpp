// Finds CUDA's libraries: Note [Libraries of CUDA].
#include "lamella/cuda/libraries.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "lamella/core/cuda_loading.h"
#include "lamella/core/error.h"
#include "lamella/cuda/allocator.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/streams.h"

namespace lamella::cuda {
namespace {

struct Row {
  const char* name;
  std::vector<const char*> sonames;  // the newest first
  std::vector<const char*> folders;  // of Python packages
};
enum Index { kCublasLt, kCudnn, kCusolver, kCufft, kLibraries };
const Row* const rows = new Row[kLibraries]{
    {"cublasLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, {"cu13", "cublas"}},
    {"cudnn", {"libcudnn.so.9"}, {"cudnn"}},
    {"cusolver", {"libcusolver.so.12", "libcusolver.so.11"}, {"cu13", "cusolver"}},
    {"cufft", {"libcufft.so.12", "libcufft.so.11"}, {"cu13", "cufft"}}};

struct Found {
  std::once_flag once;
  void* handle = nullptr;
  std::string file, problem;
};
Found* const found = new Found[kLibraries];

// Folders of Python packages: the interpreter's, or for other programs that of this library.
std::vector<std::string> folders_of_packages() {
  std::vector<std::string> all;
  for (std::string rest = package_folders(); !rest.empty();) {
    const size_t end = rest.find(':');
    if (end != 0) all.push_back(rest.substr(0, end));
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&folders_of_packages), &info) == 0) return all;
  const std::string path = info.dli_fname;
  if (const size_t at = path.find("-packages/"); at != std::string::npos) {
    all.push_back(path.substr(0, at + 9));
  }
  return all;
}
bool is_folder(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

// Loads a file, and keeps the first reason why one that is there cannot be loaded.
bool load(Found& library, const std::string& file, int flags = 0) {
  dlerror();
  library.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (library.handle != nullptr) return true;
  const char* why = dlerror();
  const bool is_missing = file.find('/') == std::string::npos;
  if (flags == 0 && why != nullptr && (library.problem.empty() || !is_missing)) {
    library.problem = why;
  }
  return false;
}
void look_for(const Row& row, Found& library) {
  const char* given = std::getenv("LAMELLA_CUDA_LIBRARIES");
  const std::string place = given != nullptr ? given : "";
  if (place == "none") {
    library.problem = "LAMELLA_CUDA_LIBRARIES is none";
    return;
  }
  if (!place.empty() && !is_folder(place)) {
    load(library, place);
    return;
  }
  for (const char* soname : row.sonames) {
    const std::string file = place + "/" + soname;
    if (!place.empty() && access(file.c_str(), F_OK) == 0 && load(library, file)) return;
  }
  for (const char* soname : row.sonames) {
    if (load(library, soname, RTLD_NOLOAD)) return;
  }
  for (const std::string& packages : folders_of_packages()) {
    for (const char* folder : row.folders) {
      for (const char* soname : row.sonames) {
        const std::string file = packages + "/nvidia/" + folder + "/lib/" + soname;
        if (access(file.c_str(), F_OK) == 0 && load(library, file)) return;
      }
    }
  }
  for (const char* soname : row.sonames) {
    if (load(library, soname)) return;
  }
}

struct Symbol {
  const char* name;
  void** to;
};
bool find_all(int index, const std::vector<Symbol>& symbols) {
  Found& library = found[index];
  look_for(rows[index], library);
  if (library.handle == nullptr) return false;
  for (const Symbol& symbol : symbols) {
    *symbol.to = dlsym(library.handle, symbol.name);
    if (*symbol.to == nullptr) {
      library.problem = str("it lacks ", symbol.name);
      return false;
    }
  }
  Dl_info info;
  library.problem.clear();
  if (dladdr(*symbols[0].to, &info) != 0) library.file = info.dli_fname;
  return true;
}
template <class Library>
const Library* library_at(int index, std::vector<Symbol> (*symbols)(Library&)) {
  static Library functions;
  static bool there = false;
  std::call_once(found[index].once, [&] { there = find_all(index, symbols(functions)); });
  return there ? &functions : nullptr;
}

std::atomic<bool> tf32[2] = {false, true};  // PyTorch's defaults

}  // namespace

#define LAMELLA_SYMBOL(name, ...) {#name, reinterpret_cast<void**>(&to.name)},
const CublasLt* cublaslt() {
  return library_at<CublasLt>(kCublasLt, [](CublasLt& to) {
    return std::vector<Symbol>{
#define LAMELLA_CUBLASLT LAMELLA_SYMBOL
#include "lamella/cuda/library_functions.def"
    };
  });
}
const Cudnn* cudnn() {
  return library_at<Cudnn>(kCudnn, [](Cudnn& to) {
    return std::vector<Symbol>{
#define LAMELLA_CUDNN LAMELLA_SYMBOL
#include "lamella/cuda/library_functions.def"
    };
  });
}
const Cusolver* cusolver() {
  return library_at<Cusolver>(kCusolver, [](Cusolver& to) {
    return std::vector<Symbol>{
#define LAMELLA_CUSOLVER LAMELLA_SYMBOL
#include "lamella/cuda/library_functions.def"
    };
  });
}
const Cufft* cufft() {
  return library_at<Cufft>(kCufft, [](Cufft& to) {
    return std::vector<Symbol>{
#define LAMELLA_CUFFT LAMELLA_SYMBOL
#include "lamella/cuda/library_functions.def"
    };
  });
}
#undef LAMELLA_SYMBOL

std::string library_lines() {
  cublaslt();
  cudnn();
  cusolver();
  cufft();
  std::string lines;
  for (int i = 0; i < kLibraries; ++i) {
    lines += str(rows[i].name, "\t", found[i].file, "\t", found[i].problem, "\n");
  }
  return lines;
}

void check_library(int status, const char* function) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(status == 0, "the library's ", function, " failed with status ",
                                status);
}

Workspace::Workspace(int device, size_t bytes) {
  if (bytes != 0) data_ = allocate(bytes, device, current().streams[device], &block_);
}
Workspace::~Workspace() {
  if (block_ != nullptr) deallocate(block_);
}

PooledHandle::PooledHandle(HandlePool& pool, int device, int (*make)(void**))
    : pool_(pool), device_(device) {
  {
    std::lock_guard lock(pool_.mutex);
    std::vector<void*>& free = pool_.free[device];
    if (!free.empty()) {
      handle_ = free.back();
      free.pop_back();
      return;
    }
  }
  RelaxedCapture relaxed;
  if (make(&handle_) != 0) handle_ = nullptr;
}
PooledHandle::~PooledHandle() {
  if (handle_ == nullptr) return;
  std::lock_guard lock(pool_.mutex);
  pool_.free[device_].push_back(handle_);
}

bool allows_tf32(Tf32 of) { return tf32[static_cast<int>(of)].load(std::memory_order_relaxed); }
void allow_tf32(Tf32 of, bool allowed) { tf32[static_cast<int>(of)].store(allowed); }

}  // namespace lamella::cuda
