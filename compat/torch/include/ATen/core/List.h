// c10::List.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/list.h"
