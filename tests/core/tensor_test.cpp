// Tensors: creation, access, views, resizing, destruction.
#include <cstring>

#include "lamella/core/accessor.h"
#include "lamella/core/checked_size.h"
#include "testing.h"

namespace {

using namespace lamella;

TEST(Tensor, Undefined) {
  TensorBase t;
  EXPECT_FALSE(t.defined());
  EXPECT_EQ(t.use_count(), 0u);
  EXPECT_FALSE(t.has_storage());
  EXPECT_EQ(sizes_of(t), (Ints{0}));
  EXPECT_EQ(t.numel(), 0);
  EXPECT_EQ(t.dtype(), ScalarType::Undefined);
  EXPECT_EQ(error_of([&] { t.strides(); }),
            "strides: expected a defined tensor, got an undefined one");
  EXPECT_EQ(error_of([&] { make_detached(t); }),
            "detach: expected a defined tensor, got an undefined one");
  EXPECT_EQ(error_of([&] { t.size(1); }), error_of([&] { make_empty({0}, kFloat, kCPU).size(1); }));
}

TEST(Tensor, EmptyIsReadable) {
  TensorBase t = make_empty({2, 3}, kDouble, kCPU);
  EXPECT_EQ(sizes_of(t), (Ints{2, 3}));
  EXPECT_EQ(strides_of(t), (Ints{3, 1}));
  EXPECT_EQ(t.numel(), 6);
  EXPECT_EQ(t.nbytes(), 48u);
  EXPECT_EQ(t.dim(), 2);
  EXPECT_EQ(t.dtype(), kDouble);
  EXPECT_EQ(t.device(), Device(kCPU));
  EXPECT_EQ(t.layout(), kStrided);
  EXPECT_EQ(t.storage_offset(), 0);
  EXPECT_EQ(t._version(), 0u);
  EXPECT_EQ(t.key_set(), default_key_set(kCPU));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data_ptr()) % 64, 0u);
  EXPECT_EQ(lamella_tensor_storage_bytes(t.impl()), 48u);
  EXPECT_EQ(lamella_tensor_storage_data(t.impl()), t.data_ptr());
  EXPECT_TRUE(t.options() == TensorOptions(kDouble).device(kCPU).layout(kStrided));
  TensorBase scalar = make_empty({}, kBool, kCPU);
  EXPECT_EQ(scalar.numel(), 1);
  EXPECT_EQ(scalar.dim(), 0);
  TensorBase none = make_empty({3, 0}, kFloat, kCPU);
  EXPECT_EQ(none.numel(), 0);
  EXPECT_EQ(strides_of(none), (Ints{1, 1}));
  EXPECT_EQ(none.data_ptr(), nullptr);
  TensorBase meta = make_empty({1000000, 1000000}, kFloat, kMeta);
  EXPECT_EQ(meta.data_ptr(), nullptr);
  EXPECT_TRUE(meta.is_meta() && meta.has_storage());
}

TEST(Tensor, ManyDimensions) {
  Ints sizes(12, 2);
  TensorBase t = floats(sizes);
  EXPECT_EQ(sizes_of(t), sizes);
  EXPECT_EQ(t.stride(0), 2048);
  EXPECT_EQ(t.stride(-1), 1);
  set_sizes_and_strides(TensorImpl::of(t), {4}, {1}, 0);
  EXPECT_EQ(sizes_of(t), (Ints{4}));
  set_sizes_and_strides(TensorImpl::of(t), Ints(7, 2), Ints(7, 1), 0);
  EXPECT_EQ(t.dim(), 7);
  EXPECT_EQ(error_of([] { make_empty(Ints(65, 1), kFloat, kCPU); }),
            "tensor: expected at most 64 dimensions, got 65");
}

