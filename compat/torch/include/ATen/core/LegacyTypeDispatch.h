// Guards that call below autograd.
#pragma once
#include <c10/core/impl/LocalDispatchKeySet.h>
