// Reads HLO text from files, verifies it and prints it again; the driver compares.
//   hlo_text [--percent] [--operand-shapes] FILE...
// For each file: "FILE same", "FILE differs" or "FILE error: ...". A file differs if its text is
// not what is printed, or if that does not read back as itself.
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "lamella/graph/hlo/module.h"

int main(int count, char** arguments) {
  lamella::hlo::PrintOptions options;
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    if (argument == "--percent") {
      options.percent = true;
      continue;
    }
    if (argument == "--operand-shapes") {
      options.operand_shapes = true;
      continue;
    }
    std::ostringstream read;
    read << std::ifstream(argument).rdbuf();
    try {
      std::string printed = to_string(*lamella::hlo::parse_module(read.str()), options);
      std::string again = to_string(*lamella::hlo::parse_module(printed), options);
      bool same = printed == read.str() && again == printed;
      std::cout << argument << (same ? " same\n" : " differs\n");
    } catch (const std::exception& error) {
      std::cout << argument << " error: " << error.what() << "\n";
    }
  }
}
