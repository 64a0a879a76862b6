// Everything of torch:: that Lamella has.
#pragma once
#include <torch/all.h>
