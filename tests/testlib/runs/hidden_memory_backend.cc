#include "tests/testlib/runs/hidden_memory_backend.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/micro/micro_evaluator.h"
#include "tests/testlib/runs/hidden_address.h"

namespace tensord {
namespace {

struct HiddenStep {
  const OpDef* op;
  Attributes attrs;
  std::vector<ConcreteType> operand_types;
  std::vector<ConcreteType> result_types;
  std::vector<Slot> operands;
  std::vector<Slot> results;
  std::optional<MicroProgram> micro;
  std::string node;
};

class HiddenProgram final : public PreparedSession {
 public:
  std::vector<HiddenStep> steps;
  // Asked for and written to, so that the plan's scratch is exercised; every third segment needs none.
  int64_t scratch_bytes(size_t position) const override { return static_cast<int64_t>(2 - position % 3) * 48; }
  std::string DescribeKernel(size_t position) const override {
    return steps[position].micro.has_value() ? "reference rules, one after the other" : "reference rule";
  }
};

class HiddenSession final : public BackendSession {
 public:
  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                   absl::Span<SegmentTime> times) override {
    const auto& steps = static_cast<const HiddenProgram&>(prepared).steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      RETURN_IF_ERROR(CheckWanted());
      const auto start = std::chrono::steady_clock::now();
      // Filled before and after, so that scratch over an operand shows, and scratch over a result.
      const auto fill_scratch = [&](int byte) {
        const size_t bytes = static_cast<size_t>(prepared.scratch_bytes(i));
        if (bytes > 0) std::memset(Reveal(scratch[i]), byte, bytes);
      };
      fill_scratch(0xA5);
      RETURN_IF_ERROR(RunStep(steps[i], slots));
      fill_scratch(0x5A);
      // An asynchronous device works in this way: its events are read when the work is over.
      if (!times.empty()) events_.push_back({&times[i], {start, std::chrono::steady_clock::now()}});
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    for (const Event& event : events_) *event.wanted = event.time;
    events_.clear();
    return absl::OkStatus();
  }

 private:
  struct Event {
    SegmentTime* wanted;
    SegmentTime time;
  };

  static absl::Status RunStep(const HiddenStep& step, absl::Span<void* const> slots) {
    std::vector<Literal> operands;
    std::vector<const Literal*> pointers;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const char* const data = Reveal(slots[static_cast<size_t>(step.operands[i])]);
      const size_t size = static_cast<size_t>(step.operand_types[i].num_bytes());
      ASSIGN_OR_RETURN(Literal literal, Literal::FromBytes(step.operand_types[i], absl::string_view(data, size)));
      operands.push_back(std::move(literal));
    }
    std::vector<Literal> results;
    if (step.micro.has_value()) {
      results = EvaluateMicroProgram(*step.micro, operands);
    } else {
      for (const Literal& operand : operands) pointers.push_back(&operand);
      ASSIGN_OR_RETURN(Literal result, EvaluateNode(*step.op, step.attrs, pointers, step.result_types[0]));
      results.push_back(std::move(result));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const absl::string_view bytes = results[i].bytes();
      std::memcpy(Reveal(slots[static_cast<size_t>(step.results[i])]), bytes.data(), bytes.size());
    }
    return absl::OkStatus();
  }

  std::vector<Event> events_;
};

}  // namespace

struct HiddenMemoryBackend::Counters {
  std::atomic<int64_t> live{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> peak_bytes{0};
};

HiddenMemoryBackend::HiddenMemoryBackend(bool runs_fused)
    : runs_fused_(runs_fused), counters_(std::make_shared<Counters>()) {}
HiddenMemoryBackend::~HiddenMemoryBackend() = default;

DeviceDescription HiddenMemoryBackend::Describe() const {
  return {.model = "memory that the host cannot read", .memory_bytes = int64_t{1} << 32};
}

MemoryStats HiddenMemoryBackend::Memory() const {
  return {.in_use_bytes = counters_->bytes.load(), .peak_in_use_bytes = counters_->peak_bytes.load()};
}

absl::Status HiddenMemoryBackend::Supports(const OpDef&, absl::Span<const DType>, DType) const {
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PreparedSession>> HiddenMemoryBackend::Prepare(
    absl::Span<const SegmentInstruction> segments) const {
  auto program = std::make_unique<HiddenProgram>();
  for (const SegmentInstruction& instruction : segments) {
    const MicroProgram* const micro = instruction.bound.micro;
    program->steps.push_back({.op = instruction.bound.op,
                              .attrs = *instruction.bound.attrs,
                              .operand_types = {instruction.bound.operands.begin(), instruction.bound.operands.end()},
                              .result_types = {instruction.bound.results.begin(), instruction.bound.results.end()},
                              .operands = {instruction.operands.begin(), instruction.operands.end()},
                              .results = {instruction.results.begin(), instruction.results.end()},
                              .micro = micro == nullptr ? std::nullopt : std::optional(*micro),
                              .node = std::string(instruction.node)});
  }
  return program;
}

absl::StatusOr<std::unique_ptr<BackendSession>> HiddenMemoryBackend::OpenSession() {
  return std::make_unique<HiddenSession>();
}

absl::StatusOr<std::shared_ptr<Buffer>> HiddenMemoryBackend::Allocate(int64_t size_bytes) {
  const size_t rounded = (static_cast<size_t>(size_bytes) + 63) / 64 * 64 + 64;
  void* const host = std::aligned_alloc(64, rounded);
  std::memset(host, 0xCD, rounded);  // so that nothing works by finding zeroes
  counters_->live.fetch_add(1);
  const int64_t bytes = counters_->bytes.fetch_add(size_bytes) + size_bytes;
  int64_t peak = counters_->peak_bytes.load();
  while (peak < bytes && !counters_->peak_bytes.compare_exchange_weak(peak, bytes)) {
  }
  return std::make_shared<Buffer>(Hide(host), size_bytes, [counters = counters_](void* address, int64_t size) {
    std::free(Reveal(address));
    counters->live.fetch_sub(1);
    counters->bytes.fetch_sub(size);
  });
}

absl::StatusOr<BufferPtr> HiddenMemoryBackend::Import(const void* bytes, int64_t size_bytes,
                                                      std::shared_ptr<const void>) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, Allocate(size_bytes));
  if (size_bytes > 0) std::memcpy(Reveal(buffer->address()), bytes, static_cast<size_t>(size_bytes));
  return buffer;
}

absl::StatusOr<std::shared_ptr<const void>> HiddenMemoryBackend::Export(BufferPtr buffer) {
  auto copy = std::make_shared<std::string>(Reveal(buffer->address()), static_cast<size_t>(buffer->size_bytes()));
  const void* const data = copy->data();
  return std::shared_ptr<const void>(std::move(copy), data);
}

absl::Status HiddenMemoryBackend::Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) {
  if (!bytes.empty()) std::memcpy(Reveal(buffer->address()) + offset_bytes, bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Buffer>> HiddenMemoryBackend::Copy(const Buffer& buffer) {
  const int64_t size_bytes = buffer.size_bytes();
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> copy, Allocate(size_bytes));
  if (size_bytes > 0) std::memcpy(Reveal(copy->address()), Reveal(buffer.address()), static_cast<size_t>(size_bytes));
  return copy;
}

int64_t HiddenMemoryBackend::live_buffers() const { return counters_->live.load(); }

}  // namespace tensord
