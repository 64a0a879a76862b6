// The parameters of the kernels of attention, and the sizes of their tiles.
#pragma once
#include <cstdint>

namespace lamella::cuda {

struct AttentionOperand {
  uint64_t data;                     // 0: there is none
  int64_t batch, head, row, column;  // strides in elements
};
struct AttentionParameters {
  AttentionOperand q, k, v, out, grad, dq, dk, dv;  // of the dtype
  AttentionOperand mask;                            // bool or float
  uint64_t logsumexp, delta;                        // float for each row of each head
  int64_t batch, heads, key_heads;
  int32_t rows, keys, width, value_width;
  float scale;
  int32_t causal, mask_is_bool;
  int32_t vectors;  // whether all rows can be read by 16 bytes
};

inline constexpr int kAttentionWidth = 256;  // of a head, at most

// A block has `rows` rows of its own, 16 in a warp, and goes through the others `columns` at a
// time, for heads of up to `width` elements of a size in bytes.
struct AttentionTile {
  int rows, columns, threads;
};
constexpr AttentionTile attention_tile(int bytes, int width, bool backward) {
  const int rows = bytes == 4 && width == 256 ? 32 : 64, most = bytes == 4 ? 32 : 64;
  const int columns = backward ? most * 64 / width : width < 128 ? most : most * 128 / width;
  return {rows, columns, 2 * rows};
}
// The bytes of dynamic shared memory of a block; every device with kernels has as much.
constexpr int attention_bytes(int bytes, int width, bool backward) {
  const AttentionTile tile = attention_tile(bytes, width, backward);
  const int operands = (backward ? 2 : 1) * tile.rows + 2 * tile.columns;
  return operands * (width * bytes + 16) + tile.rows * (tile.columns * bytes + 16);
}
static_assert(attention_bytes(2, 256, true) <= 99 << 10 &&
              attention_bytes(4, 128, true) <= 99 << 10 &&
              attention_bytes(4, 256, true) <= 99 << 10);

}  // namespace lamella::cuda
