#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/fft/transforms.h"
#include "backends/cpu/fused/kernel.h"
#include "backends/cpu/joins/blocked_chain.h"
#include "backends/cpu/joins/boxed_products.h"
#include "backends/cpu/joins/chain_plan.h"
#include "backends/cpu/joins/factored_product.h"
#include "backends/cpu/joins/join.h"
#include "backends/cpu/joins/product_epilogue.h"
#include "backends/cpu/joins/shared_reductions.h"
#include "backends/cpu/joins/transformed_map.h"
#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/kernel/nothing_to_do.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/control_group.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/base/thread_niceness.h"
#include "engine/exec/memory/host_buffer_pool.h"

namespace tensord {
namespace {

using cpu::Kernel;
using cpu::ThreadPool;

std::string ProcessorModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  }
  return "CPU";
}

class CpuProgram final : public PreparedSession {
 public:
  struct Step {
    std::unique_ptr<Kernel> kernel;
    absl::InlinedVector<Slot, 3> operands;
    absl::InlinedVector<Slot, 1> results;
    bool checks = false;             // ask before it whether the run is still wanted
    std::string node;                // of an extension, which may fail
    const OpDef* written = nullptr;  // by the client there
    // That start here; their steps have no kernel of their own.
    std::unique_ptr<const cpu::BlockedChain> chain;
    std::unique_ptr<const cpu::Join> joined;
  };

  // `bytes` is what the step reads and writes.
  void Append(Step step, int64_t bytes) {
    step.checks = unchecked_bytes_ >= kBytesBetweenChecks;
    if (step.checks) unchecked_bytes_ = 0;
    unchecked_bytes_ = std::min(kBytesBetweenChecks, unchecked_bytes_ + std::min(bytes, kBytesBetweenChecks));
    max_operands_ = std::max(max_operands_, step.operands.size());
    max_results_ = std::max(max_results_, step.results.size());
    workspace_bytes_ = std::max(workspace_bytes_, step.kernel->workspace_bytes());
    steps_.push_back(std::move(step));
  }

  // `passing`: slots that need no memory.
  void Append(cpu::BlockedChain chain, std::vector<Slot> passing) {
    const size_t begin = steps_.size(), end = begin + chain.num_segments();
    steps_.resize(end);
    steps_[begin].checks = true;
    steps_[begin].chain = std::make_unique<const cpu::BlockedChain>(std::move(chain));
    chains_.push_back({.begin = begin, .end = end, .unplaced = std::move(passing)});
    unchecked_bytes_ = kBytesBetweenChecks;
  }

  void Append(std::unique_ptr<const cpu::Join> joined) {
    const size_t begin = steps_.size(), end = begin + joined->num_segments();
    workspace_bytes_ = std::max(workspace_bytes_, joined->workspace_bytes());
    chains_.push_back({.begin = begin, .end = end, .unplaced = joined->passing()});
    steps_.resize(end);
    steps_[begin].checks = true;
    steps_[begin].joined = std::move(joined);
    unchecked_bytes_ = kBytesBetweenChecks;
  }

  const std::vector<Step>& steps() const { return steps_; }
  size_t max_operands() const { return max_operands_; }
  size_t max_results() const { return max_results_; }
  int64_t scratch_bytes(size_t position) const override {
    const Step& step = steps_[position];
    if (step.chain != nullptr) return step.chain->scratch_bytes();
    if (step.joined != nullptr) return step.joined->scratch_bytes();
    return step.kernel == nullptr ? 0 : step.kernel->scratch_bytes();
  }
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  absl::Span<const SegmentChain> chains() const override { return chains_; }
  std::string DescribeKernel(size_t position) const override {
    if (steps_[position].kernel != nullptr) return steps_[position].kernel->Describe();
    size_t first = position;
    while (steps_[first].chain == nullptr && steps_[first].joined == nullptr) --first;
    const Step& step = steps_[first];
    return step.chain != nullptr ? step.chain->Describe(position - first) : step.joined->Describe(position - first);
  }

