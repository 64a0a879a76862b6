// Modules of PTX: ptx_to_c.py makes a library of the host of each, whose kernels run on fibres.
#include "tests/cuda/standin/ptx.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/cuda/standin/standin.h"

namespace standin {

struct PtxModule {
  std::string text;
  void* library = nullptr;
  std::mutex mutex;
  std::map<std::string, Kernel> kernels;
};

namespace {

constexpr unsigned kMostThreads = 1024;

// What a kernel calls; the translator states the same structure.
struct Host {
  uint32_t (*special)(int which);
  char* (*reach)(uint64_t address, uint32_t bytes, int written, int line);
  void (*barrier)(int line);
  uint32_t (*exchange)(uint32_t mask, uint32_t value, uint32_t lane, int line);
};
using Body = void (*)(const char* parameters, const Host* host);

// The launch that a thread of the host executes.
struct Running {
  const Kernel* kernel;
  const void* parameters;
  const FibreFunctions* fibres;
  bool is_illegal;
};
thread_local Running running;

char* reach(uint64_t address, uint32_t bytes, int written, int line) {
  for (auto& device : devices()) {
    if (address % bytes == 0 && device->memory.holds(address, bytes)) {
      return worker_view<char>(address);
    }
  }
  fprintf(stderr, "standin: %s: instruction %d %s %u bytes at 0x%lx, which are not there\n",
          running.kernel->name, line, written != 0 ? "writes" : "reads", bytes,
          static_cast<unsigned long>(address));
  running.is_illegal = true;
  running.fibres->trap();
  abort();
}
const Host host = {
    [](int which) { return running.fibres->special(which); },
    reach,
    [](int line) { running.fibres->barrier(line, running.kernel->name); },
    [](uint32_t mask, uint32_t value, uint32_t lane, int line) {
      const char* name = running.kernel->name;
      return static_cast<uint32_t>(running.fibres->exchange(mask, value, lane, line, name));
    },
};

// The number after a word that follows a place of the text; 0: it is not there.
unsigned number_after(const std::string& text, size_t from, const char* word, size_t end) {
  const size_t at = text.find(word, from);
  if (at == std::string::npos || at > end) return 0;
  return static_cast<unsigned>(strtoul(text.c_str() + at + strlen(word), nullptr, 10));
}

}  // namespace

PtxModule* load_ptx(const std::string& text) {
  char folder[] = "/tmp/lamella_standin_XXXXXX";
  if (mkdtemp(folder) == nullptr) abort();
  const std::string source = std::string(folder) + "/kernels.ptx";
  const std::string made = std::string(folder) + "/kernels.so";
  std::ofstream(source) << text;
  if (const char* kept = std::getenv("LAMELLA_STANDIN_PTX")) {
    static std::atomic<int> number{0};
    std::ofstream(std::string(kept) + "/" + std::to_string(getpid()) + "." +
                  std::to_string(number++) + ".ptx")
        << text;
  }
  const std::string command =
      "env -u LD_PRELOAD python3 " STANDIN_FOLDER "/ptx_to_c.py " + source + " " + made;
  auto* module = new PtxModule();
  module->text = text;
  if (std::system(command.c_str()) == 0) module->library = dlopen(made.c_str(), RTLD_NOW);
  unlink(source.c_str());
  unlink(made.c_str());
  rmdir(folder);
  if (module->library != nullptr) return module;
  delete module;
  return nullptr;
}

const Kernel* find_ptx_kernel(PtxModule* module, const std::string& name) {
  std::lock_guard lock(module->mutex);
  const std::string& text = module->text;
  const size_t at = text.find(".entry " + name + "("), end = text.find("\n{", at);
  void* body = dlsym(module->library, name.c_str());
  if (at == std::string::npos || body == nullptr) return nullptr;
  auto [found, is_new] = module->kernels.try_emplace(name);
  if (is_new) {
    Kernel& kernel = found->second;
    kernel.name = found->first.c_str();
    kernel.parameter_bytes = number_after(text, at, "_param_0[", end);
    const unsigned threads = number_after(text, at, ".maxntid ", end);
    kernel.threads = threads != 0 ? threads : kMostThreads;
    kernel.body = body;
  }
  return &found->second;
}

int run_ptx(const Kernel& kernel, const void* parameters, const Shape& shape,
            const FibreFunctions& fibres) {
  constexpr int kIllegalAddress = 700;
  running = {&kernel, parameters, &fibres, false};
  const int result = fibres.run(
      kernel.name,
      [](const void* given) {
        const auto& now = *static_cast<const Running*>(given);
        reinterpret_cast<Body>(const_cast<void*>(now.kernel->body))(
            static_cast<const char*>(now.parameters), &host);
      },
      &running, shape);
  return running.is_illegal ? kIllegalAddress : result;
}

}  // namespace standin
