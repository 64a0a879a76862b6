// CodeImage: machine code of a program's regions as bytes that can be stored and mapped anywhere.
//
// Note [Images]
//   The compiler links its output into one block of position-independent code. Addresses of
//   functions that the code calls are in a table inside the block, which is filled when the block
//   is mapped. So stored code needs no linker and no LLVM: it is copied, its table is filled, and
//   its pages are made executable.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::hlo {

struct MachineCode {
  // `buffers` has the arrays of the region's inputs, then those of its outputs, then
  // `temporary_bytes` of memory, then the storages of the inputs' arrays, null where
  // Value::storage() is null. Returns 0, or 1 on failure; throw_pending() then throws the error.
  using Function = int32_t (*)(void* const* buffers);
  Function function = nullptr;
  int64_t temporary_bytes = 0;
  // Pairs (output, input) of arrays of which the output may share the input's memory.
  std::vector<std::pair<uint32_t, uint32_t>> may_share;
  std::vector<std::string> notes;  // how the instructions were compiled, one line each
  // The names of the instructions that each loop or call writes.
  std::vector<std::vector<std::string>> loops;
};

struct CodeImage {
  // A pointer-sized location in the block that must be set to an address: that of the named
  // function or, if the name is empty, that of the block plus the offset stored there.
  struct Address {
    uint64_t offset;
    std::string name;
  };
  uint32_t capability = 0;      // CPU capability, numbered as by native::code_capability()
  std::vector<uint32_t> needs;  // required bits of processor_features()
  std::string block;
  std::vector<Address> addresses;
  std::vector<MachineCode> regions;  // without their functions
  std::vector<uint64_t> entries;     // offsets of the functions in the block
};

// Converts the image to bytes with a checksum, and back; nullopt if the bytes are not an image.
std::string to_bytes(const CodeImage& image);
std::optional<CodeImage> image_from_bytes(std::string_view bytes);
// True if this processor can run the code.
bool can_run(const CodeImage& image);
// Maps the image and returns its regions with their functions. `holder` keeps the code mapped.
// Throws an Error if there is no memory for it.
std::vector<MachineCode> load(const CodeImage& image, std::shared_ptr<const void>* holder);

// The features of the processor as words of bits, each bit one feature.
const std::vector<uint32_t>& processor_features();

}  // namespace lamella::hlo