 private:
  // A check costs a look at the clock: far less than this takes to read, far more than a tiny kernel.
  static constexpr int64_t kBytesBetweenChecks = 64 << 10;

  std::vector<Step> steps_;
  std::vector<SegmentChain> chains_;
  int64_t unchecked_bytes_ = 0;
  size_t max_operands_ = 0;
  size_t max_results_ = 0;
  int64_t workspace_bytes_ = 0;
};

cpu::JitOptions JitOptionsOf(CpuUse jit) {
  using Use = cpu::JitOptions::Use;
  return {.use = jit == CpuUse::kOff ? Use::kNever : jit == CpuUse::kOn ? Use::kAlways : Use::kWhereItPays};
}

cpu::EpilogueUse EpilogueUseOf(CpuUse use) {
  using Use = cpu::EpilogueUse;
  return use == CpuUse::kOff ? Use::kNever : use == CpuUse::kOn ? Use::kAlways : Use::kWhereItPays;
}

struct NoTimes {
  void Start() {}
  void End() {}
  absl::Span<SegmentTime> Take(size_t) { return {}; }
};

class InstructionTimes {
 public:
  explicit InstructionTimes(SegmentTime* next) : next_(next) {}
  void Start() { next_->start = std::chrono::steady_clock::now(); }
  void End() { (next_++)->end = std::chrono::steady_clock::now(); }
  // Of the next so many, to be written by who took them.
  absl::Span<SegmentTime> Take(size_t count) { return {std::exchange(next_, next_ + count), count}; }

 private:
  SegmentTime* next_;
};

