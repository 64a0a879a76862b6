// Conversion and movement of runs of elements.
#include "lamella/kernels/cpu/convert.h"

#include <cstring>

namespace lamella::native {

LAMELLA_DEFINE_DISPATCH(conversions_stub);
LAMELLA_DEFINE_DISPATCH(move_loops_stub);

ConvertFn get_convert(ScalarType from, ScalarType to) {
  int f = loop_index(from), t = loop_index(to);
  LAMELLA_INTERNAL_ASSERT(f >= 0 && t >= 0);
  return conversions_stub(kCPU)[static_cast<size_t>(f)][static_cast<size_t>(t)];
}

void move_elements(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n,
                   int64_t bytes) {
  if (src_stride == bytes && dst_stride == bytes) {
    std::memcpy(dst, src, static_cast<size_t>(n * bytes));
    return;
  }
  move_loops_stub(kCPU).move(src, src_stride, dst, dst_stride, n, bytes);
}

void fill_streamed(const char* src, char* dst, int64_t n, int64_t bytes) {
  constexpr int64_t kLine = 64, kBlock = 4096;
  const MoveLoops& moves = move_loops_stub(kCPU);
  auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % kLine);
  int64_t head = past == 0 ? 0 : (kLine - past) / bytes;
  if (past % bytes != 0 || head > n) head = n;  // no element begins a line, or none is left
  moves.fill(src, dst, head, bytes);
  dst += head * bytes;
  alignas(kLine) char block[kBlock];
  moves.fill(src, block, kBlock / bytes, bytes);
  for (int64_t left = (n - head) * bytes; left > 0; left -= kBlock, dst += kBlock) {
    moves.stream(block, dst, left < kBlock ? left : kBlock);
  }
  moves.end_stream();
}

}  // namespace lamella::native
