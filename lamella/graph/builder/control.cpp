// Builder functions for tuples, control flow and tokens.
#include "lamella/graph/builder/control.h"

#include "lamella/graph/builder/emission.h"

namespace lamella::hlo {

Op Tuple(Within builder, Span<Op> elements) {
  return emit("Tuple", builder, [&](Emission& e) {
    std::vector<Shape> shapes;
    for (Op element : elements) shapes.push_back(e.shape(element));
    return e.add(Opcode::Tuple, elements, e.attributes(), Shape::tuple(std::move(shapes)));
  });
}
Op GetTupleElement(Operand tuple_data, int64_t index) {
  return emit("GetTupleElement", tuple_data, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.integer(AttributeKey::Index, index);
    return e.add(Opcode::GetTupleElement, {tuple_data}, std::move(attributes));
  });
}

Op Call(Within builder, const BuiltComputation& computation, Span<Op> operands) {
  return emit("Call", builder, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.computation(AttributeKey::ToApply, e.import(computation, "computation"));
    return e.add(Opcode::Call, operands, std::move(attributes));
  });
}
Op CompositeCall(Within builder, const BuiltComputation& computation, Span<Op> operands,
                 const std::string& name, std::optional<std::string_view> attributes,
                 std::optional<int64_t> version) {
  return emit("CompositeCall", builder, [&](Emission& e) {
    LAMELLA_EXPECT(!name.empty(), "'name' to be set, got an empty one");
    AttributeList list = e.attributes();
    list.computation(AttributeKey::ToApply, e.import(computation, "computation"));
    list.flag(AttributeKey::IsComposite, true);
    FrontendAttributes all = e.builder()->frontend_attributes();
    (*all.mutable_map())["composite.name"] = name;
    if (attributes) (*all.mutable_map())["composite.attributes"] = std::string(*attributes);
    if (version) (*all.mutable_map())["composite.version"] = std::to_string(*version);
    FrontendAttributes before = e.builder()->SwapFrontendAttributes(all);
    struct Restore {
      Builder* builder;
      FrontendAttributes before;
      ~Restore() { builder->SwapFrontendAttributes(before); }
    } restore{e.builder(), std::move(before)};
    return e.add(Opcode::Call, operands, std::move(list));
  });
}
Op Map(Within builder, Span<Op> operands, const BuiltComputation& computation,
       Span<int64_t> dimensions, Span<Op> static_operands) {
  return emit("Map", builder, [&](Emission& e) {
    LAMELLA_EXPECT(static_operands.empty(), "no 'static_operands', got ", static_operands.size());
    LAMELLA_EXPECT(!operands.empty(), "'operands' to hold an op, got none");
    int64_t rank = e.array(operands[0], "operands").rank();
    for (size_t d = 0; d < dimensions.size(); ++d) {
      LAMELLA_EXPECT(dimensions[d] == static_cast<int64_t>(d),
                     "'dimensions' to name all dimensions in order, got ", braced(dimensions));
    }
    LAMELLA_EXPECT(static_cast<int64_t>(dimensions.size()) == rank, "'dimensions' to name all ",
                   rank, " dimensions, got ", braced(dimensions));
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions, dimensions);
    attributes.computation(AttributeKey::ToApply, e.import(computation, "computation"));
    return e.add(Opcode::Map, operands, std::move(attributes));
  });
}
Op While(const BuiltComputation& condition, const BuiltComputation& body, Operand init) {
  return emit("While", init, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.computation(AttributeKey::Condition, e.import(condition, "condition"));
    attributes.computation(AttributeKey::Body, e.import(body, "body"));
    return e.add(Opcode::While, {init}, std::move(attributes));
  });
}
Op Conditional(Operand predicate, Op true_operand, const BuiltComputation& true_computation,
               Op false_operand, const BuiltComputation& false_computation) {
  return emit("Conditional", predicate, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.computation(AttributeKey::TrueComputation,
                           e.import(true_computation, "true_computation"));
    attributes.computation(AttributeKey::FalseComputation,
                           e.import(false_computation, "false_computation"));
    return e.add(Opcode::Conditional, {predicate, true_operand, false_operand},
                 std::move(attributes));
  });
}
Op Conditional(Operand branch_index, Span<const BuiltComputation*> branch_computations,
               Span<Op> branch_operands) {
  return emit("Conditional", branch_index, [&](Emission& e) {
    std::vector<Computation*> branches;
    for (const BuiltComputation* one : branch_computations) {
      LAMELLA_EXPECT(one != nullptr, "'branch_computations' to be computations, got null");
      branches.push_back(e.import(*one, "branch_computations"));
    }
    std::vector<Op> operands{branch_index};
    operands.insert(operands.end(), branch_operands.begin(), branch_operands.end());
    AttributeList attributes = e.attributes();
    attributes.computations(AttributeKey::BranchComputations, branches);
    return e.add(Opcode::Conditional, operands, std::move(attributes));
  });
}

Op OptimizationBarrier(Operand operand) {
  return emit("OptimizationBarrier", operand,
              [&](Emission& e) { return e.add(Opcode::OptimizationBarrier, {operand}); });
}
Op CreateToken(Within builder) {
  return emit("CreateToken", builder, [&](Emission& e) {
    return e.add(Opcode::AfterAll, {}, e.attributes(), Shape::token());
  });
}
Op AfterAll(Within builder, Span<Op> tokens) {
  return emit("AfterAll", builder, [&](Emission& e) {
    LAMELLA_EXPECT(!tokens.empty(), "'tokens' to hold an op, got none");
    for (Op token : tokens) {
      LAMELLA_EXPECT(e.shape(token).is_token(), "'tokens' to be tokens, got ",
                     e.shape(token).to_string(false));
    }
    return e.add(Opcode::AfterAll, tokens);
  });
}

}  // namespace lamella::hlo
