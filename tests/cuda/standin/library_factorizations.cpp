// The stand-in for cuSOLVER, by the functions of LAPACK in libopenblas.
#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "tests/cuda/standin/library.h"

namespace standin {
namespace {

constexpr size_t kDeviceWork = 1024, kHostWork = 64;

struct Handle {
  uint64_t kind = 0x5e;
  void* stream = nullptr;
};
const int parameter_tag = 0;

Handle& of(void* handle) {
  auto* made = static_cast<Handle*>(handle);
  EXPECT(made != nullptr && made->kind == 0x5e);
  return *made;
}

// LAPACK's function for a type: "potrf" as spotrf_, dpotrf_, cpotrf_ or zpotrf_.
using Lapack = void (*)(...);
Lapack lapack(int type, const char* name) {
  static void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  char symbol[32];
  snprintf(symbol, sizeof(symbol), "%c%s_",
           type == kF32   ? 's'
           : type == kF64 ? 'd'
           : type == kC64 ? 'c'
                          : 'z',
           name);
  void* found = library != nullptr ? dlsym(library, symbol) : nullptr;
  EXPECT(found != nullptr);
  return reinterpret_cast<Lapack>(found);
}
int real_of(int type) { return type == kC64 ? kF32 : type == kC128 ? kF64 : type; }

void check_matrix(const void* a, int64_t m, int64_t n, int64_t leading, int type) {
  EXPECT(m > 0 && n > 0 && leading >= m);
  EXPECT(standin_holds(a, static_cast<size_t>((n - 1) * leading + m) * bytes_of(type)));
}
void check_call(void* parameters, int type, int compute, const int* info, const void* device,
                size_t device_bytes, const void* host, size_t host_bytes) {
  EXPECT(parameters == &parameter_tag);
  EXPECT(type == kF32 || type == kF64 || is_complex(type));
  EXPECT(compute == type && standin_holds(info, sizeof(int)));
  EXPECT(device_bytes >= kDeviceWork && standin_holds(device, device_bytes));
  EXPECT(host_bytes >= kHostWork && host != nullptr);
}
int sizes(size_t* device_bytes, size_t* host_bytes) {
  *device_bytes = kDeviceWork;
  *host_bytes = kHostWork;
  return 0;
}
// Memory for LAPACK to work in.
struct Scratch {
  explicit Scratch(int64_t elements) : bytes(static_cast<size_t>(elements) * 16) {}
  std::vector<char> bytes;
  void* data() { return bytes.data(); }
};

}  // namespace
}  // namespace standin

using namespace standin;

int cusolverDnCreate(void** handle) {
  *handle = new Handle();
  return 0;
}
int cusolverDnSetStream(void* handle, void* stream) {
  of(handle).stream = stream;
  return 0;
}
int cusolverDnCreateParams(void** parameters) {
  *parameters = const_cast<int*>(&parameter_tag);
  return 0;
}

int cusolverDnXpotrf_bufferSize(void* handle, void*, int, int64_t, int, const void*, int64_t, int,
                                size_t* device_bytes, size_t* host_bytes) {
  of(handle);
  return sizes(device_bytes, host_bytes);
}
int cusolverDnXpotrf(void* handle, void* parameters, int part, int64_t n, int type, void* a,
                     int64_t leading, int compute, void* device, size_t device_bytes, void* host,
                     size_t host_bytes, int* info) {
  check_call(parameters, type, compute, info, device, device_bytes, host, host_bytes);
  check_matrix(a, n, n, leading, type);
  return standin_enqueue(__func__, of(handle).stream, [=] {
    const char uplo = part == 1 ? 'U' : 'L';
    const int size = static_cast<int>(n), lead = static_cast<int>(leading);
    lapack(type, "potrf")(&uplo, &size, seen<void>(a), &lead, seen<int>(info), size_t{1});
    return 0;
  });
}

