// The values of CUDA's libraries' enumerations, and their structures, that are given to them:
// tests/cuda/test_library_headers.py compares them with NVIDIA's headers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lamella::cuda {

namespace lt {  // cuBLASLt
enum : int {
  kLayoutBatch = 5,
  kLayoutBatchStride = 6,
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBias = 8,
  kMaxWorkspace = 1,
  kReductions = 3,
  kInComputeType = 2,  // a reduction of parts of sums
  kAlignmentA = 5,     // those of b, c and d follow
  kEpilogueNone = 1,
  kEpilogueRelu = 2,
  kEpilogueBias = 4,
  kComputeFloat = 68,
  kComputeDouble = 70,
  kComputeInt = 72,
  kComputeTf32 = 77,
};
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
}  // namespace lt

namespace dnn {  // cuDNN
enum : int {
  kRows = 0,
  kChannelsLast = 1,
  kDefaultMath = 0,
  kTensorMath = 1,
  kFloatMath = 3,
  kCrossCorrelation = 1,
  kDeterministic = 1,
  kFloatData = 0,
  kDoubleData = 1,
  kHalfData = 2,
  kBFloat16Data = 9,
};
struct Performance {
  int algorithm;
  int status;
  float time;
  size_t memory;
  int determinism;
  int math;
  int reserved[3];
};
}  // namespace dnn

namespace fft {  // cuFFT
enum : int {
  kComplex = 0x29,
  kRealToComplex = 0x2a,
  kComplexToReal = 0x2c,
  kDouble = 0x40,  // a bit more for float64
  kForward = -1,
  kInverse = 1,
};
}  // namespace fft

}  // namespace lamella::cuda
