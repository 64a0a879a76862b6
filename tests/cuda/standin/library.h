// What the stand-ins of CUDA's libraries share. They compute by plain loops on the stand-in's
// streams, and end the program with a sentence when an argument is not as NVIDIA's documentation
// asks for: a real library would answer with a status, or read and write elsewhere.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "lamella/core/half.h"

extern "C" {
int standin_enqueue(const char* function, void* stream, std::function<int()> work);
bool standin_holds(const void* data, size_t bytes);
intptr_t standin_worker_offset();
// The functions as the product declares them.
#define LAMELLA_DECLARED(name, ...) __attribute__((visibility("default"))) int name(__VA_ARGS__);
#define LAMELLA_CUBLASLT LAMELLA_DECLARED
#define LAMELLA_CUDNN LAMELLA_DECLARED
#define LAMELLA_CUSOLVER LAMELLA_DECLARED
#define LAMELLA_CUFFT LAMELLA_DECLARED
#include "lamella/cuda/library_functions.def"
#undef LAMELLA_DECLARED
}

namespace standin {

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      fprintf(stderr, "standin: %s: expected %s\n", __func__, #condition); \
      abort();                                                             \
    }                                                                      \
  } while (false)

// What a worker may follow of an address of the device.
template <class T>
T* seen(const void* data) {
  return reinterpret_cast<T*>(reinterpret_cast<intptr_t>(data) + standin_worker_offset());
}
inline bool is_aligned(const void* data, size_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

// Values of cudaDataType_t.
enum DataType : int {
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kI8 = 3,
  kC64 = 4,
  kC128 = 5,
  kI32 = 10,
  kBF16 = 14
};
inline size_t bytes_of(int type) {
  switch (type) {
    case kI8:
      return 1;
    case kF16:
    case kBF16:
      return 2;
    case kF32:
    case kI32:
      return 4;
    case kF64:
    case kC64:
      return 8;
    case kC128:
      return 16;
    default:
      fprintf(stderr, "standin: expected a type of data, got %d\n", type);
      abort();
  }
}
inline bool is_complex(int type) { return type == kC64 || type == kC128; }

// Calls f with a null pointer to the C++ type of a type of data.
template <class F>
void visit(int type, F f) {
  switch (type) {
    case kF32:
      return f(static_cast<float*>(nullptr));
    case kF64:
      return f(static_cast<double*>(nullptr));
    case kF16:
      return f(static_cast<lamella::Half*>(nullptr));
    case kBF16:
      return f(static_cast<lamella::BFloat16*>(nullptr));
    case kI8:
      return f(static_cast<int8_t*>(nullptr));
    case kI32:
      return f(static_cast<int32_t*>(nullptr));
    case kC64:
      return f(static_cast<std::complex<float>*>(nullptr));
    default:
      return f(static_cast<std::complex<double>*>(nullptr));
  }
}
// The type of sums.
template <class T>
struct Sum {
  using type = T;
};
template <>
struct Sum<lamella::Half> {
  using type = float;
};
template <>
struct Sum<lamella::BFloat16> {
  using type = float;
};
template <>
struct Sum<int8_t> {
  using type = int32_t;
};

}  // namespace standin
