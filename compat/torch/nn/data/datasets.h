// Data sets, the sources of data loaders: they yield batches, single examples, or the transformed
// examples of another data set.
#pragma once
#include <fstream>

#include "lamella/nn/data/transforms.h"
#include "lamella/nn/serialize/archive.h"

namespace lamella::data::datasets {

template <class Source, class Transform>
class MapDataset;

// The base class: answers a request, such as a list of indices, with a batch.
template <class Self, class Batch, class Request = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = Request;
  static constexpr bool is_stateful = false;

  virtual ~BatchDataset() = default;
  virtual Batch get_batch(Request request) = 0;
  // The number of examples, or nullopt where it is unknown.
  virtual std::optional<size_t> size() const = 0;

  // This data set, with the transform applied to its batches.
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) && {
    return {static_cast<Self&&>(*this), std::move(transform)};
  }
};

// A data set whose examples are read one by one.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual SingleExample get(size_t index) = 0;
  std::vector<SingleExample> get_batch(ArrayRef<size_t> indices) override {
    std::vector<SingleExample> batch;
    batch.reserve(indices.size());
    for (size_t index : indices) batch.push_back(get(index));
    return batch;
  }
};

// A data set whose requests are counts: each batch has the next examples.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

namespace detail {
// A transform of batches that may be nullopt (no more examples) gives an optional result too.
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {
  using Value = T;
};
template <class Batch, class Output>
using MappedBatch = std::conditional_t<IsOptional<Batch>::value, std::optional<Output>, Output>;
}  // namespace detail

template <class Source, class AppliedTransform>
class MapDataset
    : public BatchDataset<MapDataset<Source, AppliedTransform>,
                          detail::MappedBatch<typename Source::BatchType,
                                              typename AppliedTransform::OutputBatchType>,
                          typename Source::BatchRequestType> {
 public:
  using DatasetType = Source;
  using TransformType = AppliedTransform;
  using BatchRequestType = typename Source::BatchRequestType;
  using OutputBatchType =
      detail::MappedBatch<typename Source::BatchType, typename AppliedTransform::OutputBatchType>;
  static constexpr bool is_stateful = Source::is_stateful;

  MapDataset(Source source, AppliedTransform transform)
      : source_(std::move(source)), transform_(std::move(transform)) {}
  OutputBatchType get_batch(BatchRequestType request) override {
    auto batch = source_.get_batch(std::move(request));
    if constexpr (detail::IsOptional<typename Source::BatchType>::value) {
      if (!batch) return std::nullopt;
      return transform_.apply_batch(std::move(*batch));
    } else {
      return transform_.apply_batch(std::move(batch));
    }
  }
  std::optional<size_t> size() const noexcept override { return source_.size(); }
  void reset()
    requires is_stateful
  {
    source_.reset();
  }
  const Source& dataset() noexcept { return source_; }
  const AppliedTransform& transform() noexcept { return transform_; }

 private:
  Source source_;
  AppliedTransform transform_;
};
template <class Source, class Transform>
MapDataset<Source, Transform> map(Source source, Transform transform) {
  return {std::move(source), std::move(transform)};
}

// A data set that keeps its own position, which all its readers share; reset() starts it again.
template <class Self, class Batch = std::vector<Example<>>, class Request = size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, Request> {
 public:
  static constexpr bool is_stateful = true;
  virtual void reset() = 0;
  // Writes and reads the position.
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};
template <class... T>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const StatefulDataset<T...>& dataset) {
  dataset.save(archive);
  return archive;
}
template <class... T>
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    StatefulDataset<T...>& dataset) {
  dataset.load(archive);
  return archive;
}

