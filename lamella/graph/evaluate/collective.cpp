// Collectives: on the ranks of a job, or on a single device, where most return their operand.
#include "lamella/graph/evaluate/rules.h"

#include <charconv>
#include <cstring>

#include "lamella/graph/evaluate/elements.h"
#include "lamella/graph/evaluate/job.h"
#include "lamella/graph/evaluate/together.h"

namespace lamella::hlo {
namespace {

// Throws unless an operand has the shape of the result that the only participant gets.
void require_alone(const Instruction& i, const Shape& given, const Shape& expected) {
  LAMELLA_HLO_REQUIRE(given.compatible(expected), i, "expected ", given.to_string(false),
                      " to become ", given.to_string(false), " on one device, got ",
                      expected.to_string(false));
}
Value pass_on(Step& step, const Shape* shape) {
  const Instruction& i = step.instruction;
  if (const Participant* participant = step.run.context.participant) {
    return evaluate_together(step, *participant, shape);
  }
  if (auto job = job_of(i)) return evaluate_on_job(step, *job, shape);
  // A sum may have another type than its operand.
  bool adds = i.opcode == Opcode::AllReduce || i.opcode == Opcode::AllReduceStart;
  if (!shape->is_tuple()) {
    LAMELLA_HLO_REQUIRE(step.operands.size() == 1, i, "expected one operand on one device, got ",
                        step.operands.size());
    const Shape& given = step.operands[0].shape();
    if (adds && given.same_dimensions(*shape)) return evaluate_convert(step);
    require_alone(i, given, *shape);
    return step.operands[0];
  }
  LAMELLA_HLO_REQUIRE(step.operands.size() == shape->tuple_shapes().size(), i, "expected ",
                      shape->tuple_shapes().size(), " operands, got ", step.operands.size());
  std::vector<Value> parts;
  for (size_t n = 0; n < step.operands.size(); ++n) {
    const Shape& part = shape->tuple_shapes()[n];
    if (adds && step.operands[n].shape().same_dimensions(part)) {
      Instruction one = i;
      one.shape = &part;
      Step convert{one, step.operands.subspan(n, 1), step.run};
      parts.push_back(evaluate_convert(convert));
      continue;
    }
    require_alone(i, step.operands[n].shape(), part);
    parts.push_back(step.operands[n]);
  }
  return Value::tuple(shape, parts);
}

// On one device, replica 0 gets its own operand if it is the target of a pair, otherwise zeros.
Value permute(Step& step, const Shape* shape) {
  const Instruction& i = step.instruction;
  if (const Participant* participant = step.run.context.participant) {
    return evaluate_together(step, *participant, shape);
  }
  if (auto job = job_of(i)) return evaluate_on_job(step, *job, shape);
  LAMELLA_HLO_REQUIRE(!i.has(AttributeKey::SliceSizesOfPairs), i,
                      "expected no slice_sizes, which copy between buffers, got ",
                      i.text(AttributeKey::SliceSizesOfPairs));
  std::string_view text = i.text(AttributeKey::SourceTargetPairs);
  std::vector<int64_t> numbers;
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    int64_t number = 0;
    auto [after, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number);
    at = error == std::errc() ? after : at + 1;
  }
  LAMELLA_HLO_REQUIRE(numbers.size() % 2 == 0, i, "expected source_target_pairs to be pairs, got ",
                      text);
  for (size_t n = 0; n < numbers.size(); n += 2) {
    if (numbers[n + 1] != 0) continue;
    LAMELLA_HLO_REQUIRE(numbers[n] == 0, i, "expected replica 0 to be the only one, got source ",
                        numbers[n], " in ", text);
    return pass_on(step, shape);
  }
  if (!shape->is_tuple()) return Value::zeros(shape);
  std::vector<Value> parts;
  for (const Shape& part : shape->tuple_shapes()) parts.push_back(Value::zeros(&part));
  return Value::tuple(shape, parts);
}

// The tuple of a start: operands, result, and for some opcodes a context of numbers, here zeros.
Value start(Step& step, Value result) {
  const std::vector<Shape>& shapes = step.shape().tuple_shapes();
  std::vector<Value> parts;
  if (shapes[0].is_tuple()) {
    std::vector<Value> operands(step.operands.begin(), step.operands.end());
    parts.push_back(Value::tuple(&shapes[0], operands));
  } else {
    parts.push_back(step.operands[0]);
  }
  parts.push_back(std::move(result));
  for (size_t n = 2; n < shapes.size(); ++n) parts.push_back(Value::zeros(&shapes[n]));
  return Value::tuple(step.instruction.shape, parts);
}

const Shape* result_of_start(const Step& step) { return &step.shape().tuple_shapes()[1]; }

}  // namespace

