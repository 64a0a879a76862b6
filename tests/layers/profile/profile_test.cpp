// lamella/profiler.h: the contents of a profile, and calls that it must not affect.
#include <lamella/lamella.h>
#include <lamella/profiler.h>

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

namespace {

using lamella::profiler::Profile;
using lamella::profiler::RecordFunction;

struct Seen {
  std::string name, kind, arguments;
  int64_t duration, own;
};
std::vector<Seen> events_of(Profile& profile) {
  std::vector<Seen> seen;
  profile.each([&](const lamella_profile_event& e) {
    seen.push_back({e.name, e.kind, e.arguments, e.duration_ns, e.own_ns});
  });
  return seen;
}

TEST(Profile, HoldsOperatorsAndRanges) {
  lamella::Tensor x = lamella::ones({2, 3});
  Profile profile;
  {
    RecordFunction range("range");
    lamella::exp(x);
  }
  profile.stop();
  lamella::sin(x);
  std::vector<Seen> seen = events_of(profile);
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen[0].name, "range");
  EXPECT_EQ(seen[0].kind, "range");
  EXPECT_EQ(seen[1].name, "aten::exp");
  EXPECT_EQ(seen[1].arguments, "float32[2, 3]");
  EXPECT_LT(seen[0].own, seen[0].duration);
  std::string table = profile.table("calls", 1);
  EXPECT_NE(table.find("share"), std::string::npos);
  EXPECT_EQ(profile.table().find("aten::sin"), std::string::npos);
}

TEST(Profile, WritesATrace) {
  Profile profile;
  lamella::exp(lamella::ones({2}));
  std::string path = ::testing::TempDir() + "lamella_profile_test.json";
  profile.save(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("\"name\": \"aten::exp\""), std::string::npos);
  EXPECT_THROW(profile.save("/nowhere/at/all"), lamella::Error);
}

TEST(Profile, RunsOneAtATime) {
  Profile profile;
  EXPECT_THROW(Profile(), lamella::Error);
  EXPECT_FALSE(events_of(profile).size() != 0);
  RecordFunction outside("outside");
}

}  // namespace
