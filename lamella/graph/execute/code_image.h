// CodeImage: machine code of a program's regions as bytes that can be stored and mapped anywhere.
//
// Note [Images]
//   The compiler links what it made into one block whose parts find each other relative to where
//   they stand. What the code calls stands in a table of addresses inside of the block, which is
//   filled when the block is mapped. So code that was stored needs no linker and no LLVM: it is
//   copied, its table is filled, and its pages are made executable.
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
  // Gets the arrays of the region's inputs, then those of its outputs, then `temporary_bytes` of
  // memory, then the storages of the inputs' arrays, null where Value::storage() is. Returns 0; or
  // 1 where something failed, which throw_pending() throws.
  using Function = int32_t (*)(void* const* buffers);
  Function function = nullptr;
  int64_t temporary_bytes = 0;
  // Arrays of outputs that may lie in the memory of an array of the inputs: (output, input).
  std::vector<std::pair<uint32_t, uint32_t>> may_share;
  std::vector<std::string> notes;  // what became of the instructions, a line each
  // The instructions that each loop and each call writes.
  std::vector<std::vector<std::string>> loops;
};

struct CodeImage {
  // A place of the block, as wide as a pointer, that holds an address: of what is called, or, where
  // the name is empty, of the block itself and the number that stands at the place.
  struct Address {
    uint64_t offset;
    std::string name;
  };
  uint32_t capability = 0;      // whose vectors the code has, as native::code_capability() counts
  std::vector<uint32_t> needs;  // what it asks of the processor, see processor_features()
  std::string block;
  std::vector<Address> addresses;
  std::vector<MachineCode> regions;  // without their functions
  std::vector<uint64_t> entries;     // where the functions begin in the block
};

// The image as bytes with a checksum, and back; nothing where the bytes are no image.
std::string to_bytes(const CodeImage& image);
std::optional<CodeImage> image_from_bytes(std::string_view bytes);
// Whether this processor can run the code.
bool can_run(const CodeImage& image);
// Maps the image: its regions with their functions. `holder` keeps the code. Throws an Error where
// there is no memory for it.
std::vector<MachineCode> load(const CodeImage& image, std::shared_ptr<const void>* holder);

// Words of bits, each of which is something that the processor can do.
const std::vector<uint32_t>& processor_features();

}  // namespace lamella::hlo