int cusolverDnXgetrf_bufferSize(void* handle, void*, int64_t, int64_t, int, const void*, int64_t,
                                int, size_t* device_bytes, size_t* host_bytes) {
  of(handle);
  return sizes(device_bytes, host_bytes);
}
int cusolverDnXgetrf(void* handle, void* parameters, int64_t m, int64_t n, int type, void* a,
                     int64_t leading, int64_t* pivots, int compute, void* device,
                     size_t device_bytes, void* host, size_t host_bytes, int* info) {
  check_call(parameters, type, compute, info, device, device_bytes, host, host_bytes);
  check_matrix(a, m, n, leading, type);
  const int64_t count = std::min(m, n);
  EXPECT(standin_holds(pivots, static_cast<size_t>(count) * 8));
  return standin_enqueue(__func__, of(handle).stream, [=] {
    std::vector<int> found(static_cast<size_t>(count));
    const int rows = static_cast<int>(m), columns = static_cast<int>(n),
              lead = static_cast<int>(leading);
    lapack(type, "getrf")(&rows, &columns, seen<void>(a), &lead, found.data(), seen<int>(info));
    std::copy(found.begin(), found.end(), seen<int64_t>(pivots));
    return 0;
  });
}
int cusolverDnXgetrs(void* handle, void* parameters, int op, int64_t n, int64_t columns, int type,
                     const void* a, int64_t leading, const int64_t* pivots, int b_type, void* b,
                     int64_t b_leading, int* info) {
  EXPECT(parameters == &parameter_tag && b_type == type && op >= 0 && op <= 2);
  check_matrix(a, n, n, leading, type);
  check_matrix(b, n, columns, b_leading, type);
  EXPECT(standin_holds(pivots, static_cast<size_t>(n) * 8) && standin_holds(info, sizeof(int)));
  return standin_enqueue(__func__, of(handle).stream, [=] {
    std::vector<int> given(seen<int64_t>(pivots), seen<int64_t>(pivots) + n);
    const char trans = "NTC"[op];
    const int size = static_cast<int>(n), sides = static_cast<int>(columns),
              lead = static_cast<int>(leading), b_lead = static_cast<int>(b_leading);
    lapack(type, "getrs")(&trans, &size, &sides, seen<void>(a), &lead, given.data(), seen<void>(b),
                          &b_lead, seen<int>(info), size_t{1});
    return 0;
  });
}

int cusolverDnXgeqrf_bufferSize(void* handle, void*, int64_t, int64_t, int, const void*, int64_t,
                                int, const void*, int, size_t* device_bytes, size_t* host_bytes) {
  of(handle);
  return sizes(device_bytes, host_bytes);
}
int cusolverDnXgeqrf(void* handle, void* parameters, int64_t m, int64_t n, int type, void* a,
                     int64_t leading, int tau_type, void* tau, int compute, void* device,
                     size_t device_bytes, void* host, size_t host_bytes, int* info) {
  check_call(parameters, type, compute, info, device, device_bytes, host, host_bytes);
  check_matrix(a, m, n, leading, type);
  EXPECT(tau_type == type);
  EXPECT(standin_holds(tau, static_cast<size_t>(std::min(m, n)) * bytes_of(type)));
  return standin_enqueue(__func__, of(handle).stream, [=] {
    const int rows = static_cast<int>(m), columns = static_cast<int>(n),
              lead = static_cast<int>(leading), room = columns * 64;
    Scratch work(room);
    lapack(type, "geqrf")(&rows, &columns, seen<void>(a), &lead, seen<void>(tau), work.data(),
                          &room, seen<int>(info));
    return 0;
  });
}
namespace {
int make_orthogonal(void* handle, int type, int m, int n, int k, void* a, int leading,
                    const void* tau, void* work, int elements, int* info) {
  check_matrix(a, m, n, leading, type);
  EXPECT(m >= n && n >= k && k > 0 && elements > 0);
  EXPECT(standin_holds(tau, static_cast<size_t>(k) * bytes_of(type)));
  EXPECT(standin_holds(work, static_cast<size_t>(elements) * bytes_of(type)));
  EXPECT(standin_holds(info, sizeof(int)));
  return standin_enqueue("cusolverDnorgqr", of(handle).stream, [=] {
    const int room = n * 64;
    Scratch scratch(room);
    lapack(type, is_complex(type) ? "ungqr" : "orgqr")(&m, &n, &k, seen<void>(a), &leading,
                                                       seen<void>(tau), scratch.data(), &room,
                                                       seen<int>(info));
    return 0;
  });
}
}  // namespace
#define STANDIN_ORTHOGONAL(name, type)                                                           \
  int name##_bufferSize(void* handle, int, int, int, const void*, int, const void*,              \
                        int* elements) {                                                         \
    of(handle);                                                                                  \
    *elements = 128;                                                                             \
    return 0;                                                                                    \
  }                                                                                              \
  int name(void* handle, int m, int n, int k, void* a, int leading, const void* tau, void* work, \
           int elements, int* info) {                                                            \
    return make_orthogonal(handle, type, m, n, k, a, leading, tau, work, elements, info);        \
  }
