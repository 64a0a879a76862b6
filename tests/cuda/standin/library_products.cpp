// The stand-in for cuBLASLt.
#include <cstring>

#include "tests/cuda/standin/library.h"

namespace standin {
namespace {

constexpr int kNotSupported = 15;

struct Layout {
  uint64_t kind = 0x1a;
  int type;
  int64_t rows, columns, leading, batch = 1, stride = 0;
};
struct Product {
  uint64_t kind = 0x2b;
  int compute, scale;
  int32_t transposed_a = 0, transposed_b = 0, epilogue = 1;
  const void* bias = nullptr;
};
struct Preference {
  uint64_t kind = 0x3c;
  uint64_t workspace = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
struct Result {
  int64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
constexpr size_t kWorkspace = 4096;
const int tag = 0;

template <class T>
T& of(void* handle, uint64_t kind) {
  auto* made = static_cast<T*>(handle);
  EXPECT(made != nullptr && made->kind == kind);
  return *made;
}
Layout& layout(void* handle) { return of<Layout>(handle, 0x1a); }
Product& product(void* handle) { return of<Product>(handle, 0x2b); }

// The bytes from the first element of a matrix to the last.
size_t span(const Layout& x) {
  const int64_t last = (x.batch - 1) * x.stride + (x.columns - 1) * x.leading + x.rows;
  return static_cast<size_t>(last) * bytes_of(x.type);
}

// What the functions check of a problem: types, sizes, epilogues.
void check(const Product& p, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const int type = a.type;
  EXPECT(b.type == type && c.type == d.type);
  const bool small = type == kF16 || type == kBF16;
  if (type == kI8) {
    EXPECT(d.type == kI32 && p.compute == 72 && p.scale == kI32);
  } else {
    EXPECT(d.type == type);
    EXPECT(p.scale == (small ? static_cast<int>(kF32) : type));
    EXPECT((type == kF64 || type == kC128) ? p.compute == 70
                                           : p.compute == 68 || (p.compute == 77 && !small));
  }
  const int64_t m = d.rows, n = d.columns;
  const int64_t k = p.transposed_a != 0 ? a.rows : a.columns;
  EXPECT((p.transposed_a != 0 ? a.columns : a.rows) == m);
  EXPECT((p.transposed_b != 0 ? b.rows : b.columns) == n);
  EXPECT((p.transposed_b != 0 ? b.columns : b.rows) == k && k > 0 && m > 0 && n > 0);
  EXPECT(c.rows == m && c.columns == n);
  for (const Layout* x : {&a, &b, &c, &d}) {
    EXPECT(x->leading >= x->rows && x->batch == d.batch && x->batch > 0);
  }
  EXPECT(d.batch == 1 || d.stride >= (n - 1) * d.leading + m);
  const int known = 2 | 4;
  EXPECT(p.epilogue == 1 || (p.epilogue & ~known) == 0);
  if (p.epilogue != 1) EXPECT(small || type == kF32);
  if ((p.epilogue & 4) != 0) EXPECT(p.bias != nullptr);
}

template <class T, class R>
int multiply(const Product& p, const Layout& a, const Layout& b, const Layout& c, const Layout& d,
             const T* x, const T* y, const R* added, R* to, const R* bias, char (&factors)[2][16]) {
  using S = typename Sum<R>::type;
  S alpha, beta;
  memcpy(&alpha, factors[0], sizeof(S));
  memcpy(&beta, factors[1], sizeof(S));
  const int64_t k = p.transposed_a != 0 ? a.rows : a.columns;
  for (int64_t batch = 0; batch < d.batch; ++batch) {
    for (int64_t j = 0; j < d.columns; ++j) {
      for (int64_t i = 0; i < d.rows; ++i) {
        S sum(0);
        for (int64_t l = 0; l < k; ++l) {
          const int64_t left = p.transposed_a != 0 ? l + i * a.leading : i + l * a.leading;
          const int64_t right = p.transposed_b != 0 ? j + l * b.leading : l + j * b.leading;
          sum += static_cast<S>(x[batch * a.stride + left]) *
                 static_cast<S>(y[batch * b.stride + right]);
        }
        sum *= alpha;
        if (beta != S(0)) {
          sum += beta * static_cast<S>(added[batch * c.stride + i + j * c.leading]);
        }
        if (bias != nullptr) sum += static_cast<S>(bias[i]);
        if constexpr (std::is_floating_point_v<S>) {
          if ((p.epilogue & 2) != 0 && p.epilogue != 1 && sum < 0) sum = 0;
        }
        to[batch * d.stride + i + j * d.leading] = static_cast<R>(sum);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace standin

using namespace standin;

int cublasLtCreate(void** handle) {
  *handle = const_cast<int*>(&tag);
  return 0;
}
int cublasLtMatrixLayoutCreate(void** made, int type, uint64_t rows, uint64_t columns,
                               int64_t leading) {
  bytes_of(type);
  *made = new Layout{.type = type,
                     .rows = static_cast<int64_t>(rows),
                     .columns = static_cast<int64_t>(columns),
                     .leading = leading};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* made) {
  delete &layout(made);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void* made, int attribute, const void* value, size_t bytes) {
  Layout& x = layout(made);
  if (attribute == 5) {
    EXPECT(bytes == 4);
    x.batch = *static_cast<const int32_t*>(value);
  } else {
    EXPECT(attribute == 6 && bytes == 8);
    x.stride = *static_cast<const int64_t*>(value);
  }
  return 0;
}
int cublasLtMatmulDescCreate(void** made, int compute, int scale) {
  *made = new Product{.compute = compute, .scale = scale};
  return 0;
}
int cublasLtMatmulDescDestroy(void* made) {
  delete &product(made);
  return 0;
}
int cublasLtMatmulDescSetAttribute(void* made, int attribute, const void* value, size_t bytes) {
  Product& p = product(made);
  if (attribute == 8) {
    EXPECT(bytes == sizeof(void*));
    memcpy(&p.bias, value, bytes);
    return 0;
  }
  EXPECT((attribute == 3 || attribute == 4 || attribute == 7) && bytes == 4);
  memcpy(attribute == 3   ? &p.transposed_a
         : attribute == 4 ? &p.transposed_b
                          : &p.epilogue,
         value, bytes);
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** made) {
  *made = new Preference();
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* made) {
  delete &of<Preference>(made, 0x3c);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void* made, int attribute, const void* value,
                                         size_t bytes) {
  auto& preference = of<Preference>(made, 0x3c);
  if (attribute == 1) {
    EXPECT(bytes == 8);
    memcpy(&preference.workspace, value, bytes);
    return 0;
  }
  if (attribute == 3) {
    EXPECT(bytes == 4 && *static_cast<const uint32_t*>(value) == 2);
    return 0;
  }
  EXPECT(attribute >= 5 && attribute <= 8 && bytes == 4);
  memcpy(&preference.alignments[attribute - 5], value, bytes);
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void* handle, void* made, void* a, void* b, void* c, void* d,
                                   void* preferred, int asked, void* results, int* given) {
  EXPECT(handle == &tag && asked > 0);
  const auto& preference = of<Preference>(preferred, 0x3c);
  const Product& p = product(made);
  check(p, layout(a), layout(b), layout(c), layout(d));
  *given = 0;
  // The library's bytes come in groups of four.
  if (layout(a).type == kI8 &&
      ((layout(a).leading | layout(b).leading | layout(d).rows) & 3) != 0) {
    return kNotSupported;
  }
  auto& result = *static_cast<Result*>(results);
  result = {};
  const int64_t all[8] = {0x4d,
                          layout(d).rows,
                          layout(d).columns,
                          layout(a).rows,
                          (int64_t{preference.alignments[0]} << 32) | preference.alignments[1],
                          (int64_t{preference.alignments[2]} << 32) | preference.alignments[3],
                          p.epilogue,
                          layout(d).batch};
  memcpy(result.algorithm, all, sizeof(all));
  result.workspace = preference.workspace < kWorkspace ? 0 : kWorkspace;
  *given = 1;
  return 0;
}
int cublasLtMatmul(void* handle, void* made, const void* alpha, const void* a, void* a_layout,
                   const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                   void* d, void* d_layout, const void* algorithm, void* workspace, size_t bytes,
                   void* stream) {
  EXPECT(handle == &tag && algorithm != nullptr);
  const Product p = product(made);
  const Layout la = layout(a_layout), lb = layout(b_layout), lc = layout(c_layout),
               ld = layout(d_layout);
  check(p, la, lb, lc, ld);
  int64_t chosen[8];
  memcpy(chosen, algorithm, sizeof(chosen));
  EXPECT(chosen[0] == 0x4d && chosen[1] == ld.rows && chosen[2] == ld.columns);
  EXPECT(chosen[3] == la.rows && chosen[6] == p.epilogue && chosen[7] == ld.batch);
  EXPECT(is_aligned(a, static_cast<uint32_t>(chosen[4] >> 32)));
  EXPECT(is_aligned(b, static_cast<uint32_t>(chosen[4])));
  EXPECT(is_aligned(c, static_cast<uint32_t>(chosen[5] >> 32)));
  EXPECT(is_aligned(d, static_cast<uint32_t>(chosen[5])));
  EXPECT(standin_holds(a, span(la)) && standin_holds(b, span(lb)));
  EXPECT(standin_holds(c, span(lc)) && standin_holds(d, span(ld)));
  EXPECT(c != d || (lc.leading == ld.leading && lc.stride == ld.stride));
  EXPECT(bytes == 0 || (bytes >= kWorkspace && standin_holds(workspace, bytes)));
  EXPECT(is_aligned(workspace, 256));
  const bool biased = (p.epilogue & 4) != 0;
  if (biased) EXPECT(standin_holds(p.bias, static_cast<size_t>(ld.rows) * bytes_of(ld.type)));
  if (p.compute == 77) standin_enqueue("tf32", stream, [] { return 0; });
  char factors[2][16] = {};
  memcpy(factors[0], alpha, bytes_of(p.scale));
  memcpy(factors[1], beta, bytes_of(p.scale));
  return standin_enqueue(__func__, stream, [=]() mutable {
    if (bytes != 0) memset(seen<char>(workspace), 0xee, bytes);
    int result = 0;
    visit(la.type, [&]<class T>(T*) {
      using R = std::conditional_t<std::is_same_v<T, int8_t>, int32_t, T>;
      result = multiply<T, R>(p, la, lb, lc, ld, seen<T>(a), seen<T>(b), seen<R>(c), seen<R>(d),
                              biased ? seen<R>(p.bias) : nullptr, factors);
    });
    return result;
  });
}
