// Programs written against XLA's headers and names.
#include "tensorflow/compiler/xla/array2d.h"
#include "tensorflow/compiler/xla/client/client_library.h"
#include "tensorflow/compiler/xla/client/lib/arithmetic.h"
#include "tensorflow/compiler/xla/client/lib/comparators.h"
#include "tensorflow/compiler/xla/client/lib/loops.h"
#include "tensorflow/compiler/xla/client/lib/math.h"
#include "tensorflow/compiler/xla/client/lib/matrix.h"
#include "tensorflow/compiler/xla/client/lib/sorting.h"
#include "tensorflow/compiler/xla/client/local_client.h"
#include "tensorflow/compiler/xla/client/xla_builder.h"
#include "tensorflow/compiler/xla/client/xla_computation.h"
#include "tensorflow/compiler/xla/literal.h"
#include "tensorflow/compiler/xla/literal_util.h"
#include "tensorflow/compiler/xla/service/custom_call_status.h"
#include "tensorflow/compiler/xla/service/custom_call_target_registry.h"
#include "tensorflow/compiler/xla/shape_util.h"
#include "tensorflow/compiler/xla/status_macros.h"
#include "tensorflow/compiler/xla/statusor.h"
#include "tensorflow/compiler/xla/types.h"
#include "tensorflow/compiler/xla/xla_data.pb.h"
#include "xla/client/xla_builder.h"
#include "xla/comparison_util.h"
#include "xla/hlo/builder/lib/approx_topk.h"
#include "xla/hlo/builder/lib/constants.h"
#include "xla/hlo/builder/lib/logdet.h"
#include "xla/hlo/builder/lib/lu_decomposition.h"
#include "xla/hlo/builder/lib/pooling.h"
#include "xla/hlo/builder/lib/prng.h"
#include "xla/hlo/builder/lib/qr.h"
#include "xla/hlo/builder/lib/self_adjoint_eig.h"
#include "xla/hlo/builder/lib/svd.h"
#include "xla/hlo/builder/lib/tridiagonal.h"
#include "xla/hlo/builder/lib/tuple.h"
#include "xla/hlo/builder/xla_builder.h"
#include "xla/hlo/parser/hlo_parser.h"
#include "xla/primitive_util.h"
#include "xla/shape_tree.h"

#include <gtest/gtest.h>

#include <cstring>

namespace {

void scaled_sum(void* out, const void** in) {
  float* to = reinterpret_cast<float*>(out);
  const float* a = reinterpret_cast<const float*>(in[0]);
  const float* b = reinterpret_cast<const float*>(in[1]);
  for (int i = 0; i < 8; ++i) to[i] = a[i % 4] + b[i];
}
XLA_REGISTER_CUSTOM_CALL_TARGET(scaled_sum, "Host");

void refuses(void* /*out*/, const void** /*in*/, XlaCustomCallStatus* status) {
  const char* message = "not today";
  XlaCustomCallStatusSetFailure(status, message, strlen(message));
}
XLA_REGISTER_CUSTOM_CALL_TARGET(refuses, "Host");

xla::StatusOr<xla::Literal> run(const xla::XlaComputation& computation,
                                const std::vector<xla::Literal>& arguments) {
  xla::LocalClient* client = xla::ClientLibrary::LocalClientOrDie();
  std::vector<std::unique_ptr<xla::GlobalData>> data;
  std::vector<xla::GlobalData*> pointers;
  for (const xla::Literal& literal : arguments) {
    TF_ASSIGN_OR_RETURN(std::unique_ptr<xla::GlobalData> one, client->TransferToServer(literal));
    data.push_back(std::move(one));
    pointers.push_back(data.back().get());
  }
  return client->ExecuteAndTransfer(computation, pointers);
}

TEST(XlaNames, CustomCall) {
  xla::XlaBuilder b("do_it");
  xla::XlaOp p0 = xla::Parameter(&b, 0, xla::ShapeUtil::MakeShape(xla::F32, {4}), "p0");
  xla::XlaOp p1 = xla::Parameter(&b, 1, xla::ShapeUtil::MakeShape(xla::F32, {8}), "p1");
  xla::CustomCall(&b, "scaled_sum", /*operands=*/{p0, p1},
                  /*shape=*/xla::ShapeUtil::MakeShape(xla::F32, {8}));
  xla::XlaComputation computation = b.Build().ValueOrDie();
  std::vector<xla::Literal> arguments;
  arguments.push_back(xla::LiteralUtil::CreateR1<float>({1, 2, 3, 4}));
  arguments.push_back(xla::LiteralUtil::CreateR1<float>({0, 10, 20, 30, 40, 50, 60, 70}));
  xla::Literal result = run(computation, arguments).ValueOrDie();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(result.Get<float>({i}), static_cast<float>(i % 4 + 1 + i * 10));
  }
}

