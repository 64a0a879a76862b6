// Reading StableHLO's text.
#include "lamella/graph/stablehlo/operation.h"

namespace lamella::hlo::stablehlo {

Program read_text(std::string_view data, Arena&) {
  Source{data, true}.fail(0, "expected bytecode");
}

}  // namespace lamella::hlo::stablehlo
