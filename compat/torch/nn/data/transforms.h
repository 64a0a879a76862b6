// Examples, and the transforms that are applied to them or to whole batches.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "lamella/api/functions.h"

namespace lamella::data {

namespace example {
// The target type of examples without a target.
using NoTarget = void;
}  // namespace example

template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}
  Data data;
  Target target;
};
template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data data) : data(std::move(data)) {}  // NOLINT: implicit
  operator Data&() { return data; }              // NOLINT
  operator const Data&() const { return data; }  // NOLINT
  Data data;
};
using TensorExample = Example<Tensor, example::NoTarget>;

namespace transforms {

// A function from a whole batch to its result.
template <class Input, class Output>
class BatchTransform {
 public:
  using InputBatchType = Input;
  using OutputBatchType = Output;
  virtual ~BatchTransform() = default;
  virtual Output apply_batch(Input batch) = 0;
};

// A function that is applied to each example.
template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> batch) override {
    std::vector<Output> results;
    results.reserve(batch.size());
    for (Input& input : batch) results.push_back(apply(std::move(input)));
    return results;
  }
};

template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit BatchLambda(FunctionType function) : function_(std::move(function)) {}
  Output apply_batch(Input batch) override { return function_(std::move(batch)); }

 private:
  FunctionType function_;
};
template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit Lambda(FunctionType function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

// A function that is applied to the `data` of each example and keeps the target.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  using E = Example<Tensor, Target>;
  virtual Tensor operator()(Tensor input) = 0;
  E apply(E input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};
template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;
  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

// Subtracts the mean and divides by the standard deviation; both are one number or one for each
// channel, the first dimension of [C, H, W].
template <class Target = Tensor>
struct Normalize : TensorTransform<Target> {
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : mean(of_channels(mean)), stddev(of_channels(stddev)) {}
  Tensor operator()(Tensor input) override { return input.sub(mean).div_(stddev); }
  static Tensor of_channels(ArrayRef<double> numbers) {
    Tensor all =
        lamella::empty({static_cast<int64_t>(numbers.size()), 1, 1}, TensorOptions(kFloat));
    for (size_t i = 0; i < numbers.size(); ++i) {
      all.template data_ptr<float>()[i] = static_cast<float>(numbers[i]);
    }
    return all;
  }
  Tensor mean, stddev;
};

// Combines the examples of a batch into one.
template <class T, class Batch = std::vector<T>>
using Collate = BatchLambda<Batch, T>;
template <class T, class Batch = std::vector<T>>
class Collation : public BatchTransform<Batch, T> {};
template <class E = Example<>>
struct Stack : Collation<E> {
  E apply_batch(std::vector<E> examples) override {
    std::vector<Tensor> data;
    for (const E& each : examples) data.push_back(each.data);
    if constexpr (std::is_void_v<typename E::TargetType>) {
      return lamella::stack(data);
    } else {
      std::vector<Tensor> targets;
      for (const E& each : examples) targets.push_back(each.target);
      return {lamella::stack(data), lamella::stack(targets)};
    }
  }
};

}  // namespace transforms
}  // namespace lamella::data