TEST(Tensor, WrongSizes) {
  EXPECT_EQ(error_of([] { floats({2, -1}); }), "empty: expected sizes of at least 0, got [2, -1]");
  EXPECT_EQ(error_of([] { floats({int64_t{1} << 40, int64_t{1} << 40}); }),
            "empty: expected sizes whose bytes fit int64, got [1099511627776, 1099511627776]");
  EXPECT_EQ(error_of<TypeError>([] { make_empty({1}, kQInt8, kCPU); }),
            "empty: expected a supported dtype, got qint8");
  EXPECT_EQ(error_of<NotImplementedError>([] { make_empty({1}, kFloat, kCUDA); }),
            "empty: expected a device with an allocator, got cuda; this build has no CUDA");
  EXPECT_EQ(error_of<OutOfMemoryError>([] { floats({int64_t{1} << 58}); }),
            "could not allocate 1152921504606846976 bytes on cpu");
}

TEST(Tensor, DimensionsAreChecked) {
  TensorBase t = floats({2, 3});
  EXPECT_EQ(t.size(-1), 3);
  EXPECT_EQ(t.stride(-2), 3);
  EXPECT_EQ(error_of<IndexError>([&] { t.size(2); }), "size: expected 'dim' in [-2, 1], got 2");
  EXPECT_EQ(error_of<IndexError>([&] { t.stride(-3); }),
            "stride: expected 'dim' in [-2, 1], got -3");
  EXPECT_EQ(error_of<IndexError>([&] { floats({}).size(0); }),
            "size: expected a tensor with dimensions, got 'dim' 0 for one without");
  EXPECT_EQ(maybe_wrap_dim(-1, 0), 0);
  EXPECT_EQ(error_of<IndexError>([] { maybe_wrap_dim(1, 0, "sum"); }),
            "sum: expected 'dim' in [-1, 0], got 1");
}

TEST(Tensor, TypedAccess) {
  TensorBase t = floats({2, 3});
  float* data = t.mutable_data_ptr<float>();
  for (int i = 0; i < 6; ++i) data[i] = static_cast<float>(i);
  EXPECT_EQ(t.const_data_ptr<float>()[5], 5.0f);
  auto a = t.accessor<float, 2>();
  EXPECT_EQ(a[1][2], 5.0f);
  EXPECT_EQ(a.size(1), 3);
  EXPECT_EQ(error_of([&] { t.data_ptr<int64_t>(); }),
            "data_ptr: expected a tensor of int64, got float32");
  EXPECT_EQ(error_of([&] { t.accessor<float, 3>(); }), "accessor: expected 3 dimensions, got 2");
  EXPECT_EQ(error_of([&] { t.accessor<double, 2>(); }),
            "accessor: expected a tensor of float64, got float32");
  EXPECT_EQ(error_of([] { make_empty({2}, kFloat, kMeta).accessor<float, 1>(); }),
            "accessor: expected a tensor on cpu, got meta");
}

TEST(Tensor, ViewsShareTheStorage) {
  TensorBase t = floats({4, 5});
  TensorBase v = make_view(t, {5, 4}, {1, 5}, 0);
  EXPECT_TRUE(v.is_alias_of(t));
  EXPECT_FALSE(v.is_alias_of(floats({1})));
  EXPECT_FALSE(v.is_same(t));
  EXPECT_FALSE(v.is_contiguous());
  EXPECT_TRUE(v.is_non_overlapping_and_dense());
  TensorBase row = make_view(t, {5}, {1}, 10);
  EXPECT_EQ(row.data_ptr<float>(), t.data_ptr<float>() + 10);
  lamella_tensor_bump_version(row.impl());
  EXPECT_EQ(t._version(), 1u);
  t.reset();
  row.data_ptr<float>()[4] = 1;  // the storage is still there
  EXPECT_EQ(row._version(), 1u);
}

