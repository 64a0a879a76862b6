// Functions that copy elements by their size, whatever their dtype. One set for each element size
// and each CPU capability.
#pragma once
#include <cstdint>
#include <cstring>

#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Two dimensions of a strided array: `stride` is in bytes, that of the inner dimension first.
struct Plane {
  char* data;
  int64_t stride[2];
};

struct Movement {
  // dst = src over n0 x n1 elements; n0 is the inner size. The two must not overlap. `stream`: the
  // caller writes far more than the caches hold, so the writes should bypass them.
  void (*plane)(const Plane& dst, const Plane& src, int64_t n0, int64_t n1, bool stream);
  // Fills contiguous memory with n copies of one element.
  void (*fill)(char* dst, const char* value, int64_t n);
  // dst[i * count + k] = src[k][i], all contiguous: n elements of each source.
  void (*interleave)(char* dst, const char* const* src, int64_t count, int64_t n);
};

// Functions for elements of `bytes` bytes: 1, 2, 4, 8 or 16.
using movement_fn = const Movement& (*)(int64_t bytes);
LAMELLA_KERNEL(movement_fn, movement_on);

// Results of at least this many bytes bypass the caches: they exceed the second-level cache, and
// their beginning would be evicted from the third before it is read.
inline constexpr int64_t kStreamBytes = int64_t{16} << 20;

// Copies runs of one length, and chooses the copy loop for that length only once.
class RunCopier {
 public:
  explicit RunCopier(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {}
  void operator()(char* dst, const char* src) const {
    if (bytes_ <= 16) return few(dst, src);
    if (bytes_ > 256) {
      std::memcpy(dst, src, bytes_);
      return;
    }
    // Copies whole pieces; the last one may overlap the piece before it.
    if (bytes_ < 32) return piece<16>(dst, src, bytes_ - 16);
    size_t at = 0;
    for (; at + 32 < bytes_; at += 32) std::memcpy(dst + at, src + at, 32);
    std::memcpy(dst + bytes_ - 32, src + bytes_ - 32, 32);
  }

 private:
  template <size_t N>
  static void piece(char* dst, const char* src, size_t last) {
    char a[N], b[N];
    std::memcpy(a, src, N);
    std::memcpy(b, src + last, N);
    std::memcpy(dst, a, N);
    std::memcpy(dst + last, b, N);
  }
  void few(char* dst, const char* src) const {
    if (bytes_ >= 8) return piece<8>(dst, src, bytes_ - 8);
    if (bytes_ >= 4) return piece<4>(dst, src, bytes_ - 4);
    if (bytes_ >= 2) return piece<2>(dst, src, bytes_ - 2);
    if (bytes_ != 0) *dst = *src;
  }

  size_t bytes_;
};

}  // namespace lamella::native
