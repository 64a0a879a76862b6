// SharedLoop: emits a loop that threads share as a function of its own.
#pragma once
#include <utility>

#include "lamella/graph/compiler/emitter.h"

namespace lamella::hlo::compiler {

// The least work of one task, in simple instructions. Loops with less are not shared.
constexpr int64_t kWorkOfTask = 65536;

// Code emitted between begin() and end() is the body of the function.
class SharedLoop {
 public:
  // Returns the first step of one call of the function, and the end of its steps.
  std::pair<llvm::Value*, llvm::Value*> begin(Emitter& e) {
    before_ = e.body;
    here_ = e.b.GetInsertBlock();
    llvm::Type *pointer = e.b.getPtrTy(), *number = e.b.getInt64Ty();
    auto* type = llvm::FunctionType::get(e.b.getVoidTy(), {pointer, number, number}, false);
    body_.function =
        llvm::Function::Create(type, llvm::Function::InternalLinkage, "loops", e.module);
    body_.function->addFnAttr(llvm::Attribute::NoUnwind);
    body_.buffers = body_.function->getArg(0);
    body_.slots = before_->slots;
    body_.inline_functions = before_->inline_functions;
    e.body = &body_;
    auto* entry = llvm::BasicBlock::Create(e.context, "entry", body_.function);
    auto* start = llvm::BasicBlock::Create(e.context, "begin", body_.function);
    e.b.SetInsertPoint(entry);
    e.b.CreateBr(start);
    e.b.SetInsertPoint(start);
    return {body_.function->getArg(1), body_.function->getArg(2)};
  }
  // Emits the call that shares `count` steps among threads, at least `grain` steps per task.
  void end(Emitter& e, int64_t count, int64_t grain) {
    e.b.CreateRetVoid();
    e.body = before_;
    before_->inline_functions = body_.inline_functions;
    e.b.SetInsertPoint(here_);
    llvm::Type *pointer = e.b.getPtrTy(), *number = e.b.getInt64Ty();
    llvm::FunctionCallee parallel =
        e.runtime("lamella_parallel", e.b.getVoidTy(), {pointer, pointer, number, number});
    e.b.CreateCall(parallel, {body_.function, before_->buffers, e.i64(count), e.i64(grain)});
  }

 private:
  Body body_;
  Body* before_ = nullptr;
  llvm::BasicBlock* here_ = nullptr;
};

}  // namespace lamella::hlo::compiler
