#include "backends/cuda/codegen/writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "backends/cuda/codegen/index.h"
#include "backends/cuda/codegen/values.h"

namespace tensord {

CudaWriter::CudaWriter(const MicroProgram& program, const CudaOptions& options) : program_(program), options_(options) {
  prelude().Use("Types");
}

void CudaWriter::OpenEntry(const CudaLaunch& launch, bool has_scratch) {
  // An operand whose memory a result may be given is written through another pointer.
  std::vector<bool> is_shared(program_.tensors.size());
  for (const auto& [result, operand] : InPlacePairs(program_)) is_shared[static_cast<size_t>(operand)] = true;
  std::vector<std::string> parameters;
  block_ = "blockIdx.x";
  if (launch.parts > 1) {
    parameters.push_back("u64 first_block");
    block_ = "(u32)(first_block + blockIdx.x)";
  }
  for (size_t t = 0; t < program_.tensors.size(); ++t) {
    UseCudaType(program_.tensors[t], &prelude());
    parameters.push_back(
        absl::StrCat("const ", CudaStorage(program_.tensors[t]), is_shared[t] ? "* t" : "* __restrict__ t", t));
  }
  for (size_t r = 0; r < program_.results.size(); ++r) {
    const DType dtype = program_.instructions[static_cast<size_t>(program_.results[r].value)].dtype;
    UseCudaType(dtype, &prelude());
    parameters.push_back(absl::StrCat(CudaStorage(dtype), "* r", r));
  }
  if (has_scratch) parameters.push_back("u8* scratch");
  Open("extern \"C\" __global__ void __launch_bounds__(", launch.threads_per_block, ") ", launch.entry, "(",
       absl::StrJoin(parameters, ", "), ")");
}

void CudaWriter::Value(int32_t index, const std::string& address) {
  const MicroInstruction& instruction = program_.instructions[static_cast<size_t>(index)];
  std::string text;
  switch (instruction.kind) {
    case MicroKind::kLoad:
      text = CudaLoaded(instruction.dtype, absl::StrCat("t", instruction.tensor, "[", address, "]"));
      break;
    case MicroKind::kIota:
      text = CudaConvert(DType::kI64, instruction.dtype, absl::StrCat("(i64)(", address, ")"), &prelude());
      break;
    case MicroKind::kConstant:
      text = CudaConstant(*instruction.constant, &prelude());
      break;
    default:
      text = CudaExpression(program_, index, &prelude());
      break;
  }
  UseCudaType(instruction.dtype, &prelude());
  Line("const ", CudaType(instruction.dtype), " v", index, " = ", text, ";");
}

void CudaWriter::StoreResult(size_t result, const std::string& address) {
  const int32_t value = program_.results[result].value;
  const DType dtype = program_.instructions[static_cast<size_t>(value)].dtype;
  Line("r", result, "[", address, "] = ", CudaStored(dtype, absl::StrCat("v", value)), ";");
}

void CudaWriter::UniformValues(const std::vector<bool>& needed) {
  for (size_t i = 0; i < program_.instructions.size(); ++i) {
    const MicroInstruction& instruction = program_.instructions[i];
    if (instruction.level != MicroLevel::kUniform || !needed[i]) continue;
    Value(static_cast<int32_t>(i), CudaSum(instruction.access.offset, "0", "0"));
  }
}

void CudaWriter::StoreUniformResults() {
  if (!HasResults(MicroLevel::kUniform)) return;
  Open("if (", block_, " == 0 && threadIdx.x == 0)");
  for (size_t r = 0; r < program_.results.size(); ++r) {
    if (Computed(r).level == MicroLevel::kUniform) StoreResult(r, "0");
  }
  Close();
}

bool CudaWriter::HasResults(MicroLevel level) const {
  if (program_.num_points(level) == 0) return false;
  return std::any_of(program_.results.begin(), program_.results.end(), [&](const MicroResult& result) {
    return program_.instructions[static_cast<size_t>(result.value)].level == level;
  });
}

std::vector<bool> NeededValues(const MicroProgram& program, const std::vector<int32_t>& targets) {
  std::vector<bool> needed(program.instructions.size());
  for (int32_t target : targets) needed[static_cast<size_t>(target)] = true;
  for (size_t i = needed.size(); i-- > 0;) {
    if (!needed[i] || program.instructions[i].kind == MicroKind::kReduce) continue;
    for (int32_t operand : program.instructions[i].operands) {
      if (operand >= 0) needed[static_cast<size_t>(operand)] = true;
    }
  }
  return needed;
}

}  // namespace tensord
