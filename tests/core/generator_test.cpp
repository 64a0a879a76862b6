// The CPU generator: the published stream of MT19937, and the distributions built on it.
#include <cmath>
#include <random>

#include "lamella/core/generator_impl.h"
#include "testing.h"

namespace {

using namespace lamella;

TEST(Generator, StreamIsMt19937) {
  for (uint32_t seed : {0u, 42u, 5489u}) {
    CpuGenerator generator(seed);
    std::mt19937 reference(seed);
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(generator.random(), reference()) << seed << " " << i;
  }
}

TEST(Generator, NumbersAreThoseOfPyTorch) {
  CpuGenerator g(42);
  EXPECT_EQ(g.uniform_float(), 0.882269263f);
  EXPECT_EQ(g.uniform_float(), 0.915003955f);
  g.set_current_seed(42);
  EXPECT_EQ(g.uniform_double(), 0.058154485961429692);
  EXPECT_EQ(g.uniform_double(), 0.062910167424577557);
  g.set_current_seed(42);
  EXPECT_NEAR(g.normal_double(), 0.33669035438385886, 1e-15);
  EXPECT_NEAR(g.normal_double(), 0.1288094051365897, 1e-15);
  g.set_current_seed(42);
  EXPECT_EQ(g.random() % 100, 42u);
  EXPECT_EQ(g.random64() % (uint64_t{1} << 40), 772882432860u);
}

TEST(Generator, WordsComeTogetherAsOneByOne) {
  CpuGenerator one(5), together(5);
  for (int64_t n : {1, 3, 700, 0, 624, 5}) {
    std::vector<uint32_t> words(static_cast<size_t>(n));
    together.random_words(words.data(), n);
    for (uint32_t word : words) EXPECT_EQ(word, one.random());
  }
}

TEST(Generator, StateComesBack) {
  CpuGenerator g(7);
  for (int i = 0; i < 1000; ++i) g.random();
  g.normal_double();  // leaves the second of the pair behind
  std::vector<uint8_t> state = g.get_state();
  EXPECT_EQ(state.size(), 5056u);
  Generator copy = g.clone();
  CpuGenerator other(1);
  other.set_state(state.data(), state.size());
  for (int i = 0; i < 3; ++i) {
    double expected = g.normal_double();
    EXPECT_EQ(other.normal_double(), expected);
    EXPECT_EQ(CpuGenerator::of(copy).normal_double(), expected);
  }
  EXPECT_EQ(other.current_seed(), 7u);
  EXPECT_EQ(error_of([&] { other.set_state(state.data(), 10); }),
            "set_state: expected a state of 5056 bytes, got 10");
  std::vector<uint8_t> junk(5056, 0xff);
  EXPECT_EQ(error_of([&] { other.set_state(junk.data(), junk.size()); }),
            "set_state: expected the state of a CPU generator, got other bytes");
}

TEST(Generator, Handles) {
  Generator none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(&cpu_generator_or_default(none), &CpuGenerator::of(default_cpu_generator()));
  EXPECT_EQ(error_of([&] { CpuGenerator::of(none); }), "Generator: expected a defined generator");
  Generator made = make_cpu_generator(3);
  Generator same = made;
  EXPECT_EQ(made, same);
  EXPECT_EQ(CpuGenerator::of(same).current_seed(), 3u);
  EXPECT_EQ(CpuGenerator(kDefaultSeed).current_seed(), 67280421310721u);
  EXPECT_LT(CpuGenerator::of(made).seed(), uint64_t{1} << 53);
}

}  // namespace
