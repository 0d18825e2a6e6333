// A family whose kernels end the process.
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "backends/cpu/kernel/family_kernel.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/families/family_plugin.h"
#include "engine/ir/op_def.h"
#include "tests/plugin/crash.pb.h"
#include "tests/plugin/crash_op.h"

namespace crash {
namespace {

using tensord::AttrDef;
using tensord::AttrKind;

volatile int one = 1, zero = 0;  // a compiler divides 1 by what it does not know without dividing
volatile int* volatile nowhere = nullptr;

// Deeper than any stack.
[[gnu::noinline]] int Recurse(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  if (zero != 0) return frame[0];
  return Recurse(depth + 1) + frame[0];
}

void CrashNow(int64_t how) {
  switch (how) {
    case kDivides:
      zero = one / zero;
      return;
    case kAborts:
      std::abort();
    case kRecurses:
      zero = Recurse(0);
      return;
    case kWaits:
      while (true) pause();
    default:
      *nowhere = 1;
  }
}

class CrashKernel final : public tensord::cpu::Kernel {
 public:
  CrashKernel(int64_t how, size_t bytes) : how_(how), bytes_(bytes) {}
  void Run(const tensord::cpu::KernelArgs& args) const override {
    float first = 0;
    if (bytes_ >= sizeof(first)) std::memcpy(&first, args.operands[0], sizeof(first));
    std::memcpy(args.results[0], args.operands[0], bytes_);
    if (first == 0) return;
    if (how_ != kHelpers) return CrashNow(how_);
    const pthread_t caller = pthread_self();
    args.pool->ParallelFor(64, [caller](int64_t) {
      if (pthread_equal(caller, pthread_self()) == 0) CrashNow(kWrites);
      usleep(10000);  // leaves tasks for the others
    });
  }

 private:
  const int64_t how_;
  const size_t bytes_;
};

absl::StatusOr<std::unique_ptr<tensord::cpu::Kernel>> MakeCrash(const tensord::BoundInstruction& instruction,
                                                                const tensord::cpu::FamilyContext&) {
  const int64_t how = instruction.attrs->Int("how");
  if (instruction.attrs->Flag("when_made") && std::getenv(kCrashesWhenMade) != nullptr) CrashNow(how);
  return std::make_unique<CrashKernel>(how, static_cast<size_t>(instruction.operands[0].num_bytes()));
}

absl::StatusOr<tensord::ResultTypes> InferCrash(tensord::InferContext& context) {
  return tensord::ResultTypes{context.operand(0)};
}

constexpr AttrDef kAttrs[] = {{.name = "how", .kind = AttrKind::kInt}, {.name = "when_made", .kind = AttrKind::kFlag}};
constexpr tensord::OpDef kOps[] = {{.family = "crash",
                                    .index = 0,
                                    .name = "crash.v1.Crash",
                                    .summary = "Gives its operand back, or ends the process.",
                                    .op_class = tensord::OpClass::kExtension,
                                    .min_operands = 1,
                                    .max_operands = 1,
                                    .attrs = kAttrs,
                                    .traits = tensord::kNoTraits,
                                    .dtypes = tensord::kAnyDType,
                                    .infer = &InferCrash,
                                    .refusals = tensord::RefusalTable::None("everything can be given back"),
                                    .reference = tensord::Facet<tensord::ReferenceRule>::None("never folded"),
                                    .permute = tensord::Facet<tensord::PermuteRule>::None("never run"),
                                    .jvp = tensord::Facet<tensord::JvpRule>::None("never run"),
                                    .linear_transpose = tensord::Facet<tensord::TransposeRule>::None("never run")}};
constexpr tensord::cpu::FamilyKernel kKernels[] = {{.op = "crash.v1.Crash", .make = &MakeCrash}};

}  // namespace
}  // namespace crash

const tensord::FamilyPlugin* tensord_family_plugin_v1() {
  google::protobuf::LinkMessageReflection<crash::v1::Crash>();
  static const tensord::DeviceKernels kernels = {.device_kind = "cpu", .table = crash::kKernels, .count = 1};
  static const tensord::FamilyPlugin plugin = {
      .family = "crash", .ops = crash::kOps, .num_ops = 1, .kernels = &kernels, .num_kernels = 1};
  return &plugin;
}
