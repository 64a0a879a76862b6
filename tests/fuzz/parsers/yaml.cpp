// Declarations of operators and derivatives, as lamella-gen --check reads them: a list of errors.
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "codegen/derivatives.h"
#include "target.h"

namespace lamella::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  // Some of the project's own entries at a time.
  std::ifstream file(LAMELLA_OPERATORS);
  std::string part, line;
  int entries = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("- func:") && ++entries % 4 == 0) {
      all.push_back(std::move(part));
      part.clear();
      if (all.size() == 60) break;
    }
    part += line + '\n';
  }
  all.emplace_back(
      "- func: sum_(Tensor(a!) self, int[2] dim=[0, 1], str m='x') -> Tensor(a!)\n"
      "  dispatch: &d {CPU, CUDA: own::sum}\n  autogen: 'sum, sum.out'\n"
      "- func: sinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  structured: True\n"
      "  precomputed:\n  - self -> int dim\n  dispatch: *d\n  tags: [core, reduction]\n");
  all.emplace_back(
      "- name: mul.Tensor(Tensor self, Tensor other) -> Tensor\n"
      "  self, other: f(grad, self.sizes(), \"a\\\"b\", {1, 2}) /* why */\n"
      "  result: other_t * self_p + self_t * other_p\n  output_differentiability: [True]\n");
  return all;
}
std::vector<std::string> words() {
  return {"- func: ",
          "- name: ",
          "dispatch:",
          "structured_delegate: ",
          "autogen: ",
          "tags: ",
          "precomputed:",
          "&a ",
          "*a",
          "<<: *a",
          "!!str ",
          "|\n",
          ">-\n",
          "? ",
          "---\n",
          "%YAML 1.2\n",
          "{",
          "}",
          "[",
          "]",
          "CPU: ",
          "\xef\xbb\xbf",
          "'",
          "\"\\x",
          "variants: function, method\n"};
}

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella::codegen;
  static const std::string path = [] {
    char made[] = "/tmp/lamella_fuzz_XXXXXX";
    int file = mkstemp(made);
    if (file >= 0) close(file);
    return std::string(made);
  }();
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  SourceSet sources;
  Diagnostics diagnostics;
  Model model = load_model({path}, {}, sources, diagnostics);
  load_derivatives({path}, {}, model, sources, diagnostics);
  diagnostics.str();
  return 0;
}
