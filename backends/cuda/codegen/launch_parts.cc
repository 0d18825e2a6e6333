#include "backends/cuda/codegen/launch_parts.h"

#include <algorithm>
#include <cmath>

#include "backends/cuda/codegen/values.h"

namespace tensord {
namespace {

// Steps of a function by the elements that it is of, in 32-bit instructions; complex numbers are computed in doubles,
// whatever they are.
struct FunctionSteps {
  CoreOp op;
  double i32, i64, f32, f64, complex;

  double Of(DType dtype) const {
    if (kComplexes.Contains(dtype)) return complex;
    if (dtype == DType::kF64) return f64;
    if (dtype == DType::kI64) return i64;
    return kIntegers.Contains(dtype) ? i32 : f32;
  }
};

// An integer's power goes through the bits of the exponent, and a float's remainder through those of the quotient.
constexpr FunctionSteps kFunctionSteps[] = {{CoreOp::kDivide, 20, 80, 12, 40, 400},
                                            {CoreOp::kRemainder, 20, 80, 300, 4000, 0},
                                            {CoreOp::kPow, 200, 1000, 100, 300, 3000},
                                            {CoreOp::kAtan2, 0, 0, 40, 160, 0},
                                            {CoreOp::kMaximum, 0, 0, 0, 12, 24},
                                            {CoreOp::kMinimum, 0, 0, 0, 12, 24},
                                            {CoreOp::kAbs, 0, 0, 0, 0, 100}};
constexpr FunctionSteps kUnarySteps = {CoreOp::kExp, 0, 0, 16, 100, 1000};

constexpr double kStepsOfAWord = 3;
// Elements come from a cache.
constexpr double kStepsOfALoadedWord = 8;
// Parts of a launch that loops may take before they are asked after.
constexpr double kVaryingShare = 1.0 / 16;

double WordsOf(DType dtype) { return static_cast<double>(std::max<int64_t>(1, SizeOf(dtype) / 4)); }

double StepsOfOp(const MicroInstruction& instruction, DType of) {
  if (IsCudaArithmetic(instruction.op, of)) return kStepsOfAWord * WordsOf(of);
  for (const FunctionSteps& function : kFunctionSteps) {
    if (function.op == instruction.op) return function.Of(of);
  }
  return kUnarySteps.Of(of);
}

DType OperandOf(const MicroProgram& program, const MicroInstruction& instruction) {
  return program.instructions[static_cast<size_t>(instruction.operands[0])].dtype;
}

bool IsLoop(const MicroInstruction& instruction, DType of) {
  return instruction.op == CoreOp::kPow ? kIntegers.Contains(of)
                                        : instruction.op == CoreOp::kRemainder && !kIntegers.Contains(of);
}

}  // namespace

int64_t CudaLaunchParts(double steps, int64_t blocks, const CudaOptions& options) {
  const double processors = options.num_processors;
  const double wanted = std::ceil(steps / (processors * static_cast<double>(options.steps_per_launch)));
  const double most = std::floor(static_cast<double>(blocks) / (processors * kLeastBlocksOfPart));
  return static_cast<int64_t>(std::max(1.0, std::min(wanted, most)));
}

double CudaSteps(const MicroProgram& program, int32_t instruction) {
  const MicroInstruction& of = program.instructions[static_cast<size_t>(instruction)];
  switch (of.kind) {
    case MicroKind::kConstant:
      return 0;
    case MicroKind::kLoad:
      return kStepsOfALoadedWord * WordsOf(of.dtype);
    case MicroKind::kUnary:
    case MicroKind::kBinary:
      return StepsOfOp(of, OperandOf(program, of));
    default:
      return kStepsOfAWord * WordsOf(of.dtype);
  }
}

bool CudaVaries(const MicroProgram& program, const CudaOptions& options) {
  double steps = 0;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const MicroInstruction& instruction = program.instructions[i];
    if (instruction.kind != MicroKind::kBinary || !IsLoop(instruction, OperandOf(program, instruction))) continue;
    steps += CudaSteps(program, static_cast<int32_t>(i)) * static_cast<double>(program.num_points(instruction.level));
  }
  const double launch = static_cast<double>(options.num_processors) * static_cast<double>(options.steps_per_launch);
  return steps > kVaryingShare * launch;
}

}  // namespace tensord
