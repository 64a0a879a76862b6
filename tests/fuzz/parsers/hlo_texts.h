// Seed programs in HLO: every family of opcodes, each in a few lines.
#pragma once
#include <string>
#include <vector>

namespace lamella::fuzz {

std::vector<std::string> hlo_texts();
std::vector<std::string> hlo_words();

}  // namespace lamella::fuzz
