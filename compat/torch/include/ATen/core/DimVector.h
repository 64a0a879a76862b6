// at::DimVector.
#pragma once
#include <c10/util/DimVector.h>
