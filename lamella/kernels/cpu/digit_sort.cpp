// Radix sort of words. Threads count and move the parts of a long list; as the sort is stable, the
// result does not depend on how the list is cut. D. E. Knuth, The Art of Computer
// Programming, volume 3, section 5.2.5.
#include "lamella/kernels/cpu/digit_sort.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

uint64_t* sort_by_digits(uint64_t* words, uint64_t* other, int64_t n, int bits) {
  constexpr int64_t kPart = 1 << 16, kMaxParts = 16;
  int64_t parts = in_parallel_region() ? 1 : std::min<int64_t>(n / kPart, get_num_threads());
  parts = std::clamp<int64_t>(parts, 1, kMaxParts);
  int64_t size = (n + parts - 1) / parts;
  // More buckets save passes, unless there are few words or the write positions exceed the caches.
  int widest = n < (1 << 14) || n > (1 << 18) ? 8 : 11;
  int passes = bits <= 11 ? std::min(bits, 1) : (bits + widest - 1) / widest;
  struct Digit {
    int shift;
    uint64_t mask;
    size_t first;  // index of its first bucket among those of all digits
  } digits[4];
  size_t buckets = 0;
  for (int pass = 0, done = 0; pass < passes; ++pass) {
    int width = (bits - done + passes - pass - 1) / (passes - pass);
    digits[pass] = {32 + done, (uint64_t{1} << width) - 1, buckets};
    buckets += size_t{1} << width;
    done += width;
  }
  std::vector<uint32_t> counts(buckets * static_cast<size_t>(parts));
  auto count = [&](int from, int to) {
    std::fill(counts.begin(), counts.end(), 0);
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        uint32_t* own = counts.data() + static_cast<size_t>(part) * buckets;
        int64_t stop = std::min(n, (part + 1) * size);
        auto add = [&](auto... pass) {
          for (int64_t i = part * size; i < stop; ++i) {
            if ((i & 0xfffff) == 0xfffff) check_interrupt();
            uint64_t word = words[i];
            (++own[digits[pass].first + (word >> digits[pass].shift & digits[pass].mask)], ...);
          }
        };
        switch (to - from) {
          case 1:
            add(from);
            break;
          case 2:
            add(from, from + 1);
            break;
          case 3:
            add(from, from + 1, from + 2);
            break;
          default:
            add(from, from + 1, from + 2, from + 3);
        }
      }
    });
  };
  // One part has the same words in every pass, and so the same counts of all digits.
  if (parts == 1 && passes > 0) count(0, passes);
  for (int pass = 0; pass < passes; ++pass) {
    if (parts > 1) count(pass, pass + 1);
    const Digit digit = digits[pass];
    uint32_t sum = 0;
    for (size_t b = digit.first; b <= digit.first + digit.mask; ++b) {
      for (int64_t part = 0; part < parts; ++part) {
        sum += std::exchange(counts[static_cast<size_t>(part) * buckets + b], sum);
      }
    }
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        uint32_t* next = counts.data() + static_cast<size_t>(part) * buckets + digit.first;
        int64_t stop = std::min(n, (part + 1) * size);
        for (int64_t i = part * size; i < stop; ++i) {
          if ((i & 0xfffff) == 0xfffff) check_interrupt();
          uint64_t word = words[i];
          other[next[word >> digit.shift & digit.mask]++] = word;
        }
      }
    });
    std::swap(words, other);
    check_interrupt();
  }
  return words;
}

}  // namespace lamella::native