// Each entry of the offsets copies a range of rows of the operand to the output.
Value evaluate_ragged_all_to_all(Step& step) {
  const Instruction& i = step.instruction;
  if (const Participant* participant = step.run.context.participant) {
    return evaluate_together(step, *participant, &step.shape());
  }
  Value result = Value::writable(step.operands[1]);
  Elements from(step.operands[0]), into(result);
  const Shape& input = step.operands[0].shape();
  const Shape& output = step.shape();
  int64_t row = 1;
  for (int64_t d = 1; d < output.rank(); ++d) row *= output.dimension(d);
  auto numbers = [&](size_t operand) {
    std::vector<int64_t> all;
    const Value& value = step.operands[operand];
    visit_integers(value.shape().element_type(), [&]<class Number>() {
      for (int64_t e = 0; e < value.shape().elements(); ++e) {
        all.push_back(static_cast<int64_t>(Number::load(value.data(), e)));
      }
    });
    return all;
  };
  std::vector<int64_t> starts = numbers(2), sizes = numbers(3), targets = numbers(4);
  std::vector<int64_t> received = numbers(5);
  for (size_t n = 0; n < starts.size(); ++n) {
    bool fits = sizes[n] >= 0 && starts[n] >= 0 && targets[n] >= 0 &&
                sizes[n] <= input.dimension(0) && sizes[n] <= output.dimension(0) &&
                starts[n] <= input.dimension(0) - sizes[n] &&
                targets[n] <= output.dimension(0) - sizes[n] && sizes[n] == received[n];
    LAMELLA_HLO_REQUIRE(fits, i, "expected run ", n, " to lie in ", input.to_string(false), " and ",
                        output.to_string(false), " and to be received as sent, got ", sizes[n],
                        " rows from ", starts[n], " to ", targets[n], ", received as ",
                        received[n]);
    size_t bytes = static_cast<size_t>(sizes[n] * row) * into.size;
    if (bytes != 0) std::memcpy(into.at(targets[n] * row), from.at(starts[n] * row), bytes);
  }
  return result;
}

Value evaluate_alone(Step& step) { return pass_on(step, step.instruction.shape); }

Value evaluate_all_gather_start(Step& step) {
  return start(step, pass_on(step, result_of_start(step)));
}

Value evaluate_collective_permute(Step& step) { return permute(step, step.instruction.shape); }

Value evaluate_collective_permute_start(Step& step) {
  return start(step, permute(step, result_of_start(step)));
}

// The result is element 1 of the tuple of a start.
Value evaluate_done(Step& step) { return step.operands[0].element(1); }

Value evaluate_id(Step& step) {
  Value result = Value::zeros(step.instruction.shape);
  if (const Participant* participant = step.run.context.participant) {
    const bool partition = step.instruction.opcode == Opcode::PartitionId;
    const int64_t number = partition ? participant->device % participant->partitions
                                     : participant->device / participant->partitions;
    std::memcpy(result.data(), &number, result.bytes());
    return result;
  }
  if (auto job = job_of(step.instruction)) {
    bool partition = step.instruction.opcode == Opcode::PartitionId;
    int64_t number = partition ? job->rank % job->partitions : job->rank / job->partitions;
    std::memcpy(result.data(), &number, result.bytes());
  }
  return result;
}

}  // namespace lamella::hlo
