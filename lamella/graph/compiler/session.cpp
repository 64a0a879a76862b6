// LLVM's just-in-time compiler, its passes and its symbols.
#include "lamella/graph/compiler/session.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <mutex>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/runtime.h"
#include "lamella/graph/compiler/vector_functions.h"
#include "lamella/kernels/machine_code.h"

namespace lamella::hlo::compiler {
namespace {

using llvm::orc::JITDylib;
using llvm::orc::LLJIT;

template <class T>
T checked(llvm::Expected<T> value) {
  if (value) return std::move(*value);
  LAMELLA_CHECK(false, "compiler: ", llvm::toString(value.takeError()));
}
void checked(llvm::Error error) {
  LAMELLA_CHECK(!error, "compiler: ", llvm::toString(std::move(error)));
}

llvm::orc::JITTargetMachineBuilder target() {
  auto machine = checked(llvm::orc::JITTargetMachineBuilder::detectHost());
#if defined(__x86_64__)
  switch (native::code_capability()) {
    case 2:
      break;
    case 1:
      machine.setCPU("x86-64-v3");
      machine.getFeatures() = llvm::SubtargetFeatures();
      machine.addFeatures({"+fast-gather"});  // of tables
      break;
    default:
      machine.setCPU("x86-64");
      machine.getFeatures() = llvm::SubtargetFeatures();
  }
#endif
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  machine.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return machine;
}

// Conversions of halves for processors that have none.
#if defined(__x86_64__)
_Float16 half_of(float x) { return static_cast<_Float16>(x); }
_Float16 half_of_double(double x) { return static_cast<_Float16>(x); }
float float_of(_Float16 x) { return static_cast<float>(x); }
#endif

struct Session {
  std::unique_ptr<LLJIT> jit;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::mutex mutex;
  std::atomic<int64_t> made{0};

  Session() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto builder = target();
    machine = checked(builder.createTargetMachine());
    jit = checked(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create());
    llvm::orc::SymbolMap symbols;
    auto define = [&](const std::string& name, const void* address) {
      symbols[jit->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                             llvm::JITSymbolFlags::Exported};
    };
    for (const VectorFunction& one : vector_functions().all) {
      define(str("lamella_", one.name, "_float"), one.f32);
      define(str("lamella_", one.name, "_double"), one.f64);
    }
    int count = 0;
    const RuntimeSymbol* all = runtime_symbols(&count);
    for (int n = 0; n < count; ++n) define(all[n].name, all[n].address);
    auto address = [](auto* function) { return reinterpret_cast<const void*>(function); };
    define("lamella_cbrt", address(static_cast<double (*)(double)>(std::cbrt)));
    define("memcpy", address(static_cast<void* (*)(void*, const void*, size_t)>(std::memcpy)));
    define("memset", address(static_cast<void* (*)(void*, int, size_t)>(std::memset)));
    define("memmove", address(static_cast<void* (*)(void*, const void*, size_t)>(std::memmove)));
    for (auto [name, plain] : {std::pair{"floorf", &floorf}, std::pair{"ceilf", &ceilf},
                               std::pair{"roundf", &roundf}, std::pair{"roundevenf", &rintf}}) {
      define(name, address(plain));
    }
    for (auto [name, plain] : {std::pair<const char*, double (*)(double)>{"floor", &::floor},
                               {"ceil", &::ceil},
                               {"round", &::round},
                               {"roundeven", &::rint}}) {
      define(name, address(plain));
    }
#if defined(__x86_64__)
    define("__truncsfhf2", address(&half_of));
    define("__truncdfhf2", address(&half_of_double));
    define("__extendhfsf2", address(&float_of));
#endif
    checked(jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))));
  }
};
// Never destroyed: code may run until the process ends.
Session& session() {
  static auto* one = new Session;
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
  passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

// The code of one module.
struct Code {
  llvm::orc::ResourceTrackerSP tracker;
  ~Code() {
    std::lock_guard<std::mutex> lock(session().mutex);
    llvm::consumeError(tracker->remove());
  }
};

void dump(const llvm::Module& module, const char* stage) {
  const char* folder = std::getenv("LAMELLA_DUMP_LLVM");
  if (folder == nullptr) return;
  static std::atomic<int> number{0};
  std::error_code failed;
  llvm::raw_fd_ostream file(str(folder, "/", number++, ".", stage, ".ll"), failed);
  if (!failed) module.print(file, nullptr);
}

}  // namespace

void set_target(llvm::Module& module) {
  Session& s = session();
  module.setDataLayout(s.jit->getDataLayout());
  module.setTargetTriple(s.machine->getTargetTriple().str());
}

std::vector<void*> make_code(std::unique_ptr<llvm::Module> module,
                             std::unique_ptr<llvm::LLVMContext> context,
                             const std::vector<std::string>& names,
                             std::shared_ptr<const void>* holder) {
  Session& s = session();
  std::string width = str(vector_functions().bytes * 8);
  for (llvm::Function& function : *module) {
    function.addFnAttr("target-cpu", s.machine->getTargetCPU());
    function.addFnAttr("target-features", s.machine->getTargetFeatureString());
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
    function.addFnAttr("no-trapping-math", "true");
  }
  dump(*module, "emitted");
#ifndef NDEBUG
  constexpr bool kVerify = true;
#else
  const bool kVerify = std::getenv("LAMELLA_VERIFY_LLVM") != nullptr;
#endif
  if (kVerify) {
    std::string text;
    llvm::raw_string_ostream to(text);
    LAMELLA_INTERNAL_ASSERT(!llvm::verifyModule(*module, &to), "compiler: ", text);
  }
  std::lock_guard<std::mutex> lock(s.mutex);
  optimize(*module, *s.machine);
  dump(*module, "optimized");
  auto code = std::make_shared<Code>();
  code->tracker = s.jit->getMainJITDylib().createResourceTracker();
  checked(s.jit->addIRModule(code->tracker,
                             llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
  std::vector<void*> addresses;
  for (const std::string& name : names) {
    addresses.push_back(checked(s.jit->lookup(name)).toPtr<void*>());
  }
  *holder = std::move(code);
  return addresses;
}

}  // namespace lamella::hlo::compiler
