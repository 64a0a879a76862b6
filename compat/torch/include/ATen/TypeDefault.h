// All operators as functions.
#pragma once
#include <ATen/Functions.h>
