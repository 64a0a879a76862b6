// Random numbers.
//
// Note [Random bits]
//   Philox4x32-10 and Threefry2x32-20 (J. K. Salmon et al., Parallel random numbers: as easy as 1,
//   2, 3, SC'11) encrypt a counter with a key. The state has both: a u64 key, then the counter, of
//   one word for Threefry, and of two words for Philox, or of one, whose upper half is then the
//   key. A state of u32 has the same bytes. Results of at most 32 bits take a 32-bit word each.
//   Philox gives four words for each counter, in order. Threefry gives two, which go to adjacent
//   elements of one dimension. The choice of that dimension and the handling of odd sizes are
//   XLA's, so the bits equal XLA's.
#include "lamella/graph/evaluate/random.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

using Words = std::array<uint32_t, 4>;

uint32_t low_word(uint64_t word) { return static_cast<uint32_t>(word); }
uint32_t high_word(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
uint64_t join_words(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

Words philox(uint64_t counter_low, uint64_t counter_high, uint64_t key) {
  Words c{low_word(counter_low), high_word(counter_low), low_word(counter_high),
          high_word(counter_high)};
  uint32_t key0 = low_word(key), key1 = high_word(key);
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t{0xD2511F53} * c[0], second = uint64_t{0xCD9E8D57} * c[2];
    c = {high_word(second) ^ c[1] ^ key0, low_word(second), high_word(first) ^ c[3] ^ key1,
         low_word(first)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return c;
}

uint64_t threefry(uint64_t counter, uint64_t key) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t keys[3] = {low_word(key), high_word(key), 0};
  keys[2] = keys[0] ^ keys[1] ^ 0x1BD11BDA;
  uint32_t x = low_word(counter) + keys[0], y = high_word(counter) + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : rotations[group % 2]) {
      x += y;
      y = std::rotl(y, rotation) ^ x;
    }
    x += keys[(group + 1) % 3];
    y += keys[(group + 2) % 3] + group + 1;
  }
  return join_words(x, y);
}

// Stores words in elements of at most their width.
class BitWriter {
 public:
  BitWriter(const Value& array) : to_(array.data()), type_(array.shape().element_type()) {}
  void operator()(int64_t n, uint64_t word) const {
    int bits = element_bits(type_);
    if (bits < 8) {
      visit_integers(type_, [&]<class Number>() {
        store_wide<Number>(to_, n, static_cast<Wide<Number>>(word));
      });
      return;
    }
    auto bytes = static_cast<size_t>(element_bytes(type_));
    std::memcpy(static_cast<std::byte*>(to_) + static_cast<size_t>(n) * bytes, &word, bytes);
  }

 private:
  void* to_;
  ElementType type_;
};

struct PhiloxCounter {
  uint64_t low, high;
  // The counter advanced by n.
  PhiloxCounter plus(uint64_t n) const { return {low + n, high + (low + n < low ? 1 : 0)}; }
};
void philox_bits(const Value& bits, uint64_t key, PhiloxCounter* counter) {
  BitWriter write(bits);
  int64_t count = bits.shape().elements();
  bool wide = element_bits(bits.shape().element_type()) == 64;
  int64_t each = wide ? 2 : 4;
  int64_t blocks = (count + each - 1) / each;
  for (int64_t block = 0; block < blocks; ++block) {
    PhiloxCounter at = counter->plus(static_cast<uint64_t>(block));
    Words words = philox(at.low, at.high, key);
    for (int64_t n = 0; n < each && block * each + n < count; ++n) {
      auto w = static_cast<size_t>(n);
      write(block * each + n, wide ? join_words(words[2 * w], words[2 * w + 1]) : words[w]);
    }
  }
  *counter = counter->plus(static_cast<uint64_t>((wide ? 2 * count : count) + 3) / 4);
}

// The first dimension of even size, else the largest, else (a scalar) -1.
int64_t halved_dimension(const Shape& shape) {
  int64_t largest = -1;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d) % 2 == 0) return d;
    if (largest < 0 || shape.dimension(d) > shape.dimension(largest)) largest = d;
  }
  return largest;
}
void threefry_bits(const Value& bits, uint64_t key, uint64_t* counter) {
  BitWriter write(bits);
  const Shape& shape = bits.shape();
  int64_t count = shape.elements();
  if (element_bits(shape.element_type()) == 64) {
    each_element(count,
                 [&](int64_t n) { write(n, threefry(*counter + static_cast<uint64_t>(n), key)); });
    *counter += static_cast<uint64_t>(count);
    return;
  }
  int64_t halved = halved_dimension(shape);
  std::vector<int64_t> sizes = copy_of(shape.dimensions());
  int64_t stride = 1, size = 1;
  if (halved >= 0) {
    auto d = static_cast<size_t>(halved);
    stride = row_major_strides(sizes)[d];
    size = sizes[d];
    sizes[d] = (size + 1) / 2;
  }
  uint64_t done = 0;
  std::vector<int64_t> strides = row_major_strides(shape.dimensions());
  for (Counter place(sizes); place.valid(); place.next(), ++done) {
    uint64_t pair = threefry(*counter + done, key);
    int64_t along = halved >= 0 ? place[static_cast<size_t>(halved)] : 0;
    // Index n of the halved dimension stands for indices 2n and 2n + 1.
    int64_t first = place_of(place.index(), strides) + along * stride;
    write(first, low_word(pair));
    if (2 * along + 1 < size) write(first + stride, high_word(pair));
  }
  *counter += done;
}

}  // namespace

