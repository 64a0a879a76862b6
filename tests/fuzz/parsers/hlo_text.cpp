// XLA's text: an error with its position, or a module that prints, is drawn, and reads back.
#include "hlo_texts.h"
#include "lamella/core/error.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/view/diff.h"
#include "lamella/graph/view/dot.h"
#include "lamella/graph/view/html.h"
#include "lamella/graph/view/json.h"
#include "target.h"

namespace lamella::fuzz {

std::vector<std::string> seeds() { return hlo_texts(); }
std::vector<std::string> words() { return hlo_words(); }

}  // namespace lamella::fuzz

namespace {

// Programs that were not verified are printed, compared and drawn as well.
void read_unverified(std::string_view text) {
  using namespace lamella;
  std::unique_ptr<hlo::Module> module;
  try {
    module = hlo::parse_module(text, false);
  } catch (const Error&) {
    return;
  }
  std::string printed = hlo::to_string(*module);
  if (hlo::to_string(*hlo::parse_module(printed, false)) != printed) {
    fuzz::found("a module that does not read back unverified");
  }
  if (!hlo::compare(*module, *module).same()) fuzz::found("a module that differs from itself");
  hlo::to_json(*module);
  hlo::to_dot(*module);
  hlo::to_html(*module);
  try {
    hlo::verify(*module);
  } catch (const Error&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  read_unverified(text);
  std::unique_ptr<hlo::Module> module;
  try {
    module = hlo::parse_module(text);
  } catch (const Error& error) {
    if (!error.msg().starts_with("hlo: ")) fuzz::found("an error without a beginning");
    if (error.msg().find("expected") == std::string::npos) {
      fuzz::found("an error that does not say what was expected");
    }
    return 0;
  }
  std::string printed = hlo::to_string(*module);
  auto again = hlo::parse_module(printed);
  if (hlo::to_string(*again) != printed) fuzz::found("a module that does not read back");
  if (hlo::to_string(*hlo::from_json(hlo::to_json(*module))) != printed) {
    fuzz::found("a module that does not come back from JSON");
  }
  hlo::to_dot(*module);
  hlo::to_html(*module);
  return 0;
}
