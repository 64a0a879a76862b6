// Ahead-of-time compilation: an object file and a C header of a module, which run without Python
// and LLVM.
//
// Note [Programs in object files]
//   The object file has one C function, the module as text, the values of its large constants as
//   bytes, which are used where they are, and its machine code as an image. The
//   function passes them to lamella_run_program() in liblamella_graph.so, whose executor runs them
//   like any module, including custom calls and interpreted instructions. If the processor cannot
//   run the machine code, the module is recompiled; without LLVM it is interpreted.
#pragma once
#include <cstdint>
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

struct ProgramFiles {
  std::string object;
  std::string header;
};
// The files of a module; `function` is the name of its C function. Throws an Error if that is not a
// C identifier, if a parameter or result is not made of arrays, or if no compiler is available.
ProgramFiles compile_ahead_of_time(const Module& module, const std::string& function);

}  // namespace lamella::hlo

extern "C" {

// The contents of an object file, in this order.
struct lamella_program {
  void* executable;  // null before the first call
  const char* text;
  uint64_t text_size;
  const char* regions;
  uint64_t regions_size;
  const char* image;
  uint64_t image_size;
  const char* weights;  // of constants that the text leaves out; absent where it leaves out none
  uint64_t weights_size;
};
// Runs the program on input arrays and writes its output arrays. Returns 0, or 1 on failure.
int32_t lamella_run_program(lamella_program* program, const void* const* inputs,
                            void* const* outputs);
// Why the last call of this thread failed.
const char* lamella_program_error(void);
}
