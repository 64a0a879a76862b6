// The entry points of libFuzzer. With FUZZ_SEEDS set, the target's seeds and its dictionary are
// written to that folder, and the process ends.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "target.h"

namespace lamella::fuzz {

void found(std::string_view what) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  std::filesystem::path place(folder);
  std::filesystem::create_directories(place / "corpus");
  int number = 0;
  for (const std::string& seed : lamella::fuzz::seeds()) {
    std::ofstream(place / "corpus" / std::to_string(number++), std::ios::binary) << seed;
  }
  std::ofstream dictionary(place / "words");
  for (const std::string& word : lamella::fuzz::words()) {
    dictionary << '"';
    for (char c : word) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      dictionary << code;
    }
    dictionary << "\"\n";
  }
  dictionary.close();
  std::exit(0);
}
