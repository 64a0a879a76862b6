// c10::IValue.
#pragma once
#include <c10/lamella_names.h>
#include <ATen/core/List.h>

#include "lamella/core/ivalue.h"
