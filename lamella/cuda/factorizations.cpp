// Factorisations by cuSOLVER, one matrix of a stack after the other on the current stream; those of
// many small matrices by kernels.
#include <string>

#include "lamella/cuda/allocator.h"
#include "lamella/cuda/kernels/factor_parameters.h"
#include "lamella/cuda/launch.h"
#include "lamella/cuda/libraries.h"
#include "lamella/cuda/math.h"
#include "lamella/cuda/streams.h"
#include "lamella/lamella.h"

namespace lamella::cuda {
namespace {

using native::DeviceFactor;

HandlePool& handles = *new HandlePool();
// The library's parameters, the same for all calls.
void* parameters_of(const Cusolver& lib) {
  static void* const made = [&] {
    void* parameters = nullptr;
    check_library(lib.cusolverDnCreateParams(&parameters), "cusolverDnCreateParams");
    return parameters;
  }();
  return made;
}

int64_t at_least_1(int64_t n) { return n > 1 ? n : 1; }

// A call: its library, handle and types, and the matrix at hand.
struct Run {
  const Cusolver& lib;
  const DeviceFactor& call;
  void *handle, *parameters;
  int type, real_type, device;
  int64_t bytes;  // of an element
  int32_t* info;
  int64_t leading;

  char* matrix(int64_t i) const { return static_cast<char*>(call.a) + i * call.m * call.n * bytes; }
  // Calls sizes(device_bytes, host_bytes) once, and run(i, device_work, host_work) for each matrix.
  template <class Sizes, class Each>
  void for_each(const char* function, Sizes sizes, Each each) const {
    size_t on_device = 0, on_host = 0;
    check_library(sizes(&on_device, &on_host), function);
    const Workspace work(device, on_device);
    // The work space of the host must live until the work is done; libraries ask for none but for
    // matrices that they factorise in part on the CPU, and then wait by themselves.
    std::string host(on_host, '\0');
    for (int64_t i = 0; i < call.count; ++i) {
      check_library(each(i, work.data(), on_device, host.data(), on_host), function);
    }
  }