TEST(XlaNames, CustomCallThatFails) {
  using namespace xla;
  XlaBuilder b("do_it");
  XlaOp p0 = xla::Parameter(&b, 0, ShapeUtil::MakeShape(F32, {4}), "p0");
  std::string opaque = "...";
  xla::CustomCall(&b, "refuses", /*operands=*/{p0},
                  /*output_shape=*/xla::ShapeUtil::MakeShape(F32, {4}), opaque,
                  /*has_side_effect=*/false,
                  /*output_operand_aliasing=*/{}, /*literal=*/nullptr,
                  /*schedule=*/xla::CustomCallSchedule::SCHEDULE_NONE,
                  /*api_version=*/API_VERSION_STATUS_RETURNING);
  std::vector<Literal> arguments;
  arguments.push_back(LiteralUtil::CreateR1<float>({1, 2, 3, 4}));
  StatusOr<Literal> result = run(b.Build().ValueOrDie(), arguments);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().error_message().find("not today"), std::string::npos)
      << result.status();
  EXPECT_NE(result.status().error_message().find("custom-call.2"), std::string::npos);
}

TEST(XlaNames, TuplesOfTheGuide) {
  using xla::F32;
  using xla::Shape;
  using xla::ShapeUtil;
  xla::XlaBuilder b("tuples");
  Shape p0_shape = ShapeUtil::MakeTuple({
      ShapeUtil::MakeShape(F32, {32}),
      ShapeUtil::MakeTuple({
          ShapeUtil::MakeShape(F32, {64}),
          ShapeUtil::MakeShape(F32, {128}),
      }),
      ShapeUtil::MakeShape(F32, {256}),
  });
  xla::XlaOp p0 = xla::Parameter(0, p0_shape, "p0");
  Shape out_shape = ShapeUtil::MakeTuple({
      ShapeUtil::MakeShape(F32, {512}),
      ShapeUtil::MakeShape(F32, {1024}),
  });
  xla::CustomCall(&b, "do_custom_call", /*operands=*/{p0}, out_shape);
  EXPECT_EQ(b.Build().ValueOrDie().GetProgramShape().ValueOrDie().ToString(),
            "(p0.1: (f32[32], (f32[64], f32[128]), f32[256])) -> (f32[512], f32[1024])");
}

TEST(XlaNames, LoopAndSort) {
  xla::XlaBuilder b("loop");
  xla::XlaOp start = xla::ConstantR0<float>(&b, 1);
  auto body = [](xla::XlaOp index, xla::Span<xla::XlaOp> values,
                 xla::XlaBuilder*) -> xla::StatusOr<std::vector<xla::XlaOp>> {
    return std::vector<xla::XlaOp>{values[0] * xla::ConvertElementType(index + index, xla::F32) +
                                   values[0]};
  };
  auto values = xla::ForEachIndex(4, xla::S32, body, {start}, "factors", &b).ValueOrDie();
  xla::XlaOp keys = xla::ConstantR1<int32_t>(&b, {3, 1, 2});
  xla::XlaOp places = xla::Iota(&b, xla::S32, 3);
  xla::XlaOp sorted =
      xla::Sort({keys, places}, xla::CreateScalarLtComputation({xla::S32, xla::S32}, &b));
  xla::Tuple(&b, {values[0], sorted});
  xla::Literal result = run(b.Build().ValueOrDie(), {}).ValueOrDie();
  // 1 * (0 + 1) * (2 + 1) * (4 + 1) * (6 + 1).
  EXPECT_EQ(result.ToString(), "(f32[] 105, (s32[3] {1, 2, 3}, s32[3] {1, 2, 0}))");
}

TEST(XlaNames, LocalExecutable) {
  xla::XlaBuilder builder("mean");
  xla::Shape shape = xla::ShapeUtil::MakeShape(xla::F32, {2, 3});
  auto x = xla::Parameter(&builder, 0, shape, "x");
  auto sum = xla::Reduce(x, xla::Zero(&builder, xla::F32),
                         xla::CreateScalarAddComputation(xla::F32, &builder), {1});
  xla::Div(sum, xla::ConstantR0<float>(&builder, 3));
  xla::XlaComputation computation = builder.Build().ConsumeValueOrDie();
  xla::LocalClient* client = xla::ClientLibrary::GetOrCreateLocalClient().ValueOrDie();
  xla::ExecutableBuildOptions build_options;
  build_options.set_device_ordinal(client->default_device_ordinal());
  auto executables = client->Compile(computation, {&shape}, build_options).ConsumeValueOrDie();
  xla::Array2D<float> array(2, 3);
  array.FillIota(0);
  xla::Literal literal = xla::LiteralUtil::CreateR2FromArray2D(array);
  xla::ScopedShapedBuffer buffer =
      client->LiteralToShapedBuffer(literal, client->default_device_ordinal()).ConsumeValueOrDie();
  xla::ExecutableRunOptions run_options;
  run_options.set_allocator(client->backend().memory_allocator());
  run_options.set_intra_op_thread_pool(client->backend().eigen_intra_op_thread_pool_device());
  xla::ScopedShapedBuffer result = executables[0]->Run({&buffer}, run_options).ConsumeValueOrDie();
  xla::Literal out = client->ShapedBufferToLiteral(result).ConsumeValueOrDie();
  EXPECT_EQ(out.data<float>()[0], 1);
  EXPECT_EQ(out.Get<float>({1}), 4);
}

