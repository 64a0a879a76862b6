// XLA's names for values held by a client.
#pragma once
#include "xla/lamella_names.h"
