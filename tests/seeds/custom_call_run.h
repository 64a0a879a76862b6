// Runs what the programs for the custom-call guide build, with XLA's client.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/compiler/xla/client/xla_builder.h"

using Floats = std::vector<float>;

// The computation's result for these arguments.
inline xla::Literal run_with(xla::XlaBuilder& b, const std::vector<xla::Literal>& arguments,
                             const std::string& platform = "Host") {
  xla::LocalClient* client =
      xla::ClientLibrary::LocalClientOrDie(xla::LocalClientOptions().set_platform(platform));
  xla::XlaComputation computation = b.Build().value();
  std::vector<std::unique_ptr<xla::GlobalData>> held;
  std::vector<xla::GlobalData*> handles;
  for (const xla::Literal& argument : arguments) {
    held.push_back(client->TransferToServer(argument).value());
    handles.push_back(held.back().get());
  }
  return client->ExecuteAndTransfer(computation, handles).value();
}
inline xla::Literal literal(const Floats& values) {
  return xla::LiteralUtil::CreateR1<float>(values);
}
// Of arrays of f32.
inline xla::Literal run(xla::XlaBuilder& b, const std::vector<Floats>& arguments,
                        const std::string& platform = "Host") {
  std::vector<xla::Literal> literals;
  for (const Floats& argument : arguments) literals.push_back(literal(argument));
  return run_with(b, literals, platform);
}
inline Floats numbers(const xla::Literal& value) {
  auto span = value.data<float>();
  return {span.begin(), span.end()};
}
// The text of the error that it ends with.
inline std::string error_of(xla::XlaBuilder& b, const std::vector<Floats>& arguments,
                            const std::string& platform = "Host") {
  try {
    run(b, arguments, platform);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

// B and C of the guide's example, and A[i] = B[i % 128] + C[i].
struct Example {
  Floats b = Floats(128), c = Floats(2048), a = Floats(2048);
  Example() {
    for (size_t i = 0; i < 128; ++i) b[i] = static_cast<float>(i) - 7.5f;
    for (size_t i = 0; i < 2048; ++i) c[i] = 0.25f * static_cast<float>(i);
    for (size_t i = 0; i < 2048; ++i) a[i] = b[i % 128] + c[i];
  }
};
