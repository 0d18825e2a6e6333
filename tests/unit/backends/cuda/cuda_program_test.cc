// The kernels of a session, made on several threads.
#include "backends/cuda/cuda_program.h"

#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/allocated_bytes.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"
#include "tests/testlib/reason_of.h"

namespace tensord::cuda {
namespace {

// Calls each task on a thread of its own, the last one first.
void OnThreads(int64_t tasks, absl::FunctionRef<void(int64_t)> fn) {
  std::vector<std::thread> threads;
  for (int64_t i = tasks; i-- > 0;) threads.emplace_back([&fn, i] { fn(i); });
  for (std::thread& thread : threads) thread.join();
}

// Segments that are told apart by their ops.
std::vector<SegmentInstruction> Segments() {
  std::vector<SegmentInstruction> segments;
  for (const CoreOp op : {CoreOp::kExp, CoreOp::kLog, CoreOp::kSin, CoreOp::kCos}) {
    segments.push_back({.bound = {.op = &Def(op)}, .node = Def(op).name});
  }
  return segments;
}

absl::StatusOr<std::unique_ptr<Kernel>> NoKernel(const BoundInstruction&) { return std::make_unique<NothingToDo>(); }

TEST(CudaProgramTest, KernelsAreMadeAtOnceAndStayInOrder) {
  const std::vector<SegmentInstruction> segments = Segments();
  std::latch all(static_cast<std::ptrdiff_t>(segments.size()));
  class Named final : public Kernel {
   public:
    explicit Named(absl::string_view name) : name_(name) {}
    absl::Status Enqueue(const Launch&) const override { return absl::OkStatus(); }
    std::string Describe() const override { return name_; }

   private:
    const std::string name_;
  };
  const auto make = [&](const BoundInstruction& instruction) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    all.arrive_and_wait();
    return std::make_unique<Named>(instruction.op->name);
  };
  const auto program = CudaProgram::CreateOf(segments, make, OnThreads);
  ASSERT_TRUE(program.ok()) << program.status();
  for (size_t i = 0; i < segments.size(); ++i) EXPECT_EQ((*program)->DescribeKernel(i), segments[i].node);
}

TEST(CudaProgramTest, TheFirstRefusalIsTold) {
  const std::vector<SegmentInstruction> segments = Segments();
  const auto make = [&](const BoundInstruction& instruction) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    if (Is(*instruction.op, CoreOp::kExp) || Is(*instruction.op, CoreOp::kSin)) return NoKernel(instruction);
    return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("no ", instruction.op->name));
  };
  for (const ParallelFor& parallel : {ParallelFor(), ParallelFor(OnThreads)}) {
    const absl::Status refused = CudaProgram::CreateOf(segments, make, parallel).status();
    EXPECT_EQ(ReasonOf(refused), "UNSUPPORTED_ON_DEVICE");
    EXPECT_EQ(DetailOf(refused)->node, "log");
  }
}

TEST(CudaProgramTest, WorkThatNobodyWantsBreaksOff) {
  const StopSignal::Check enough = [] { return absl::CancelledError("enough"); };
  StopSignal stop(enough, std::chrono::nanoseconds(0));
  const StopSignal::Scope scope(&stop);
  for (const ParallelFor& parallel : {ParallelFor(), ParallelFor(OnThreads)}) {
    EXPECT_TRUE(absl::IsCancelled(CudaProgram::CreateOf(Segments(), NoKernel, parallel).status()));
  }
}

// The bytes of a program, by which caches are bounded, are those of all threads.
TEST(CudaProgramTest, MemoryOfOtherThreadsIsTheCallers) {
  constexpr int64_t kBytes = 1 << 20;
  class Large final : public Kernel {
   public:
    absl::Status Enqueue(const Launch&) const override { return absl::OkStatus(); }
    std::string Describe() const override { return "large"; }

   private:
    const std::vector<char> memory_ = std::vector<char>(kBytes);
  };
  const auto make = [](const BoundInstruction&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return std::make_unique<Large>();
  };
  const AllocatedBytes allocated;
  const auto program = CudaProgram::CreateOf(Segments(), make, OnThreads);
  ASSERT_TRUE(program.ok());
  EXPECT_GE(allocated.bytes(), 4 * kBytes);
  EXPECT_LT(allocated.bytes(), 5 * kBytes);
}

}  // namespace
}  // namespace tensord::cuda
