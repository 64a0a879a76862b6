// Running built computations: clients, buffers, literals.
#include <gtest/gtest.h>

#include "lamella/hlo.h"

namespace lamella::hlo {
namespace {

Shape F(std::vector<int64_t> sizes) { return Shape::array(ElementType::F32, std::move(sizes)); }

BuiltComputation product() {
  Builder b("product");
  Op x = Parameter(&b, 0, F({2, 3}), "x");
  Op y = Parameter(&b, 1, F({3}), "y");
  Tuple(&b, {Dot(x, y), x, ConstantR0<int32_t>(&b, 7)});
  return b.Build().value();
}

TEST(Client, ExecutesAndTransfers) {
  LocalClient* client = ClientLibrary::LocalClientOrDie();
  auto x = client->TransferToServer(LiteralUtil::CreateR2<float>({{1, 2, 3}, {4, 5, 6}})).value();
  auto y = client->TransferToServer(LiteralUtil::CreateR1<float>({1, 10, 100})).value();
  Literal result = client->ExecuteAndTransfer(product(), {x.get(), y.get()}).value();
  EXPECT_EQ(result.ToString(),
            "(f32[2] {321, 654}, f32[2,3] { { 1, 2, 3 }, { 4, 5, 6 } }, s32[] 7)");
  std::vector<Literal> parts = result.DecomposeTuple();
  EXPECT_EQ(parts[0].Get<float>({1}), 654);
  EXPECT_EQ(parts[1].Get<float>({0, 2}), 3);
  EXPECT_EQ(parts[2].GetFirstElement<int32_t>(), 7);
  EXPECT_EQ(parts[0].data<float>().size(), 2u);
}

TEST(Client, KeepsResultsOnTheServer) {
  LocalClient* client = ClientLibrary::LocalClientOrDie();
  auto x = client->TransferToServer(LiteralUtil::CreateR2<float>({{1, 2, 3}, {4, 5, 6}})).value();
  auto y = client->TransferToServer(LiteralUtil::CreateR1<float>({1, 10, 100})).value();
  ExecutionProfile profile;
  auto data = client->Execute(product(), {x.get(), y.get()}, nullptr, &profile).value();
  EXPECT_GT(profile.compute_time_ns(), 0);
  x.reset();
  auto parts = client->DeconstructTuple(*data).value();
  data.reset();
  EXPECT_EQ(client->GetShape(*parts[1]).value(), F({2, 3}));
  EXPECT_EQ(client->Transfer(*parts[1]).value().Get<float>({1, 0}), 4);
  // What came out goes in again.
  auto again = client->Execute(product(), {parts[1].get(), y.get()}).value();
  EXPECT_EQ(client->Transfer(*again).value().elements()[0].Get<float>({0}), 321);
}

TEST(LocalClient, CompilesAndRuns) {
  LocalClient* client = ClientLibrary::LocalClientOrDie();
  BuiltComputation built = product();
  Shape x_shape = F({2, 3}), y_shape = F({3});
  auto executables = client->Compile(built, {&x_shape, &y_shape}).value();
  ASSERT_EQ(executables.size(), 1u);
  auto x = client->LiteralToShapedBuffer(LiteralUtil::CreateR2<float>({{1, 2, 3}, {4, 5, 6}}));
  auto y = client->LiteralToShapedBuffer(LiteralUtil::CreateR1<float>({1, 1, 1}));
  for (int round = 0; round < 3; ++round) {
    ScopedShapedBuffer result = executables[0]->Run({&*x, &*y}).value();
    EXPECT_EQ(client->ShapedBufferToLiteral(result).value().elements()[0].ToString(),
              "f32[2] {6, 15}");
  }
}

TEST(LocalClient, SaysWhatIsWrong) {
  LocalClient* client = ClientLibrary::LocalClientOrDie();
  BuiltComputation built = product();
  Shape scalar = F({});
  EXPECT_EQ(client->Compile(built, {&scalar}).status().message(),
            "Compile: expected a layout for each of 2 parameters, got 1");
  EXPECT_EQ(client->Compile(built, {&scalar, &scalar}).status().message(),
            "Compile: expected a layout of f32[2,3] for parameter 0, got f32[]");
  EXPECT_EQ(client->Compile({}, {}).status().message(),
            "Compile: expected a computation, got null");
  EXPECT_EQ(client->ExecuteAndTransfer(built, {}).status().message(),
            "hlo: expected 2 arguments for 'product', got 0");
  EXPECT_EQ(ClientLibrary::GetOrCreateLocalClient(LocalClientOptions("TPU")).status().message(),
            "GetOrCreateLocalClient: expected the platform Host or CUDA, got 'TPU'");
}

TEST(Client, ComputesConstants) {
  LocalClient* client = ClientLibrary::LocalClientOrDie();
  Builder b("partly");
  Op x = Parameter(&b, 0, F({2}), "x");
  Op constant = Dot(ConstantR1<float>(&b, {1, 2}), ConstantR1<float>(&b, {3, 4}));
  Op mixed = Dot(x, ConstantR1<float>(&b, {3, 4}));
  EXPECT_TRUE(b.IsConstant(constant).value());
  EXPECT_FALSE(b.IsConstant(mixed).value());
  BuiltComputation part = b.BuildConstantSubGraph(constant).value();
  EXPECT_EQ(client->ComputeConstant(part).value().GetFirstElement<float>(), 11);
  EXPECT_EQ(b.BuildConstantSubGraph(mixed).status().message(),
            "BuildConstantSubGraph: expected an op that depends on constants alone, got 'dot.6' "
            "which depends on 'x.1'");
  // The builder goes on.
  EXPECT_TRUE(b.Build().ok());
}

TEST(Client, FeedsAndIsFed) {
  LocalClient* client = ClientLibrary::LocalClientOrDie();
  Builder b("feeds");
  Shape shape = F({2});
  Op data = Infeed(&b, shape);
  Outfeed(data + data, shape, "");
  BuiltComputation built = b.Build().value();
  EXPECT_EQ(client->TransferFromOutfeed(&shape).status().message(),
            "TransferFromOutfeed: expected a literal in the queue, got nothing");
  ASSERT_TRUE(client->TransferToInfeed(LiteralUtil::CreateR1<float>({1, 2})).ok());
  ASSERT_TRUE(client->ExecuteAndTransfer(built, {}).ok());
  EXPECT_EQ(client->TransferFromOutfeed(&shape)->ToString(), "f32[2] {2, 4}");
}

TEST(Client, SendsToItself) {
  Builder b("channel");
  ChannelHandle handle;
  handle.set_handle(7);
  handle.set_type(ChannelHandle::DEVICE_TO_DEVICE);
  Op sent = SendWithToken(ConstantR1<float>(&b, {1, 2}), CreateToken(&b), handle);
  Op both = RecvWithToken(sent, F({2}), handle);
  BuiltComputation built = b.Build(GetTupleElement(both, 0)).value();
  EXPECT_EQ(to_string(*parse_module(built.to_string())), built.to_string());
  EXPECT_EQ(ClientLibrary::LocalClientOrDie()->ExecuteAndTransfer(built, {})->ToString(),
            "f32[2] {1, 2}");
  ChannelHandle host = handle;
  host.set_type(ChannelHandle::DEVICE_TO_HOST);
  SendWithToken(ConstantR0<float>(&b, 1), CreateToken(&b), host);
  EXPECT_NE(b.Build().status().message().find("expected 'handle' of type DEVICE_TO_DEVICE, got "
                                              "type 2"),
            std::string::npos);
  Op token = SendToHost(ConstantR0<float>(&b, 1), CreateToken(&b), F({}), host);
  host.set_type(ChannelHandle::HOST_TO_DEVICE);
  RecvFromHost(token, F({}), host);
  std::string text = b.Build().value().to_string();
  EXPECT_EQ(to_string(*parse_module(text)), text);
}

TEST(Literal, ChecksTypesAndIndices) {
  Literal literal = LiteralUtil::CreateR2<float>({{1, 2}, {3, 4}});
  EXPECT_THROW(literal.Get<int32_t>({0, 0}), Error);
  try {
    literal.Get<float>({0, 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "Literal: expected indices within f32[2,2], got {0,2}");
  }
  literal.Set<float>({1, 0}, 9);
  EXPECT_EQ(literal.ToString(), "f32[2,2] { { 1, 2 }, { 9, 4 } }");
}

TEST(Client, ResultsHaveTheirValidElements) {
  Builder b("sizes");
  Shape bounded = F({5});
  bounded.set_dynamic(0);
  Op x = Parameter(&b, 0, bounded, "x");
  Op shorter = SetDimensionSize(x, Sub(GetDimensionSize(x, 0), ConstantR0<int32_t>(&b, 1)), 0);
  Tuple(&b, {Add(shorter, shorter), GetDimensionSize(shorter, 0)});
  BuiltComputation sizes = b.Build().value();
  LocalClient* client = ClientLibrary::LocalClientOrDie();
  auto given = client->TransferToServer(LiteralUtil::CreateR1<float>({1, 2, 3})).value();
  EXPECT_EQ(client->ExecuteAndTransfer(sizes, {given.get()}).value().ToString(),
            "(f32[2] {2, 4}, s32[] 2)");
  auto executables = client->Compile(sizes, {&bounded}).value();
  ScopedShapedBuffer buffer =
      client->LiteralToShapedBuffer(LiteralUtil::CreateR1<float>({1, 2, 3, 4, 5})).value();
  ScopedShapedBuffer result = executables[0]->Run({&buffer}).value();
  EXPECT_EQ(result.on_host_shape().to_string(false), "(f32[4], s32[])");
  EXPECT_EQ(client->ShapedBufferToLiteral(result).value().ToString(),
            "(f32[4] {2, 4, 6, 8}, s32[] 4)");
}

}  // namespace
}  // namespace lamella::hlo
