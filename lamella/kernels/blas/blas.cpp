// liblamella_blas.so: oneDNN for float32 and bfloat16, OpenBLAS for float64 and complex.
#include "lamella/kernels/blas/blas.h"

#include <cblas.h>

#include <cstdio>
#include <exception>
#include <list>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "lamella/core/scalar_type.h"
#include "lamella/kernels/blas/convolution.h"
#include "lamella/kernels/blas/lapack.h"
#include "lamella/kernels/blas/library_call.h"

namespace {

using lamella::ScalarType;

// ---- float32: no primitive to build, so nothing to keep ----

int gemm_float(const lamella_gemm& p) {
  for (int64_t i = 0; i < p.batch; ++i) {
    dnnl_status_t status =
        dnnl_sgemm(p.trans_a ? 'T' : 'N', p.trans_b ? 'T' : 'N', p.m, p.n, p.k,
                   static_cast<float>(p.alpha[0]), static_cast<const float*>(p.a) + i * p.batch_a,
                   p.lda, static_cast<const float*>(p.b) + i * p.batch_b, p.ldb,
                   static_cast<float>(p.beta[0]), static_cast<float*>(p.c) + i * p.batch_c, p.ldc);
    if (status != dnnl_success) return static_cast<int>(status);
  }
  return 0;
}

// ---- bfloat16: primitives, the most recent ones kept ----

struct ProductKey {
  int64_t word[14];
  bool operator==(const ProductKey& other) const {
    for (size_t i = 0; i < std::size(word); ++i) {
      if (word[i] != other.word[i]) return false;
    }
    return true;
  }
};
struct ProductKeyHash {
  size_t operator()(const ProductKey& key) const {
    uint64_t h = 1469598103934665603u;
    for (int64_t w : key.word) h = (h ^ static_cast<uint64_t>(w)) * 1099511628211u;
    return h;
  }
};
struct KeptProduct {
  ProductKey key;
  dnnl::matmul primitive;
  dnnl::memory::desc a, b, c, scratchpad;
};

class PrimitiveCache {
 public:
  // A copy of the entry, so that another thread may push it out meanwhile.
  template <class Make>
  KeptProduct get(const ProductKey& key, Make&& make) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = index_.find(key);
    if (found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front();
    }
    entries_.push_front(make());
    index_[key] = entries_.begin();
    if (entries_.size() > kCapacity) {
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
    return entries_.front();
  }

