// What an extension includes. Operators reach Python by their registration alone.
#pragma once
#include <torch/all.h>