TEST(Tensor, ViewsCarryWhatTheyMust) {
  TensorBase t = floats({2});
  set_requires_grad(TensorImpl::of(t), true);
  EXPECT_TRUE(t.requires_grad());
  EXPECT_EQ(t.key_set(), default_key_set(kCPU) | kRequiresGradBits);
  set_flag(TensorImpl::of(t), LAMELLA_TENSOR_NEG, true);
  lamella_tensor_set_wrapped_number(t.impl(), 1);
  EXPECT_TRUE(t.is_wrapped_number());
  TensorBase v = make_view(t, {1}, {1}, 1);
  EXPECT_TRUE(v.is_neg());
  EXPECT_FALSE(v.requires_grad() || v.is_wrapped_number());
  // A later write to the base may give it a history.
  EXPECT_EQ(v.key_set(), default_key_set(kCPU) | kRequiresGradBits);
  TensorBase ints = make_empty({1}, kLong, kCPU);
  EXPECT_EQ(make_view(ints, {1}, {1}, 0).key_set(), default_key_set(kCPU));
  uint64_t before = std::exchange(lamella_thread.excluded, kRequiresGradBits);
  TensorBase u = make_view(t, {1}, {1}, 1);  // a write to it would lose a gradient
  EXPECT_EQ(u.key_set(), default_key_set(kCPU) | kRequiresGradBits);
  EXPECT_NE(u.impl()->flags & LAMELLA_TENSOR_NO_GRAD_VIEW, 0u);
  EXPECT_EQ(make_view(floats({2}), {1}, {1}, 1).key_set(), default_key_set(kCPU));
  lamella_thread.excluded = before;
  EXPECT_EQ(error_of([&] { set_requires_grad(TensorImpl::of(ints), true); }),
            "requires_grad_: expected a floating-point or complex tensor, got int64");
}

TEST(Tensor, ViewsKnowTheirBase) {
  TensorBase t = floats({4});
  TensorBase v = make_view(t, {2}, {1}, 1);
  TensorBase w = make_view(v, {1}, {1}, 2);
  EXPECT_EQ(TensorImpl::of(v)->base, TensorImpl::of(t));
  EXPECT_EQ(TensorImpl::of(w)->base, TensorImpl::of(t));
  EXPECT_EQ(t.use_count(), 3u);
  TensorBase alias = make_detached(w);
  EXPECT_EQ(TensorImpl::of(alias)->base, nullptr);
  EXPECT_TRUE(alias.is_alias_of(t));
  EXPECT_EQ(alias.data_ptr<float>(), w.data_ptr<float>());
}

TEST(Tensor, ABaseKeepsTheStorageOfItsViews) {
  TensorBase t = floats({4});
  TensorBase v = make_view(t, {2}, {1}, 2);
  v.data_ptr<float>()[1] = 7;
  resize_tensor(TensorImpl::of(t), {100});  // another storage
  EXPECT_FALSE(v.is_alias_of(t));
  EXPECT_EQ(v.data_ptr<float>()[1], 7);
  t.reset();
  EXPECT_EQ(v.data_ptr<float>()[1], 7);
  // A view that gets a storage of its own leaves its base.
  resize_tensor(TensorImpl::of(v), {100});
  EXPECT_EQ(TensorImpl::of(v)->base, nullptr);
  v.data_ptr<float>()[99] = 1;
}

