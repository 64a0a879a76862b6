// THO_DISPATCH_V2.
#pragma once
#include <ATen/Dispatch_v2.h>
#include <torch/headeronly/core/Dispatch.h>

#define THO_DISPATCH_V2(type, name, body, ...) AT_DISPATCH_V2(type, name, body, __VA_ARGS__)
