// The loops of sorting and selection, against the standard library's algorithms.
#include "lamella/kernels/cpu/ordering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lamella/kernels/cpu/digit_sort.h"
#include "lamella/kernels/cpu/simd/sort_long_words.h"
#include "lamella/kernels/cpu/simd/sort_words.h"

namespace lamella::native {
namespace {

template <class K>
std::vector<K> numbers(int64_t n, K below) {
  std::mt19937_64 random(static_cast<uint64_t>(n));
  std::vector<K> all(static_cast<size_t>(n));
  for (K& x : all) x = static_cast<K>(random() % below);
  return all;
}

TEST(Words, AreSortedAtEveryLength) {
  for (int64_t n = 0; n < 3000; n += n < 1100 ? 1 : 37) {
    for (uint32_t below : {3u, 1000u, 0xffffffffu}) {
      std::vector<uint32_t> words = numbers(n, below), want = words;
      std::sort(want.begin(), want.end());
      words.resize(static_cast<size_t>(n + kWordsSpare));
      sort_words_on(DeviceType::CPU, words.data(), n);
      words.resize(static_cast<size_t>(n));
      ASSERT_EQ(words, want) << n << " words below " << below;
    }
  }
}

template <class T, class F>
void test_long_words(F&& sort) {
  for (int64_t n : {0, 1, 2, 100, 257, 20'000, 300'000}) {
    for (T below : {T(1), T(2), T(1000), static_cast<T>(~T(0))}) {
      std::vector<T> words = numbers<T>(n, below), want = words;
      if (!sort(words.data(), n)) return;  // built without such a sort
      std::sort(want.begin(), want.end());
      ASSERT_EQ(words, want) << n << " words below " << below;
      sort(words.data(), n);  // of a list in order
      ASSERT_EQ(words, want) << n << " words below " << below;
    }
  }
}
TEST(LongWords, AreSortedAtEveryLength) {
  test_long_words<uint64_t>([](auto* x, int64_t n) { return sort_long_words_on(kCPU, x, n); });
  test_long_words<uint32_t>([](auto* x, int64_t n) { return sort_long_keys_on(kCPU, x, n); });
}

// Pairs whose keys are spread evenly, or are few, or differ in their lowest bits, or crowd
// together.
std::vector<uint64_t> pairs_of(int64_t n, int bits, int kind) {
  std::vector<uint64_t> pairs = numbers(n, uint64_t{1} << bits);
  for (size_t i = 0; i < pairs.size(); ++i) {
    uint64_t& key = pairs[i];
    if (kind == 1) key %= 7;
    if (kind == 2) key = key % 2 << (bits - 1) | key % 64;
    if (kind == 3 && i % 100 != 0) key %= 5000;
    key = std::min(key, (uint64_t{1} << bits) - 1) << 32 | i;
  }
  return pairs;
}
TEST(Pairs, AreSortedInStretches) {
  for (int64_t n : {1, 17, 513, 2049, 9000, 100'000}) {
    for (int bits : {7, 12, 20, 32}) {
      for (int kind = 0; kind < 4; ++kind) {
        std::vector<uint64_t> pairs = pairs_of(n, bits, kind), other(pairs.size()), want = pairs;
        std::sort(want.begin(), want.end());
        int64_t next = 0;  // where the next stretch begins
        auto done = [](void* context, int64_t begin, int64_t count) {
          auto* at = static_cast<int64_t*>(context);
          EXPECT_EQ(begin, *at);
          *at += count;
        };
        if (!sort_pairs_on(kCPU, pairs.data(), other.data(), n, bits, done, &next)) return;
        EXPECT_EQ(next, n);
        ASSERT_EQ(pairs, want) << n << " pairs, " << bits << " bits, kind " << kind;
      }
    }
  }
}

TEST(Digits, KeepTheOrderOfEquals) {
  for (int64_t n : {1, 100, 20'000, 300'000}) {
    for (int bits : {1, 8, 11, 12, 31, 32}) {
      std::vector<uint64_t> words(static_cast<size_t>(n)), other(words.size());
      std::vector<uint64_t> keys = numbers(n, uint64_t{1} << bits);
      for (size_t i = 0; i < words.size(); ++i) words[i] = keys[i] << 32 | i;
      std::vector<uint64_t> want = words;
      std::sort(want.begin(), want.end());
      uint64_t* sorted = sort_by_digits(words.data(), other.data(), n, bits);
      ASSERT_TRUE(std::equal(want.begin(), want.end(), sorted)) << n << " words, " << bits;
    }
  }
}

template <class K>
void test_loops() {
  const KeyLoops<K>& loops = key_loops<K>();
  for (int64_t n : {1, 2, 31, 64, 200}) {
    std::vector<K> keys = numbers<K>(n, 50);
    KeyBounds<K> bounds = loops.bounds(keys.data(), n);
    EXPECT_EQ(bounds.least, *std::min_element(keys.begin(), keys.end()));
    EXPECT_EQ(bounds.most, *std::max_element(keys.begin(), keys.end()));
    EXPECT_EQ(bounds.ascending, std::is_sorted(keys.begin(), keys.end()));
    EXPECT_EQ(loops.count(keys.data(), n, 7), std::count(keys.begin(), keys.end(), K(7)));

    std::vector<KeyAndIndex<K>> found(keys.size() + 1);
    int64_t count = loops.append(keys.data(), n, 20, 1000, found.data());
    EXPECT_EQ(count, std::count_if(keys.begin(), keys.end(), [](K key) { return key <= 20; }));
    for (int64_t i = 0; i < count; ++i) {
      auto at = static_cast<size_t>(found[static_cast<size_t>(i)].index - 1000);
      EXPECT_EQ(found[static_cast<size_t>(i)].key, keys[at]);
    }

    std::sort(keys.begin(), keys.end());
    std::vector<K> values = numbers<K>(77, 60);
    std::vector<int64_t> places(values.size());
    loops.search(keys.data(), n, values.data(), 77, places.data());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(places[i], std::lower_bound(keys.begin(), keys.end(), values[i]) - keys.begin());
    }
  }
}
TEST(Keys, Of32Bits) { test_loops<uint32_t>(); }
TEST(Keys, Of64Bits) { test_loops<uint64_t>(); }

TEST(Keys, HaveTheOrderOfTheirNumbers) {
  std::vector<double> order = {-1e300, -2, -1e-310, 0, 1e-310, 1, 2, 1e300};
  for (ScalarType dtype : {kDouble, kFloat, kHalf, kBFloat16}) {
    Tensor wide = lamella::empty({static_cast<int64_t>(order.size())}, TensorOptions(kDouble));
    std::copy(order.begin(), order.end(), wide.mutable_data_ptr<double>());
    Tensor x = wide.to(dtype);
    Tensor nan = lamella::full({1}, __builtin_nan(""), TensorOptions(dtype));
    for (bool descending : {false, true}) {
      KeyKind kind = key_kind(dtype, descending);
      auto key = [&](const Tensor& t, int64_t i) {
        Line line{kind, static_cast<const char*>(t.const_data_ptr()), kind.bytes, t.numel()};
        uint64_t long_key = 0;
        uint32_t short_key = 0;
        if (kind.bytes == 8) {
          key_loops<uint64_t>().read(kind, line.element(i), line.stride, 1, &long_key);
        } else {
          key_loops<uint32_t>().read(kind, line.element(i), line.stride, 1, &short_key);
        }
        return kind.bytes == 8 ? long_key : short_key;
      };
      for (int64_t i = 0; i + 1 < x.numel(); ++i) {
        EXPECT_TRUE(descending ? key(x, i) >= key(x, i + 1) : key(x, i) <= key(x, i + 1)) << i;
      }
      EXPECT_EQ(key(nan, 0), nan_key(kind));
    }
  }
}

}  // namespace
}  // namespace lamella::native
