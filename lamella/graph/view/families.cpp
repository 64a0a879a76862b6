// Names and colours of the families of opcodes.
#include "lamella/graph/view/families.h"

namespace lamella::hlo {

const FamilyLook& look_of(Family family) {
  static constexpr FamilyLook kLooks[kFamilyCount] = {
      {"parameter", "#fdf1d8", "#a06a10"},   {"constant", "#eeeeee", "#777777"},
      {"elementwise", "#e4ecf7", "#33598c"}, {"movement", "#e3f3f1", "#2a7a70"},
      {"reduction", "#efe6f6", "#6d3f91"},   {"contraction", "#fbe3e0", "#a8362a"},
      {"control", "#e3f1e3", "#3d7a3d"},     {"fusion", "#fff7e6", "#8a6d3b"},
      {"custom call", "#fde4f1", "#9c2c6b"}, {"collective", "#e6e9ff", "#4a4fb0"},
      {"tuple", "#f5f5f0", "#8a8a7a"},
  };
  return kLooks[static_cast<size_t>(family)];
}

std::string short_shape(const Shape& shape, size_t letters) {
  std::string text = shape.to_string(false);
  return text.size() <= letters ? text : text.substr(0, letters - 3) + "...";
}

}  // namespace lamella::hlo