  void cholesky() const {
    for_each(
        "cusolverDnXpotrf",
        [&](size_t* d, size_t* h) {
          return lib.cusolverDnXpotrf_bufferSize(handle, parameters, call.upper ? 1 : 0, call.n,
                                                 type, call.a, leading, type, d, h);
        },
        [&](int64_t i, void* d, size_t nd, void* h, size_t nh) {
          return lib.cusolverDnXpotrf(handle, parameters, call.upper ? 1 : 0, call.n, type,
                                      matrix(i), leading, type, d, nd, h, nh, info + i);
        });
  }
  void lu() const {
    const int64_t count = call.m < call.n ? call.m : call.n;
    const TensorOptions on = TensorOptions().device(call.device);
    const Tensor wide = lamella::empty({call.count, count}, on.dtype(kLong));
    auto* pivots = wide.mutable_data_ptr<int64_t>();
    for_each(
        "cusolverDnXgetrf",
        [&](size_t* d, size_t* h) {
          return lib.cusolverDnXgetrf_bufferSize(handle, parameters, call.m, call.n, type, call.a,
                                                 leading, type, d, h);
        },
        [&](int64_t i, void* d, size_t nd, void* h, size_t nh) {
          return lib.cusolverDnXgetrf(handle, parameters, call.m, call.n, type, matrix(i), leading,
                                      pivots + i * count, type, d, nd, h, nh, info + i);
        });
    Tensor narrow = from_blob(call.pivots, {call.count, count}, on.dtype(kInt));
    narrow.copy_(wide);
  }
  void solve() const {
    const TensorOptions on = TensorOptions().device(call.device);
    const Tensor wide =
        from_blob(call.pivots, {call.count, call.n}, on.dtype(kInt)).to(kLong).contiguous();
    const auto* pivots = wide.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < call.count; ++i) {
      char* side = static_cast<char*>(call.b) + i * call.n * call.k * bytes;
      check_library(
          lib.cusolverDnXgetrs(handle, parameters, call.op, call.n, call.k, type, matrix(i),
                               leading, pivots + i * call.n, type, side, leading, info + i),
          "cusolverDnXgetrs");
    }
  }
  void qr() const {
    auto scales = [&](int64_t i) { return static_cast<char*>(call.b) + i * call.k * bytes; };
    for_each(
        "cusolverDnXgeqrf",
        [&](size_t* d, size_t* h) {
          return lib.cusolverDnXgeqrf_bufferSize(handle, parameters, call.m, call.n, type, call.a,
                                                 leading, type, call.b, type, d, h);
        },
        [&](int64_t i, void* d, size_t nd, void* h, size_t nh) {
          return lib.cusolverDnXgeqrf(handle, parameters, call.m, call.n, type, matrix(i), leading,
                                      type, scales(i), type, d, nd, h, nh, info + i);
        });
  }
  void orthogonal() const {
    const bool is_float = call.dtype == kFloat, is_double = call.dtype == kDouble;
    const auto sizes = is_float                      ? lib.cusolverDnSorgqr_bufferSize
                       : is_double                   ? lib.cusolverDnDorgqr_bufferSize
                       : call.dtype == kComplexFloat ? lib.cusolverDnCungqr_bufferSize
                                                     : lib.cusolverDnZungqr_bufferSize;
    const auto make = is_float                      ? lib.cusolverDnSorgqr
                      : is_double                   ? lib.cusolverDnDorgqr
                      : call.dtype == kComplexFloat ? lib.cusolverDnCungqr
                                                    : lib.cusolverDnZungqr;
    const int m = static_cast<int>(call.m), n = static_cast<int>(call.n),
              k = static_cast<int>(call.k), leads = static_cast<int>(leading);
    int elements = 0;
    for_each(
        "cusolverDn orgqr",
        [&](size_t* d, size_t*) {
          const int status = sizes(handle, m, n, k, call.a, leads, call.b, &elements);
          *d = static_cast<size_t>(elements) * static_cast<size_t>(bytes);
          return status;
        },
        [&](int64_t i, void* d, size_t, void*, size_t) {
          return make(handle, m, n, k, matrix(i), leads,
                      static_cast<char*>(call.b) + i * call.k * bytes, d, elements, info + i);
        });
  }
  int64_t real_bytes() const { return is_complex(call.dtype) ? bytes / 2 : bytes; }
  void eigen() const {
    const int vectors = call.vectors ? 1 : 0, part = call.upper ? 1 : 0;
    for_each(
        "cusolverDnXsyevd",
        [&](size_t* d, size_t* h) {
          return lib.cusolverDnXsyevd_bufferSize(handle, parameters, vectors, part, call.n, type,
                                                 call.a, leading, real_type, call.b, type, d, h);
        },
        [&](int64_t i, void* d, size_t nd, void* h, size_t nh) {
          return lib.cusolverDnXsyevd(
              handle, parameters, vectors, part, call.n, type, matrix(i), leading, real_type,
              static_cast<char*>(call.b) + i * call.n * real_bytes(), type, d, nd, h, nh, info + i);
        });
  }
  void singular() const {
    const char job = !call.vectors ? 'N' : call.full ? 'A' : 'S';
    const auto jobs = static_cast<signed char>(job);
    const int64_t columns = call.full ? call.m : call.n;
    auto at = [&](void* all, int64_t i, int64_t elements) {
      return all == nullptr ? all : static_cast<char*>(all) + i * elements * bytes;
    };
    for_each(
        "cusolverDnXgesvd",
        [&](size_t* d, size_t* h) {
          return lib.cusolverDnXgesvd_bufferSize(
              handle, parameters, jobs, jobs, call.m, call.n, type, call.a, leading, real_type,
              call.b, type, call.u, leading, type, call.v, at_least_1(call.n), type, d, h);
        },
        [&](int64_t i, void* d, size_t nd, void* h, size_t nh) {
          return lib.cusolverDnXgesvd(
              handle, parameters, jobs, jobs, call.m, call.n, type, matrix(i), leading, real_type,
              static_cast<char*>(call.b) + i * call.n * real_bytes(), type,
              at(call.u, i, call.m * columns), leading, type, at(call.v, i, call.n * call.n),
              at_least_1(call.n), type, d, nd, h, nh, info + i);
        });
  }
};

// ---- By kernels of the device ----

// Many small matrices, which the library would take one by one; without it, up to a larger size.
constexpr int64_t kLeastMany = 8, kMostSmall = 128, kMostAlone = 512;

bool by_kernel(const DeviceFactor& call, bool has_library) {
  const char* name = call.kind == DeviceFactor::kLU         ? "factor_lu"
                     : call.kind == DeviceFactor::kCholesky ? "factor_cholesky"
                     : call.kind == DeviceFactor::kSolve    ? "factor_solve"
                                                            : nullptr;
  const int64_t most = call.m > call.n ? call.m : call.n;
  const bool fits =
      has_library ? call.count >= kLeastMany && most <= kMostSmall : most <= kMostAlone;
  if (name == nullptr || !fits || call.k > INT32_MAX / most) return false;
  const int device = call.device.index();
  ContextGuard guard(device);
  auto address = [](const void* data) { return reinterpret_cast<uint64_t>(data); };
  const FactorParameters parameters{address(call.a),
                                    address(call.b),
                                    address(call.pivots),
                                    address(call.info),
                                    call.count,
                                    static_cast<int32_t>(call.m),
                                    static_cast<int32_t>(call.n),
                                    static_cast<int32_t>(call.k),
                                    call.upper ? 1 : 0,
                                    call.op};
  constexpr int64_t kMostBlocks = 1 << 20;
  Shape shape;
  shape.grid[0] = static_cast<unsigned>(call.count < kMostBlocks ? call.count : kMostBlocks);
  shape.block[0] = kFactorThreads;
  return launch_named(device, name, suffix_of_kind(kind_of(call.dtype)), &parameters, shape);
}

}  // namespace

