// Memory formats: strides, and the flags that they give a tensor.
#include "lamella/core/memory_format.h"

#include "testing.h"

namespace {

using namespace lamella;

TEST(MemoryFormat, StridesOfFormats) {
  Ints strides(4);
  contiguous_strides({2, 3, 4, 5}, strides.data());
  EXPECT_EQ(strides, (Ints{60, 20, 5, 1}));
  contiguous_strides({2, 0, 4, 5}, strides.data());
  EXPECT_EQ(strides, (Ints{20, 20, 5, 1}));
  strides_of_format({2, 3, 4, 5}, MemoryFormat::ChannelsLast, strides.data());
  EXPECT_EQ(strides, (Ints{60, 1, 15, 3}));
  Ints strides_3d(5);
  strides_of_format({2, 3, 4, 5, 6}, MemoryFormat::ChannelsLast3d, strides_3d.data());
  EXPECT_EQ(strides_3d, (Ints{360, 1, 90, 18, 3}));
}

struct Row {
  Ints sizes;
  Ints strides;
  bool contiguous, channels_last, channels_last_3d, dense;
  MemoryFormat suggested;
};

constexpr auto kPlain = MemoryFormat::Contiguous;
constexpr auto kLast = MemoryFormat::ChannelsLast;
constexpr auto kLast3d = MemoryFormat::ChannelsLast3d;

TEST(MemoryFormat, FlagsOfStrides) {
  const std::vector<Row> rows = {
      {{}, {}, true, false, false, true, kPlain},
      {{5}, {1}, true, false, false, true, kPlain},
      {{5}, {2}, false, false, false, false, kPlain},
      {{1}, {7}, true, false, false, true, kPlain},
      {{0}, {7}, true, false, false, true, kPlain},
      {{3, 4}, {4, 1}, true, false, false, true, kPlain},
      {{3, 4}, {1, 3}, false, false, false, true, kPlain},
      {{3, 4}, {0, 1}, false, false, false, false, kPlain},
      {{3, 1}, {1, 9}, true, false, false, true, kPlain},
      {{2, 3, 4}, {1, 8, 2}, false, false, false, true, kPlain},
      {{2, 3, 4, 5}, {60, 20, 5, 1}, true, false, false, true, kPlain},
      {{2, 3, 4, 5}, {60, 1, 15, 3}, false, true, false, true, kLast},
      {{2, 3, 4, 5}, {120, 1, 30, 6}, false, false, false, false, kLast},
      {{2, 3, 4, 5}, {60, 1, 3, 12}, false, false, false, true, kPlain},
      // One channel: both orders at once; the strides decide what is suggested.
      {{2, 1, 4, 5}, {20, 20, 5, 1}, true, true, false, true, kPlain},
      {{2, 1, 4, 5}, {20, 1, 5, 1}, true, true, false, true, kLast},
      {{2, 3, 1, 1}, {3, 1, 1, 1}, true, true, false, true, kPlain},
      {{2, 3, 1, 1}, {3, 1, 3, 3}, true, true, false, true, kLast},
      {{4, 1, 1, 1}, {1, 1, 1, 1}, true, true, false, true, kPlain},
      {{2, 3, 4, 5, 6}, {360, 120, 30, 6, 1}, true, false, false, true, kPlain},
      {{2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}, false, false, true, true, kLast3d},
      {{2, 3, 4, 5, 6, 7}, {2520, 840, 210, 42, 7, 1}, true, false, false, true, kPlain},
  };
  for (const Row& row : rows) {
    TensorBase t = make_empty_strided(row.sizes, row.strides, kFloat, kMeta);
    std::string what = str(row.sizes, " ", row.strides);
    EXPECT_EQ(t.is_contiguous(), row.contiguous) << what;
    EXPECT_EQ(t.is_contiguous(kLast), row.channels_last) << what;
    EXPECT_EQ(t.is_contiguous(kLast3d), row.channels_last_3d) << what;
    EXPECT_EQ(t.is_non_overlapping_and_dense(), row.dense) << what;
    EXPECT_EQ(t.suggest_memory_format(), row.suggested) << what;
  }
}

// The short cut for fresh row-major tensors gives the flags of the full computation.
TEST(MemoryFormat, FreshTensorsHaveTheFlagsOfTheirStrides) {
  for (int64_t n = 0; n < 3; ++n) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t h = 0; h < 3; ++h) {
        for (int64_t w = 0; w < 3; ++w) {
          for (const Ints& sizes : {Ints{n, c, h, w}, Ints{n, c, h, w, 2}, Ints{n, c, 1, h, w}}) {
            TensorBase t = make_empty(sizes, kFloat, kMeta);
            EXPECT_EQ(t.impl()->flags, shape_flags(t.sizes(), t.strides(), t.numel()))
                << str(sizes);
          }
        }
      }
    }
  }
}

TEST(MemoryFormat, MakesTensors) {
  TensorBase t = make_empty({2, 3, 4, 5}, kFloat, kCPU, kLast);
  EXPECT_EQ(strides_of(t), (Ints{60, 1, 15, 3}));
  EXPECT_TRUE(t.is_contiguous(kLast) && !t.is_contiguous());
  EXPECT_EQ(t.suggest_memory_format(true), kLast);
  EXPECT_EQ(error_of([] { make_empty({2, 3}, kFloat, kCPU, kLast); }),
            "channels_last: expected 4 dimensions, got 2");
  EXPECT_EQ(error_of([] { make_empty({2}, kFloat, kCPU, MemoryFormat::Preserve); }),
            "empty: expected a memory format other than preserve_format");
  TensorBase like = make_empty_like(t, kLong, kCPU);
  EXPECT_EQ(strides_of(like), (Ints{60, 1, 15, 3}));
  EXPECT_EQ(like.dtype(), kLong);
}

}  // namespace
