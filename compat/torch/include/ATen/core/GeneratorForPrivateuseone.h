// at::GetGeneratorForPrivateuse1.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/backend.h"