TEST(Tensor, AsStridedStaysWithinTheStorage) {
  TensorBase t = floats({6});
  TensorBase v = make_checked_view(t, {2, 3}, {3, 1}, 0);
  EXPECT_EQ(v.size(1), 3);
  EXPECT_EQ(error_of([&] { make_checked_view(t, {2, 3}, {4, 1}, 0); }),
            "as_strided: expected a view within the storage of 24 bytes, got size [2, 3], "
            "stride [4, 1], storage_offset 0, which need 28");
  EXPECT_EQ(error_of([&] { make_checked_view(t, {2}, {-1}, 3); }),
            "as_strided: expected a 'stride' of at least 0, got [-1]");
  EXPECT_EQ(error_of([&] { make_checked_view(t, {2}, {1}, -1); }),
            "as_strided: expected a 'storage_offset' of at least 0, got -1");
  EXPECT_EQ(error_of([&] { make_checked_view(t, {2}, {1, 1}, 0); }),
            "as_strided: expected as many 'stride' as 'size', got [1, 1] for [2]");
  EXPECT_EQ(make_checked_view(t, {0, 9}, {1000, 1}, 0).numel(), 0);
  lamella_tensor* c = nullptr;
  int64_t size = 7, stride = 1;
  EXPECT_EQ(lamella_tensor_as_strided(t.impl(), 1, &size, &stride, 0, &c), LAMELLA_ERROR);
  EXPECT_EQ(c, nullptr);
}

TEST(Tensor, ViewsStayWithinTheStorage) {
  TensorBase t = floats({6});
  EXPECT_EQ(make_view(t, {2, 2}, {3, 2}, 0).numel(), 4);
  EXPECT_EQ(error_of([&] { make_view(t, {2, 3}, {4, 1}, 0); }),
            "view: expected a view within the storage of 24 bytes, got size [2, 3], stride [4, 1], "
            "storage_offset 0, which need 28");
  EXPECT_EQ(error_of([&] { make_view(t, {1, 1, 1, 1, 1, 7}, {1, 1, 1, 1, 1, 1}, 0); }),
            "view: expected a view within the storage of 24 bytes, got size [1, 1, 1, 1, 1, 7], "
            "stride [1, 1, 1, 1, 1, 1], storage_offset 0, which need 28");
  EXPECT_EQ(error_of([&] { make_view_as(t, {4}, {1}, 0, kDouble); }),
            "view: expected a view within the storage of 24 bytes, got size [4], stride [1], "
            "storage_offset 0, which need 32");
  EXPECT_EQ(error_of([&] { make_view(t, {1}, {1}, -1); }),
            "view: expected a 'storage_offset' of at least 0, got -1");
  EXPECT_EQ(error_of([&] { make_view(t, {-1}, {1}, 0); }),
            "view: expected sizes of at least 0, got [-1]");
  EXPECT_EQ(error_of([&] { make_view(t, {int64_t{1} << 62, 4}, {0, 0}, 0); }),
            "view: expected sizes whose bytes fit int64, got [4611686018427387904, 4]");
  EXPECT_EQ(make_view(t, {INT64_MAX}, {0}, 5).numel(), INT64_MAX);
  EXPECT_EQ(make_view(t, {0, 9}, {1000, 1}, 6).numel(), 0);
}

TEST(Tensor, ATensorWhoseStorageShrankIsStillSeenAsAnotherShape) {
  TensorBase t = floats({6});
  TensorImpl::of(t)->storage->nbytes = 8;
  EXPECT_EQ(make_view(t, {2, 3}, {3, 1}, 0).numel(), 6);
  EXPECT_EQ(error_of([&] { make_view(t, {7}, {1}, 0); }),
            "view: expected a view within the storage of 8 bytes, got size [7], stride [1], "
            "storage_offset 0, which need 28");
  TensorImpl::of(t)->storage->nbytes = 24;
}

TEST(CheckedSize, RefusesWhatLeavesInt64) {
  auto size = [](int64_t value) { return CheckedSize(value, "pad"); };
  EXPECT_EQ((size(3) + 4 * 2 - 1).value(), 10);
  EXPECT_EQ((size(3) * size(5) - size(1) + size(2)).value(), 16);
  EXPECT_EQ((size(INT64_MAX) - 1 + 1).value(), INT64_MAX);
  EXPECT_EQ(error_of([&] { size(INT64_MAX) + 1; }),
            "pad: expected sizes that fit int64, got 9223372036854775807 + 1");
  EXPECT_EQ(error_of([&] { size(INT64_MIN) - 1; }),
            "pad: expected sizes that fit int64, got -9223372036854775808 - 1");
  EXPECT_EQ(error_of([&] { size(int64_t{1} << 32) * (int64_t{1} << 32); }),
            "pad: expected sizes that fit int64, got 4294967296 * 4294967296");
}

