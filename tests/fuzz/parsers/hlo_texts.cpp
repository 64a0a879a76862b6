// The seed programs of hlo_texts.h, read from hlo_seeds.txt.
#include "hlo_texts.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace lamella::fuzz {

std::vector<std::string> hlo_texts() {
  std::ifstream file(LAMELLA_HLO_SEEDS);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> parts, all;
  for (size_t at = 0, end; at < text.size(); at = end + 2) {
    end = std::min(text.find("\n\n", at), text.size());
    parts.push_back(text.substr(at, end - at));
  }
  for (size_t n = 3; n < parts.size(); ++n) {
    std::string first = parts[n].substr(0, parts[n].find('\n'));
    bool own = first.find("parameter(0)") != std::string::npos;
    all.push_back((own ? "HloModule m\n" : "HloModule m, buffer_donor={ (0, {}) }\n") + parts[1] +
                  "\nENTRY main {\n" + (own ? "" : parts[2] + "\n") + parts[n] + "\n}\n");
  }
  return all;
}

std::vector<std::string> hlo_words() {
  return {"f32[]",
          "s32[2]",
          "pred[]",
          "token[]",
          "(f32[2], s32[])",
          "{1,0}",
          "f32[0]",
          "u4[8]",
          "c128[2]",
          "bf16[3]",
          "f32[4]{0}",
          "<=",
          "ROOT ",
          " parameter(",
          " constant({...})",
          ", dimensions={",
          ", to_apply=add",
          ", index=",
          "direction=LT",
          "window={size=",
          "pad=1_1",
          "lhs_dilate=",
          "/*index=5*/",
          "nan",
          "-inf",
          "9223372036854775807",
          "-9223372036854775808",
          "288230376151711744",
          "custom-call(",
          "custom_call_target=\"",
          "dynamic-reshape(",
          "bitcast(",
          "copy(",
          "domain(",
          "shuffle(",
          "opt-barrier(",
          "infeed(",
          "recv(",
          "scaled-dot(",
          "clamp(",
          "negate("};
}

}  // namespace lamella::fuzz
