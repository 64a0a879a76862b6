// Compiled against NVIDIA's headers by test_library_headers.py: whether the functions that the
// product declares take the same arguments, and its values are the headers'.
#include <cublasLt.h>
#include <cudnn.h>
#include <cufftXt.h>
#include <cusolverDn.h>

#include <type_traits>

#include "lamella/cuda/library_values.h"

namespace {

// Pointers stand for pointers and handles, integers for integers and enumerations of their size.
template <class Ours, class Theirs>
constexpr bool stands_for =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
    (std::is_pointer_v<Ours> ||
     (std::is_integral_v<Ours> && (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>)));

template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class... A, class R, class... B>
struct Same<int(A...), R(B...)> {
  static constexpr bool counts() {
    if constexpr (sizeof...(A) == sizeof...(B)) {
      return (stands_for<std::decay_t<A>, std::decay_t<B>> && ...);
    } else {
      return false;
    }
  }
  static constexpr bool value = counts() && sizeof(R) == sizeof(int);
};

namespace ours {
#define DECLARE(name, ...) using name = int(__VA_ARGS__);
#define LAMELLA_CUBLASLT DECLARE
#define LAMELLA_CUDNN DECLARE
#define LAMELLA_CUSOLVER DECLARE
#define LAMELLA_CUFFT DECLARE
#include "lamella/cuda/library_functions.def"
}  // namespace ours

#define COMPARE(name, ...) static_assert(Same<ours::name, decltype(::name)>::value, #name);
#define LAMELLA_CUBLASLT COMPARE
#define LAMELLA_CUDNN COMPARE
#define LAMELLA_CUSOLVER COMPARE
#define LAMELLA_CUFFT COMPARE
#include "lamella/cuda/library_functions.def"

using namespace lamella::cuda;
#define EQUAL(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
EQUAL(lt::kLayoutBatch, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
EQUAL(lt::kLayoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
EQUAL(lt::kTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
EQUAL(lt::kTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
EQUAL(lt::kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
EQUAL(lt::kBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
EQUAL(lt::kMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
EQUAL(lt::kReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
EQUAL(lt::kInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
EQUAL(lt::kAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
EQUAL(lt::kAlignmentA + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
EQUAL(lt::kAlignmentA + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
EQUAL(lt::kAlignmentA + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
EQUAL(lt::kEpilogueNone, CUBLASLT_EPILOGUE_DEFAULT);
EQUAL(lt::kEpilogueRelu, CUBLASLT_EPILOGUE_RELU);
EQUAL(lt::kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
EQUAL(lt::kEpilogueRelu | lt::kEpilogueBias, CUBLASLT_EPILOGUE_RELU_BIAS);
EQUAL(lt::kComputeFloat, CUBLAS_COMPUTE_32F);
EQUAL(lt::kComputeDouble, CUBLAS_COMPUTE_64F);
EQUAL(lt::kComputeInt, CUBLAS_COMPUTE_32I);
EQUAL(lt::kComputeTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
EQUAL(0, CUDA_R_32F);
EQUAL(1, CUDA_R_64F);
EQUAL(2, CUDA_R_16F);
EQUAL(3, CUDA_R_8I);
EQUAL(4, CUDA_C_32F);
EQUAL(5, CUDA_C_64F);
EQUAL(10, CUDA_R_32I);
EQUAL(14, CUDA_R_16BF);
EQUAL(0, CUBLAS_OP_N);
EQUAL(1, CUBLAS_OP_T);
EQUAL(2, CUBLAS_OP_C);
EQUAL(0, CUBLAS_FILL_MODE_LOWER);
EQUAL(1, CUBLAS_FILL_MODE_UPPER);
EQUAL(0, CUSOLVER_EIG_MODE_NOVECTOR);
EQUAL(1, CUSOLVER_EIG_MODE_VECTOR);
EQUAL(dnn::kRows, CUDNN_TENSOR_NCHW);
EQUAL(dnn::kChannelsLast, CUDNN_TENSOR_NHWC);
EQUAL(dnn::kDefaultMath, CUDNN_DEFAULT_MATH);
EQUAL(dnn::kTensorMath, CUDNN_TENSOR_OP_MATH);
EQUAL(dnn::kFloatMath, CUDNN_FMA_MATH);
EQUAL(dnn::kCrossCorrelation, CUDNN_CROSS_CORRELATION);
EQUAL(dnn::kDeterministic, CUDNN_DETERMINISTIC);
EQUAL(dnn::kFloatData, CUDNN_DATA_FLOAT);
EQUAL(dnn::kDoubleData, CUDNN_DATA_DOUBLE);
EQUAL(dnn::kHalfData, CUDNN_DATA_HALF);
EQUAL(dnn::kBFloat16Data, CUDNN_DATA_BFLOAT16);
EQUAL(fft::kComplex, CUFFT_C2C);
EQUAL(fft::kRealToComplex, CUFFT_R2C);
EQUAL(fft::kComplexToReal, CUFFT_C2R);
EQUAL(fft::kComplex | fft::kDouble, CUFFT_Z2Z);
EQUAL(fft::kRealToComplex | fft::kDouble, CUFFT_D2Z);
EQUAL(fft::kComplexToReal | fft::kDouble, CUFFT_Z2D);
EQUAL(fft::kForward, CUFFT_FORWARD);
EQUAL(fft::kInverse, CUFFT_INVERSE);
EQUAL(0, CUBLAS_STATUS_SUCCESS);
EQUAL(0, CUDNN_STATUS_SUCCESS);
EQUAL(0, CUSOLVER_STATUS_SUCCESS);
EQUAL(0, CUFFT_SUCCESS);

using Heuristic = cublasLtMatmulHeuristicResult_t;
EQUAL(sizeof(lt::Heuristic), sizeof(Heuristic));
EQUAL(offsetof(lt::Heuristic, workspace), offsetof(Heuristic, workspaceSize));
EQUAL(offsetof(lt::Heuristic, state), offsetof(Heuristic, state));
EQUAL(sizeof(lt::Heuristic::algorithm), sizeof(cublasLtMatmulAlgo_t));
#define SAME_PERFORMANCE(Theirs)                                                 \
  EQUAL(sizeof(dnn::Performance), sizeof(Theirs));                               \
  EQUAL(offsetof(dnn::Performance, status), offsetof(Theirs, status));           \
  EQUAL(offsetof(dnn::Performance, memory), offsetof(Theirs, memory));           \
  EQUAL(offsetof(dnn::Performance, determinism), offsetof(Theirs, determinism)); \
  EQUAL(offsetof(dnn::Performance, math), offsetof(Theirs, mathType));
SAME_PERFORMANCE(cudnnConvolutionFwdAlgoPerf_t)
SAME_PERFORMANCE(cudnnConvolutionBwdDataAlgoPerf_t)
SAME_PERFORMANCE(cudnnConvolutionBwdFilterAlgoPerf_t)

}  // namespace
