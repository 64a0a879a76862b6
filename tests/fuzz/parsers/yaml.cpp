// Declarations of operators and derivatives, as lamella-gen --check reads them: a list of errors.
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "codegen/derivatives.h"
#include "target.h"

namespace lamella::fuzz {
namespace {

// What the last seed has derivatives of.
constexpr const char* kDeclarations = R"yaml(
- func: mul.Tensor(Tensor self, Tensor other) -> Tensor
  dispatch: {CPU: mul}
- func: sort(Tensor self, int dim=-1, Tensor[] rest=[]) -> (Tensor values, Tensor indices)
  dispatch: {CPU: sort}
)yaml";

}  // namespace

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
  all.emplace_back(R"yaml(- name: mul.Tensor(Tensor self, Tensor other) -> Tensor
  self, other: f(grad, grad_input_mask, self.sizes(), other.size(-1), "a\"b", {1, 2}) /* why */
  result: other_t * self_p + self_t * other_p
- name: sort(Tensor self, int dim=-1, Tensor[] rest=[]) -> (Tensor values, Tensor indices)
  output_differentiability: [True, False]
  dispatch:
    Default:
      self: "grad.defined() ? zeros_like(self) : put<int, 1>(grad, dim, indices.options())"
      rest: 'not_implemented("sort")'
      values: >-
        pick(self_t,
        rest_t, result1, 1e-5)
    AutogradCUDA:
      self: non_differentiable
)yaml");
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
  static SourceSet declarations;
  static Model declared = [] {
    std::ofstream(path) << lamella::fuzz::kDeclarations;
    Diagnostics diagnostics;
    return load_model({path}, {}, declarations, diagnostics);
  }();
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  SourceSet sources;
  Diagnostics diagnostics;
  load_model({path}, {}, sources, diagnostics);
  load_derivatives({path}, {}, declared, sources, diagnostics);
  diagnostics.str();
  return 0;
}
