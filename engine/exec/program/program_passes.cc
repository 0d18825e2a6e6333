#include "engine/exec/program/program_passes.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"

namespace tensord {
namespace {

constexpr ProgramPass kProgramPasses[] = {
    // Needs the final order of the instructions. The memory plan works with it.
    {"mark_last_uses", "Says which instruction reads a value last, so that its memory serves another.", &MarkLastUses},
    {"form_sessions", "Runs as many instructions as possible in one session of the backend.", &FormSessions},
};

}  // namespace

bool MarkLastUses(ExecProgram* program) {
  bool marked = false;
  std::vector<bool> read_later(static_cast<size_t>(program->num_slots()));
  for (const ProgramOutput& output : program->outputs) read_later[static_cast<size_t>(output.slot)] = true;
  for (auto it = program->instructions.rbegin(); it != program->instructions.rend(); ++it) {
    for (size_t i = it->operands.size(); i-- > 0;) {
      const size_t slot = static_cast<size_t>(it->operands[i]);
      it->last_use[i] = !read_later[slot];
      marked = marked || it->last_use[i];
      read_later[slot] = true;
    }
  }
  program->knows_last_uses = true;
  return marked;
}

bool FormSessions(ExecProgram* program) {
  program->one_session = true;
  return program->instructions.size() > 1;
}

absl::Span<const ProgramPass> ProgramPasses() { return kProgramPasses; }

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  const auto add = [&](absl::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::string(name));
  };
  for (const Pass& pass : GraphPasses()) add(pass.name);
  for (const ProgramPass& pass : kProgramPasses) add(pass.name);
  return names;
}

absl::Status CheckPassNames(absl::Span<const std::string> names) {
  if (names.empty()) return absl::OkStatus();
  const std::vector<std::string> known = PassNames();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Refuse(Refusal::kPassUnknown,
                  absl::StrCat("there is no pass \"", name, "\"; there are ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

void RunProgramPasses(const PassSelection& selection, ExecProgram* program) {
  for (const ProgramPass& pass : kProgramPasses) {
    if (!selection.Selects(pass.name, /*on_by_default=*/true)) continue;
    PassRecord record{.name = std::string(pass.name),
                      .nodes_before = static_cast<int64_t>(program->instructions.size())};
    const auto start = std::chrono::steady_clock::now();
    record.fired = pass.run(program);
    record.duration_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    record.nodes_after = static_cast<int64_t>(program->instructions.size());
    program->passes.push_back(std::move(record));
  }
}

}  // namespace tensord