STANDIN_ORTHOGONAL(cusolverDnSorgqr, kF32)
STANDIN_ORTHOGONAL(cusolverDnDorgqr, kF64)
STANDIN_ORTHOGONAL(cusolverDnCungqr, kC64)
STANDIN_ORTHOGONAL(cusolverDnZungqr, kC128)

int cusolverDnXsyevd_bufferSize(void* handle, void*, int, int, int64_t, int, const void*, int64_t,
                                int, const void*, int, size_t* device_bytes, size_t* host_bytes) {
  of(handle);
  return sizes(device_bytes, host_bytes);
}
int cusolverDnXsyevd(void* handle, void* parameters, int vectors, int part, int64_t n, int type,
                     void* a, int64_t leading, int value_type, void* values, int compute,
                     void* device, size_t device_bytes, void* host, size_t host_bytes, int* info) {
  check_call(parameters, type, compute, info, device, device_bytes, host, host_bytes);
  check_matrix(a, n, n, leading, type);
  EXPECT(value_type == real_of(type));
  EXPECT(standin_holds(values, static_cast<size_t>(n) * bytes_of(value_type)));
  return standin_enqueue(__func__, of(handle).stream, [=] {
    const char job = vectors == 1 ? 'V' : 'N', uplo = part == 1 ? 'U' : 'L';
    const int size = static_cast<int>(n), lead = static_cast<int>(leading);
    const int room = 64 * size + 16;
    Scratch work(room), real(3 * n + 16);
    if (is_complex(type)) {
      lapack(type, "heev")(&job, &uplo, &size, seen<void>(a), &lead, seen<void>(values),
                           work.data(), &room, real.data(), seen<int>(info), size_t{1}, size_t{1});
    } else {
      lapack(type, "syev")(&job, &uplo, &size, seen<void>(a), &lead, seen<void>(values),
                           work.data(), &room, seen<int>(info), size_t{1}, size_t{1});
    }
    return 0;
  });
}

int cusolverDnXgesvd_bufferSize(void* handle, void*, signed char, signed char, int64_t m, int64_t n,
                                int, const void*, int64_t, int, const void*, int, const void*,
                                int64_t, int, const void*, int64_t, int, size_t* device_bytes,
                                size_t* host_bytes) {
  of(handle);
  EXPECT(m >= n);
  return sizes(device_bytes, host_bytes);
}
int cusolverDnXgesvd(void* handle, void* parameters, signed char u_job, signed char v_job,
                     int64_t m, int64_t n, int type, void* a, int64_t leading, int value_type,
                     void* values, int u_type, void* u, int64_t u_leading, int v_type, void* v,
                     int64_t v_leading, int compute, void* device, size_t device_bytes, void* host,
                     size_t host_bytes, int* info) {
  check_call(parameters, type, compute, info, device, device_bytes, host, host_bytes);
  check_matrix(a, m, n, leading, type);
  EXPECT(m >= n && u_job == v_job && (u_job == 'N' || u_job == 'A' || u_job == 'S'));
  EXPECT(value_type == real_of(type) && u_type == type && v_type == type);
  EXPECT(standin_holds(values, static_cast<size_t>(n) * bytes_of(value_type)));
  if (u_job != 'N') {
    check_matrix(u, m, u_job == 'A' ? m : n, u_leading, type);
    check_matrix(v, n, n, v_leading, type);
  }
  return standin_enqueue(__func__, of(handle).stream, [=] {
    const char job = static_cast<char>(u_job);
    const int rows = static_cast<int>(m), columns = static_cast<int>(n),
              lead = static_cast<int>(leading), lead_u = static_cast<int>(u_leading),
              lead_v = static_cast<int>(v_leading), room = 64 * (rows + columns) + 16;
    Scratch work(room), real(5 * m + 16);
    void* left = u != nullptr ? seen<void>(u) : nullptr;
    void* right = v != nullptr ? seen<void>(v) : nullptr;
    if (is_complex(type)) {
      lapack(type, "gesvd")(&job, &job, &rows, &columns, seen<void>(a), &lead, seen<void>(values),
                            left, &lead_u, right, &lead_v, work.data(), &room, real.data(),
                            seen<int>(info), size_t{1}, size_t{1});
    } else {
      lapack(type, "gesvd")(&job, &job, &rows, &columns, seen<void>(a), &lead, seen<void>(values),
                            left, &lead_u, right, &lead_v, work.data(), &room, seen<int>(info),
                            size_t{1}, size_t{1});
    }
    return 0;
  });
}