// Makes all workers of a loader use one data set instead of a copy each.
template <class Shared>
class SharedBatchDataset
    : public BatchDataset<SharedBatchDataset<Shared>, typename Shared::BatchType,
                          typename Shared::BatchRequestType> {
 public:
  using BatchType = typename Shared::BatchType;
  using BatchRequestType = typename Shared::BatchRequestType;
  static constexpr bool is_stateful = Shared::is_stateful;

  SharedBatchDataset(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}  // NOLINT
  BatchType get_batch(BatchRequestType request) override {
    return shared_->get_batch(std::move(request));
  }
  std::optional<size_t> size() const override { return shared_->size(); }
  void reset()
    requires is_stateful
  {
    shared_->reset();
  }
  Shared& operator*() { return *shared_; }
  const Shared& operator*() const { return *shared_; }
  Shared* operator->() { return shared_.get(); }
  const Shared* operator->() const { return shared_.get(); }

 private:
  std::shared_ptr<Shared> shared_;
};
template <class Shared, class... A>
SharedBatchDataset<Shared> make_shared_dataset(A&&... arguments) {
  return {std::make_shared<Shared>(std::forward<A>(arguments)...)};
}

// The slices of a tensor along its first dimension.
LAMELLA_LAZY class TensorDatasetOf : public Dataset<TensorDatasetOf<lazy_>, TensorExample> {
 public:
  explicit TensorDatasetOf(const std::vector<Tensor>& tensors)
      : TensorDatasetOf(lamella::stack(tensors)) {}
  explicit TensorDatasetOf(Tensor tensor) : tensor(std::move(tensor)) {}
  TensorExample get(size_t index) override { return tensor[static_cast<int64_t>(index)]; }
  std::optional<size_t> size() const override { return static_cast<size_t>(tensor.size(0)); }

  Tensor tensor;
};
using TensorDataset = TensorDatasetOf<>;

// The handwritten digits of Y. LeCun, C. Cortes and C. Burges, read from the four published files:
// images as float32 [1, 28, 28] in [0, 1], labels as int64.
LAMELLA_LAZY class MNISTOf : public Dataset<MNISTOf<lazy_>> {
 public:
  enum class Mode { kTrain, kTest };
  // Error if a file is missing or is not in the published format.
  explicit MNISTOf(const std::string& root, Mode mode = Mode::kTrain)
      : train_(mode == Mode::kTrain),
        images_(read(root, "-images-idx3-ubyte", {28, 28})),
        targets_(read(root, "-labels-idx1-ubyte", {})) {
    images_ = images_.to(kFloat).div_(255).unsqueeze(1);
    targets_ = targets_.to(kLong);
  }
  Example<> get(size_t index) override {
    auto i = static_cast<int64_t>(index);
    return {images_[i], targets_[i]};
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(images_.size(0)); }
  bool is_train() const noexcept { return train_; }
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  // The contents of a file whose header must name arrays of these sizes.
  Tensor read(const std::string& root, const char* ending, std::vector<int64_t> sizes) const {
    std::string path = root + "/" + (train_ ? "train" : "t10k") + ending;
    std::ifstream file(path, std::ios::binary);
    LAMELLA_CHECK(file, "MNIST: expected a file ", path, ", got none");
    auto number = [&] {
      unsigned char bytes[4] = {};
      file.read(reinterpret_cast<char*>(bytes), 4);
      return int64_t{bytes[0]} << 24 | int64_t{bytes[1]} << 16 | int64_t{bytes[2]} << 8 | bytes[3];
    };
    const auto rank = static_cast<int64_t>(1 + sizes.size());
    const int64_t kind = number(), wanted = train_ ? 60000 : 10000, count = number();
    LAMELLA_CHECK(file && kind == 0x800 + rank && count == wanted, "MNIST: expected ", path,
                  " to hold ", wanted, " arrays of ", rank - 1, " dimensions, got another file");
    for (int64_t size : sizes) {
      LAMELLA_CHECK(number() == size, "MNIST: expected ", path, " to hold arrays of shape ", sizes);
    }
    sizes.insert(sizes.begin(), count);
    Tensor bytes = lamella::empty(sizes, TensorOptions(kByte));
    file.read(reinterpret_cast<char*>(bytes.template data_ptr<uint8_t>()), bytes.numel());
    LAMELLA_CHECK(file, "MNIST: expected ", path, " to hold ", bytes.numel(),
                  " bytes behind its header, got fewer");
    return bytes;
  }

  bool train_;
  Tensor images_, targets_;
};
using MNIST = MNISTOf<>;

}  // namespace lamella::data::datasets
