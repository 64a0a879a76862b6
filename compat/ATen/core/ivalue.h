// c10::IValue.
#pragma once
#include <ATen/core/List.h>
#include <c10/lamella_names.h>

#include "lamella/core/ivalue.h"
