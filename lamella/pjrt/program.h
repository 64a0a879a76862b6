// Program: a compiled program with what JAX asks about it.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lamella/graph/runtime/executable.h"
#include "lamella/pjrt/array_type.h"
#include "lamella/pjrt/c_api.h"
#include "lamella/pjrt/client.h"
#include "lamella/pjrt/shardings.h"

namespace lamella::hlo {
struct StoredCode;
}

namespace lamella::pjrt {

// What JAX states of the devices of a program.
struct Assignment {
  int replicas = 1;
  int partitions = 1;
  std::vector<int> devices;  // replica by replica; the first ones if empty

  int count() const { return replicas * partitions; }
  int device(int i) const { return devices.empty() ? i : devices[static_cast<size_t>(i)]; }
};

class Program {
 public:
  // Compiles StableHLO (bytecode or text) or the text of HLO. `options` is a CompileOptionsProto,
  // `stored` the code of serialized programs, or null.
  Program(std::string code, std::string options, hlo::StoredCode* stored = nullptr);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // The reverse of serialized(). Throws if the bytes are of another version.
  static std::shared_ptr<Program> deserialized(const std::string& bytes, std::string options);
  std::string serialized() const;

  const hlo::Module& module() const { return executable_->module(); }
  const hlo::Executable& executable() const { return *executable_; }
  const std::string& code() const { return code_; }
  const std::string& options() const { return options_; }
  const std::string& name() const { return name_; }
  const std::string& fingerprint() const { return fingerprint_; }
  const Assignment& assignment() const { return assignment_; }
  const std::vector<ArrayTypePointer>& parameters() const { return parameters_; }
  const std::vector<ArrayTypePointer>& outputs() const { return outputs_; }
  // How arrays are split over the devices of a program for several partitions; empty for others.
  // parameters() and outputs() are then the parts that one device has.
  const ProgramShardings& shardings() const { return shardings_; }
  // What JAX asks for as the optimized program.
  std::string optimized() const;
  // Whether a run may take the memory of a parameter's buffer.
  bool may_donate(size_t parameter) const { return donated_[parameter]; }
  bool donates() const { return donates_; }
  // Whether a run is so short that handing it to another thread would take longer.
  bool is_short() const { return is_short_; }

  // In the form in which PJRT returns them.
  struct Lists {
    std::vector<BufferType> types;
    std::vector<int64_t> dimensions;
    std::vector<size_t> ranks;
    std::vector<const char*> output_kinds, parameter_kinds;
    std::vector<size_t> output_kind_sizes, parameter_kind_sizes;
    std::vector<NamedValue> costs;
    std::vector<MemoryLayout*> output_layouts, parameter_layouts;
    int64_t peak = 0;
  };
  const Lists& lists() const { return lists_; }

 private:
  void describe(const hlo::Module& module);
  void estimate(const hlo::Module& module);

  std::string code_;
  std::string options_;
  std::string name_;
  std::string fingerprint_;
  Assignment assignment_;
  std::shared_ptr<const hlo::Executable> executable_;
  std::vector<ArrayTypePointer> parameters_;
  std::vector<ArrayTypePointer> outputs_;
  ProgramShardings shardings_;
  std::vector<bool> donated_;
  bool donates_ = false;
  bool is_short_ = false;
  Lists lists_;
};
using ProgramPointer = std::shared_ptr<const Program>;

// PJRT's objects refer to the program; a loaded one has devices as well.
struct Executable {
  ProgramPointer program;
};
struct LoadedExecutable {
  ProgramPointer program;  // null once deleted
  Client* client = nullptr;
  std::vector<Device*> devices;
  std::vector<LogicalDevice> logical;
  std::string fingerprint;

  LoadedExecutable(Client* client, ProgramPointer program);
  const ProgramPointer& live_program() const;
};

// A layout that JAX holds.
struct MemoryLayout {
  std::string text;
};

}  // namespace lamella::pjrt
