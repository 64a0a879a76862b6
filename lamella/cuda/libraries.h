// The libraries of CUDA for matrix products, convolutions, factorisations and transforms: found
// when they are first used, by name. Without one, operators use kernels of the device or the CPU.
//
// Note [Libraries of CUDA]
//   A library is looked for where LAMELLA_CUDA_LIBRARIES says: a file, which stands for all of
//   them, or a folder. Otherwise, or if the folder lacks it: one that the process has loaded
//   already, that of NVIDIA's Python packages beside the interpreter's others or this one, that of
//   the loader's paths. LAMELLA_CUDA_LIBRARIES=none turns all of them off. Nothing of a
//   library is known at build time but the functions of library_functions.def. Calls go to the
//   current stream; workspaces come from the allocator, so the stream's order guards them.
#pragma once
#include <mutex>
#include <vector>

#include "lamella/core/scalar_type.h"
#include "lamella/cuda/driver.h"

namespace lamella::cuda {

#define LAMELLA_DECLARED(name, ...) int (*name)(__VA_ARGS__) = nullptr;
struct CublasLt {
#define LAMELLA_CUBLASLT LAMELLA_DECLARED
#include "lamella/cuda/library_functions.def"
};
struct Cudnn {
#define LAMELLA_CUDNN LAMELLA_DECLARED
#include "lamella/cuda/library_functions.def"
};
struct Cusolver {
#define LAMELLA_CUSOLVER LAMELLA_DECLARED
#include "lamella/cuda/library_functions.def"
};
struct Cufft {
#define LAMELLA_CUFFT LAMELLA_DECLARED
#include "lamella/cuda/library_functions.def"
};
#undef LAMELLA_DECLARED

// NULL if the library was not found or lacks a function.
const CublasLt* cublaslt();
const Cudnn* cudnn();
const Cusolver* cusolver();
const Cufft* cufft();
// "cublasLt\t/path/of/file\t" or "cublasLt\t\twhy there is none", a line for each library.
std::string library_lines();

// Throws NotImplementedError, after which the operator runs on the CPU, unless the status is 0.
void check_library(int status, const char* function);

// The value of cudaDataType_t for a dtype; -1: the libraries do not compute in it.
inline int data_type_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float:
      return 0;
    case ScalarType::Double:
      return 1;
    case ScalarType::Half:
      return 2;
    case ScalarType::Char:
      return 3;
    case ScalarType::ComplexFloat:
      return 4;
    case ScalarType::ComplexDouble:
      return 5;
    case ScalarType::Int:
      return 10;
    case ScalarType::BFloat16:
      return 14;
    default:
      return -1;
  }
}

// Device memory for the current stream, until the end of the scope: work on that stream that was
// launched before may still use it.
class Workspace {
 public:
  Workspace(int device, size_t bytes);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();
  void* data() const { return data_; }

 private:
  void* block_ = nullptr;
  void* data_ = nullptr;
};

// Handles of a library, by devices.
struct HandlePool {
  std::mutex mutex;
  std::vector<void*> free[64];
};
// A handle of a pool for the current scope, which no other thread uses meanwhile. Must be made in
// the device's context; NULL if `make(void**)` fails.
class PooledHandle {
 public:
  PooledHandle(HandlePool& pool, int device, int (*make)(void**));
  PooledHandle(const PooledHandle&) = delete;
  PooledHandle& operator=(const PooledHandle&) = delete;
  ~PooledHandle();
  void* get() const { return handle_; }

 private:
  HandlePool& pool_;
  int device_;
  void* handle_ = nullptr;
};

// Whether products and convolutions of float32 may round their operands to 10 bits.
enum class Tf32 : int { kProducts, kConvolutions };
bool allows_tf32(Tf32 of);
void allow_tf32(Tf32 of, bool allowed);

}  // namespace lamella::cuda
