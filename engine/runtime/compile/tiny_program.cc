#include "engine/runtime/compile/tiny_program.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "engine/exec/program/program_stages.h"
#include "engine/fusion/fused_op.h"
#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// So few that looking at them takes a fraction of a run of some microseconds.
constexpr size_t kMaxInstructions = 16;
constexpr size_t kMaxSlots = 4 * kMaxInstructions;
constexpr int32_t kMaxBodyValues = 128;  // of all fused instructions
// The most multiplications of a product. Dense products of 4 bytes an element and more have no more on so few bytes.
constexpr double kMaxMultiplications = 160e3;

// Adds up the bytes of values, as long as they are few.
class TinyBytes {
 public:
  explicit TinyBytes(const SizeBinding& sizes) : sizes_(sizes) {}

  bool Add(const TensorType& type) {
    const absl::StatusOr<ConcreteType> concrete = sizes_.Resolve(type);
    if (!concrete.ok() || concrete->num_bytes() > kMostTinyBytes) return false;
    bytes_ += concrete->num_bytes();
    return bytes_ <= kMostTinyBytes;
  }

  // Adds all values that the body computes except its results, which are slots, too.
  bool AddBody(const Graph& body) {
    std::vector<bool> is_counted(static_cast<size_t>(body.num_values()), true);
    for (const GraphOutput& output : body.outputs()) is_counted[static_cast<size_t>(output.value.index)] = false;
    for (auto v = static_cast<int32_t>(body.inputs().size()); v < body.num_values(); ++v) {
      if (is_counted[static_cast<size_t>(v)] && !Add(body.type({v}))) return false;
    }
    return true;
  }

 private:
  const SizeBinding& sizes_;
  int64_t bytes_ = 0;
};

// Returns a bound: the square of m·k·n is at most the product of the sizes of the operands and the result.
double MultiplicationsOf(const ExecInstruction& instruction, const ExecProgram& program, const SizeBinding& sizes) {
  if (IsAffineDot(*instruction.op)) {
    double product = 1;
    for (const int64_t size : instruction.attrs.Ints("sizes")) product *= static_cast<double>(size);
    return product;
  }
  double square = 1;
  const auto multiply = [&](Slot slot) {
    const absl::StatusOr<ConcreteType> type = sizes.Resolve(program.slot_types[static_cast<size_t>(slot)]);
    square *= type.ok() ? static_cast<double>(type->num_elements()) : 0;
  };
  for (const Slot slot : instruction.operands) multiply(slot);
  multiply(instruction.results[0]);
  return std::sqrt(square);
}

}  // namespace

bool MayBeTiny(const ExecProgram& program) {
  if (program.instructions.size() > kMaxInstructions || program.slot_types.size() > kMaxSlots) return false;
  if (HasRunTimeSizes(program)) return false;
  int32_t body_values = 0;
  for (const ExecInstruction& instruction : program.instructions) {
    if (instruction.body != nullptr) body_values += instruction.body->num_values();
    const bool is_judged =
        instruction.op->family == Def(CoreOp::kAdd).family || IsFused(*instruction.op) || IsAffineDot(*instruction.op);
    if (!is_judged || body_values > kMaxBodyValues) return false;
  }
  return true;
}

bool IsTiny(const ExecProgram& program, const SizeBinding& sizes) {
  TinyBytes bytes(sizes);
  for (const TensorType& type : program.slot_types) {
    if (!bytes.Add(type)) return false;
  }
  for (const ExecInstruction& instruction : program.instructions) {
    if (instruction.body != nullptr && !bytes.AddBody(*instruction.body)) return false;
    const bool is_product = IsAffineDot(*instruction.op) || Is(*instruction.op, CoreOp::kDotGeneral);
    if (is_product && MultiplicationsOf(instruction, program, sizes) > kMaxMultiplications) return false;
  }
  return true;
}

}  // namespace tensord
