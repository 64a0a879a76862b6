// Compiles modules to executables.
#include "lamella/graph/client/compile.h"

#include "lamella/graph/execute/executor.h"

namespace lamella::hlo {

std::unique_ptr<Executable> compile(std::shared_ptr<const Module> module,
                                    const CompileOptions& options, bool verified) {
  LAMELLA_CHECK(module != nullptr, "compile: expected a module, got null");
  if (!verified) verify(*module);
  return make_executor(std::move(module), options);
}

}  // namespace lamella::hlo
