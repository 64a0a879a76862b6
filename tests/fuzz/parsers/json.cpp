// HLO modules as JSON: an error with its position, or a module that is written and reads back.
#include "lamella/graph/view/json.h"

#include "hlo_texts.h"
#include "lamella/core/error.h"
#include "target.h"

namespace lamella::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const std::string& text : hlo_texts())
    all.push_back(hlo::to_json(*hlo::parse_module(text), -1));
  return all;
}
std::vector<std::string> words() {
  return {"\"computations\":",
          "\"instructions\":",
          "\"operands\":",
          "\"parameter_number\":",
          "\"literal\":",
          "\"attributes\":",
          "{\"bytes\":[",
          "null",
          "true",
          "1e400",
          "\"shape\":\"f32[2]\"",
          "[[[[[[[[",
          "\\ud800",
          "-0",
          "\"window\":"};
}

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::unique_ptr<hlo::Module> module;
  try {
    module = hlo::from_json(text);
  } catch (const Error& error) {
    if (!error.msg().starts_with("hlo: ")) fuzz::found("an error without a beginning");
    return 0;
  }
  std::string printed = hlo::to_json(*module, -1);
  if (hlo::to_json(*hlo::from_json(printed), -1) != printed) {
    fuzz::found("a module that does not read back");
  }
  return 0;
}