TEST(XlaNames, Shapes) {
  using namespace xla;
  const Shape scalar = ShapeUtil::MakeScalarShape(S32), none = ShapeUtil::MakeShape(F32, {2, 0}),
              matrix = ShapeUtil::MakeShapeWithDescendingLayout(F32, {2, 3}),
              turned = ShapeUtil::MakeShapeWithDenseLayout(F32, {2, 3}, {0, 1}),
              complex = ShapeUtil::MakeShape(C64, {2, 3}),
              pair = ShapeUtil::MakeTuple({scalar, matrix});
  EXPECT_EQ(ShapeUtil::HumanStringWithLayout(turned), "f32[2,3]{0,1}");
  EXPECT_EQ(ShapeUtil::MakeMaybeTupleShape({matrix}), matrix);
  EXPECT_EQ(ShapeUtil::MakeMaybeTupleShape({scalar, matrix}), pair);
  EXPECT_EQ(ShapeUtil::TupleElementCount(pair), 2);
  EXPECT_TRUE(ShapeUtil::IsNil(ShapeUtil::MakeNil()) && !ShapeUtil::IsNil(pair));
  EXPECT_TRUE(ShapeUtil::MakeOpaqueShape().IsOpaque() && !matrix.IsOpaque());
  EXPECT_TRUE(ShapeUtil::MakeTokenShape().IsToken() && !matrix.IsToken());
  EXPECT_TRUE(ShapeUtil::IsZeroElementArray(none) && !ShapeUtil::IsZeroElementArray(matrix));
  EXPECT_EQ(ShapeUtil::ByteSizeOfElements(matrix), 24);
  EXPECT_EQ(ShapeUtil::Rank(matrix), 2);
  EXPECT_TRUE(ShapeUtil::SameDimensions(matrix, complex) &&
              !ShapeUtil::SameElementType(matrix, complex));
  EXPECT_TRUE(ShapeUtil::CompatibleIgnoringLayout(matrix, turned) && matrix != turned);
  EXPECT_TRUE(ShapeUtil::IsScalar(scalar) && !ShapeUtil::IsScalar(matrix));
  EXPECT_TRUE(ShapeUtil::IsScalarWithElementType(scalar, S32) &&
              !ShapeUtil::IsScalarWithElementType(scalar, F32));
  EXPECT_TRUE(ShapeUtil::ElementIsIntegral(scalar) && ShapeUtil::ElementIsFloating(matrix) &&
              ShapeUtil::ElementIsComplex(complex) && !ShapeUtil::ElementIsComplex(matrix));
  const Shape grows = ShapeUtil::MakeShape(F32, {2, 3}, {true, false});
  EXPECT_TRUE(grows.is_dynamic_dimension(0) && !grows.is_dynamic_dimension(1));
}

TEST(XlaNames, Layouts) {
  using namespace xla;
  const Shape turned = ShapeUtil::MakeShapeWithLayout(F32, {2, 3}, {0, 1});
  EXPECT_EQ(LayoutUtil::MakeLayout({0, 1}).ToString(), "{0,1}");
  EXPECT_EQ(LayoutUtil::GetDefaultLayoutForShape(turned), LayoutUtil::MakeLayout({1, 0}));
  EXPECT_EQ(LayoutUtil::GetDefaultLayoutForRank(3), LayoutUtil::MakeLayout({2, 1, 0}));
  EXPECT_EQ(LayoutUtil::GetWithDefaultLayout(turned), ShapeUtil::MakeShape(F32, {2, 3}));
}

TEST(XlaNames, ArraysAndLiterals) {
  using namespace xla;
  Array3D<float> cube(1, 2, 3);
  cube.FillIota(1);
  EXPECT_EQ(cube.num_dimensions(), 3);
  EXPECT_EQ(cube.num_elements(), 6);
  EXPECT_EQ(LiteralUtil::CreateR3FromArray3D(cube).Get<float>({0, 1, 2}), 6);
  Array4D<float> block(1, 1, 2, 3);
  block.FillIota(1);
  EXPECT_EQ(LiteralUtil::CreateR4FromArray4D(block).Get<float>({0, 0, 1, 0}), 4);
}

