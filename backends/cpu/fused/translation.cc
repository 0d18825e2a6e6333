#include "backends/cpu/fused/translation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/math/vector_math_calls.h"

namespace tensord::cpu {
namespace {

// The time that a function keeps its dependents waiting: for a called one, and for one whose instructions are in the
// code.
constexpr int kCallWeight = 3;
constexpr int kInsideWeight = 2;

bool IsWidest(DType dtype) { return dtype == DType::kC128; }
bool IsNarrow(DType dtype) { return dtype != DType::kInvalid && RegisterBytes(dtype) < 8; }

}  // namespace

void FusedTranslation::AddRepeats(const std::vector<FusedStep>& repeats) {
  for (const FusedStep& step : repeats) {
    if (step.single_a && step.over_tile) repeated_[step.out] = step.a;
  }
}

void FusedTranslation::Start(Values values) {
  values_are_single_ = values == Values::kElements;
  program_ = {};
  has_widest_ = has_narrow_ = false;
  values_.clear();
  waiting_.clear();
  arrays_.clear();
}

int FusedTranslation::WaitingFor(const FusedStep& step) const {
  int most = 0;
  for (const PlaceId place : {step.a, step.b, step.c}) {
    const auto found = waiting_.find(place);
    if (found != waiting_.end()) most = std::max(most, found->second);
  }
  return most;
}

bool FusedTranslation::FitsWidths(const JitNode& node) const {
  if (isa_ == JitIsa::kAvx512) return true;
  const bool is_select = node.op_kind == MicroKind::kSelect;  // by BOOL
  const bool widest = has_widest_ || IsWidest(node.dtype) || IsWidest(node.computed);
  const bool narrow = has_narrow_ || IsNarrow(node.dtype) || IsNarrow(node.computed) || is_select;
  return !widest || !narrow;
}

JitNodeId FusedTranslation::AddNode(JitNode node) {
  has_widest_ = has_widest_ || IsWidest(node.dtype);
  has_narrow_ = has_narrow_ || IsNarrow(node.dtype);
  return program_.nodes.Add(std::move(node));
}

JitNodeId FusedTranslation::Value(PlaceId place, bool single, DType dtype) {
  single = single || values_are_single_;
  if (const auto repeated = repeated_.find(place); repeated != repeated_.end() && !single) {
    place = repeated->second;
    single = true;
  }
  const auto [found, is_new] = values_.try_emplace({place, single});
  if (!is_new) return found->second;
  JitNode node = Known(place, dtype);
  if (node.kind != JitNode::Kind::kConstant) {
    if (single) node.kind = JitNode::Kind::kSingle;
    if (!single) arrays_.insert(place);
  }
  return found->second = AddNode(std::move(node));
}

// A constant, if the place is one.
JitNode FusedTranslation::Known(PlaceId place, DType dtype) const {
  const FusedPlace& at = plan_.places[place];
  JitNode node{.kind = JitNode::Kind::kInput, .dtype = dtype, .place = place};
  if (at.kind != FusedPlace::Kind::kConstant) return node;
  node.kind = JitNode::Kind::kConstant;
  std::memcpy(node.constant.data(), plan_.constants.data() + at.offset, static_cast<size_t>(SizeOf(dtype)));
  return node;
}

bool FusedTranslation::Add(const FusedStep& step) {
  if (step.kind == FusedStepKind::kCopy) {
    const auto found = values_.find({step.a, values_are_single_});
    if (found == values_.end()) return false;
    const JitNode& from = program_.nodes[found->second];
    if (from.kind == JitNode::Kind::kInput) return false;
    return Set(step.out, found->second);
  }
  JitNode node{.kind = JitNode::Kind::kOp,
               .dtype = step.dtype,
               .computed = step.computed,
               .op_kind = step.micro,
               .op = step.op,
               .direction = step.direction};
  if (!FitsWidths(node)) return false;
  int waiting = WaitingFor(step);
  switch (step.kind) {
    case FusedStepKind::kFunction: {
      const bool is_operation = step.micro == MicroKind::kUnary || step.micro == MicroKind::kBinary;
      const bool is_inside = is_operation && IsMathJitted(step.op, RegisterDType(step.computed), isa_);
      if (is_operation && !is_inside) node.call = GetVectorMathCalls().Find(step.op, RegisterDType(step.computed));
      if (!(step.b.index >= 0 ? IsJitted(node, Known(step.b, step.computed), isa_) : IsJitted(node, isa_)))
        return false;
      waiting += node.call != nullptr ? kCallWeight : is_inside ? kInsideWeight : 0;
      if (waiting > kMostWaiting) return false;
      node.operands[0] = Value(step.a, step.single_a, step.computed);
      if (step.b.index >= 0) node.operands[1] = Value(step.b, step.single_b, step.computed);
      break;
    }
    case FusedStepKind::kConvert:
      if (!IsJitted(node, isa_)) return false;
      node.operands[0] = Value(step.a, false, step.computed);
      break;
    case FusedStepKind::kSelect:
      if (!IsJitted(node, isa_)) return false;
      node.operands = {Value(step.a, false, DType::kBool), Value(step.b, false, step.dtype),
                       Value(step.c, false, step.dtype)};
      break;
    case FusedStepKind::kClamp: {
      node.op_kind = MicroKind::kBinary;
      node.op = CoreOp::kMaximum;
      node.computed = step.dtype;
      if (!IsJitted(node, isa_)) return false;
      node.operands = {Value(step.b, false, step.dtype), Value(step.a, step.single_a, step.dtype)};
      const JitNodeId raised = AddNode(node);
      node.op = CoreOp::kMinimum;
      node.operands = {raised, Value(step.c, step.single_c, step.dtype)};
      break;
    }
    default:
      return false;
  }
  if (waiting > 0) waiting_[step.out] = waiting;
  return Set(step.out, AddNode(std::move(node)));
}

// Sets the step's result to the value, stored if others may read it. Which of them do is known when the run ends.
bool FusedTranslation::Set(PlaceId out, JitNodeId value) {
  values_[{out, values_are_single_}] = value;
  const DType dtype = program_.nodes[value].dtype;
  AddNode({.kind = JitNode::Kind::kStore, .dtype = dtype, .place = out, .operands = {value}});
  return true;
}

}  // namespace tensord::cpu
