// XLA's names for padding.
#pragma once
#include "xla/lamella_names.h"
