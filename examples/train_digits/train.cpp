// Trains two small networks to read handwritten digits, in C++:
//   train_digits digits.bin [loss.svg]
// data.py writes digits.bin. The exit status is 0 if both networks read 97 % of the test images.
#include <lamella/autograd.h>
#include <lamella/lamella.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "curve.h"
#include "digits_ops/functions.h"

namespace {

using lamella::Tensor;

constexpr int64_t kTest = 360, kBatch = 64;
constexpr int kEpochs = 30;
constexpr double kGoal = 0.97;

// ---- The data

struct Set {
  Tensor images;  // float32 [n, 64], from 0 to 1
  Tensor labels;  // int64 [n]
};

bool read(const char* path, Set& train, Set& test) {
  std::ifstream file(path, std::ios::binary);
  char mark[8];
  uint32_t count = 0;
  if (!file.read(mark, 8) || std::memcmp(mark, "DIGITS1\n", 8) != 0 ||
      !file.read(reinterpret_cast<char*>(&count), 4) || count <= kTest) {
    return false;
  }
  Tensor images = lamella::empty({count, 64}, lamella::kByte);
  Tensor labels = lamella::empty({count}, lamella::kByte);
  for (Tensor* part : {&images, &labels}) {
    auto* bytes = reinterpret_cast<char*>(part->mutable_data_ptr<uint8_t>());
    if (!file.read(bytes, part->numel())) return false;
  }
  const Tensor scaled = images.to(lamella::kFloat) / 16, numbers = labels.to(lamella::kLong);
  const int64_t cut = count - kTest;
  train = {scaled.narrow(0, 0, cut), numbers.narrow(0, 0, cut)};
  test = {scaled.narrow(0, cut, kTest), numbers.narrow(0, cut, kTest)};
  return true;
}

// ---- The networks

// Weights of a layer with this many inputs for each output.
Tensor weights(std::vector<int64_t> shape, int64_t inputs) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return lamella::empty(shape, lamella::kFloat).uniform_(-bound, bound).set_requires_grad(true);
}

struct Net {
  std::string name;
  std::vector<Tensor> parameters;
  std::function<Tensor(const std::vector<Tensor>&, const Tensor&)> forward;
};

Net mlp() {
  return {"MLP",
          {weights({128, 64}, 64), weights({128}, 64), weights({10, 128}, 128), weights({10}, 128)},
          [](const std::vector<Tensor>& p, const Tensor& images) {
            Tensor hidden = digits::squareplus(lamella::linear(images, p[0], p[1]));
            return lamella::linear(hidden, p[2], p[3]);
          }};
}

Net convolutional() {
  return {"convolutional net",
          {weights({16, 1, 3, 3}, 9), weights({16}, 9), weights({32, 16, 3, 3}, 144),
           weights({32}, 144), weights({10, 128}, 128), weights({10}, 128)},
          [](const std::vector<Tensor>& p, const Tensor& images) {
            Tensor x = images.reshape({-1, 1, 8, 8});
            for (int layer = 0; layer < 2; ++layer) {
              x = lamella::conv2d(x, p[2 * layer], p[2 * layer + 1], /*stride=*/{1, 1},
                                  /*padding=*/{1, 1});
              x = lamella::max_pool2d(digits::squareplus(x), {2, 2});
            }
            return lamella::linear(x.flatten(1), p[4], p[5]);
          }};
}

// ---- Training

// AdamW: all parameters of a step in one call.
class AdamW {
 public:
  explicit AdamW(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
    for (const Tensor& p : parameters_) {
      means_.push_back(lamella::zeros(p.sizes(), lamella::kFloat));
      squares_.push_back(lamella::zeros(p.sizes(), lamella::kFloat));
      steps_.push_back(lamella::zeros({}, lamella::kFloat));
    }
  }
  void zero_grad() {
    for (Tensor& p : parameters_) p.mutable_grad() = Tensor();
  }
  void step(double lr) {
    lamella::NoGradGuard no_grad;
    std::vector<Tensor> grads;
    for (const Tensor& p : parameters_) grads.push_back(p.grad());
    lamella::_foreach_add_(steps_, 1);
    lamella::_fused_adamw_(parameters_, grads, means_, squares_, {}, steps_, lr, /*beta1=*/0.9,
                           /*beta2=*/0.999, /*weight_decay=*/1e-2, /*eps=*/1e-8,
                           /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  std::vector<Tensor> parameters_, means_, squares_, steps_;
};

double accuracy(const Net& net, const Set& set) {
  lamella::NoGradGuard no_grad;
  const Tensor right = net.forward(net.parameters, set.images).argmax(1).eq(set.labels);
  return right.to(lamella::kDouble).mean().item<double>();
}

// The learning rate rises for a tenth of the steps, then falls along a cosine.
double rate(int step, int steps) {
  const double done = static_cast<double>(step) / steps;
  return 5e-3 * std::min(done / 0.1, (1 + std::cos(M_PI * done)) / 2) + 1e-5;
}

double train(const Net& net, const Set& data, const Set& test, std::vector<float>& losses) {
  AdamW optimizer(net.parameters);
  const int64_t batches = data.labels.size(0) / kBatch;
  const int steps = static_cast<int>(kEpochs * batches);
  digits::Progress progress(net.name, steps, isatty(2) != 0);
  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Tensor order = lamella::randperm(data.labels.size(0), lamella::kLong);
    for (int64_t batch = 0; batch < batches; ++batch) {
      const Tensor chosen = order.narrow(0, batch * kBatch, kBatch);
      optimizer.zero_grad();
      const Tensor scores = net.forward(net.parameters, data.images.index_select(0, chosen));
      const Tensor loss = lamella::cross_entropy_loss(scores, data.labels.index_select(0, chosen));
      loss.backward();
      optimizer.step(rate(static_cast<int>(losses.size()), steps));
      losses.push_back(loss.item<float>());
      progress.update(static_cast<int>(losses.size()), losses.back());
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double found = accuracy(net, test);
  std::printf("%s: %d steps in %.2f s (%.0f us a step), test accuracy %.1f%%\n", net.name.c_str(),
              steps, seconds.count(), seconds.count() / steps * 1e6, found * 100);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  Set data, test;
  if (argc < 2 || !read(argv[1], data, test)) {
    std::fprintf(stderr, "usage: train_digits digits.bin [loss.svg], with a file of data.py\n");
    return 2;
  }
  digits::Curves curves;
  bool reached = true;
  for (const Net& net : {mlp(), convolutional()}) {
    std::vector<float> losses;
    reached = train(net, data, test, losses) >= kGoal && reached;
    curves.emplace_back(net.name, losses);
  }
  if (argc > 2 && !digits::save_picture(argv[2], curves)) {
    std::fprintf(stderr, "%s: cannot be written\n", argv[2]);
    return 2;
  }
  return reached ? 0 : 1;
}
