#include "engine/fusion/build_micro_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord {
namespace {

using Strides = absl::InlinedVector<int64_t, 6>;

absl::Status NotFusible(const Node& node) {
  return WithNode(Refuse(Refusal::kInternal, "a fused node holds an op that no micro program can express"), node.name,
                  node.op->name);
}

// A value of the body: an element of a leaf for each index, or the result of an instruction.
struct BodyValue {
  enum class Kind : uint8_t { kTensor, kIota, kComputed };
  Kind kind = Kind::kComputed;
  int32_t number = -1;  // of the operand, or of the instruction
  MicroAccess access;   // of a leaf, by the value's own axes
};

class Builder {
 public:
  Builder(const Graph& body, absl::Span<const ConcreteType> types)
      : body_(body), types_(types), values_(static_cast<size_t>(body.num_values())) {}

  absl::StatusOr<MicroProgram> Build(int64_t space, absl::Span<const int64_t> reduced) {
    const Shape& shape = types_[static_cast<size_t>(space)].shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      const bool is_reduced = std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) != reduced.end();
      program_.axes.push_back({.size = shape[d], .is_reduced = is_reduced});
    }
    for (size_t i = 0; i < body_.inputs().size(); ++i) {
      const ConcreteType& type = types_[i];
      program_.tensors.push_back(type.dtype);
      const Shape strides = ColumnMajorStrides(type.shape);
      values_[i] = {.kind = BodyValue::Kind::kTensor,
                    .number = static_cast<int32_t>(i),
                    .access = {.offset = 0, .strides = strides}};
    }
    for (const Node& node : body_.nodes()) RETURN_IF_ERROR(Add(node));
    for (const GraphOutput& output : body_.outputs()) RETURN_IF_ERROR(AddResult(output));
    MergeAxes();
    return std::move(program_);
  }

 private:
  const Shape& ShapeOf(ValueId value) const { return types_[static_cast<size_t>(value.index)].shape; }
  BodyValue& At(ValueId value) { return values_[static_cast<size_t>(value.index)]; }

  absl::Status Add(const Node& node) {
    const CoreOp op = static_cast<CoreOp>(node.op->index);
    switch (op) {
      case CoreOp::kConstant:
        At(node.first_result) = Computed({.kind = MicroKind::kConstant,
                                          .level = MicroLevel::kUniform,
                                          .dtype = types_[static_cast<size_t>(node.first_result.index)].dtype,
                                          .constant = node.attrs.GetLiteral("value"),
                                          .node = node.name});
        return absl::OkStatus();
      case CoreOp::kIota: {
        MicroAccess access{.offset = 0, .strides = Strides(ShapeOf(node.first_result).size())};
        access.strides[static_cast<size_t>(node.attrs.Int("dimension"))] = 1;
        At(node.first_result) = {.kind = BodyValue::Kind::kIota, .access = std::move(access)};
        return absl::OkStatus();
      }
      case CoreOp::kTranspose:
      case CoreOp::kReshape:
      case CoreOp::kBroadcastInDim:
      case CoreOp::kSlice:
      case CoreOp::kReverse:
        return AddView(node, op);
      case CoreOp::kReduce:
        return AddReduce(node);
      default:
        break;
    }
    if (!node.op->has(kElementwise)) return NotFusible(node);
    return AddElementwise(node, op);
  }

  // A value under another shape. A computed value is at its place already, whatever its shape.
  absl::Status AddView(const Node& node, CoreOp op) {
    const ValueId operand = node.operands[0];
    BodyValue value = At(operand);
    if (value.kind == BodyValue::Kind::kComputed) {
      const bool is_constant = program_.instructions[static_cast<size_t>(value.number)].kind == MicroKind::kConstant;
      if (op != CoreOp::kReshape && op != CoreOp::kBroadcastInDim && !is_constant) return NotFusible(node);
      At(node.first_result) = std::move(value);
      return absl::OkStatus();
    }
    const Shape& from = ShapeOf(operand);
    const Shape& to = ShapeOf(node.first_result);
    const Strides strides = value.access.strides;
    Strides& viewed = value.access.strides;
    viewed.assign(to.size(), 0);
    switch (op) {
      case CoreOp::kTranspose: {
        const std::vector<int64_t>& permutation = node.attrs.Ints("permutation");
        for (size_t i = 0; i < to.size(); ++i) viewed[i] = strides[static_cast<size_t>(permutation[i])];
        break;
      }
      case CoreOp::kBroadcastInDim: {
        const std::vector<int64_t>& axes = node.attrs.Ints("broadcast_dimensions");
        for (size_t i = 0; i < from.size(); ++i) {
          if (from[i] != 1) viewed[static_cast<size_t>(axes[i])] = strides[i];
        }
        break;
      }
      case CoreOp::kReverse:
        viewed = strides;
        for (int64_t axis : node.attrs.Ints("dimensions")) {
          const size_t a = static_cast<size_t>(axis);
          value.access.offset += (std::max<int64_t>(from[a], 1) - 1) * strides[a];
          viewed[a] = -strides[a];
        }
        break;
      case CoreOp::kSlice: {
        const std::vector<int64_t>& start = node.attrs.Ints("start_indices");
        const std::vector<int64_t>& step = node.attrs.Ints("strides");
        for (size_t i = 0; i < to.size(); ++i) {
          if (to[i] != 0) value.access.offset += start[i] * strides[i];
          viewed[i] = strides[i] * (to[i] > 1 ? (step.empty() ? 1 : step[i]) : 1);
        }
        break;
      }
      default: {  // kReshape: axes of one element come and go
        size_t i = 0;
        for (size_t j = 0; j < to.size(); ++j) {
          if (to[j] == 1) continue;
          while (i < from.size() && from[i] == 1) ++i;
          if (i == from.size() || from[i] != to[j]) return NotFusible(node);
          viewed[j] = strides[i++];
        }
        break;
      }
    }
    At(node.first_result) = std::move(value);
    return absl::OkStatus();
  }

  absl::Status AddReduce(const Node& node) {
    const ConcreteType& type = types_[static_cast<size_t>(node.operands[0].index)];
    ASSIGN_OR_RETURN(int32_t operand, Instruction(node, node.operands[0]));
    const auto kind = static_cast<ReduceKind>(node.attrs.Int("kind"));
    const bool reduces = program_.has_reduced_axes();
    if (!reduces) {
      At(node.first_result).number = ReducedAlone(node, kind, operand, type.dtype);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const MicroLevel level, LevelOf(node, type.shape));
    if (level != MicroLevel::kFull) return NotFusible(node);
    operand = RaiseTo(MicroLevel::kFull, operand, node.name);
    At(node.first_result) = Computed({.kind = MicroKind::kReduce,
                                      .level = MicroLevel::kKept,
                                      .dtype = type.dtype,
                                      .reduce = kind,
                                      .operands = {operand, -1, -1},
                                      .node = node.name});
    return absl::OkStatus();
  }

  // Reduces over axes of one element. The result is that element, with exceptions that an identity shows: 0 + -0 is 0,
  // 1·z differs from a complex z with an infinite part, and the extreme of a number with NaN in one part has it in
  // both.
  int32_t ReducedAlone(const Node& node, ReduceKind kind, int32_t operand, DType dtype) {
    const bool is_complex = kComplexes.Contains(dtype);
    if (!is_complex && (kind != ReduceKind::kSum || !kInexact.Contains(dtype))) return operand;
    MicroInstruction instruction{.kind = MicroKind::kBinary,
                                 .level = program_.instructions[static_cast<size_t>(operand)].level,
                                 .dtype = dtype,
                                 .op = kind == ReduceKind::kSum       ? CoreOp::kAdd
                                       : kind == ReduceKind::kProduct ? CoreOp::kMultiply
                                       : kind == ReduceKind::kMax     ? CoreOp::kMaximum
                                                                      : CoreOp::kMinimum,
                                 .operands = {operand, operand, -1},
                                 .node = node.name};
    if (kind == ReduceKind::kSum || kind == ReduceKind::kProduct) {
      Literal identity = VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
        return Literal::Scalar<T>(T(static_cast<float>(kind == ReduceKind::kProduct)));
      });
      instruction.operands[1] = Computed({.kind = MicroKind::kConstant,
                                          .level = MicroLevel::kUniform,
                                          .dtype = dtype,
                                          .constant = std::make_shared<const Literal>(std::move(identity)),
                                          .node = node.name})
                                    .number;
    }
    return Computed(std::move(instruction)).number;
  }

  absl::Status AddElementwise(const Node& node, CoreOp op) {
    MicroInstruction instruction{.kind = node.operands.size() == 1 ? MicroKind::kUnary : MicroKind::kBinary,
                                 .level = MicroLevel::kUniform,
                                 .dtype = types_[static_cast<size_t>(node.first_result.index)].dtype,
                                 .op = op,
                                 .node = node.name};
    if (op == CoreOp::kCompare) {
      instruction.kind = MicroKind::kCompare;
      instruction.direction = static_cast<CompareDirection>(node.attrs.Int("direction"));
    }
    if (op == CoreOp::kSelect) instruction.kind = MicroKind::kSelect;
    if (op == CoreOp::kClamp) instruction.kind = MicroKind::kClamp;
    if (op == CoreOp::kConvert) instruction.kind = MicroKind::kConvert;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      ASSIGN_OR_RETURN(const int32_t operand, Instruction(node, node.operands[k]));
      instruction.operands[k] = operand;
      instruction.level = std::max(instruction.level, program_.instructions[static_cast<size_t>(operand)].level);
    }
    At(node.first_result) = Computed(std::move(instruction));
    return absl::OkStatus();
  }

  // A result has an element for each point of its shape, so its value must have too.
  absl::Status AddResult(const GraphOutput& output) {
    Node none{.name = output.name, .op = &Def(CoreOp::kConvert)};
    if (!body_.is_input(output.value)) none = body_.nodes()[static_cast<size_t>(body_.producer(output.value))];
    ASSIGN_OR_RETURN(int32_t value, Instruction(none, output.value));
    ASSIGN_OR_RETURN(const MicroLevel level, LevelOf(none, ShapeOf(output.value)));
    value = RaiseTo(level, value, none.name);
    program_.results.push_back({.value = value});
    return absl::OkStatus();
  }

  // Tells by the axes that a shape spans; sizes of 1 tell nothing.
  absl::StatusOr<MicroLevel> LevelOf(const Node& node, const Shape& shape) const {
    const auto spans = [&](MicroLevel level) {
      size_t i = 0;
      for (const MicroAxis& axis : program_.axes) {
        if (level == MicroLevel::kKept && axis.is_reduced) continue;
        while (i < shape.size() && shape[i] == 1) ++i;
        if (i == shape.size() || shape[i++] != axis.size) return false;
      }
      while (i < shape.size() && shape[i] == 1) ++i;
      return i == shape.size();
    };
    if (spans(MicroLevel::kFull)) return MicroLevel::kFull;
    if (spans(MicroLevel::kKept)) return MicroLevel::kKept;
    if (std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size == 1; })) return MicroLevel::kUniform;
    return NotFusible(node);
  }

  // Returns the instruction that has the value: a leaf is loaded where it is read first.
  absl::StatusOr<int32_t> Instruction(const Node& reader, ValueId id) {
    const BodyValue& value = At(id);
    if (value.kind == BodyValue::Kind::kComputed) return value.number;
    const Shape& shape = ShapeOf(id);
    ASSIGN_OR_RETURN(const MicroLevel level, LevelOf(reader, shape));
    MicroInstruction load{.kind = value.kind == BodyValue::Kind::kIota ? MicroKind::kIota : MicroKind::kLoad,
                          .level = MicroLevel::kUniform,
                          .dtype = types_[static_cast<size_t>(id.index)].dtype,
                          .tensor = value.kind == BodyValue::Kind::kIota ? -1 : value.number,
                          .access = {.offset = value.access.offset, .strides = Strides(program_.axes.size())},
                          .node = body_.NameOf(id)};
    size_t i = 0;
    for (size_t d = 0; d < program_.axes.size() && level != MicroLevel::kUniform; ++d) {
      if (level == MicroLevel::kKept && program_.axes[d].is_reduced) continue;
      while (shape[i] == 1) ++i;
      load.access.strides[d] = value.access.strides[i++];
      if (load.access.strides[d] == 0) continue;
      load.level = program_.axes[d].is_reduced || !program_.has_reduced_axes()
                       ? MicroLevel::kFull
                       : std::max(load.level, MicroLevel::kKept);
    }
    for (int32_t known : loads_) {
      const MicroInstruction& other = program_.instructions[static_cast<size_t>(known)];
      if (other.kind == load.kind && other.tensor == load.tensor && other.dtype == load.dtype &&
          other.access == load.access) {
        return known;
      }
    }
    const int32_t number = Computed(std::move(load)).number;
    loads_.push_back(number);
    return number;
  }

  BodyValue Computed(MicroInstruction instruction) {
    for (int32_t operand : instruction.operands) {
      if (operand < 0) continue;
      instruction.stage = std::max(instruction.stage, program_.instructions[static_cast<size_t>(operand)].stage);
    }
    if (instruction.kind == MicroKind::kReduce) ++instruction.stage;
    program_.instructions.push_back(std::move(instruction));
    return {.number = static_cast<int32_t>(program_.instructions.size()) - 1};
  }

  // Returns the value at a higher level, where it is at a lower one.
  int32_t RaiseTo(MicroLevel level, int32_t value, const std::string& node) {
    const MicroInstruction& instruction = program_.instructions[static_cast<size_t>(value)];
    if (instruction.level >= level) return value;
    return Computed({.kind = MicroKind::kConvert,
                     .level = level,
                     .dtype = instruction.dtype,
                     .operands = {value, -1, -1},
                     .node = node})
        .number;
  }

  // Neighbours of one kind that every access walks through as if they were one.
  void MergeAxes() {
    size_t d = 0;
    while (d + 1 < program_.axes.size()) {
      const auto is_one = [&](const MicroInstruction& instruction) {
        const Strides& strides = instruction.access.strides;
        return strides.empty() || strides[d + 1] == strides[d] * program_.axes[d].size;
      };
      if (program_.axes[d].is_reduced != program_.axes[d + 1].is_reduced ||
          !std::all_of(program_.instructions.begin(), program_.instructions.end(), is_one)) {
        ++d;
        continue;
      }
      program_.axes[d].size *= program_.axes[d + 1].size;
      program_.axes.erase(program_.axes.begin() + static_cast<std::ptrdiff_t>(d) + 1);
      for (MicroInstruction& instruction : program_.instructions) {
        Strides& strides = instruction.access.strides;
        if (!strides.empty()) strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d) + 1);
      }
    }
  }

  const Graph& body_;
  const absl::Span<const ConcreteType> types_;
  std::vector<BodyValue> values_;  // by value of the body
  std::vector<int32_t> loads_;
  MicroProgram program_;
};

}  // namespace

absl::StatusOr<MicroProgram> BuildMicroProgram(const Attributes& attrs, const Graph& body,
                                               absl::Span<const ConcreteType> types) {
  return Builder(body, types).Build(attrs.Int("space"), attrs.Ints("reduced_axes"));
}

}  // namespace tensord
