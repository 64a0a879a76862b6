// Threads that work on one line of elements together, and how they combine what each has found.
//
// Note [Teams]
//   A line is a row, whose neighbouring elements lie side by side, or a column, whose neighbours in
//   memory belong to other lines. A block has x * y threads. For rows a team is the x threads of
//   one y; x is a power of two. For columns, `across`, it is the y threads of one x, so that
//   threads side by side read memory side by side. Results are combined in a fixed order.
#pragma once
#include <cstring>

#include "lamella/cuda/kernels/pointwise.h"

namespace lamella::cuda {

inline constexpr int kTeamThreads = 512;     // the most of a block
inline constexpr int kElementThreads = 256;  // of a block without teams
inline constexpr int kLineDims = 8;

// Counts through dimensions, innermost first.
struct LineDims {
  int32_t count;
  int64_t sizes[kLineDims];
};

#ifdef LAMELLA_KERNEL_BODIES

// The offset of an element in a tensor with these strides in bytes.
LAMELLA_DEVICE int64_t offset_of(const LineDims& dims, const int64_t* strides, int64_t index) {
  if (dims.count == 1) return index * strides[0];
  int64_t offset = 0;
  for (int d = 0; d < dims.count; ++d) {
    const int64_t next = index / dims.sizes[d];
    offset += (index - next * dims.sizes[d]) * strides[d];
    index = next;
  }
  return offset;
}

// Contiguous elements of any dtype as T; N at a time: one, or 16 bytes of aligned memory.
template <class T>
struct Elements {
  char* data;
  int64_t bytes;
  Kind kind;
  LAMELLA_DEVICE Elements(uint64_t address, Kind kind, int64_t first = 0)
      : Elements(memory_at(address), kind) {
    data += first * bytes;
  }
  LAMELLA_DEVICE Elements(const char* memory, Kind kind)
      : data(const_cast<char*>(memory)), bytes(bytes_of(kind)), kind(kind) {}
  LAMELLA_DEVICE T operator[](int64_t i) const { return read<T>(data + i * bytes, kind); }
  LAMELLA_DEVICE void set(int64_t i, T value) const { write(data + i * bytes, kind, value); }

  struct alignas(16) Words {
    uint32_t word[4];
  };
  template <int N>
  LAMELLA_DEVICE void load(int64_t i, T (&x)[N]) const {
    if constexpr (N == 1) {
      x[0] = (*this)[i];
    } else if constexpr (N == 4) {
      const Words words = *reinterpret_cast<const Words*>(data + i * 4);
      std::memcpy(x, &words, sizeof(words));
    } else {
      const Words words = *reinterpret_cast<const Words*>(data + i * 2);
      for (int k = 0; k < N; ++k) {
        const auto bits = static_cast<uint16_t>(words.word[k / 2] >> 16 * (k % 2));
        x[k] = kind == kBF16 ? widened(StoredBFloat16{bits}) : widened(StoredHalf{bits});
      }
    }
  }
  template <int N>
  LAMELLA_DEVICE void store(int64_t i, const T (&x)[N]) const {
    if constexpr (N == 1) {
      set(i, x[0]);
    } else if constexpr (N == 4) {
      Words words;
      std::memcpy(&words, x, sizeof(words));
      *reinterpret_cast<Words*>(data + i * 4) = words;
    } else {
      Words words{};
      for (int k = 0; k < N; ++k) {
        const uint32_t bits =
            kind == kBF16 ? stored_as<StoredBFloat16>(x[k]).bits : stored_as<StoredHalf>(x[k]).bits;
        words.word[k / 2] |= bits << 16 * (k % 2);
      }
      *reinterpret_cast<Words*>(data + i * 2) = words;
    }
  }
};

// Calls f with the number of elements in 16 bytes as a constant, or with 1.
template <class T, class F>
LAMELLA_DEVICE void with_pack(int pack, const F& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (pack == 4) return f(std::integral_constant<int, 4>());
    if (pack == 8) return f(std::integral_constant<int, 8>());
  }
  f(std::integral_constant<int, 1>());
}

