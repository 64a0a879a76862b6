// Runs the custom-call guide's programs for CUDA where there is a GPU.
#include <dlfcn.h>

#include "lamella/abi/abi.h"
#include "lamella/graph/custom_call/call.h"
#include "tests/seeds/custom_call_run.h"

namespace {

using xla::F32;
using xla::Shape;
using xla::ShapeUtil;

// Loads the library of targets, whose path is LAMELLA_TEST_CUDA_TARGETS; it needs no GPU for that.
class CustomCallGuideOnCuda : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_NE(dlopen(LAMELLA_TEST_CUDA_TARGETS, RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
    ASSERT_EQ(lamella_raise_deferred(), LAMELLA_OK) << lamella_error_text();
  }
  // The reason why nothing can run here, or "".
  static std::string no_gpu() {
    try {
      lamella::hlo::check_platform("CUDA");
      return "";
    } catch (const lamella::Error& error) {
      return error.what();
    }
  }
};

#define LAMELLA_NEEDS_GPU() \
  if (std::string why = no_gpu(); !why.empty()) GTEST_SKIP() << why

void do_it(xla::XlaBuilder& b) {
  xla::XlaOp param0 = xla::Parameter(&b, 0, ShapeUtil::MakeShape(F32, {128}), "p0");
  xla::XlaOp param1 = xla::Parameter(&b, 1, ShapeUtil::MakeShape(F32, {2048}), "p1");
  std::string opaque = "...";
  xla::CustomCall(&b, "do_custom_call", /*operands=*/{param0, param1},
                  /*output_shape=*/ShapeUtil::MakeShape(F32, {2048}), opaque);
}

TEST_F(CustomCallGuideOnCuda, ACall) {
  LAMELLA_NEEDS_GPU();
  xla::XlaBuilder b("do_it");
  do_it(b);
  Example example;
  EXPECT_EQ(numbers(run(b, {example.b, example.c}, "CUDA")), example.a);
}

TEST_F(CustomCallGuideOnCuda, WithoutAGpuItIsAnErrorWhenCompiled) {
  if (no_gpu().empty()) GTEST_SKIP() << "there is a GPU";
  xla::XlaBuilder b("do_it");
  do_it(b);
  Example example;
  EXPECT_EQ(error_of(b, {example.b, example.c}, "CUDA"), no_gpu());
}

void scale(xla::XlaBuilder& b, const std::string& opaque) {
  xla::XlaOp x = xla::Parameter(&b, 0, ShapeUtil::MakeShape(F32, {100}), "x");
  xla::CustomCall(&b, "do_scale", {x}, ShapeUtil::MakeShape(F32, {100}), opaque, false, {}, nullptr,
                  xla::CustomCallSchedule::SCHEDULE_NONE, xla::API_VERSION_STATUS_RETURNING);
}

TEST_F(CustomCallGuideOnCuda, SizesInOpaque) {
  LAMELLA_NEEDS_GPU();
  xla::XlaBuilder b("scale");
  int64_t count = 100;
  scale(b, std::string(reinterpret_cast<const char*>(&count), sizeof(count)));
  EXPECT_EQ(numbers(run(b, {Floats(100, 1.5f)}, "CUDA")), Floats(100, 3));
}

TEST_F(CustomCallGuideOnCuda, AFailureEndsTheComputation) {
  LAMELLA_NEEDS_GPU();
  xla::XlaBuilder b("scale");
  scale(b, "hundred");
  EXPECT_EQ(
      error_of(b, {Floats(100, 1.5f)}, "CUDA"),
      "hlo: 'custom-call.2' (custom-call): 'do_scale' failed: expected the number of elements "
      "in opaque");
}

TEST_F(CustomCallGuideOnCuda, TuplesAreSixBuffers) {
  LAMELLA_NEEDS_GPU();
  xla::XlaBuilder b("tuples");
  xla::XlaOp parts[4];
  const int64_t sizes[] = {32, 64, 128, 256};
  std::vector<Floats> arguments;
  Floats expected;
  for (int64_t n = 0; n < 4; ++n) {
    Shape shape = ShapeUtil::MakeShape(F32, {sizes[n]});
    parts[n] = xla::Parameter(&b, n, shape, "p" + std::to_string(n));
    arguments.emplace_back(static_cast<size_t>(sizes[n]), static_cast<float>(n) + 1);
    expected.insert(expected.end(), arguments.back().begin(), arguments.back().end());
  }
  expected.resize(512, 1);
  xla::XlaOp subtuple = xla::Tuple(&b, {parts[1], parts[2]});
  xla::XlaOp p0 = xla::Tuple(&b, {parts[0], subtuple, parts[3]});
  Shape out_shape =
      ShapeUtil::MakeTuple({ShapeUtil::MakeShape(F32, {512}), ShapeUtil::MakeShape(F32, {1024})});
  xla::XlaOp call = xla::CustomCall(&b, "do_tuple_call", /*operands=*/{p0}, out_shape);
  xla::GetTupleElement(call, 0);
  EXPECT_EQ(numbers(run(b, arguments, "CUDA")), expected);
}

}  // namespace