 private:
  static constexpr size_t kCapacity = 512;
  std::mutex mutex_;
  std::list<KeptProduct> entries_;
  std::unordered_map<ProductKey, std::list<KeptProduct>::iterator, ProductKeyHash> index_;
};

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

KeptProduct make_entry(const lamella_gemm& p, const ProductKey& key) {
  constexpr auto type = dnnl::memory::data_type::bf16;
  using desc = dnnl::memory::desc;
  using dims = dnnl::memory::dims;
  auto matrix = [&](int64_t rows, int64_t columns, int64_t ld, bool transposed, int64_t batch) {
    return desc(dims{p.batch, rows, columns}, type,
                dims{batch, transposed ? 1 : ld, transposed ? ld : 1});
  };
  KeptProduct entry;
  entry.key = key;
  entry.a = matrix(p.m, p.k, p.lda, p.trans_a, p.batch_a);
  entry.b = matrix(p.k, p.n, p.ldb, p.trans_b, p.batch_b);
  entry.c = matrix(p.m, p.n, p.ldc, false, p.batch_c);
  dnnl::primitive_attr attributes;
  // A scratchpad of the primitive's own would be one for all threads that run it.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.alpha[0] != 1) attributes.set_output_scales(0, {static_cast<float>(p.alpha[0])});
  if (p.beta[0] != 0) {
    dnnl::post_ops after;
    after.append_sum(static_cast<float>(p.beta[0]));
    attributes.set_post_ops(after);
  }
  dnnl::matmul::primitive_desc choice(dnnl::matmul::desc(entry.a, entry.b, entry.c), attributes,
                                      engine());
  entry.scratchpad = choice.scratchpad_desc();
  entry.primitive = dnnl::matmul(choice);
  return entry;
}

// Below AVX-512, oneDNN only has its reference code for it.
bool has_bfloat16() {
  static const bool has = (static_cast<int>(dnnl::get_effective_cpu_isa()) &
                           static_cast<int>(dnnl::cpu_isa::avx512_core)) ==
                          static_cast<int>(dnnl::cpu_isa::avx512_core);
  return has;
}

int gemm_bfloat16(const lamella_gemm& p) {
  static PrimitiveCache* cache = new PrimitiveCache;  // outlives threads that end after main
  auto bits = [](double value) { return __builtin_bit_cast(int64_t, value); };
  ProductKey key{{p.scalar_type, p.trans_a | p.trans_b << 1, p.batch, p.m, p.n, p.k, p.lda, p.ldb,
                  p.ldc, p.batch_a, p.batch_b, p.batch_c, bits(p.alpha[0]), bits(p.beta[0])}};
  KeptProduct entry = cache->get(key, [&] { return make_entry(p, key); });
  thread_local dnnl::stream stream(engine());
  auto memory = [](const dnnl::memory::desc& d, const void* data) {
    return dnnl::memory(d, engine(), const_cast<void*>(data));
  };
  entry.primitive.execute(stream,
                          {{DNNL_ARG_SRC, memory(entry.a, p.a)},
                           {DNNL_ARG_WEIGHTS, memory(entry.b, p.b)},
                           {DNNL_ARG_DST, memory(entry.c, p.c)},
                           {DNNL_ARG_SCRATCHPAD, dnnl::memory(entry.scratchpad, engine())}});
  stream.wait();
  return 0;
}

// ---- float64 and complex ----

template <class Call>
int gemm_cblas(const lamella_gemm& p, size_t bytes, Call&& call) {
  for (int64_t i = 0; i < p.batch; ++i) {
    auto at = [&](const void* base, int64_t stride) {
      return static_cast<const char*>(base) + i * stride * static_cast<int64_t>(bytes);
    };
    call(p.trans_a ? CblasTrans : CblasNoTrans, p.trans_b ? CblasTrans : CblasNoTrans,
         at(p.a, p.batch_a), at(p.b, p.batch_b), const_cast<char*>(at(p.c, p.batch_c)));
  }
  return 0;
}

int32_t gemm(const lamella_gemm* problem, char* message, uint64_t size) {
  const lamella_gemm& p = *problem;
  auto fail = [&](const char* text) {
    std::snprintf(message, size, "%s", text);
    return 1;
  };
  try {
    lamella::blas::LibraryCall call;
    auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n),
         k = static_cast<blasint>(p.k);
    auto lda = static_cast<blasint>(p.lda), ldb = static_cast<blasint>(p.ldb),
         ldc = static_cast<blasint>(p.ldc);
    int status = 0;
    switch (static_cast<ScalarType>(p.scalar_type)) {
      case ScalarType::Float:
        status = gemm_float(p);
        break;
      case ScalarType::BFloat16:
        if (!has_bfloat16()) return LAMELLA_BLAS_UNSUPPORTED;
        status = gemm_bfloat16(p);
        break;
      case ScalarType::Double:
        gemm_cblas(p, 8, [&](auto ta, auto tb, const void* a, const void* b, void* c) {
          cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, p.alpha[0], static_cast<const double*>(a),
                      lda, static_cast<const double*>(b), ldb, p.beta[0], static_cast<double*>(c),
                      ldc);
        });
        break;
      case ScalarType::ComplexFloat: {
        float alpha[2] = {static_cast<float>(p.alpha[0]), static_cast<float>(p.alpha[1])};
        float beta[2] = {static_cast<float>(p.beta[0]), static_cast<float>(p.beta[1])};
        gemm_cblas(p, 8, [&](auto ta, auto tb, const void* a, const void* b, void* c) {
          cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        });
        break;
      }
      case ScalarType::ComplexDouble:
        gemm_cblas(p, 16, [&](auto ta, auto tb, const void* a, const void* b, void* c) {
          cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, p.alpha, a, lda, b, ldb, p.beta, c, ldc);
        });
        break;
      default:
        return fail("no matrix product for this dtype");
    }
    return status == 0 ? 0 : fail("oneDNN reported a failure");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

const lamella_blas table = {LAMELLA_BLAS_VERSION,
                            0,
                            &gemm,
                            &lamella_lapack_table,
                            &lamella::blas::convolution,
                            &lamella::blas::set_threads,
                            &lamella::blas::close_library};

}  // namespace

extern "C" __attribute__((visibility("default"))) const lamella_blas* lamella_blas_table(void) {
  return &table;
}