TEST(XlaNames, StatusAndOps) {
  using namespace xla;
  EXPECT_EQ(OkStatus(), Status());
  Status(StatusCode::kInternal, "lost").IgnoreError();
  EXPECT_TRUE(XlaOp().IsUninitialized());
  XlaBuilder b("ops");
  XlaOp x = Parameter(&b, 0, ShapeUtil::MakeScalarShape(F32), "x");
  XlaOp y = x;
  EXPECT_TRUE(x.IsIdenticalTo(y) && !x.IsIdenticalTo(x + y) && !x.IsUninitialized());
  OpMetadata metadata;
  metadata.set_op_name("only_the_next");
  b.SetOneShotOpMetadata(metadata);
  Mul(x, x);
  EXPECT_TRUE(b.GetCurrentStatus().ok());
  Add(x, ConstantR1<int32_t>(&b, {1, 2}));
  EXPECT_FALSE(b.GetCurrentStatus().ok());
}

TEST(XlaNames, Settings) {
  using namespace xla;
  PrecisionConfig precision;
  precision.mutable_operand_precision()->push_back(PrecisionConfig::HIGHEST);
  EXPECT_EQ(precision.operand_precision_size(), 1);
  EXPECT_EQ(precision.operand_precision(0), PrecisionConfig::HIGHEST);
  EXPECT_EQ(sharding_builder::Replicate().to_string(), "{replicated}");
  EXPECT_EQ(sharding_builder::Manual().to_string(), "{manual}");
  OpSharding both;
  both.set_type(OpSharding::TUPLE);
  both.add_tuple_shardings(sharding_builder::Manual());
  EXPECT_EQ(both.tuple_shardings().size(), 1u);

  LocalClient* client = ClientLibrary::LocalClientOrDie();
  EXPECT_TRUE(client->device_ordinal_supported(0) && !client->device_ordinal_supported(1));
  XlaBuilder b("identity");
  const Shape shape = ShapeUtil::MakeShape(F32, {2});
  Parameter(&b, 0, shape, "x");
  XlaComputation computation = b.Build().ValueOrDie();
  EXPECT_EQ(computation.GetProgramShape().ValueOrDie().parameters_size(), 1);
  ExecutableBuildOptions one, two;
  one.set_result_layout(shape).set_num_replicas(1);
  two.set_num_replicas(2);
  auto ready = client->Compile(computation, {&shape}, one).ValueOrDie();
  EXPECT_EQ(client->Compile(computation, {&shape}, two).status().error_message(),
            "Compile: expected 1 replica, got 2");
  Literal input = LiteralUtil::CreateR1<float>({3, 4});
  ScopedShapedBuffer buffer = client->LiteralToShapedBuffer(input).ValueOrDie();
  EXPECT_EQ(ready[0]->Run({&buffer}).ValueOrDie().on_device_shape(), shape);
}

TEST(XlaNames, Library) {
  using namespace xla;
  EXPECT_TRUE(primitive_util::IsFloatingPointType(BF16));
  EXPECT_EQ(xla::ParseShape("f32[2]").value(), ShapeUtil::MakeShape(F32, {2}));
  EXPECT_TRUE(Comparison(ComparisonDirection::kLt, F32, ComparisonOrder::kTotal).IsTotalOrder());
  XlaBuilder b("library");
  XlaOp a = ConstantR2<float>(&b, {{2, 0}, {0, 8}}), q, r;
  QrExplicit(a, /*full_matrices=*/true, q, r);
  SVDResult svd = SVD(a);
  ShapeTree<XlaOp> parts = DisassembleTuple(Tuple(&b, {svd.d, xla::LogDet(a)})).value();
  xla::Tuple(&b, {parts.element({0}), Exp(parts.element({1})), xla::TopK(svd.d, 1, S32)});
  EXPECT_EQ(run(b.Build().value(), {}).value().ToString().substr(0, 20), "(f32[2] {8, 2}, f32[");
}

TEST(XlaNames, ReducingToTheSecond) {
  using namespace xla;
  XlaBuilder b("last");
  Reduce(ConstantR1<float>(&b, {3, 5, 7}), ConstantR0<float>(&b, 0),
         CreateScalarIdentityWithZeroComputation(F32, &b), {0});
  EXPECT_EQ(run(b.Build().ValueOrDie(), {}).ValueOrDie().ToString(), "f32[] 7");
}

}  // namespace
