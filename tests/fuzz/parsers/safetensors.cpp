// Files of the safetensors format: an error that says what was expected, or tensors.
#include "lamella/nn/serialize/safetensors.h"

#include "lamella/core/error.h"
#include "target.h"

namespace lamella::fuzz {

std::vector<std::string> seeds() {
  auto file = [](std::string header, size_t bytes) {
    std::string all;
    serialize::detail::put(all, header.size(), 8);
    return all + header + std::string(bytes, '\1');
  };
  return {file(R"({"__metadata__":{"a":"b\n"},"x":{"dtype":"F32","shape":[2,1],"data_offsets":)"
               R"([0,8]},"\u00e9.y":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})",
               9),
          file("{}", 0)};
}
std::vector<std::string> words() {
  return {"\"dtype\":", "\"shape\":[",  "\"data_offsets\":[",
          "\"BF16\"",   "__metadata__", "\\ud83d\\ude00"};
}

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella;
  try {
    serialize::detail::safetensors_tree({reinterpret_cast<const char*>(data), size});
  } catch (const Error& error) {
    if (!error.msg().starts_with("load: expected ") && !error.msg().starts_with("empty: ")) {
      fuzz::found(error.msg());
    }
  }
  return 0;
}
