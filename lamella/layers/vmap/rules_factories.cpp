// Rules for operators that make, fill, resize or copy tensors.
#include "lamella/core/checked_size.h"
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

void new_empty_strided(BatchedCall& call) {
  IntArrayRef size = call.integers(1), stride = call.integers(2);
  LAMELLA_CHECK(size.size() == stride.size(),
                "new_empty_strided: expected as many 'stride' as 'size', got ", stride, " for ",
                size);
  Sizes strides{memory_extent(size, stride)};
  strides.insert(strides.end(), stride.begin(), stride.end());
  call.set_value(1, IValue(with_batch(call, size)));
  call.set_value(2, IValue(strides));
  call.run();
}

// ---- Writing into a given tensor --------------------------------------------------------------

uint32_t written_argument(const BatchedCall& call) {
  int written = call.plan().facts->returns[0].written;
  LAMELLA_INTERNAL_ASSERT(written >= 0, call.plan().name, " writes no argument");
  return static_cast<uint32_t>(written);
}

// Random results are made once for each example; all others once, for all examples.
void factory_out(BatchedCall& call) {
  const uint32_t at = written_argument(call);
  Tensor out = call.tensor(at);
  const int64_t times = call.plan().random ? call.batch_size() : 1;
  for (int64_t b = 0; b < times; ++b) {
    Tensor one = lamella::empty({0}, out.options());
    call.set(at, one, false);
    std::vector<lamella_value> arguments;
    for (uint32_t i = 0; i < call.op()->argument_count; ++i) arguments.push_back(call.value(i));
    lamella_value made;
    lamella::detail::check(
        lamella_call_boxed(call.op(), arguments.data(), call.op()->argument_count, &made, 1));
    IValue owned = IValue::adopt(made);
    Sizes sizes = with_batch(call, one.sizes());
    if (!out.sizes().equals(sizes)) out.resize_(sizes);
    (times == 1 ? out : out.select(0, b)).copy_(one);
  }
  call.give_value(0, IValue());
}

// Each example keeps its first elements, in row-major order.
void resize(BatchedCall& call) {
  const uint32_t at = written_argument(call);
  Tensor value = call.tensor(at);
  Sizes wanted = with_batch(call, call.integers(static_cast<uint32_t>(call.plan().find("size"))));
  if (value.sizes().equals(wanted)) return call.give_value(0, IValue());
  int64_t batch = call.batch_size();
  int64_t count = checked_numel(IntArrayRef(wanted).slice(1), "resize_");
  Tensor fresh = value.new_empty({batch, count});
  int64_t kept = batch == 0 ? 0 : std::min(count, value.numel() / batch);
  if (kept > 0) {
    fresh.narrow(1, 0, kept)
        .copy_(value.reshape({batch, value.numel() / batch}).narrow(1, 0, kept));
  }
  become(call, at, fresh.view(wanted));
}
void set(BatchedCall& call) {
  throw Error(str(call.plan().name,
                  ": expected a tensor that is not batched under vmap, where a tensor cannot be "
                  "given other memory"));
}

// ---- Filling and copying ----------------------------------------------------------------------

Tensor fill_with(const Tensor& self, const Tensor& value) {
  LAMELLA_CHECK(value.dim() == 0, "fill: expected 'value' to have no dimensions, got ",
                value.sizes());
  return lamella::add(lamella::zeros_like(self), value).to(self.scalar_type());
}
Tensor fill_with_(Tensor self, const Tensor& value) {
  LAMELLA_CHECK(value.dim() == 0, "fill_: expected 'value' to have no dimensions, got ",
                value.sizes());
  return self.copy_(value);
}
Tensor copy(const Tensor& self, const Tensor& src, bool) {
  return lamella::_to_copy(src.expand(self.sizes()), self.options());
}

constexpr NamedRule kRules[] = {
    {"new_empty_strided", &new_empty_strided},
    {"factory_out", &factory_out},
    {"resize", &resize},
    {"set", &set},
    {"fill", &decomposed<&fill_with>},
    {"fill_", &decomposed<&fill_with_>},
    {"copy", &decomposed<&copy>},
};

}  // namespace

NamedRules factory_rules() { return kRules; }

}  // namespace lamella::vmap