TEST(Tensor, FromBlobRunsTheDeleterOnce) {
  int runs = 0;
  auto count = [](void* context) { ++*static_cast<int*>(context); };
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t sizes[] = {2, 3};
  {
    lamella_tensor* raw = nullptr;
    ASSERT_EQ(lamella_tensor_from_blob(data, 2, sizes, nullptr, 6, 0, -1, count, &runs, &raw),
              LAMELLA_OK);
    TensorBase t = TensorBase::adopt(raw);
    EXPECT_EQ((t.accessor<float, 2>()[1][0]), 3.0f);
    TensorBase v = make_view(t, {3}, {1}, 3);
    t.reset();
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(v.data_ptr<float>()[2], 5.0f);
  }
  EXPECT_EQ(runs, 1);
}

TEST(Tensor, FromBlobRunsTheDeleterWhenItFails) {
  auto count = [](void* context) { ++*static_cast<int*>(context); };
  float data[1];
  int64_t negative[] = {-1};
  int64_t one[] = {1};
  auto failing = [&](int32_t ndim, const int64_t* sizes, const int64_t* strides, uint8_t dtype,
                     uint8_t device) {
    int runs = 0;
    lamella_tensor* raw = nullptr;
    lamella_status status =
        lamella_tensor_from_blob(data, ndim, sizes, strides, dtype, device, -1, count, &runs, &raw);
    EXPECT_NE(status, LAMELLA_OK);
    EXPECT_EQ(raw, nullptr);
    EXPECT_EQ(runs, 1);
    return std::string(lamella_error_text());
  };
  EXPECT_EQ(failing(1, negative, nullptr, 6, 0),
            "from_blob: expected sizes of at least 0, got [-1]");
  EXPECT_EQ(failing(1, one, negative, 6, 0),
            "from_blob: expected a 'stride' of at least 0, got [-1]");
  EXPECT_EQ(failing(1, one, nullptr, 99, 0),
            "from_blob: expected a supported dtype, got number 99");
  EXPECT_EQ(failing(1, one, nullptr, 6, 200), "from_blob: expected a known device type, got 200");
  EXPECT_EQ(failing(-1, one, nullptr, 6, 0), "from_blob: expected -1 sizes and strides, got none");
}

TEST(Tensor, ResizeKeepsIdentity) {
  TensorBase t = floats({2, 3});
  lamella_tensor* identity = t.impl();
  void* memory = t.data_ptr();
  lamella_tensor_bump_version(identity);
  resize_tensor(TensorImpl::of(t), {3});
  EXPECT_EQ(t.data_ptr(), memory);
  t.data_ptr<float>()[2] = 7;
  resize_tensor(TensorImpl::of(t), {100, 100}, MemoryFormat::Contiguous, true);
  EXPECT_EQ(t.impl(), identity);
  EXPECT_EQ(t.numel(), 10000);
  EXPECT_EQ(t.data_ptr<float>()[2], 7);
  EXPECT_EQ(t._version(), 1u);
  EXPECT_EQ(lamella_tensor_storage_bytes(identity), 40000u);
  resize_tensor_strided(TensorImpl::of(t), {2, 2}, {1, 2});
  EXPECT_EQ(strides_of(t), (Ints{1, 2}));
  resize_tensor(TensorImpl::of(t), {1, 2, 2, 2}, MemoryFormat::ChannelsLast);
  EXPECT_TRUE(t.is_contiguous(MemoryFormat::ChannelsLast));
  resize_tensor(TensorImpl::of(t), {0});
  EXPECT_EQ(t.numel(), 0);
  EXPECT_EQ(error_of([&] { resize_tensor(TensorImpl::of(t), {-2}); }),
            "resize_: expected sizes of at least 0, got [-2]");
}

