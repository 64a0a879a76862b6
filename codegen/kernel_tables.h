// The kernels that registrations name, and in which file each is.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/emit.h"
#include "codegen/model.h"

namespace lamella::codegen {

// Kernels and rows of one file.
struct KernelTable {
  std::string functions;
  std::map<std::string, std::string> rows;  // by key; out of tree by namespace and key
};

// By the name of their file, register_CPU_0 and so on.
std::map<std::string, KernelTable> make_kernel_tables(const Model& model,
                                                      const EmitOptions& options);

// The names of all such files.
std::vector<std::string> kernel_table_names();

}  // namespace lamella::codegen
