// Everything of torch:: that Lamella has.
#pragma once
#include <torch/autograd.h>
#include <torch/library.h>
#include <torch/types.h>
