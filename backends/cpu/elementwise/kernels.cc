#include "backends/cpu/elementwise/kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/elementwise/convert.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/iota.h"
#include "backends/cpu/elementwise/select_clamp.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kCopyElementsPerTask = 32 * 1024;  // as of cheap ops (ElementsPerTask)
constexpr int64_t kStreamBlockBytes = 1024;          // so short that stores drain while the next block is read

const void* At(const void* base, int64_t offset_bytes) { return static_cast<const char*>(base) + offset_bytes; }
void* At(void* base, int64_t offset_bytes) { return static_cast<char*>(base) + offset_bytes; }

// Cuts `n` elements into tasks of `per_task`, whatever the size of the pool, and calls body(begin, end, out); `out` is
// the place for the elements from `begin` on. Results too big for the cache are made block by block in a buffer on the
// stack and streamed from there, unless the body writes in place.
template <typename Body>
void RunTasks(const KernelArgs& args, int64_t n, int64_t per_task, int64_t result_bytes, const Body& body) {
  void* const result = args.results[0];
  bool stream = n * result_bytes >= StreamedResultBytes();
  for (const void* operand : args.operands) stream = stream && operand != result;
  const auto task = [&](int64_t begin, int64_t end) {
    if (!stream) return body(begin, end, At(result, begin * result_bytes));
    alignas(64) char buffer[kStreamBlockBytes];
    const int64_t block = kStreamBlockBytes / result_bytes;
    for (int64_t i = begin; i < end; i += block) {
      const int64_t block_end = std::min(end, i + block);
      body(i, block_end, static_cast<void*>(buffer));
      StreamCopy(buffer, At(result, i * result_bytes), (block_end - i) * result_bytes);
    }
    FlushStreamed();
  };
  if (n < 2 * per_task) return task(0, n);
  args.pool->ParallelForBlocks(n, per_task, task, TaskCost::kShort);
}

// Sizes and dtypes of one application of an op.
struct Application {
  int64_t n = 0;
  int64_t operand_bytes = 0;  // of one element
  int64_t result_bytes = 0;
  int64_t per_task = 0;
};

class FunctorKernel final : public Kernel {
 public:
  FunctorKernel(ElementwiseFunction function, Application sizes) : function_(function), sizes_(sizes) {}

  void Run(const KernelArgs& args) const override {
    const void* a = args.operands[0];
    const void* b = args.operands.size() > 1 ? args.operands[1] : nullptr;
    RunTasks(args, sizes_.n, sizes_.per_task, sizes_.result_bytes, [&](int64_t begin, int64_t end, void* out) {
      const int64_t offset = begin * sizes_.operand_bytes;
      function_(At(a, offset), b != nullptr ? At(b, offset) : nullptr, out, end - begin);
    });
  }

 private:
  const ElementwiseFunction function_;
  const Application sizes_;
};

class ConvertKernel final : public Kernel {
 public:
  ConvertKernel(ConvertFunction function, Application sizes) : function_(function), sizes_(sizes) {}

  void Run(const KernelArgs& args) const override {
    RunTasks(args, sizes_.n, sizes_.per_task, sizes_.result_bytes, [&](int64_t begin, int64_t end, void* out) {
      function_(At(args.operands[0], begin * sizes_.operand_bytes), out, end - begin);
    });
  }

 private:
  const ConvertFunction function_;
  const Application sizes_;
};

class SelectKernel final : public Kernel {
 public:
  SelectKernel(bool single_pred, Application sizes)
      : function_(FindSelect(sizes.result_bytes)), single_pred_(single_pred), sizes_(sizes) {}

  void Run(const KernelArgs& args) const override {
    const int64_t bytes = sizes_.result_bytes;
    const uint8_t* pred = static_cast<const uint8_t*>(args.operands[0]);
    if (single_pred_ && sizes_.n > 0) {
      const void* chosen = args.operands[*pred != 0 ? 1 : 2];
      if (chosen == args.results[0]) return;
      RunTasks(args, sizes_.n, sizes_.per_task, bytes, [&](int64_t begin, int64_t end, void* out) {
        std::memcpy(out, At(chosen, begin * bytes), static_cast<size_t>((end - begin) * bytes));
      });
      return;
    }
    RunTasks(args, sizes_.n, sizes_.per_task, bytes, [&](int64_t begin, int64_t end, void* out) {
      function_(pred + begin, At(args.operands[1], begin * bytes), At(args.operands[2], begin * bytes), out,
                end - begin);
    });
  }

