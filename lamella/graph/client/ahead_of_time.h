// Programs ahead of time: an object file and a C header of a module, which run without Python and
// without LLVM.
//
// Note [Programs in object files]
//   The object file has one function of C, and beside it the module as text and its machine code as
//   an image. The function hands all of it to lamella_run_program() in liblamella_graph.so, whose
//   executor runs it as any module, custom calls and rules included. On a processor that cannot run
//   the code, it is made anew where LLVM is, and the rules do the work where it is not.
#pragma once
#include <cstdint>
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

struct ProgramFiles {
  std::string object;
  std::string header;
};
// The files of a module whose function has this name. Throws an Error where the name is none of C,
// where the module asks for what is no array, or where there is no compiler.
ProgramFiles compile_ahead_of_time(const Module& module, const std::string& function);

}  // namespace lamella::hlo

extern "C" {

// What an object file holds, in this order.
struct lamella_program {
  void* executable;  // null before the first call
  const char* text;
  uint64_t text_size;
  const char* regions;
  uint64_t regions_size;
  const char* image;
  uint64_t image_size;
};
// Runs it on arrays, and writes the arrays of its result. 0, or 1 where it failed.
int32_t lamella_run_program(lamella_program* program, const void* const* inputs,
                            void* const* outputs);
// Why the last call of this thread failed.
const char* lamella_program_error(void);
}
