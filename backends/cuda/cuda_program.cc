#include "backends/cuda/cuda_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/biased_products.h"
#include "backends/cuda/kernel_makers.h"
#include "backends/cuda/kernel_table.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/exec/memory/block_placement.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kVerdictBytes = sizeof(uint64_t);
// Of scratch: workspaces of libraries lie there, and want what cuMemAlloc gives. The plan aligns to kBufferAlignment.
constexpr int64_t kScratchAlignment = 256;

absl::string_view WrittenName(const SegmentInstruction& segment) {
  return segment.written == nullptr ? segment.bound.op->name : segment.written->name;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::Create(absl::Span<const SegmentInstruction> segments,
                                                                 const KernelContext& context,
                                                                 const ParallelFor& parallel,
                                                                 std::shared_ptr<KeptGraphs> kept) {
  ASSIGN_OR_RETURN(BiasedProducts biased, BiasedProducts::Find(segments, context, parallel));
  const auto make = [&](const BoundInstruction& instruction) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    RETURN_IF_ERROR(context.compiler->context()->Enter());
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, biased.Take(instruction));
    if (kernel != nullptr) return kernel;
    return MakeKernelOf(instruction, context);
  };
  ASSIGN_OR_RETURN(std::unique_ptr<CudaProgram> program, CreateOf(biased.segments(), make, parallel, std::move(kept)));
  program->chains_ = biased.chains();
  return program;
}

absl::StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::CreateOf(absl::Span<const SegmentInstruction> segments,
                                                                   Maker make, const ParallelFor& parallel,
                                                                   std::shared_ptr<KeptGraphs> kept) {
  const auto make_one = [&](size_t i) { return make(segments[i].bound); };
  ASSIGN_OR_RETURN(std::vector<KernelMakers::Made> kernels, KernelMakers::MakeAll(segments.size(), make_one, parallel));
  auto program = std::make_unique<CudaProgram>();
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!kernels[i].ok()) return WithNode(kernels[i].status(), std::string(segments[i].node), WrittenName(segments[i]));
    program->Append(segments[i], *std::move(kernels[i]));
  }
  program->times_ = std::make_unique<StepTimes>(segments.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    if (program->steps_[i].kernel->varies()) program->times_->SetVaries(i);
  }
  if (kept == nullptr) kept = std::make_shared<KeptGraphs>();
  program->graphs_ = std::make_unique<GraphCache>(std::move(kept));
  return program;
}

void CudaProgram::Append(const SegmentInstruction& segment, std::unique_ptr<Kernel> kernel) {
  Step step;
  step.kernel = std::move(kernel);
  captures_ = captures_ && step.kernel->captures();
  step.operands.assign(segment.operands.begin(), segment.operands.end());
  step.results.assign(segment.results.begin(), segment.results.end());
  if (step.kernel->judges()) {
    step.verdict = static_cast<int64_t>(judges_.size());
    judges_.push_back({steps_.size(), std::string(segment.node), std::string(WrittenName(segment))});
  }
  verdicts_offset_bytes_ =
      std::max(verdicts_offset_bytes_, CeilDiv(step.kernel->workspace_bytes(), kVerdictBytes) * kVerdictBytes);
  steps_.push_back(std::move(step));
}

absl::Status CudaProgram::Enqueue(size_t position, const Memory& memory, CuStream stream, LibraryHandles* handles,
                                  Pace* pace) const {
  const Step& step = steps_[position];
  const auto address = [&](Slot slot) { return reinterpret_cast<CuAddress>(memory.slots[static_cast<size_t>(slot)]); };
  absl::InlinedVector<CuAddress, 8> operands, results;
  for (const Slot slot : step.operands) operands.push_back(address(slot));
  for (const Slot slot : step.results) results.push_back(address(slot));
  Launch launch{.operands = operands,
                .results = results,
                .workspace = memory.workspace,
                .stream = stream,
                .handles = handles,
                .pace = pace};
  if (!memory.scratch.empty()) {
    constexpr CuAddress kMask = kScratchAlignment - 1;
    launch.scratch = (reinterpret_cast<CuAddress>(memory.scratch[position]) + kMask) & ~kMask;
  }
  if (step.verdict >= 0) {
    launch.verdict = memory.workspace + static_cast<CuAddress>(verdicts_offset_bytes_ + step.verdict * kVerdictBytes);
  }
  return step.kernel->Enqueue(launch);
}

absl::Status CudaProgram::MakeHandles(LibraryHandles* handles) const {
  for (const Step& step : steps_) RETURN_IF_ERROR(step.kernel->MakeHandles(handles));
  return absl::OkStatus();
}

GraphCache::Addresses CudaProgram::AddressesOf(const Memory& memory) const {
  GraphCache::Addresses addresses = {memory.workspace};
  const auto add = [&](Slot slot) {
    addresses.push_back(reinterpret_cast<CuAddress>(memory.slots[static_cast<size_t>(slot)]));
  };
  for (const Step& step : steps_) {
    for (const Slot slot : step.operands) add(slot);
    for (const Slot slot : step.results) add(slot);
  }
  for (void* const scratch : memory.scratch) addresses.push_back(reinterpret_cast<CuAddress>(scratch));
  return addresses;
}

absl::Status CudaProgram::Judge(absl::Span<const uint64_t> verdicts) const {
  for (size_t i = 0; i < judges_.size(); ++i) {
    if (verdicts[i] == kNoVerdict) continue;
    const absl::Status refused = steps_[judges_[i].position].kernel->Refused(VerdictOf(verdicts[i]));
    if (!refused.ok()) return WithNode(refused, judges_[i].node, judges_[i].op);
  }
  return absl::OkStatus();
}

std::string CudaProgram::DescribeReplay() const {
  const size_t nodes = graphs_->num_nodes();
  return nodes == 0 ? "" : absl::StrCat("replayed as one graph of ", nodes, " nodes");
}

int64_t CudaProgram::scratch_bytes(size_t position) const {
  const int64_t bytes = steps_[position].kernel->scratch_bytes();
  return bytes == 0 ? 0 : bytes + kScratchAlignment - kBufferAlignment;
}

int64_t CudaProgram::workspace_bytes() const {
  return verdicts_offset_bytes_ + static_cast<int64_t>(judges_.size()) * kVerdictBytes;
}

}  // namespace tensord::cuda