bool factorize(const char*, const DeviceFactor& call) {
  const Cusolver* lib = cusolver();
  if (by_kernel(call, lib != nullptr)) return true;
  const bool has_dtype = call.dtype == kFloat || call.dtype == kDouble || is_complex(call.dtype);
  if (lib == nullptr || !has_dtype || call.dtype == kComplexHalf) return false;
  const int device = call.device.index();
  ContextGuard guard(device);
  const PooledHandle pooled(handles, device, lib->cusolverDnCreate);
  void* handle = pooled.get();
  if (handle == nullptr) return false;
  const StreamHandle stream = handle_of(device, current().streams[device]);
  check_library(lib->cusolverDnSetStream(handle, stream), "cusolverDnSetStream");
  // Where the caller does not ask for it, the library's report of each matrix is dropped.
  Tensor dropped;
  int32_t* info = call.info;
  if (info == nullptr) {
    dropped = lamella::empty({call.count}, TensorOptions(kInt).device(call.device));
    info = dropped.mutable_data_ptr<int32_t>();
  }
  const int type = data_type_of(call.dtype);
  const Run run{*lib,
                call,
                handle,
                parameters_of(*lib),
                type,
                type >= 4 ? type - 4 : type,  // of the parts of a complex number
                device,
                static_cast<int64_t>(element_size(call.dtype)),
                info,
                at_least_1(call.m)};
  static constexpr void (Run::*kKinds[])()
      const = {&Run::cholesky,   &Run::lu,    &Run::solve,   &Run::qr,
               &Run::orthogonal, &Run::eigen, &Run::singular};
  Driver::note_launch(device, "cusolverDn");
  (run.*kKinds[call.kind])();
  after_launch(device, stream);
  return true;
}

}  // namespace lamella::cuda
