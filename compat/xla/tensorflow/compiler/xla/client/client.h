// XLA's names for clients.
#pragma once
#include "xla/lamella_names.h"
