// The C ABI of Lamella under the name its users include.
#pragma once
#include "lamella/abi/abi.h"
