// Autocast from C++: regions, and which operators it affects.
#include <gtest/gtest.h>

#include "lamella/lamella.h"

namespace lamella {
namespace {

constexpr DeviceType kDevice = DeviceType::CPU;

uint64_t autocast_bit() { return DispatchKeySet(DispatchKey::Autocast).raw_repr(); }
bool sees_autocast(const char* name, const char* overload) {
  return (lamella_lookup_operator(name, overload, 1)->mask & autocast_bit()) != 0;
}

TEST(AutocastRegion, NestsAndPutsBack) {
  Tensor x = ones({2, 2});
  {
    autocast::Region outer(kDevice, kHalf);
    EXPECT_EQ(x.mm(x).scalar_type(), kHalf);
    {
      autocast::Region off(kDevice, std::nullopt, false);
      EXPECT_EQ(x.mm(x).scalar_type(), kFloat);
    }
    autocast::Region inner(kDevice, kBFloat16);
    EXPECT_EQ(x.mm(x).scalar_type(), kBFloat16);
  }
  EXPECT_EQ(x.mm(x).scalar_type(), kFloat);
  EXPECT_EQ(autocast::get_autocast_dtype(kDevice), kBFloat16);
}

// What is not in an operator's mask is taken out of every call's keys by the one instruction that
// each call has anyway: such operators run the same instructions inside of a region as outside.
TEST(AutocastRegion, CostsNothingForWhatItDoesNotTouch) {
  for (auto [name, overload] : {std::pair{"aten::add", "Tensor"},
                                {"aten::mul", "Tensor"},
                                {"aten::relu", ""},
                                {"aten::view", ""},
                                {"aten::clone", ""},
                                {"aten::exp", ""},
                                {"aten::sum", ""},
                                {"aten::mm", "out"},
                                {"aten::addmm_", ""}}) {
    EXPECT_FALSE(sees_autocast(name, overload)) << name;
  }
  EXPECT_TRUE(sees_autocast("aten::mm", ""));
  EXPECT_TRUE(sees_autocast("aten::linear", ""));
}

TEST(AutocastCasts, PromoteTypeCountsEligibleTensors) {
  Tensor half = ones({2}, kHalf), single = ones({2}), wide = ones({2}, kDouble);
  EXPECT_EQ(autocast::promote_type(kHalf, kDevice, half, 3, wide), kHalf);
  EXPECT_EQ(autocast::promote_type(kHalf, kDevice, half, single), kFloat);
  EXPECT_EQ(autocast::promote_type(kHalf, kDevice, std::vector<Tensor>{half, single}), kFloat);
  EXPECT_EQ(autocast::promote_type(kHalf, half, single), kHalf);  // of those on CUDA
}

TEST(AutocastCasts, TakeListsAndOptionalTensors) {
  Tensor single = ones({2});
  std::vector<Tensor> list = autocast::cached_cast(kHalf, std::vector<Tensor>{single}, kDevice);
  EXPECT_EQ(list.at(0).scalar_type(), kHalf);
  std::optional<Tensor> none;
  EXPECT_FALSE(autocast::cached_cast(kHalf, none, kDevice).has_value());
  EXPECT_EQ(autocast::cached_cast(kHalf, std::optional<Tensor>(single), kDevice)->scalar_type(),
            kHalf);
  EXPECT_EQ(autocast::cached_cast(kHalf, 7, kDevice), 7);
}

}  // namespace
}  // namespace lamella
