// StableHLO's text and bytecode: an error with its position, or a module that prints, and that
// reads back from the artifact written of it.
#include "lamella/graph/stablehlo/stablehlo.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "hlo_texts.h"
#include "lamella/core/error.h"
#include "target.h"

namespace lamella::fuzz {

std::vector<std::string> seeds() {
  std::ifstream file(LAMELLA_STABLEHLO_SEEDS);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> all;
  for (size_t at = 0, end; at < text.size(); at = end + 2) {
    end = std::min(text.find("\n\n", at), text.size());
    all.push_back(text.substr(at, end - at));
    all.push_back(hlo::stablehlo::to_bytecode(*hlo::stablehlo::read(all.back())));
  }
  for (const std::string& program : hlo_texts()) {
    try {
      all.push_back(hlo::stablehlo::to_bytecode(*hlo::parse_module(program)));
    } catch (const Error&) {  // StableHLO has not all of HLO
    }
  }
  return all;
}
std::vector<std::string> words() {
  return {"tensor<",
          "xf32>",
          "tensor<?xi32>",
          "#stablehlo.bounds<4>",
          "stablehlo.add",
          "\"stablehlo.case\"",
          "dense<",
          "array<i64: ",
          "^bb0(",
          "%arg0",
          "!stablehlo.token",
          "tuple<",
          "complex<f32>",
          "loc(",
          "#stablehlo<precision HIGH>",
          "dims = [0]",
          "ML\xefR",
          "func.func",
          "return",
          "({",
          "})",
          "-> ",
          "i4",
          "ui64",
          "f8E4M3FN",
          "0x",
          "sizes = [",
          "init:",
          "@main"};
}

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::unique_ptr<hlo::Module> module;
  for (bool verified : {false, true}) {
    try {
      module = hlo::stablehlo::read(input, verified);
    } catch (const Error& error) {
      if (!error.msg().starts_with("stablehlo: ")) fuzz::found(error.msg());
      if (error.msg().find("expected") == std::string::npos) fuzz::found(error.msg());
      module = nullptr;
    } catch (const std::bad_alloc&) {
      module = nullptr;
    }
    if (module != nullptr) hlo::to_string(*module);
  }
  if (module == nullptr) return 0;
  std::string artifact;
  try {
    artifact = hlo::stablehlo::to_bytecode(*module);
  } catch (const Error& error) {
    if (!error.msg().starts_with("to_stablehlo: ")) fuzz::found(error.msg());
    return 0;
  }
  try {
    hlo::stablehlo::read(artifact);
  } catch (const Error& error) {
    fuzz::found(error.msg());
  }
  return 0;
}