 private:
  const SelectFunction function_;
  const bool single_pred_;
  const Application sizes_;
};

class ClampKernel final : public Kernel {
 public:
  ClampKernel(DType dtype, bool single_low, bool single_high, Application sizes)
      : dtype_(dtype), single_low_(single_low), single_high_(single_high), sizes_(sizes) {}

  void Run(const KernelArgs& args) const override {
    RunTasks(args, sizes_.n, sizes_.per_task, sizes_.result_bytes, [&](int64_t begin, int64_t end, void* out) {
      const int64_t offset = begin * sizes_.operand_bytes;
      Clamp(dtype_, {At(args.operands[0], single_low_ ? 0 : offset), single_low_}, At(args.operands[1], offset),
            {At(args.operands[2], single_high_ ? 0 : offset), single_high_}, out, end - begin);
    });
  }

 private:
  const DType dtype_;
  const bool single_low_;
  const bool single_high_;
  const Application sizes_;
};

class IotaKernel final : public Kernel {
 public:
  IotaKernel(Iota iota, Application sizes) : iota_(iota), sizes_(sizes) {}

  void Run(const KernelArgs& args) const override {
    RunTasks(args, sizes_.n, sizes_.per_task, sizes_.result_bytes,
             [&](int64_t begin, int64_t end, void* out) { iota_.Fill(begin, end, out); });
  }

 private:
  const Iota iota_;
  const Application sizes_;
};

Application SizesOf(const BoundInstruction& instruction) {
  const ConcreteType& result = instruction.results[0];
  Application sizes{.n = result.num_elements(), .result_bytes = SizeOf(result.dtype), .per_task = kCopyElementsPerTask};
  if (!instruction.operands.empty()) sizes.operand_bytes = SizeOf(instruction.operands[0].dtype);
  return sizes;
}

// A rank-0 operand beside a result with axes stands for all of its elements. One element is not told apart: it is read
// as an array of one.
bool IsSingle(const ConcreteType& operand, const ConcreteType& result) {
  return operand.rank() == 0 && result.rank() != 0;
}

absl::Status Unsupported(const BoundInstruction& instruction) {
  std::string dtypes;
  for (const ConcreteType& operand : instruction.operands) absl::StrAppend(&dtypes, " ", ToString(operand));
  return Refuse(Refusal::kUnsupportedOnDevice,
                absl::StrCat("the CPU has no elementwise kernel for ", instruction.op->name, dtypes));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeElementwiseKernel(const BoundInstruction& instruction) {
  if (instruction.op->family != "core") return Unsupported(instruction);
  const CoreOp op = static_cast<CoreOp>(instruction.op->index);
  Application sizes = SizesOf(instruction);
  const ConcreteType& result = instruction.results[0];
  const auto operand = [&](size_t i) -> const ConcreteType& { return instruction.operands[i]; };
  switch (op) {
    case CoreOp::kIota:
      return std::make_unique<IotaKernel>(Iota(result, instruction.attrs->Int("dimension")), sizes);
    case CoreOp::kConvert:
      return std::make_unique<ConvertKernel>(FindConvert(operand(0).dtype, result.dtype), sizes);
    case CoreOp::kSelect:
      return std::make_unique<SelectKernel>(IsSingle(operand(0), result), sizes);
    case CoreOp::kClamp:
      sizes.per_task = ElementsPerTask(CoreOp::kMaximum, result.dtype);
      return std::make_unique<ClampKernel>(result.dtype, IsSingle(operand(0), result), IsSingle(operand(2), result),
                                           sizes);
    case CoreOp::kCompare: {
      const auto direction = static_cast<CompareDirection>(instruction.attrs->Int("direction"));
      const ElementwiseFunction function = FindCompare(direction, operand(0).dtype);
      if (function == nullptr) return Unsupported(instruction);
      return std::make_unique<FunctorKernel>(function, sizes);
    }
    default:
      break;
  }
  if (instruction.operands.empty()) return Unsupported(instruction);
  const ElementwiseFunction function = FindElementwise(op, operand(0).dtype);
  if (function == nullptr) return Unsupported(instruction);
  sizes.per_task = ElementsPerTask(op, operand(0).dtype);
  return std::make_unique<FunctorKernel>(function, sizes);
}

}  // namespace tensord::cpu
