#include "backends/cuda/linalg/lu_factors.h"

#include <algorithm>

#include "backends/cuda/libraries/status.h"
#include "backends/cuda/linalg/guard_text.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {

LuKernel::LuKernel(const BoundInstruction& instruction, Refusal refusal) : MatrixKernel(instruction, refusal) {
  infos_ = Scratch(batch_ * 4);
  factors_ = Scratch(batch_ * m_ * n_ * SizeOf(dtype_));
  pivots_ = Scratch(batch_ * std::min(m_, n_) * 8);
  is_divided_ = Scratch(batch_ * 4);
  guarded_.is_broken = Scratch(batch_ * 4);
  guarded_.largest = Scratch(batch_ * 8);
}

absl::Status LuKernel::PrepareFactors(const KernelContext& context, bool is_small) {
  is_small_ = is_small;
  RETURN_IF_ERROR(CheckSizes());
  ASSIGN_OR_RETURN(guarded_.load,
                   context.compiler->Compile(MatrixGuardText(
                       {.dtype = dtype_, .rows = m_, .columns = n_, .batch = batch_}, MostBlocks(context))));
  if (is_small) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      work_, AskSolver(context.libraries, "cusolverDnXgetrf_bufferSize", [&](const SolverScope& s, SolverWork* work) {
        return s.library->cusolverDnXgetrf_bufferSize(s.handle, s.params, m_, n_, types_.type, nullptr, m_, types_.type,
                                                      &work->device_bytes, &work->host_bytes);
      }));
  device_work_ = Scratch(static_cast<int64_t>(work_.device_bytes));
  return absl::OkStatus();
}

void LuKernel::AddDivision(const KernelContext& context, absl::string_view parameters, absl::string_view functions,
                           const char* small, MatrixText* text) {
  const int64_t k = std::min(m_, n_);
  if (small == nullptr) {
    const double steps = static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k) / 3;
    const double in_turn = DivisionTurns::BlocksInTurn(batch_, context.compiler->printing().num_processors);
    factor_turns_ = DivisionTurns::Of(k, steps / MatrixText::kThreads * in_turn, context.most_division_steps);
  }
  text->Constant("kM", m_);
  text->Constant("kN", n_);
  text->Constant("kK", k);
  text->Constant("kFactorColumns", factor_turns_.columns);
  text->Add(kDivisionText);
  text->Add(functions);
  if (small == nullptr) {
    text->EachByBlockInTurns("divide", parameters, batch_, factor_turns_.count, kDivideFactors);
  } else {
    text->EachByBlock("divide", parameters, batch_, small);
  }
}

absl::Status LuKernel::EnqueueFactors(const Launch& launch, int64_t parts) const {
  const CuAddress factors = factors_.at(launch);
  RETURN_IF_ERROR(guarded_.Enqueue(launch, factors));
  if (is_small_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const SolverScope s, SolverScopeOf(launch));
  std::vector<char> host(work_.host_bytes);
  for (int64_t b = 0; b < batch_; ++b) {
    RETURN_IF_ERROR(launch.BeforePart(b, parts));
    const CuAddress pivots = pivots_.at(launch) + static_cast<CuAddress>(b * std::min(m_, n_) * 8);
    RETURN_IF_ERROR(StatusOfSolver(
        s.library->cusolverDnXgetrf(s.handle, s.params, m_, n_, types_.type,
                                    Pointer(Element(factors, b * m_ * n_, dtype_)), m_,
                                    reinterpret_cast<int64_t*>(pivots), types_.type, Pointer(device_work_.at(launch)),
                                    work_.device_bytes, host.data(), work_.host_bytes, Info(infos_.at(launch), b)),
        "cusolverDnXgetrf"));
  }
  return absl::OkStatus();
}

}  // namespace tensord::cuda
