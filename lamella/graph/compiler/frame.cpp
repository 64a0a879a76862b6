// Frame: memory of a region's code, and returns from it.
#include "lamella/graph/compiler/frame.h"

#include "lamella/graph/execute/region.h"

namespace lamella::hlo::compiler {

Frame::Frame(llvm::Module& module, int vector_bytes, bool on_device)
    : e(module, vector_bytes, on_device) {
  e.take_memory = [this](int64_t bytes) { return memory.take_for_ever(bytes); };
}

Place Frame::temporary(const Shape& shape) {
  if (shape.bytes() <= kSmallBytes && !e.on_device) {
    Place small = e.stack_array(shape.bytes());
    if (small.kind != Place::None) return small;
  }
  return {Place::Temporary, memory.take(shape.bytes()), nullptr};
}
std::vector<Place> Frame::temporaries(const Shape& shape) {
  std::vector<const Shape*> leaves;
  append_leaves(shape, &leaves);
  std::vector<Place> places;
  for (const Shape* leaf : leaves) places.push_back(temporary(*leaf));
  return places;
}
void Frame::give_back(const std::vector<Place>& places) {
  for (const Place& place : places) {
    if (place.kind == Place::Temporary) memory.give_back(place.at);
  }
}

void Frame::return_if(llvm::Value* failed) {
  may_fail = true;
  auto* leave = llvm::BasicBlock::Create(e.context, "leave", e.body->function);
  auto* go_on = llvm::BasicBlock::Create(e.context, "on", e.body->function);
  e.b.CreateCondBr(e.b.CreateICmpNE(failed, e.b.getInt32(0)), leave, go_on);
  e.b.SetInsertPoint(leave);
  e.b.CreateRet(e.b.getInt32(1));
  e.b.SetInsertPoint(go_on);
}

}  // namespace lamella::hlo::compiler
