#include "engine/runtime/compiled_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"

namespace tensord {
namespace {

constexpr size_t kMaxTinyInstructions = 16;
constexpr int64_t kMaxTinyBytes = 32 << 10;

// Whether the slots are few and small: together some microseconds of any core op.
bool IsTiny(const BoundProgram& bound, const ExecProgram& program) {
  if (program.instructions.size() > kMaxTinyInstructions || bound.slot_types().size() > 4 * kMaxTinyInstructions) {
    return false;
  }
  for (const ExecInstruction& instruction : program.instructions) {
    if (instruction.op->family != "core") return false;
  }
  int64_t bytes = bound.temporary_bytes();
  for (const ConcreteType& type : bound.slot_types()) {
    if (type.num_bytes() > kMaxTinyBytes || (bytes += type.num_bytes()) > kMaxTinyBytes) return false;
  }
  return true;
}

bool Same(absl::Span<const ConcreteType> a, absl::Span<const ConcreteType> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CompiledProgram>> CompiledProgram::Create(ExecProgram program,
                                                                               Fingerprint fingerprint,
                                                                               std::string device, Backend* backend) {
  std::shared_ptr<CompiledProgram> compiled(
      new CompiledProgram(std::move(program), fingerprint, std::move(device), backend));
  if (compiled->program_.is_static()) {
    for (size_t i = 0; i < compiled->program_.inputs.size(); ++i) {
      compiled->static_arguments_.push_back(ToConcreteType(compiled->program_.slot_types[i]));
    }
    ASSIGN_OR_RETURN(compiled->static_binding_,
                     BoundProgram::Create(compiled->program_, backend, compiled->static_arguments_));
    compiled->is_tiny_ =
        backend->Describe().computes_on_caller && IsTiny(*compiled->static_binding_, compiled->program_);
  }
  return compiled;
}

absl::StatusOr<std::shared_ptr<const BoundProgram>> CompiledProgram::Bind(
    absl::Span<const ConcreteType> arguments) const {
  if (static_binding_ != nullptr && Same(arguments, static_arguments_)) return static_binding_;
  {
    MutexLock lock(&mutex_);
    for (auto it = bindings_.begin(); it != bindings_.end(); ++it) {
      if (!Same(arguments, it->arguments)) continue;
      bindings_.splice(bindings_.begin(), bindings_, it);
      return it->bound;
    }
  }
  // Made outside the lock; two threads may make the same one, and either serves.
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundProgram> bound, BoundProgram::Create(program_, backend_, arguments));
  MutexLock lock(&mutex_);
  bindings_.push_front({.arguments = {arguments.begin(), arguments.end()}, .bound = bound});
  if (bindings_.size() > kMaxBindings) bindings_.pop_back();
  return bound;
}

std::optional<int64_t> CompiledProgram::temporary_bytes() const {
  if (static_binding_ == nullptr) return std::nullopt;
  return static_binding_->temporary_bytes();
}

std::string CompiledProgram::Explain() const {
  std::string text = ToString(program_);
  absl::StrAppend(&text, "passes that changed the graph: ",
                  program_.passes.empty() ? "none" : absl::StrJoin(program_.passes, ", "), "\n");
  absl::StrAppend(&text, "device ", device_, ", ", segment_count(), " segments\n");
  if (static_binding_ != nullptr) {
    absl::StrAppend(&text, static_binding_->ToString());
  } else {
    absl::StrAppend(&text, "kernels and memory are decided by the sizes of the arguments\n");
  }
  return text;
}

}  // namespace tensord
