// THO_DISPATCH_SWITCH and its cases.
#pragma once
#include <ATen/Dispatch.h>
#include <torch/headeronly/core/ScalarType.h>

#define THO_DISPATCH_SWITCH(type, name, ...) AT_DISPATCH_SWITCH(type, name, __VA_ARGS__)
#define THO_DISPATCH_CASE(type, ...) AT_DISPATCH_CASE(type, __VA_ARGS__)
