// at::Generator.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/generator.h"
