// Modules of PTX on the stand-in.
#pragma once
#include <string>

#include "tests/cuda/standin/kernel.h"

namespace standin {

struct PtxModule;
// NULL, with a line on stderr: the text has an instruction that is not known. Modules live on.
PtxModule* load_ptx(const std::string& text);
// NULL: the module has no kernel of that name.
const Kernel* find_ptx_kernel(PtxModule* module, const std::string& name);
// Runs a launch and returns a CUresult; accesses outside of the devices' memory are errors.
int run_ptx(const Kernel& kernel, const void* parameters, const Shape& shape,
            const FibreFunctions& fibres);

}  // namespace standin
