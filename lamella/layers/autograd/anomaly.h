// Anomaly mode: nodes remember where they were recorded, and gradients are searched for NaN.
// Internal to Lamella. The language binding sets the hooks and defines the objects for places.
#pragma once
#include <string>

#include "lamella/abi/autograd.h"
#include "lamella/core/macros.h"

namespace lamella::autograd {

class Node;

struct AnomalyHooks {
  lamella_object* (*capture)() = nullptr;  // owned; the calls that lead here
  void (*describe)(lamella_object* where, std::string* text) = nullptr;  // appends lines
};
LAMELLA_PRIVATE_API void set_anomaly_hooks(const AnomalyHooks& hooks);
const AnomalyHooks& anomaly_hooks();
// Keeps with a fresh node which calls led here, and which node was running.
LAMELLA_COLD void remember_where(Node* node);

}  // namespace lamella::autograd
