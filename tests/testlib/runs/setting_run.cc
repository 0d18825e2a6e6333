#include "tests/testlib/runs/setting_run.h"

#include <future>
#include <utility>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/machine/instruction_set.h"
#include "engine/base/status_macros.h"
#include "engine/families/all_families.h"
#include "engine/ir/text_round_trip.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"

namespace tensord {

SettingRun::SettingRun(const MatrixSetting& setting)
    : SettingRun(setting, MakeCpuBackend({.threads = setting.threads,
                                          .pool_bytes = setting.pool_bytes,
                                          .jit = CpuUseNamed(setting.jit),
                                          .epilogues = CpuUseNamed(setting.epilogues),
                                          .chain_block_bytes = setting.chain_block_bytes,
                                          .disabled_joins = setting.disabled_joins})) {}

SettingRun::SettingRun(MatrixSetting setting, std::unique_ptr<Backend> backend)
    : setting_(std::move(setting)), backend_(std::move(backend)) {
  if (!setting_.collide) return;
  compile_pool_ = std::make_unique<CompilePool>(1, 16);
  cache_ = std::make_unique<ProgramCache>(ProgramCache::Options{.max_bytes = 1 << 20}, compile_pool_.get());
}

absl::StatusOr<CompiledProgramPtr> SettingRun::CompileGraph(Graph graph, bool row_major) {
  RETURN_IF_ERROR(UseCpuIsa(setting_.isa));
  if (setting_.print_and_parse) {
    ASSIGN_OR_RETURN(graph, ReadBackFromText(graph, FamilyRegistry()));
  }
  const CompileSettings settings{.device = "test:0",
                                 .row_major = row_major,
                                 .disabled_passes = setting_.disabled_passes,
                                 .enabled_passes = setting_.enabled_passes};
  ProgramKey key = MakeProgramKey(graph, settings);
  if (!setting_.collide) return Compile(std::move(graph), settings, key.fingerprint, backend_.get());
  key.fingerprint = Fingerprint();
  std::promise<absl::StatusOr<CompiledProgramPtr>> compiled;
  cache_->GetOrCompile(
      std::move(key), [&] { return Compile(std::move(graph), settings, Fingerprint(), backend_.get()); },
      [&compiled](absl::StatusOr<ProgramCache::Found> found) {
        if (!found.ok()) return compiled.set_value(found.status());
        compiled.set_value(found->program);
      });
  return compiled.get_future().get();
}

}  // namespace tensord
