// The order of a module's computations.
#include "lamella/core/error.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/hlo/names.h"

namespace lamella::hlo {
namespace {

std::vector<Computation*> callees_of(const Computation* one) {
  std::vector<Computation*> found;
  for (const Instruction* instruction : one->instructions) {
    for (const Attribute& attribute : instruction->attributes) {
      if (attribute_kind(attribute.key) == AttributeKind::Computation) {
        found.push_back(attribute.computation);
      } else if (attribute_kind(attribute.key) == AttributeKind::Computations) {
        for (Computation* callee : attribute.computations()) found.push_back(callee);
      }
    }
  }
  return found;
}

}  // namespace

void order_computations(Module& module) {
  std::vector<Computation*> ordered;
  Names<Computation> done, open;
  struct Frame {
    Computation* computation;
    std::vector<Computation*> callees;
    size_t next = 0;
  };
  for (Computation* start : std::vector<Computation*>(module.computations)) {
    if (done.find(start->name) != nullptr) continue;
    std::vector<Frame> stack;
    auto enter = [&](Computation* one) {
      if (!open.insert(one->name, one)) {
        throw Error(str("hlo: ", "expected no computation to call itself, got '", one->name, "'"));
      }
      stack.push_back({one, callees_of(one)});
    };
    enter(start);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.callees.size()) {
        Computation* callee = frame.callees[frame.next++];
        if (done.find(callee->name) == nullptr) enter(callee);
        continue;
      }
      done.insert(frame.computation->name, frame.computation);
      ordered.push_back(frame.computation);
      stack.pop_back();
    }
  }
  module.computations = std::move(ordered);
}

}  // namespace lamella::hlo
