// Machine code of programs that were compiled before, on disk.
//
// Note [Compiled code on disk]
//   The folder is LAMELLA_CACHE, or lamella below XDG_CACHE_HOME or ~/.cache; LAMELLA_CACHE=off
//   keeps nothing. A file is named by the digest of everything that the code depends on: the
//   regions, the CPU capability and what the processor can do, and Lamella's libraries as files. It
//   is written under another name and then renamed, so processes see whole files or none, and a
//   checksum finds what a disk has changed. Folder and files must belong to the user, and be
//   writable by nobody else. Files that were used last stay where all together are too large
//   (LAMELLA_CACHE_LIMIT, in MiB; 512 without it).
//   The cache never makes a compilation fail: what cannot be read or written is compiled.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "lamella/graph/execute/code_image.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

// Code for the regions: what `stored` has, if that is given and has it; what is in the folder; or
// what the compiler makes, which is put there. Nothing where there is no compiler.
std::optional<CodeImage> image_of(const Module& module, std::span<const Region* const> regions,
                                  StoredCode* stored);

}  // namespace lamella::hlo
