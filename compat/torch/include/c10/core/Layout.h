// c10::Layout.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/layout.h"
