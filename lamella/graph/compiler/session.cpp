// Configures LLVM: its target, its passes, and its code generator.
#include "lamella/graph/compiler/session.h"

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/InferAlignment.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <span>

#if defined(__linux__)
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/graph/compiler/link.h"
#include "lamella/graph/compiler/vector_functions.h"
#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo::compiler {
namespace {

template <class T>
T checked(llvm::Expected<T> value) {
  if (value) return std::move(*value);
  LAMELLA_CHECK(false, "compiler: ", llvm::toString(value.takeError()));
}

#if defined(__x86_64__)
constexpr uint32_t kBestCapability = 2;
#else
constexpr uint32_t kBestCapability = 0;
#endif

llvm::orc::JITTargetMachineBuilder target() {
  auto machine = checked(llvm::orc::JITTargetMachineBuilder::detectHost());
#if defined(__x86_64__)
  switch (code_capability()) {
    case kBestCapability:
      break;
    case 1:
      machine.setCPU("x86-64-v3");
      machine.getFeatures() = llvm::SubtargetFeatures();
      machine.addFeatures({"+fast-gather"});  // for lookups in tables
      break;
    default:
      machine.setCPU("x86-64");
      machine.getFeatures() = llvm::SubtargetFeatures();
  }
#endif
  machine.setRelocationModel(llvm::Reloc::PIC_);
  machine.setCodeModel(llvm::CodeModel::Small);
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  machine.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return machine;
}

#if defined(__linux__)
// Unmaps the pages of LLVM's library that loading has touched, its relocations and constructors:
// they are read again where they are needed. They count as memory of the process.
void forget_loading() {
  auto unmap = [](dl_phdr_info* library, size_t, void* address) {
    auto inside = reinterpret_cast<uintptr_t>(address);
    auto begin = [&](const ElfW(Phdr) & one) { return library->dlpi_addr + one.p_vaddr; };
    std::span<const ElfW(Phdr)> segments(library->dlpi_phdr, library->dlpi_phnum);
    bool found = std::ranges::any_of(segments, [&](const ElfW(Phdr) & one) {
      return one.p_type == PT_LOAD && inside - begin(one) < one.p_memsz;
    });
    for (const ElfW(Phdr) & one : segments) {
      if (!found || one.p_type != PT_LOAD || (one.p_flags & PF_W) != 0) continue;
      const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
      uintptr_t from = begin(one) / page * page, to = begin(one) + one.p_filesz;
      madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    }
    return found ? 1 : 0;
  };
  dl_iterate_phdr(unmap, reinterpret_cast<void*>(&llvm::sys::getHostCPUName));
}
#else
void forget_loading() {}
#endif

// A fork waits until compilations are done: see Note [Forking].
fork::Held<std::mutex> compiling{fork::Level::kGraph};
fork::Once started;
// Never destroyed: other threads may compile until the process ends.
llvm::TargetMachine& machine() {
  static llvm::TargetMachine* one = nullptr;
  started([] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    one = checked(target().createTargetMachine()).release();
    forget_loading();
  });
  return *one;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  if (machine.getTargetTriple().isNVPTX()) passes.addPass(llvm::InferAlignmentPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

// LLVM 19 takes the operands of AVX-512's logic of three operands for each other where it makes one
// instruction of a select and of logic with constants, so it must not see one beside the other.
void keep_logic_from_selects(llvm::Module& module) {
  llvm::IRBuilder<> b(module.getContext());
  auto kept = [&](llvm::Value* x) {
    llvm::Value* made = x;
    while (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(made)) made = cast->getOperand(0);
    auto* logic = llvm::dyn_cast<llvm::Instruction>(made);
    if (logic == nullptr || !logic->isBitwiseLogicOp()) return x;
    if (llvm::isa<llvm::Constant>(logic->getOperand(1))) return x;  // logic of one value is right
    llvm::Type* type = x->getType();
    llvm::Type* floats = type;
    if (type->isIntOrIntVectorTy(32)) {
      floats = type->getWithNewType(b.getFloatTy());
    } else if (type->isIntOrIntVectorTy(64)) {
      floats = type->getWithNewType(b.getDoubleTy());
    }
    if (!floats->isFPOrFPVectorTy()) return x;
    return b.CreateBitCast(b.CreateArithmeticFence(b.CreateBitCast(x, floats), floats), type);
  };
  for (llvm::Function& function : module) {
    for (llvm::Instruction& i : llvm::instructions(function)) {
      auto* select = llvm::dyn_cast<llvm::SelectInst>(&i);
      if (select == nullptr || !select->getType()->isVectorTy()) continue;
      b.SetInsertPoint(select);
      select->setTrueValue(kept(select->getTrueValue()));
      select->setFalseValue(kept(select->getFalseValue()));
    }
  }
}

void dump(const llvm::Module& module, const char* stage) {
  const char* folder = std::getenv("LAMELLA_DUMP_LLVM");
  if (folder == nullptr) return;
  static std::atomic<int> number{0};
  std::error_code failed;
  llvm::raw_fd_ostream file(str(folder, "/", number++, ".", stage, ".ll"), failed);
  if (!failed) module.print(file, nullptr);
}

// The module as an object file, or as assembly.
llvm::SmallVector<char, 0> object_of(
    llvm::Module& module, llvm::TargetMachine& machine,
    llvm::CodeGenFileType kind = llvm::CodeGenFileType::ObjectFile) {
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream to(object);
  llvm::legacy::PassManager passes;
  bool failed = machine.addPassesToEmitFile(passes, to, nullptr, kind);
  LAMELLA_INTERNAL_ASSERT(!failed, "compiler: the target cannot write such files");
  passes.run(module);
  return object;
}

// Dumps the functions as emitted and, in debug builds or on request, verifies them.
void check(llvm::Module& module) {
  dump(module, "emitted");
#ifndef NDEBUG
  constexpr bool kVerify = true;
#else
  const bool kVerify = std::getenv("LAMELLA_VERIFY_LLVM") != nullptr;
#endif
  if (kVerify) {
    std::string text;
    llvm::raw_string_ostream to(text);
    LAMELLA_INTERNAL_ASSERT(!llvm::verifyModule(module, &to), "compiler: ", text);
  }
}

// Sets the functions' target.
void finish(llvm::Module& module, llvm::TargetMachine& machine) {
  std::string width = str(vector_functions(code_capability()).bytes * 8);
  for (llvm::Function& function : module) {
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
    function.addFnAttr("no-trapping-math", "true");
    function.setDoesNotThrow();  // so that no unwind tables are emitted
  }
  check(module);
}

}  // namespace

void set_target(llvm::Module& module) {
  module.setDataLayout(machine().createDataLayout());
  module.setTargetTriple(machine().getTargetTriple().str());
  module.setPICLevel(llvm::PICLevel::BigPIC);
}

void make_code(llvm::Module& module, const std::vector<std::string>& names, CodeImage* image) {
  finish(module, machine());
  llvm::SmallVector<char, 0> object;
  {
    std::lock_guard<std::mutex> lock(compiling);
    optimize(module, machine());
    if (vector_functions(code_capability()).bytes == 64) keep_logic_from_selects(module);
    dump(module, "optimized");
    object = object_of(module, machine());
  }
  image->capability = code_capability();
  // Code for a lower capability runs on every processor of that level.
  if (image->capability == kBestCapability) image->needs = processor_features();
  link_image({object.data(), object.size()}, names, image);
}

std::string make_object(llvm::Module& module) {
  // The function must run on any processor, so that it can report that the code cannot.
  for (llvm::Function& function : module) {
    function.addFnAttr("target-cpu", "generic");
    function.addFnAttr("target-features", "");
  }
  std::lock_guard<std::mutex> lock(compiling);
  llvm::SmallVector<char, 0> object = object_of(module, machine());
  return {object.data(), object.size()};
}

std::string assembly_of(llvm::Module& module, llvm::TargetMachine& target) {
  check(module);
  std::lock_guard<std::mutex> lock(compiling);
  optimize(module, target);
  dump(module, "optimized");
  auto text = object_of(module, target, llvm::CodeGenFileType::AssemblyFile);
  return {text.data(), text.size()};
}

}  // namespace lamella::hlo::compiler
