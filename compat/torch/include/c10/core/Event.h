// c10::Event.
#pragma once
#include <c10/core/impl/DeviceGuardImplInterface.h>
