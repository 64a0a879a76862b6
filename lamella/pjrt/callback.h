// Host callbacks: custom calls of functions of Python, by way of a function that the Python package
// sets.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::pjrt {

// Whether the instruction calls a function of Python.
bool is_host_callback(const hlo::Instruction& instruction);
// Makes the targets of host callbacks known. May be called again.
void register_host_callbacks();

}  // namespace lamella::pjrt