// A value of several words by a shuffle of each: exchange(word).
template <class A, class F>
LAMELLA_DEVICE A shuffled(const A& value, const F& exchange) {
  static_assert(sizeof(A) % 4 == 0);
  uint32_t words[sizeof(A) / 4];
  std::memcpy(words, &value, sizeof(A));
  for (auto& word : words) word = exchange(word);
  A other;
  std::memcpy(&other, words, sizeof(A));
  return other;
}
template <class A>
LAMELLA_DEVICE A shuffle_up(const A& value, unsigned by) {
  return shuffled(value, [by](uint32_t word) { return __shfl_up_sync(~0U, word, by); });
}

// Changes the values of the block's threads into what join(a, b) makes of those before each, and
// returns what it makes of all.
template <int kThreads, class A, class F>
LAMELLA_DEVICE A scan_block(A& value, const A& identity, const F& join) {
  constexpr int kWarps = kThreads / 32;
  alignas(8) __shared__ char memory[kWarps * sizeof(A)];
  A* totals = reinterpret_cast<A*>(memory);
  const auto lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  A sum = value;
  for (int by = 1; by < 32; by *= 2) {
    const A other = shuffle_up(sum, static_cast<unsigned>(by));
    if (lane >= by) sum = join(other, sum);
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  A before = identity, total = identity;
  for (int i = 0; i < kWarps; ++i) {
    if (i == warp) before = total;
    total = join(total, totals[i]);
  }
  const A earlier = shuffle_up(sum, 1);
  value = lane == 0 ? before : join(before, earlier);
  __syncthreads();
  return total;
}

// Calls f(i) for the elements of a thread, among those of all blocks.
template <class F>
LAMELLA_DEVICE void each_element(int64_t numel, const F& f) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < numel;
       i += int64_t{gridDim.x} * blockDim.x) {
    f(i);
  }
}

// Memory of the block for all of its teams.
LAMELLA_DEVICE uint32_t* team_memory() {
  __shared__ uint32_t memory[kTeamThreads * 6];
  return memory;
}

struct Team {
  bool across;
  int lane, lanes;         // of the team
  int64_t line, in_block;  // the team's line, and the lines of a block

  LAMELLA_DEVICE explicit Team(bool across)
      : across(across),
        lane(static_cast<int>(across ? threadIdx.y : threadIdx.x)),
        lanes(static_cast<int>(across ? blockDim.y : blockDim.x)),
        line(across ? threadIdx.x : threadIdx.y),
        in_block(across ? blockDim.x : blockDim.y) {}

  // Calls f(line) for each of the team's lines; numbers from `lines` on let it wait for the others.
  template <class F>
  LAMELLA_DEVICE void each_line(int64_t lines, const F& f) const {
    for (int64_t first = int64_t{blockIdx.x} * in_block; first < lines;
         first += int64_t{gridDim.x} * in_block) {
      f(first + line);
    }
  }

  // Combines the values of the team by merge(a, b), which changes a; every thread gets the result.
  // All threads of the block must call it.
  template <class A, class F>
  LAMELLA_DEVICE void combine(A& value, const F& merge) const {
    static_assert(sizeof(A) % 4 == 0 && sizeof(A) <= 24);
    A* all = reinterpret_cast<A*>(team_memory());
    const auto at = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    if (!across) {
      const int in_warp = lanes < 32 ? lanes : 32;
      for (int by = 1; by < in_warp; by *= 2) {
        // The lower lane's value comes first, so that both compute the same.
        A other = shuffled(value, [by](uint32_t word) { return __shfl_xor_sync(~0U, word, by); });
        if ((lane & by) != 0) {
          A first = other;
          merge(first, value);
          value = first;
        } else {
          merge(value, other);
        }
      }
      if (lanes <= 32) return;
      const int warps = lanes / 32, mine = static_cast<int>(threadIdx.y) * warps;
      if (lane % 32 == 0) all[mine + lane / 32] = value;
      __syncthreads();
      value = all[mine];
      for (int i = 1; i < warps; ++i) merge(value, all[mine + i]);
      __syncthreads();
      return;
    }
    const auto width = static_cast<int>(blockDim.x);
    if (lanes == 1) return;
    all[at] = value;
    __syncthreads();
    for (int by = 1; by < lanes; by *= 2) {
      if (lane % (2 * by) == 0 && lane + by < lanes) {
        merge(value, all[at + by * width]);
        all[at] = value;
      }
      __syncthreads();
    }
    value = all[threadIdx.x];
    __syncthreads();
  }
};

#endif

}  // namespace lamella::cuda
