#include "backends/cuda/cuda_session.h"

#include "engine/base/status_macros.h"

namespace tensord::cuda {

absl::Status CudaSession::Run(const PreparedSession& prepared, absl::Span<void* const> slots,
                              absl::Span<void* const> scratch, absl::Span<SegmentTime> times) {
  absl::Status run = RunSegments(static_cast<const CudaProgram&>(prepared), slots, scratch, times);
  // A run that is not wanted any more has work on its way.
  if (!run.ok()) Finish().IgnoreError();
  return run;
}

absl::Status CudaSession::Begin(const CudaProgram& program, absl::Span<SegmentTime> times) {
  run_.program = &program;
  run_.verdicts.assign(program.num_verdicts(), kNoVerdict);  // Finish reads them, whatever fails
  if (program.workspace_bytes() > 0) {
    ASSIGN_OR_RETURN(run_.workspace, memory_->Allocate(program.workspace_bytes()));
  }
  if (!run_.verdicts.empty()) RETURN_IF_ERROR(lane_->Fill(verdicts(), 0xff, verdict_bytes()));
  RETURN_IF_ERROR(ahead_.Begin(&program.times(), lane_.get()));
  if (times.empty()) return absl::OkStatus();
  run_.clock = std::make_unique<SegmentClock>(context_, times);
  return run_.clock->Mark(lane_.get());
}

CuAddress CudaSession::workspace() const {
  return run_.workspace == nullptr ? 0 : reinterpret_cast<CuAddress>(run_.workspace->address());
}

CuAddress CudaSession::verdicts() const {
  return workspace() + static_cast<CuAddress>(run_.program->verdicts_offset_bytes());
}

absl::Status CudaSession::RunSegments(const CudaProgram& program, absl::Span<void* const> slots,
                                      absl::Span<void* const> scratch, absl::Span<SegmentTime> times) {
  RETURN_IF_ERROR(context_->Enter());
  RETURN_IF_ERROR(Begin(program, times));
  const CudaProgram::Memory memory{.slots = slots, .scratch = scratch, .workspace = workspace()};
  bool is_enqueued = false;
  if (times.empty() && program.captures()) {
    RETURN_IF_ERROR(CheckWanted());
    ASSIGN_OR_RETURN(is_enqueued, EnqueueGraph(program, memory));
  }
  for (size_t i = 0; i < program.num_segments() && !is_enqueued; ++i) {
    RETURN_IF_ERROR(CheckWanted());
    RETURN_IF_ERROR(MakeRoomFor(i));
    RETURN_IF_ERROR(Enqueue(program, i, memory));
    if (run_.clock != nullptr) RETURN_IF_ERROR(run_.clock->Mark(lane_.get()));
  }
  RETURN_IF_ERROR(ahead_.End(lane_.get()));
  if (run_.verdicts.empty()) return absl::OkStatus();
  return lane_->Download(reinterpret_cast<char*>(run_.verdicts.data()), verdicts(), verdict_bytes());
}

absl::Status CudaSession::MakeRoomFor(size_t position) {
  while (!ahead_.HasRoomFor(position)) {
    RETURN_IF_ERROR(ahead_.WaitForSome(lane_.get()));
    RETURN_IF_ERROR(CheckWanted());
  }
  return absl::OkStatus();
}

absl::Status CudaSession::Enqueue(const CudaProgram& program, size_t position, const CudaProgram::Memory& memory) {
  run_.position = position;
  RETURN_IF_ERROR(lane_->Enqueue([&](CuStream stream) {
    const absl::Status enqueued = program.Enqueue(position, memory, stream, &lane_->handles(), this);
    return run_.broken_off.ok() ? enqueued : absl::OkStatus();  // that is no failure of the lane
  }));
  RETURN_IF_ERROR(run_.broken_off);
  return ahead_.Add(position, 1, lane_.get());
}

absl::Status CudaSession::BeforePart(int64_t part, int64_t parts) {
  if (part == 0) {
    ahead_.SetParts(run_.position, parts);
    return absl::OkStatus();  // there was room for the segment
  }
  run_.broken_off = ahead_.Add(run_.position, 1, lane_.get());
  if (run_.broken_off.ok()) run_.broken_off = CheckWanted();
  if (run_.broken_off.ok()) run_.broken_off = MakeRoomFor(run_.position);
  return run_.broken_off;
}

absl::StatusOr<bool> CudaSession::EnqueueGraph(const CudaProgram& program, const CudaProgram::Memory& memory) {
  const bool is_timed = program.times().AreKnown();
  if (is_timed && !ahead_.MayHoldAll(program.times())) return false;
  run_.graph = program.graphs().Get(program.AddressesOf(memory), is_timed, [&]() -> std::shared_ptr<Graph> {
    // What fails here will say so when the kernels are launched one by one.
    if (!program.MakeHandles(&lane_->handles()).ok()) return nullptr;
    return lane_->Capture([&](CuStream stream) -> absl::Status {
      for (size_t i = 0; i < program.num_segments(); ++i) {
        RETURN_IF_ERROR(program.Enqueue(i, memory, stream, &lane_->handles(), nullptr));
      }
      return absl::OkStatus();
    });
  });
  if (run_.graph == nullptr) return false;
  RETURN_IF_ERROR(lane_->Enqueue([&](CuStream stream) { return run_.graph->Launch(stream); }));
  RETURN_IF_ERROR(ahead_.AddAll(program.num_segments(), lane_.get()));
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
  if (finished.ok()) finished = ahead_.Read();
  if (finished.ok() && run_.clock != nullptr) finished = run_.clock->Read();
  lane_ = nullptr;
  if (finished.ok() && run_.program != nullptr) finished = run_.program->Judge(run_.verdicts);
  run_ = RunState();
  return finished;
}

}  // namespace tensord::cuda
