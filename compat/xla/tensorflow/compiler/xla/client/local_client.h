// XLA's names for the local client.
#pragma once
#include "xla/lamella_names.h"
