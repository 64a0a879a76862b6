// Finding the compiler.
#include "lamella/graph/execute/machine_code.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace lamella::hlo {
namespace {

std::atomic<MachineCompiler*> compiler{nullptr};

// The library stands beside this one.
void load() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&machine_compiler), &info) == 0) return;
  std::string path(info.dli_fname);
  path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  path += "liblamella_compiler.so";
  dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

void set_machine_compiler(MachineCompiler* one) { compiler.store(one, std::memory_order_release); }

MachineCompiler* machine_compiler() {
  static const bool wanted = [] {
    const char* text = std::getenv("LAMELLA_COMPILER");
    return text == nullptr || std::string_view(text) != "0";
  }();
  if (!wanted) return nullptr;
  static std::once_flag once;
  std::call_once(once, load);
  return compiler.load(std::memory_order_acquire);
}

}  // namespace lamella::hlo
