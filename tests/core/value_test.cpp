// Boxed values: blocks, spans, copies and release.
#include <cstring>

#include "testing.h"

namespace {

using namespace lamella;

lamella_value span(uint8_t tag, void* data, uint32_t size) {
  lamella_value v{};
  v.tag = tag;
  v.as.pointer = data;
  v.size = size;
  return v;
}

TEST(Value, AllocatesZeroedBlocks) {
  for (uint8_t tag : {LAMELLA_STRING, LAMELLA_INT_LIST, LAMELLA_DOUBLE_LIST, LAMELLA_BOOL_LIST,
                      LAMELLA_TENSOR_LIST, LAMELLA_LIST, LAMELLA_TUPLE, LAMELLA_DICT}) {
    lamella_value v;
    ASSERT_EQ(lamella_value_allocate(tag, 3, &v), LAMELLA_OK);
    EXPECT_EQ(v.tag, tag);
    EXPECT_EQ(v.size, 3u);
    EXPECT_EQ(v.flags, LAMELLA_VALUE_BLOCK);
    auto* block = static_cast<lamella_block*>(v.as.pointer) - 1;
    EXPECT_EQ(block->references, 1u);
    EXPECT_EQ(block->tag, tag);
    EXPECT_EQ(block->size, 3u);
    EXPECT_EQ(static_cast<char*>(v.as.pointer)[2], 0);
    lamella_value_release(&v);
    EXPECT_EQ(v.tag, LAMELLA_NONE);
  }
  lamella_value v;
  EXPECT_EQ(lamella_value_allocate(LAMELLA_INT, 1, &v), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(), "value: expected the tag of a list, string or complex, got 2");
  EXPECT_EQ(v.tag, LAMELLA_NONE);
}

TEST(Value, SpansAreCopiedBlocksAreShared) {
  int64_t data[] = {4, 5, 6};
  lamella_value borrowed = span(LAMELLA_INT_LIST, data, 3);
  lamella_value owned;
  ASSERT_EQ(lamella_value_copy(&borrowed, &owned), LAMELLA_OK);
  data[0] = 9;
  EXPECT_EQ(static_cast<int64_t*>(owned.as.pointer)[0], 4);
  EXPECT_EQ(static_cast<int64_t*>(owned.as.pointer)[2], 6);
  lamella_value shared;
  ASSERT_EQ(lamella_value_copy(&owned, &shared), LAMELLA_OK);
  EXPECT_EQ(shared.as.pointer, owned.as.pointer);
  lamella_value_release(&owned);
  EXPECT_EQ(static_cast<int64_t*>(shared.as.pointer)[1], 5);
  lamella_value_release(&shared);
  lamella_value_release(&borrowed);
  EXPECT_EQ(data[1], 5);
}

TEST(Value, StringsEndInZero) {
  char text[] = {'a', 'b', 'c'};
  lamella_value borrowed = span(LAMELLA_STRING, text, 3);
  lamella_value owned;
  ASSERT_EQ(lamella_value_copy(&borrowed, &owned), LAMELLA_OK);
  EXPECT_STREQ(static_cast<char*>(owned.as.pointer), "abc");
  lamella_value_release(&owned);
}

TEST(Value, ComplexIsTwoDoubles) {
  double z[] = {1.5, -2};
  lamella_value borrowed = span(LAMELLA_COMPLEX, z, 0);
  lamella_value owned;
  ASSERT_EQ(lamella_value_copy(&borrowed, &owned), LAMELLA_OK);
  EXPECT_EQ(static_cast<double*>(owned.as.pointer)[1], -2);
  lamella_value_release(&owned);
}

TEST(Value, TensorsAreRetained) {
  TensorBase t = floats({1});
  lamella_value v{};
  v.tag = LAMELLA_TENSOR;
  v.as.tensor = t.impl();
  lamella_value copy;
  ASSERT_EQ(lamella_value_copy(&v, &copy), LAMELLA_OK);
  EXPECT_EQ(t.use_count(), 2u);
  lamella_value_release(&copy);
  EXPECT_EQ(t.use_count(), 1u);
  lamella_tensor* list[] = {t.impl(), nullptr, t.impl()};
  lamella_value borrowed = span(LAMELLA_TENSOR_LIST, list, 3);
  ASSERT_EQ(lamella_value_copy(&borrowed, &copy), LAMELLA_OK);
  EXPECT_EQ(t.use_count(), 3u);
  lamella_value_release(&copy);
  EXPECT_EQ(t.use_count(), 1u);
  lamella_value undefined{};
  undefined.tag = LAMELLA_TENSOR;
  ASSERT_EQ(lamella_value_copy(&undefined, &copy), LAMELLA_OK);
  lamella_value_release(&copy);
}

TEST(Value, NestedListsAreDeepCopies) {
  TensorBase t = floats({1});
  int64_t ints[] = {7};
  lamella_value inner[2] = {span(LAMELLA_INT_LIST, ints, 1), {}};
  inner[1].tag = LAMELLA_TENSOR;
  inner[1].as.tensor = t.impl();
  lamella_value outer = span(LAMELLA_TUPLE, inner, 2);
  lamella_value copy;
  ASSERT_EQ(lamella_value_copy(&outer, &copy), LAMELLA_OK);
  EXPECT_EQ(t.use_count(), 2u);
  auto* values = static_cast<lamella_value*>(copy.as.pointer);
  EXPECT_EQ(values[0].flags, LAMELLA_VALUE_BLOCK);
  EXPECT_EQ(static_cast<int64_t*>(values[0].as.pointer)[0], 7);
  lamella_value_release(&copy);
  EXPECT_EQ(t.use_count(), 1u);
}

struct Object : lamella_object {
  int* ended;
};

TEST(Value, ObjectsAreCounted) {
  int ended = 0;
  Object object{{1, 0, [](lamella_object* o) { ++*static_cast<Object*>(o)->ended; }}, &ended};
  lamella_value v{};
  v.tag = LAMELLA_OBJECT;
  v.as.pointer = static_cast<lamella_object*>(&object);
  lamella_value copy;
  ASSERT_EQ(lamella_value_copy(&v, &copy), LAMELLA_OK);
  EXPECT_EQ(object.references, 2u);
  lamella_value_release(&copy);
  EXPECT_EQ(ended, 0);
  lamella_value_release(&v);
  EXPECT_EQ(ended, 1);
}

TEST(Value, SurvivesReleaseTwice) {
  lamella_value v;
  ASSERT_EQ(lamella_value_allocate(LAMELLA_INT_LIST, 0, &v), LAMELLA_OK);
  EXPECT_EQ(v.size, 0u);
  lamella_value_release(&v);
  lamella_value_release(&v);  // NONE by now
  EXPECT_EQ(v.tag, LAMELLA_NONE);
}

}  // namespace
