// Everything of torch:: that Lamella has.
#pragma once
#include <torch/library.h>
#include <torch/types.h>