TEST(Tensor, ResizeLeavesAliasesAlone) {
  TensorBase t = floats({4});
  t.data_ptr<float>()[3] = 3;
  TensorBase v = make_view(t, {1}, {1}, 3);
  resize_tensor(TensorImpl::of(t), {1000}, MemoryFormat::Contiguous, true);
  EXPECT_EQ(v.data_ptr<float>()[0], 3);
  EXPECT_FALSE(v.is_alias_of(t));
  float data[2];
  TensorBase blob = make_from_blob(data, {2}, {}, kFloat, kCPU, nullptr, nullptr);
  EXPECT_EQ(error_of([&] { resize_tensor(TensorImpl::of(blob), {3}); }),
            "resize_: expected a tensor that owns its memory, got one over foreign memory of "
            "8 bytes where 12 are needed");
}

TEST(Tensor, ShallowCopyKeepsIdentity) {
  TensorBase a = floats({2});
  TensorBase b = make_empty({3, 4}, kLong, kCPU);
  set_requires_grad(TensorImpl::of(a), true);
  lamella_tensor* identity = a.impl();
  shallow_copy_from(TensorImpl::of(a), TensorImpl::of(b));
  EXPECT_EQ(a.impl(), identity);
  EXPECT_TRUE(a.is_alias_of(b));
  EXPECT_EQ(a.dtype(), kLong);
  EXPECT_EQ(sizes_of(a), (Ints{3, 4}));
  EXPECT_TRUE(a.requires_grad());
  EXPECT_FALSE(b.requires_grad());
}

TEST(Tensor, ReferencesAreCounted) {
  TensorBase a = floats({1});
  EXPECT_EQ(a.use_count(), 1u);
  TensorBase b = a;
  EXPECT_EQ(a.use_count(), 2u);
  TensorBase c = std::move(b);
  EXPECT_FALSE(b.defined());  // NOLINT: a moved-from tensor is undefined
  EXPECT_EQ(a.use_count(), 2u);
  c = a;
  EXPECT_EQ(a.use_count(), 2u);
  TensorBase& self = c;
  c = self;
  EXPECT_EQ(a.use_count(), 2u);
  lamella_tensor* raw = c.unsafe_release();
  EXPECT_EQ(a.use_count(), 2u);
  TensorBase d = TensorBase::adopt(raw);
  TensorBase e = TensorBase::borrow(raw);
  EXPECT_EQ(a.use_count(), 3u);
}

TEST(Tensor, WeakReferences) {
  TensorBase t = floats({1});
  WeakTensorRef weak(t);
  WeakTensorRef copy = weak;
  EXPECT_EQ(t.use_count(), 1u);
  EXPECT_TRUE(weak.lock().is_same(t));
  EXPECT_EQ(t.use_count(), 1u);
  t.reset();
  EXPECT_TRUE(weak.expired());
  EXPECT_FALSE(copy.lock().defined());
  EXPECT_FALSE(WeakTensorRef().lock().defined());
  WeakTensorRef gone;
  {
    TensorBase other = floats({1});
    gone = WeakTensorRef(other);
    gone = WeakTensorRef();  // the last weak one ends first
  }
  EXPECT_TRUE(gone.expired());
}

TEST(Tensor, HooksReleaseWhatHangsOnIt) {
  static int released = 0;
  TensorHooks before = tensor_hooks();
  set_tensor_hooks(
      {[](lamella_tensor*) { released += 1; }, [](lamella_tensor*) { released += 10; }});
  {
    TensorBase t = floats({1});
    t.impl()->autograd = &released;
    TensorBase u = floats({1});
    u.impl()->python_object = &released;
  }
  set_tensor_hooks(before);
  EXPECT_EQ(released, 11);
}

}  // namespace
