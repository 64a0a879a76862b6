// Builds a module that calls both functions of smoothing.cpp, prints it, and runs it.
#include <cstdio>

#include <lamella/hlo.h>

namespace hlo = lamella::hlo;

int main() {
  constexpr int64_t kLength = 4;
  hlo::Shape vector = hlo::Shape::array(hlo::ElementType::F32, {kLength});
  hlo::Builder b("smooth_and_clip");
  hlo::Op x = hlo::Parameter(&b, 0, vector, "x");
  hlo::Op length = hlo::ConstantR0<int64_t>(&b, kLength);
  hlo::Op smooth =
      hlo::CustomCall(&b, "moving_average", {x, length}, vector, /*opaque=*/"",
                      /*has_side_effect=*/false, /*output_operand_aliasing=*/{},
                      /*literal=*/nullptr, hlo::SCHEDULE_NONE, hlo::API_VERSION_STATUS_RETURNING);
  hlo::OperatorCall(&b, "smoothing::soft_clip", {smooth}, "limit=2");
  hlo::StatusOr<hlo::BuiltComputation> built = b.Build();
  if (!built.ok()) {
    std::fprintf(stderr, "%s\n", built.status().ToString().c_str());
    return 1;
  }
  std::printf("%s", built->to_string().c_str());

  hlo::LocalClient* client = hlo::ClientLibrary::LocalClientOrDie();
  hlo::Literal input(vector);
  for (int64_t i = 0; i < kLength; ++i) input.set_real(i, static_cast<double>(3 * i));
  std::unique_ptr<hlo::GlobalData> data = client->TransferToServer(input).value();
  hlo::StatusOr<hlo::Literal> result = client->ExecuteAndTransfer(*built, {data.get()});
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    return 1;
  }
  for (float value : result->values<float>()) std::printf("%.4f ", static_cast<double>(value));
  std::printf("\n");
  return 0;
}