Value evaluate_rng_bit_generator(Step& step) {
  const Instruction& i = step.instruction;
  const Value& state = step.operands[0];
  size_t words = state.bytes() / 8;
  std::string_view algorithm = i.text(AttributeKey::Algorithm);
  bool is_threefry = algorithm == "rng_three_fry";
  LAMELLA_HLO_REQUIRE(is_threefry || algorithm == "rng_philox" || algorithm == "rng_default", i,
                      "expected algorithm to be rng_default, rng_philox or rng_three_fry, got '",
                      algorithm, "'");
  const Shape& stated = state.shape();
  bool good_state =
      (stated.element_type() == ElementType::U64 || stated.element_type() == ElementType::U32) &&
      stated.rank() == 1 && state.bytes() % 8 == 0;
  LAMELLA_HLO_REQUIRE(good_state && (words == 2 || (words == 3 && !is_threefry)), i,
                      "expected a state of ", is_threefry ? "2" : "2 or 3",
                      " words of 64 bits, got ", stated.to_string(false));
  bool both = i.shape->is_tuple();
  const Shape* bits_shape = both ? &i.shape->tuple_shapes()[1] : i.shape;

  uint64_t numbers[3] = {};
  std::memcpy(numbers, state.data(), state.bytes());
  Value bits = Value::uninitialized(bits_shape);
  if (is_threefry) {
    threefry_bits(bits, numbers[0], &numbers[1]);
  } else {
    PhiloxCounter counter{numbers[1], words == 3 ? numbers[2] : numbers[0]};
    philox_bits(bits, numbers[0], &counter);
    numbers[1] = counter.low;
    if (words == 3) numbers[2] = counter.high;
  }
  if (!both) return bits;
  Value next = Value::uninitialized(&i.shape->tuple_shapes()[0]);
  std::memcpy(next.data(), numbers, next.bytes());
  Value parts[] = {std::move(next), std::move(bits)};
  return Value::tuple(i.shape, parts);
}

namespace {

constinit std::mutex state_mutex;
constinit PhiloxCounter state{kRandomStateAtStart, 0};

// Adds `delta` to the counter and returns its previous value.
PhiloxCounter take_state(uint64_t delta) {
  std::lock_guard lock(state_mutex);
  PhiloxCounter taken = state;
  state = state.plus(delta);
  return taken;
}

}  // namespace

Value evaluate_rng_get_and_update_state(Step& step) {
  Value result = step.result();
  PhiloxCounter taken =
      take_state(static_cast<uint64_t>(step.instruction.integer(AttributeKey::Delta)));
  std::memcpy(result.data(), &taken, sizeof(taken));
  return result;
}

namespace {

// A stream of random 64-bit words.
class Stream {
 public:
  uint64_t word() {
    if (left_ == 0) {
      PhiloxCounter at = take_state(1);
      words_ = philox(at.low, at.high, kKey);
      left_ = 2;
    }
    size_t first = 4 - 2 * left_--;
    return join_words(words_[first], words_[first + 1]);
  }
  // A uniform number in [0, 1).
  double fraction() { return std::ldexp(static_cast<double>(word() >> 11), -53); }
  // A draw from the standard normal distribution (G. E. P. Box and M. E. Muller, 1958).
  double normal() {
    double radius = std::sqrt(-2 * std::log(1 - fraction()));
    return radius * std::cos(2 * M_PI * fraction());
  }

 private:
  static constexpr uint64_t kKey = 0x6c616d656c6c61;
  Words words_{};
  size_t left_ = 0;
};

template <class Number>
void normal_numbers(const Value& mean, const Value& deviation, Value& result) {
  Stream stream;
  double mu = load_wide<Number>(mean.data(), 0), sigma = load_wide<Number>(deviation.data(), 0);
  each_element(result.shape().elements(), [&](int64_t n) {
    store_wide<Number>(result.data(), n, mu + sigma * stream.normal());
  });
}
template <class Number>
void uniform_numbers(const Value& low, const Value& high, Value& result) {
  Stream stream;
  auto from = load_wide<Number>(low.data(), 0), to = load_wide<Number>(high.data(), 0);
  each_element(result.shape().elements(), [&](int64_t n) {
    if constexpr (std::is_floating_point_v<Wide<Number>>) {
      // A number that rounds to the excluded end of the range is drawn again.
      do {
        store_wide<Number>(result.data(), n, from + (to - from) * stream.fraction());
      } while (std::isfinite(to - from) && from < to && load_wide<Number>(result.data(), n) >= to);
    } else {
      uint64_t size = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
      uint64_t offset = to > from ? stream.word() % size : 0;
      store_wide<Number>(result.data(), n,
                         static_cast<Wide<Number>>(static_cast<uint64_t>(from) + offset));
    }
  });
}
}  // namespace

Value evaluate_rng(Step& step) {
  const Instruction& i = step.instruction;
  ElementType type = step.shape().element_type();
  std::string_view distribution = i.text(AttributeKey::Distribution);
  Value result = step.result();
  const Value &first = step.operands[0], &second = step.operands[1];
  if (distribution == "rng_normal") {
    LAMELLA_HLO_REQUIRE(is_floating(type), i, "expected floating-point numbers, got ",
                        element_name(type));
    visit_floats(type, [&]<class Number>() { normal_numbers<Number>(first, second, result); });
  } else if (distribution == "rng_uniform") {
    LAMELLA_HLO_REQUIRE(is_floating(type) || is_integral(type), i,
                        "expected integers or floating-point numbers, got ", element_name(type));
    auto fill = [&]<class Number>() { uniform_numbers<Number>(first, second, result); };
    if (is_floating(type)) {
      visit_floats(type, fill);
    } else {
      visit_integers(type, fill);
    }
  } else {
    fail(i, "expected distribution to be rng_uniform or rng_normal, got '", distribution, "'");
  }
  return result;
}

void set_random_state(uint64_t low, uint64_t high) {
  std::lock_guard lock(state_mutex);
  state = {low, high};
}

}  // namespace lamella::hlo