class CpuSession final : public BackendSession {
 public:
  CpuSession(ThreadPool* pool, HostBufferPool* memory, std::chrono::nanoseconds ask_every)
      : pool_(pool), memory_(*memory), ask_every_(ask_every) {}

  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                   absl::Span<SegmentTime> times) override {
    const CpuProgram& program = static_cast<const CpuProgram&>(prepared);
    if (program.workspace_bytes() > 0) {
      ASSIGN_OR_RETURN(workspace_, memory_.Allocate(program.workspace_bytes()));
    }
    return times.empty() ? RunSteps(program, slots, scratch, NoTimes())
                         : RunSteps(program, slots, scratch, InstructionTimes(times.data()));
  }

  absl::Status Finish() override {
    workspace_.reset();
    return absl::OkStatus();
  }

 private:
  // `times` is asked to mark the start and the end of each step.
  template <typename Times>
  absl::Status RunSteps(const CpuProgram& program, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                        Times times) {
    absl::InlinedVector<const void*, 16> operands(program.max_operands());
    absl::InlinedVector<void*, 2> results(program.max_results());
    void* const workspace = workspace_ == nullptr ? nullptr : workspace_->address();
    absl::Status failure;
    const std::vector<CpuProgram::Step>& steps = program.steps();
    const ThreadPool::Series series(pool_);
    StopSignal stop(check(), ask_every_);
    const StopSignal::Scope scope(&stop);
    for (size_t position = 0; position < steps.size(); ++position) {
      const CpuProgram::Step& step = steps[position];
      GiveWay();
      void* const own_scratch = scratch.empty() ? nullptr : scratch[position];
      if (step.checks) RETURN_IF_ERROR(stop.Ask());
      if (step.chain != nullptr || step.joined != nullptr) {
        const size_t count = step.chain != nullptr ? step.chain->num_segments() : step.joined->num_segments();
        if (step.chain != nullptr) {
          step.chain->Run(slots, own_scratch, *pool_, times.Take(count));
        } else {
          step.joined->Run(slots, own_scratch, workspace, *pool_, times.Take(count));
        }
        if (ABSL_PREDICT_FALSE(stop.is_set())) return stop.status();
        position += count - 1;
        continue;
      }
      for (size_t i = 0; i < step.operands.size(); ++i) operands[i] = slots[static_cast<size_t>(step.operands[i])];
      for (size_t i = 0; i < step.results.size(); ++i) results[i] = slots[static_cast<size_t>(step.results[i])];
      times.Start();
      step.kernel->Run({.operands = {operands.data(), step.operands.size()},
                        .results = {results.data(), step.results.size()},
                        .scratch = own_scratch,
                        .pool = pool_,
                        .failure = &failure,
                        .workspace = workspace});
      times.End();
      if (ABSL_PREDICT_FALSE(stop.is_set())) return stop.status();
      if (ABSL_PREDICT_FALSE(!failure.ok())) return WithNode(failure, step.node, step.written->name);
    }
    return absl::OkStatus();
  }

  ThreadPool* const pool_;
  HostBufferPool& memory_;
  const std::chrono::nanoseconds ask_every_;
  std::shared_ptr<Buffer> workspace_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : model_(ProcessorModel()),
        memory_bytes_(UsableMemoryBytes()),
        memory_(options.memory != nullptr ? options.memory
                                          : HostBufferPool::Create(MostCpuTensorBytes(), options.pool_bytes)),
        jit_(JitOptionsOf(options.jit)),
        epilogues_(EpilogueUseOf(options.epilogues)),
        chain_limits_(options.chain_block_bytes == 0 ? cpu::MachineChainLimits()
                                                     : cpu::ChainLimits{.block_bytes = options.chain_block_bytes}),
        ask_every_(options.ask_every),
        own_pool_(options.pool == nullptr ? cpu::MakeThreadPool(options.threads) : nullptr),
        pool_(options.pool == nullptr ? *own_pool_ : *options.pool),
        own_fft_transforms_(options.fft_transforms == nullptr ? std::make_unique<cpu::FftTransforms>() : nullptr),
        fft_transforms_(options.fft_transforms == nullptr ? *own_fft_transforms_ : *options.fft_transforms) {
    cpu::UseSerialBlas();
    for (absl::Span<const cpu::FamilyKernel> table : options.family_kernels) {
      for (const cpu::FamilyKernel& kernel : table) family_kernels_.emplace(kernel.op, kernel.make);
    }
  }

  absl::string_view kind() const override { return "cpu"; }
  DeviceDescription Describe() const override {
    return {
        .model = model_, .memory_bytes = memory_bytes_, .computes_on_caller = true, .computes_in_host_memory = true};
  }

  MemoryStats Memory() const override { return memory_->stats(); }

  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override {
    const DType first = operands.empty() ? result : operands[0];
    if ((cpu::FactoryOf(op) != nullptr || FamilyFactoryOf(op) != nullptr) && op.dtypes.Contains(first))
      return absl::OkStatus();
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("the device cpu cannot run ", op.name, " on ", Name(first)));
  }

  bool runs_fused() const override { return true; }

  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override {
    auto program = std::make_unique<CpuProgram>();
    size_t empty = 0;  // the next segment with an empty axis
    for (size_t position = 0; position < segments.size(); ++position) {
      RETURN_IF_ERROR(CheckStopped());  // a kernel may take milliseconds to make
      while (empty < segments.size() && (empty < position || !HasEmptyAxis(segments[empty].bound))) ++empty;
      if (const size_t joined = AppendJoined(segments.subspan(position, empty - position), program.get()); joined > 0) {
        position += joined - 1;
        continue;
      }
      const SegmentInstruction& instruction = segments[position];
      const BoundInstruction& bound = instruction.bound;
      absl::StatusOr<std::unique_ptr<Kernel>> kernel = MakeKernelOf(bound, instruction.num_readers);
      if (!kernel.ok()) return WithNode(kernel.status(), instruction.node, instruction.written->name);
      int64_t bytes = 0;
      for (const ConcreteType& operand : bound.operands) bytes += std::min<int64_t>(operand.num_bytes(), 1 << 30);
      for (const ConcreteType& result : bound.results) bytes += std::min<int64_t>(result.num_bytes(), 1 << 30);
      program->Append({.kernel = *std::move(kernel),
                       .operands = {instruction.operands.begin(), instruction.operands.end()},
                       .results = {instruction.results.begin(), instruction.results.end()},
                       .node = bound.op->op_class == OpClass::kExtension ? std::string(instruction.node) : "",
                       .written = instruction.written},
                      bytes);
    }
    return program;
  }

  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override {
    return std::make_unique<CpuSession>(&pool_, memory_.get(), ask_every_);
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override {
    return memory_->Allocate(size_bytes);
  }

  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void> owner) override {
    // Kernels load elements of up to 8 bytes (complex numbers are two), so that much alignment is taken as it is.
    const bool aligned = reinterpret_cast<uintptr_t>(bytes) % 8 == 0;
    if (aligned || size_bytes == 0) {
      return std::make_shared<const Buffer>(const_cast<void*>(bytes), size_bytes,
                                            [owner = std::move(owner)](void*, int64_t) {});
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> copy, memory_->Allocate(size_bytes));
    std::memcpy(copy->address(), bytes, static_cast<size_t>(size_bytes));
    return copy;
  }

  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override {
    const void* const address = buffer->address();
    return std::shared_ptr<const void>(std::move(buffer), address);
  }

 private:
  // How many of the first segments run together. Each way to join segments cuts axes into parts, so no segment may have
  // an empty one.
  size_t AppendJoined(absl::Span<const SegmentInstruction> segments, CpuProgram* program) const {
    if (segments.empty()) return 0;
    if (const size_t count = AppendChain(segments, program); count > 0) return count;
    if (const size_t count = AppendTransforms(segments, program); count > 0) return count;
    if (const size_t count = AppendProduct(segments, program); count > 0) return count;
    return AppendReductions(segments, program);
  }

  // The chain that starts with the first of the segments; its length, 0 where there is none. What cannot be made is
  // left to be refused by the kernel of its whole segment.
  size_t AppendChain(absl::Span<const SegmentInstruction> segments, CpuProgram* program) const {
    std::optional<cpu::ChainPlan> plan = cpu::PlanChain(segments, chain_limits_);
    if (!plan.has_value()) {
      // Panels of one product are multiplied in less time than it takes to pack its other operand for each box.
      const auto packs_runs = [](const cpu::FactoredProduct& product) { return product.packs_runs_of_rows(); };
      if (const size_t count = AppendFactored(segments, packs_runs, program); count > 0) return count;
      plan = cpu::PlanProductJoin(segments, chain_limits_);
    }
    if (!plan.has_value()) return 0;
    // A product and its epilogue alone go over the result as often as a chain, and pack operands once.
    const size_t length = plan->segments.size();
    if (length == cpu::ProductEpilogue::kNumSegments && AppendEpilogue(segments, program) > 0) return length;
    const auto make = [this](const BoundInstruction& bound) { return MakeKernelOf(bound); };
    absl::StatusOr<cpu::BlockedChain> chain = cpu::BlockedChain::Create(*plan, make, jit_, pool_.threads());
    if (!chain.ok()) return 0;
    program->Append(*std::move(chain), std::move(plan->passing));
    return length;
  }

  // How many of the first segments are transforms with maps between.
  size_t AppendTransforms(absl::Span<const SegmentInstruction> segments, CpuProgram* program) const {
    const auto make = [this](const BoundInstruction& bound) { return MakeKernelOf(bound); };
    auto joined = cpu::TransformedMap::Create(segments, chain_limits_, make, fft_transforms_, jit_, pool_.threads());
    if (joined == nullptr) return 0;
    const size_t count = joined->num_segments();
    program->Append(std::move(joined));
    return count;
  }

  // How many of the first segments reduce one tensor slab by slab.
  size_t AppendReductions(absl::Span<const SegmentInstruction> segments, CpuProgram* program) const {
    const auto make = [this](const BoundInstruction& bound) { return MakeKernelOf(bound); };
    auto joined = cpu::SharedReductions::Create(segments, chain_limits_, make, jit_, pool_.threads());
    if (joined == nullptr) return 0;
    const size_t count = joined->num_segments();
    program->Append(std::move(joined));
    return count;
  }

  // How many of the first segments are a product with what is done as it is packed or with each block of it.
  size_t AppendProduct(absl::Span<const SegmentInstruction> segments, CpuProgram* program) const {
    if (const size_t count = AppendEpilogue(segments, program); count > 0) return count;
    return AppendFactored(
        segments, [](const cpu::FactoredProduct&) { return true; }, program);
  }

  size_t AppendFactored(absl::Span<const SegmentInstruction> segments,
                        absl::FunctionRef<bool(const cpu::FactoredProduct&)> is_wanted, CpuProgram* program) const {
    std::unique_ptr<const cpu::FactoredProduct> product = cpu::FactoredProduct::Create(segments, epilogues_);
    if (product == nullptr || !is_wanted(*product)) return 0;
    const size_t count = product->num_segments();
    program->Append(std::move(product));
    return count;
  }

  size_t AppendEpilogue(absl::Span<const SegmentInstruction> segments, CpuProgram* program) const {
    auto product = cpu::ProductEpilogue::Create(segments, epilogues_, jit_);
    if (!product.ok() || *product == nullptr) return 0;
    program->Append(*std::move(product));
    return cpu::ProductEpilogue::kNumSegments;
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernelOf(const BoundInstruction& bound,
                                                       absl::Span<const int32_t> num_readers = {}) const {
    // A kernel may have more to go through than it has to write. What has no elements is not refused, either.
    const auto is_empty = [](const ConcreteType& type) { return type.num_elements() == 0; };
    if (absl::c_all_of(bound.results, is_empty)) return std::make_unique<cpu::NothingToDo>();
    if (bound.micro != nullptr) return cpu::MakeFusedKernel(bound, jit_);
    if (cpu::MakeKernel* const make = cpu::FactoryOf(*bound.op); make != nullptr) return make(bound);
    if (cpu::MakeFamilyKernel* const make = FamilyFactoryOf(*bound.op); make != nullptr) {
      return make(bound, {.fft = &fft_transforms_, .num_readers = num_readers});
    }
    return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("the device cpu cannot run ", bound.op->name));
  }

  // nullptr where there is none.
  cpu::MakeFamilyKernel* FamilyFactoryOf(const OpDef& op) const {
    if (op.op_class != OpClass::kExtension) return nullptr;
    if (cpu::MakeFamilyKernel* const built_in = cpu::FamilyFactoryOf(op); built_in != nullptr) return built_in;
    const auto it = family_kernels_.find(op.name);
    return it == family_kernels_.end() ? nullptr : it->second;
  }

  const std::string model_;
  const int64_t memory_bytes_;
  const std::shared_ptr<HostBufferPool> memory_;
  const cpu::JitOptions jit_;
  const cpu::EpilogueUse epilogues_;
  const cpu::ChainLimits chain_limits_;
  const std::chrono::nanoseconds ask_every_;
  absl::flat_hash_map<absl::string_view, cpu::MakeFamilyKernel*> family_kernels_;  // of families that are not built in
  const std::unique_ptr<ThreadPool> own_pool_;
  ThreadPool& pool_;
  const std::unique_ptr<cpu::FftTransforms> own_fft_transforms_;
  cpu::FftTransforms& fft_transforms_;
};

}  // namespace

CpuUse CpuUseNamed(absl::string_view name) {
  return name == "off" ? CpuUse::kOff : name == "on" ? CpuUse::kOn : CpuUse::kAuto;
}

int64_t MostCpuTensorBytes() { return UsableMemoryBytes() / 5 * 4; }

std::unique_ptr<Backend> MakeCpuBackend(const CpuBackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace tensord
