// XLA's spelling of the local client.
#pragma once
#include "xla/lamella_names.h"
