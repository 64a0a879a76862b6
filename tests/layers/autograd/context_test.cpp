// SavedData and SavedVariable on their own.
#include "tests/layers/autograd/testing.h"

namespace lamella {
namespace {

using autograd::SavedData;
using autograd::SavedVariable;

TEST(SavedData, KeepsValuesOfAllKinds) {
  SavedData data;
  EXPECT_TRUE(data.empty());
  data["number"] = 3;
  data["factor"] = 0.5;
  data["flag"] = true;
  data["name"] = "mean";
  Tensor x = make({1, 2});
  data["sizes"] = x.sizes();
  data["tensor"] = x;
  EXPECT_EQ(data.size(), 6u);
  EXPECT_EQ(data["number"].toInt(), 3);
  EXPECT_EQ(data["factor"].toDouble(), 0.5);
  EXPECT_TRUE(data["flag"].toBool());
  EXPECT_EQ(data["name"].toStringRef(), "mean");
  EXPECT_EQ(data["sizes"].toIntVector(), std::vector<int64_t>({2}));
  EXPECT_TRUE(data["tensor"].toTensor().is_same(x));
  EXPECT_TRUE(data["nothing"].isNone());
}

TEST(SavedData, LooksUpAndErases) {
  SavedData data;
  EXPECT_TRUE(data.emplace("a", 1).second);
  EXPECT_FALSE(data.emplace("a", 2).second);
  EXPECT_EQ(data.at("a").toInt(), 1);
  EXPECT_EQ(data.count("b"), 0u);
  EXPECT_TRUE(data.contains("a"));
  EXPECT_TRUE(data.find("b") == data.end());
  expect_error<IndexError>([&] { data.at("b"); },
                           "saved_data: expected a name that was stored, got 'b'");
  std::string names;
  data["c"] = 1;
  for (const auto& [name, value] : data) names += name;
  EXPECT_EQ(names, "ac");
  EXPECT_EQ(data.erase("a"), 1u);
  EXPECT_EQ(data.erase("a"), 0u);
  data.clear();
  EXPECT_TRUE(data.empty());
}

TEST(SavedVariable, GivesTheTensorBack) {
  Tensor x = leaf({1, 2});
  SavedVariable saved(x);
  EXPECT_EQ(numbers(saved.unpack()), Numbers({1, 2}));
  EXPECT_TRUE(saved.unpack().requires_grad());
  SavedVariable moved = std::move(saved);
  EXPECT_EQ(numbers(moved.unpack()), Numbers({1, 2}));
  EXPECT_FALSE(saved.unpack().defined());
  EXPECT_FALSE(SavedVariable().unpack().defined());
  EXPECT_FALSE(SavedVariable(Tensor()).unpack().defined());
  moved.reset_data();
  EXPECT_FALSE(moved.unpack().defined());
}

}  // namespace
}  // namespace lamella
