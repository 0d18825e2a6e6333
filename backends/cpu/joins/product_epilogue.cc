#include "backends/cpu/joins/product_epilogue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/contraction/kernels.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "engine/base/rounding.h"
#include "engine/exec/backend/lone_elementwise.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Longer sums take so long that a second pass over the result no longer counts; fewer rows or columns leave most of the
// time to the operands (docs/why/0021).
constexpr int64_t kLongestSumBytes = int64_t{2} << 10;
constexpr int64_t kLeastLines = 128;

// Returns the operand of the second segment that is the first one's result, if nobody else reads that and only there;
// -1 if none.
int64_t OperandThatPasses(const SegmentInstruction& first, const SegmentInstruction& second) {
  if (first.results.size() != 1 || first.num_readers[0] != 1) return -1;
  const auto reads = std::count(second.operands.begin(), second.operands.end(), first.results[0]);
  if (reads != 1) return -1;
  return std::find(second.operands.begin(), second.operands.end(), first.results[0]) - second.operands.begin();
}

// Tells whether the result leaves the caches on its way to the kernel and its sums are short enough for that to matter.
// Work a column at a time costs a little more, and with few rows or columns most of the time goes to the operands.
bool Pays(const DotSpace& space, const ConcreteType& result) {
  const int64_t term_bytes = std::max(SizeOf(DType::kF32), SizeOf(result.dtype));  // as computed
  return result.num_bytes() >= StreamedResultBytes() && space.Size(kSummed) * term_bytes <= kLongestSumBytes &&
         std::min(space.Size(kRows), space.Size(kColumns)) >= kLeastLines;
}

}  // namespace

std::unique_ptr<const ProductEpilogue> ProductEpilogue::Plan(absl::Span<const SegmentInstruction> segments,
                                                             const JoinContext& context) {
  const EpilogueUse use = context.epilogues;
  if (use == EpilogueUse::kNever || segments.size() < kNumSegments) return nullptr;
  const BoundInstruction &first = segments[0].bound, &second = segments[1].bound;
  if (!IsOrdinaryDot(first) || first.results[0].num_elements() == 0) return nullptr;
  std::optional<MicroProgram> alone;
  if (second.micro == nullptr) {
    alone = ElementwiseProgram(second);
    if (!alone.has_value()) return nullptr;
    // One op writes over the product in a pass of its own as fast, unless its result is smaller.
    const bool narrows = second.results[0].num_bytes() < first.results[0].num_bytes();
    if (use != EpilogueUse::kAlways && !narrows) return nullptr;
  }
  const MicroProgram& micro = alone.has_value() ? *alone : *second.micro;
  const int64_t operand = OperandThatPasses(segments[0], segments[1]);
  if (operand < 0 || !Epilogue::IsPointwise(micro, static_cast<size_t>(operand))) return nullptr;
  // A kernel of the product's first columns reads them densely too.
  if (micro.num_points(MicroLevel::kFull) != first.results[0].num_elements()) return nullptr;
  const DotSpace space = DotSpaceOf(first);
  if (use != EpilogueUse::kAlways && !Pays(space, first.results[0])) return nullptr;
  absl::StatusOr<Contraction> product = ContractionOf(first, space);
  if (!product.ok() || !product->takes_epilogue()) return nullptr;
  std::optional<Epilogue> epilogue = Epilogue::Plan(micro, static_cast<size_t>(operand), context.jit);
  if (!epilogue.has_value()) return nullptr;
  const bool is_in_place = !product->makes_whole_sums();
  if (is_in_place && epilogue->in_place_result() < 0) return nullptr;

  std::unique_ptr<ProductEpilogue> made(new ProductEpilogue(*std::move(product), *std::move(epilogue)));
  made->factors_.assign(segments[0].operands.begin(), segments[0].operands.end());
  made->operands_.assign(segments[1].operands.begin(), segments[1].operands.end());
  made->results_.assign(segments[1].results.begin(), segments[1].results.end());
  made->passing_ = segments[0].results[0];
  made->operand_ = static_cast<size_t>(operand);
  made->is_in_place_ = is_in_place;
  const int64_t slots = made->product_.slots();
  made->task_bytes_ = RoundUp(made->epilogue_.task_bytes(), 64);
  made->blocks_offset_ = RoundUp(made->product_.workspace_bytes(), 64);
  made->tasks_offset_ = made->blocks_offset_ + (is_in_place ? 0 : slots * made->product_.block_bytes());
  made->workspace_bytes_ = made->tasks_offset_ + slots * made->task_bytes_;
  if (made->workspace_bytes_ > kMaxWorkspaceBytes) return nullptr;
  return made;
}

std::string ProductEpilogue::Describe(size_t segment) const {
  if (segment == 0) {
    const std::string bytes = absl::StrCat("in blocks of ", product_.block_bytes(), " bytes");
    return absl::StrCat(is_in_place_ ? "in the memory of the next segment's result" : bytes,
                        ", each finished by the next segment");
  }
  return absl::StrCat(epilogue_.Describe(), ", on each block of the segment before",
                      is_in_place_ ? ", in its memory" : "");
}

absl::Status ProductEpilogue::Run(const JoinRun& run) const {
  absl::InlinedVector<const void*, 8> operands;
  absl::InlinedVector<void*, 2> results;
  for (const Slot slot : results_) results.push_back(run.At(slot));
  void* const in_place = is_in_place_ ? results[static_cast<size_t>(epilogue_.in_place_result())] : nullptr;
  for (const Slot slot : operands_) operands.push_back(slot == passing_ ? in_place : run.At(slot));
  const KernelArgs args = {
      .operands = operands, .results = absl::MakeSpan(results), .scratch = nullptr, .pool = &run.pool};

  char* const memory = static_cast<char*>(run.workspace);
  std::atomic<int64_t> taken{0};  // nanoseconds of the kernel, on all threads
  const auto finish = [&](const GemmPiece& piece) {
    char* const task = memory + tasks_offset_ + piece.slot * task_bytes_;
    if (run.times.empty()) return epilogue_.Run(args, piece, task);
    const Clock::time_point start = Clock::now();
    epilogue_.Run(args, piece, task);
    taken.fetch_add(std::chrono::nanoseconds(Clock::now() - start).count(), std::memory_order_relaxed);
  };
  const GemmEpilogue epilogue = {.finish = finish, .blocks = is_in_place_ ? nullptr : memory + blocks_offset_};
  const Clock::time_point start = run.times.empty() ? Clock::time_point() : Clock::now();
  product_.Run(run.At(factors_[0]), run.At(factors_[1]), in_place, run.scratch, run.workspace, run.pool, &epilogue);
  if (run.times.empty()) return absl::OkStatus();
  const Clock::time_point end = Clock::now();
  const int64_t threads = std::clamp<int64_t>(run.pool.threads(), 1, product_.slots());
  const auto share = std::min(end - start, std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(
                                               taken.load(std::memory_order_relaxed) / threads)));
  run.times[0] = {.start = start, .end = end - share};
  run.times[1] = {.start = end - share, .end = end};
  return absl::OkStatus();
}

}  // namespace tensord::cpu
