// The line of Python that this thread runs.
#pragma once
#include <string>

namespace lamella::cuda {

// "train.py:12", of the innermost frame outside of Lamella's package; "" without Python, or if this
// thread does not hold its lock.
std::string python_source();

}  // namespace lamella::cuda
