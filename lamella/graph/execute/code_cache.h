// The on-disk cache of machine code of programs.
//
// Note [Compiled code on disk]
//   The folder is LAMELLA_CACHE, or lamella in XDG_CACHE_HOME or ~/.cache; LAMELLA_CACHE=off
//   disables the cache. A file is named by the digest of everything that the code depends on: the
//   regions, the CPU capability and features, and the size and time of Lamella's library files. It
//   is written under another name and then renamed, so processes see whole files or none, and a
//   checksum detects corruption. Folder and files must belong to the user and be writable by no
//   other user. If the cache exceeds its limit (LAMELLA_CACHE_LIMIT in MiB, by default 512), the
//   least recently used files are removed. The cache never makes a compilation fail: code that
//   cannot be read is compiled.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "lamella/graph/execute/code_image.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

// Code for the regions, of this machine or of a device: from `stored` if it matches, else from the
// cache, else from the compiler, whose code is then cached. nullopt if there is no code and no
// compiler.
std::optional<CodeImage> image_of(const Module& module, std::span<const Region* const> regions,
                                  StoredCode* stored, bool on_device = false);
// What code depends on beside its regions: the machine, and Lamella's libraries.
const std::string& surroundings();

}  // namespace lamella::hlo
