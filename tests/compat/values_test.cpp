// What c10::IValue holds beside an operator's arguments: futures, streams, storages, objects,
// weak references; identity, hashes and texts.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>
#include <string>
#include <thread>

namespace {

using c10::IValue;
using c10::ivalue::Future;

template <class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}
std::string text_of(const IValue& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

TEST(Future, IsCompletedOnce) {
  auto future = c10::make_intrusive<Future>(c10::IntType::get());
  int calls = 0;
  future->addCallback([&](Future& done) { calls += static_cast<int>(done.value().toInt()); });
  auto next = future->then([](Future& done) { return IValue(done.value().toInt() + 1); },
                           c10::IntType::get());
  EXPECT_EQ(error_of([&] { future->value(); }), "Future: expected a completed one");
  std::thread completes([&] { IValue(future).toFuture()->markCompleted(4); });
  next->wait();
  completes.join();
  future->addCallback([&](Future&) { ++calls; });
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(next->constValue().toInt(), 5);
  EXPECT_EQ(error_of([&] { future->markCompleted(); }),
            "markCompleted: expected a future that is not completed");
}

TEST(Future, HandsErrorsOn) {
  auto future = c10::make_intrusive<Future>(c10::IntType::get());
  auto next = future->then([](Future& done) { return done.value(); }, c10::IntType::get());
  future->setError(std::make_exception_ptr(Future::FutureError("lost")));
  future->setErrorIfNeeded(std::make_exception_ptr(Future::FutureError("later")));
  EXPECT_EQ(next->tryRetrieveErrorMessage(), "lost");
  EXPECT_EQ(error_of([&] { next->waitAndThrow(); }), "lost");
  EXPECT_EQ(error_of([&] { next->setError(future->exception_ptr()); }),
            "setError: Error already set: lost; got lost");
  EXPECT_EQ(error_of([&] { IValue(3).toFuture(); }), "expected an object of class Future, got int");
}

TEST(Values, HoldStreamsAndStorages) {
  c10::Stream stream(c10::Stream::DEFAULT, c10::Device(c10::kCPU));
  EXPECT_TRUE(IValue(stream).isStream());
  EXPECT_TRUE(IValue(stream).toStream() == stream);
  EXPECT_EQ(IValue(stream), IValue(stream));
  at::Tensor x = at::rand({4});
  IValue storage(x.storage());
  EXPECT_TRUE(storage.isStorage() && !storage.isStream() && !storage.isFuture());
  EXPECT_TRUE(storage.toStorage().is_alias_of(x.storage()));
  EXPECT_EQ(storage, IValue(x.view({2, 2}).storage()));
  EXPECT_EQ(storage.hash(), IValue(x.storage()).hash());
  EXPECT_EQ(at::TensorMemory().unsafeGetStorageImpl(), nullptr);
}

TEST(Storages, AreSet) {
  at::Tensor x = at::arange(6).view({2, 3}), y = at::zeros({}, at::kLong);
  y.set_(x.storage());
  EXPECT_TRUE(at::equal(y, at::arange(6)));
  y.set_(x.slice(0, 1).storage(), 1, {2, 2}, {3, 1});
  EXPECT_TRUE(at::equal(y, x.slice(1, 1)));
  EXPECT_TRUE(y.is_alias_of(x));
  EXPECT_EQ(error_of([&] { y.set_(at::TensorMemory()); }),
            "set_: expected 'source' to be int64, got undefined");
}

TEST(OperatorName, HasANamespace) {
  c10::OperatorName name("add", "out");
  EXPECT_FALSE(name.getNamespace().has_value());
  EXPECT_TRUE(name.setNamespaceIfNotSet("aten"));
  EXPECT_FALSE(name.setNamespaceIfNotSet("other"));
  EXPECT_EQ(name.name, "aten::add");
  EXPECT_EQ(*name.getNamespace(), "aten");
}

TEST(Values, MoveAndSwap) {
  IValue one("text"), two(std::vector<int64_t>{1});
  one.swap(two);
  EXPECT_TRUE(one.isIntList());
  one = std::move(two);
  EXPECT_EQ(one, IValue("text"));
  EXPECT_TRUE(two.isNone());
  EXPECT_EQ(IValue(at::Tensor()).use_count(), 0);
}

TEST(Values, KnowIdentityAndAliases) {
  at::Tensor x = at::rand({4});
  IValue whole(x), part(x.slice(0, 1));
  EXPECT_TRUE(whole.isAliasOf(part));
  EXPECT_FALSE(whole.is(part));
  EXPECT_TRUE(whole.is(IValue(x)));
  EXPECT_TRUE(IValue().is(IValue(at::Tensor())));
  EXPECT_FALSE(IValue("a").is(IValue("a")));
  EXPECT_TRUE(whole.equals(IValue(x)).toTensor().all().item<bool>());
  EXPECT_EQ(IValue(std::make_tuple(1, "a")).hash(), IValue(std::make_tuple(1, "a")).hash());
  EXPECT_EQ(error_of([] { IValue(std::vector<int64_t>{1}).hash(); }),
            "hash: expected a value that has a hash, got one of type int[]");
  IValue::HashAliasedIValues values;
  IValue(c10::ivalue::Tuple::create({whole, IValue(1), IValue(x)})).getSubValues(values);
  EXPECT_EQ(values.size(), 2);
}

TEST(Values, AreHeldWeakly) {
  at::Tensor x = at::rand({2});
  c10::WeakIValue tensor{IValue(x)};
  EXPECT_EQ(x.weak_use_count(), 2);
  EXPECT_TRUE(tensor.lock().toTensor().is_same(x));
  x.reset();
  EXPECT_TRUE(tensor.lock().isNone());
  auto future = c10::make_intrusive<Future>(c10::IntType::get());
  c10::WeakIValue object{IValue(future)};
  EXPECT_EQ(object.lock().toFuture(), future);
  future.reset();
  EXPECT_TRUE(object.lock().isNone());
  EXPECT_EQ(c10::WeakIValue(IValue(3)).lock().toInt(), 3);
}

TEST(Values, HaveAttributes) {
  auto type = c10::ClassType::create("point", {});
  type->addAttribute("x", c10::IntType::get());
  type->addAttribute("y", c10::IntType::get());
  EXPECT_EQ(error_of([&] { type->addAttribute("x", c10::IntType::get()); }),
            "addAttribute: point has an attribute 'x'");
  auto point = c10::ivalue::Object::create(c10::StrongTypePtr(nullptr, type), 2);
  point->setAttr("y", 3);
  EXPECT_EQ(point->getSlot(1).toInt(), 3);
  EXPECT_EQ(error_of([&] { point->getAttr("z"); }), "point: expected an attribute, got 'z'");
  point->unsafeRemoveAttr("x");
  EXPECT_EQ(point->slots().size(), 1);
  EXPECT_EQ(IValue(point), IValue(point));
}

TEST(Values, HaveTexts) {
  EXPECT_EQ(text_of(std::make_tuple(3)), "(3,)");
  EXPECT_EQ(text_of(std::make_tuple(3, 2.5)), "(3, 2.5)");
  EXPECT_EQ(text_of(c10::complex<double>(2, -3.5)), "2.-3.5j");
}

TEST(TensorType, OrdersDimensions) {
  auto order = [](const at::Tensor& x) {
    std::vector<size_t> all;
    auto type = c10::TensorType::create(std::nullopt, std::nullopt, x.sizes(), x.strides(), true);
    for (const auto& entry : *type->stride_properties().sizes())
      all.push_back(*entry->stride_index_);
    return all;
  };
  EXPECT_EQ(order(at::rand({2, 3, 4})), std::vector<size_t>({2, 1, 0}));
  EXPECT_EQ(order(at::rand({2, 3, 4}).permute({1, 0, 2})), std::vector<size_t>({2, 0, 1}));
  EXPECT_EQ(order(at::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast)),
            std::vector<size_t>({1, 3, 2, 0}));
  EXPECT_EQ(order(at::rand({3})), std::vector<size_t>({0}));
}

}  // namespace
