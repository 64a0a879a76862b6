// Guards that exclude the autograd keys.
#pragma once
#include <c10/core/impl/LocalDispatchKeySet.h>
