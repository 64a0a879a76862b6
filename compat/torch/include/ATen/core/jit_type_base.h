// c10::Type, c10::TypePtr, c10::getTypePtr.
#pragma once
#include <ATen/core/ivalue.h>
