#include "backends/cuda/cuda_session.h"

#include "engine/base/status_macros.h"

namespace tensord::cuda {

CudaSession::~CudaSession() {
  if (lane_ == nullptr) return;
  // Who has not asked for the end may have let go of the times.
  for (RunState& run : runs_) run.clock = nullptr;
  Finish().IgnoreError();
}

absl::Status CudaSession::Run(const PreparedSession& prepared, absl::Span<void* const> slots,
                              absl::Span<void* const> scratch, absl::Span<SegmentTime> times) {
  absl::Status run = RunSegments(static_cast<const CudaProgram&>(prepared), slots, scratch, times);
  // A run that is not wanted any more has work on its way.
  if (!run.ok()) Finish().IgnoreError();
  return run;
}

absl::StatusOr<CudaSession::RunState*> CudaSession::Begin(const CudaProgram& program) {
  RunState& state = runs_.emplace_back(RunState{.program = &program});
  if (program.workspace_bytes() > 0) {
    ASSIGN_OR_RETURN(state.workspace, memory_->Allocate(program.workspace_bytes()));
  }
  state.verdicts.assign(program.num_verdicts(), kNoVerdict);
  return &state;
}

absl::Status CudaSession::RunSegments(const CudaProgram& program, absl::Span<void* const> slots,
                                      absl::Span<void* const> scratch, absl::Span<SegmentTime> times) {
  RETURN_IF_ERROR(context_->Enter());
  ASSIGN_OR_RETURN(RunState* const state, Begin(program));
  const CuAddress workspace =
      state->workspace == nullptr ? 0 : reinterpret_cast<CuAddress>(state->workspace->address());
  const CuAddress verdicts = workspace + static_cast<CuAddress>(program.verdicts_offset_bytes());
  const int64_t verdict_bytes = static_cast<int64_t>(state->verdicts.size() * sizeof(uint64_t));
  if (verdict_bytes > 0) RETURN_IF_ERROR(lane_->Fill(verdicts, 0xff, verdict_bytes));
  if (!times.empty()) {
    state->clock = std::make_unique<SegmentClock>(context_, times);
    RETURN_IF_ERROR(state->clock->Mark(lane_.get()));
  }
  const CudaProgram::Memory memory{.slots = slots, .scratch = scratch, .workspace = workspace};
  bool is_enqueued = false;
  if (times.empty() && program.captures()) {
    RETURN_IF_ERROR(CheckWanted());
    ASSIGN_OR_RETURN(is_enqueued, EnqueueGraph(program, memory, state));
  }
  for (size_t i = 0; i < program.num_segments() && !is_enqueued; ++i) {
    RETURN_IF_ERROR(CheckWanted());
    RETURN_IF_ERROR(Enqueue(program, i, memory));
    if (state->clock != nullptr) RETURN_IF_ERROR(state->clock->Mark(lane_.get()));
  }
  if (verdict_bytes == 0) return absl::OkStatus();
  return lane_->Download(reinterpret_cast<char*>(state->verdicts.data()), verdicts, verdict_bytes);
}

absl::Status CudaSession::Enqueue(const CudaProgram& program, size_t position, const CudaProgram::Memory& memory) {
  return lane_->Enqueue([&](CuStream stream) { return program.Enqueue(position, memory, stream, &lane_->handles()); });
}

absl::StatusOr<bool> CudaSession::EnqueueGraph(const CudaProgram& program, const CudaProgram::Memory& memory,
                                               RunState* state) {
  state->graph = program.graphs().Get(program.AddressesOf(memory), [&] {
    return lane_->Capture([&](CuStream stream) -> absl::Status {
      for (size_t i = 0; i < program.num_segments(); ++i) {
        RETURN_IF_ERROR(program.Enqueue(i, memory, stream, &lane_->handles()));
      }
      return absl::OkStatus();
    });
  });
  if (state->graph == nullptr) return false;
  RETURN_IF_ERROR(lane_->Enqueue([&](CuStream stream) { return state->graph->Launch(stream); }));
  return true;
}

absl::Status CudaSession::Finish() {
  if (lane_ == nullptr) return absl::OkStatus();
  absl::Status finished = context_->Enter();
  if (finished.ok()) {
    finished = lane_->Finish();
  } else {
    context_->Lose();  // nobody can wait for what is on its way
  }
  for (const RunState& run : runs_) {
    if (finished.ok() && run.clock != nullptr) finished = run.clock->Read();
  }
  lane_ = nullptr;
  for (const RunState& run : runs_) {
    if (finished.ok()) finished = run.program->Judge(run.verdicts);
  }
  runs_.clear();
  return finished;
}

}  // namespace tensord::cuda
