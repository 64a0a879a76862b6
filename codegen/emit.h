// The emitters of lamella-gen: C++ headers, registrations, Python names and stubs from a model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/derivatives.h"
#include "codegen/model.h"

namespace lamella::codegen {

struct EmitOptions {
  // For the library itself (its own YAML), or for a user's library that is built against it.
  bool out_of_tree = false;
  // Out of tree: a class Tensor with the method variants.
  bool methods = false;
  // Names of the input files, as generated files mention them.
  std::string source;
  // Name of the file of derivatives; empty where there is none.
  std::string derivatives_source;
  // Out of tree: headers that the derivatives' formulas need.
  std::vector<std::string> derivative_headers;
  // Out of tree: name of the Python module to write, or empty for none.
  std::string python_module;
  // Out of tree: file name of the shared library that the Python module loads.
  std::string library;
  // Out of tree: base name of the generated files (the target's name).
  std::string target;
};

// Relative path -> contents.
using Files = std::map<std::string, std::string>;

// Tensor, ops/*.h, functions.h, redispatch.h.
void emit_api(const Model& model, const EmitOptions& options, Files& files);
// Declarations of kernels and structured kernels.
void emit_native(const Model& model, const EmitOptions& options, Files& files);
// register_*.cpp. Every file is always written, so that build files can name them.
void emit_registrations(const Model& model, const EmitOptions& options, Files& files);
// python_names.h/.cpp and *.pyi, or the module of an out-of-tree library.
void emit_python(const Model& model, const EmitOptions& options, Files& files);

// The number of files with the library's own derivatives, which are compiled in parallel.
inline constexpr std::size_t kDerivativeFiles = 6;
// derivatives_*.cpp and register_derivatives.cpp, or derivatives.cpp of an out-of-tree library.
void emit_derivatives(const DerivativeModel& model, const EmitOptions& options, Files& files);

// All of them, by kind of project. `named`: the operators that Python has names for.
Files emit_all(const Model& model, const Model& named, const DerivativeModel& derivatives,
               const EmitOptions& options);

// Writes files under `directory`, each only if its contents changed, and removes generated files of
// an earlier run that are not among them. Throws std::runtime_error with the path on failure.
void write_files(const std::string& directory, const Files& files);

}  // namespace lamella::codegen
