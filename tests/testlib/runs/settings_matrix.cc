#include "tests/testlib/runs/settings_matrix.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/instruction_set.h"
#include "engine/exec/program/program_passes.h"
#include "engine/passes/pipeline.h"

namespace tensord {
namespace {

// Under the best one all others run. Each is run as it is and with all that can be had of code, epilogues and chains,
// not beside every other setting.
void AddInstructionSets(std::vector<MatrixSetting>* settings) {
  std::vector<CpuIsa> isas = MachineCpuIsas();
  isas.pop_back();
  for (const CpuIsa isa : isas) {
    const std::string name(Name(isa));
    settings->push_back({.name = absl::StrCat(name, " instructions"), .isa = name});
    settings->push_back({.name = absl::StrCat(name, " instructions, code, epilogues and chains everywhere"),
                         .threads = 3,
                         .jit = "on",
                         .epilogues = "on",
                         .chain_block_bytes = 512,
                         .isa = name});
  }
}

std::vector<MatrixSetting> MakeMatrix() {
  std::vector<MatrixSetting> settings = {
      {.name = "default"},
      {.name = "one thread", .threads = 1},
      {.name = "three threads", .threads = 3},
      {.name = "64 KiB of pool", .pool_bytes = 64 << 10},
      {.name = "no pool", .pool_bytes = 0},
      {.name = "code everywhere", .jit = "on"},
      {.name = "no code", .jit = "off"},
      {.name = "epilogues everywhere, three threads", .threads = 3, .epilogues = "on"},
      {.name = "no epilogues", .epilogues = "off"},
      {.name = "chains of small blocks, three threads", .threads = 3, .chain_block_bytes = 512},
      {.name = "no chains", .chain_block_bytes = -1},
      {.name = "printed and parsed", .print_and_parse = true},
      {.name = "colliding fingerprints", .collide = true},
  };
  AddInstructionSets(&settings);
  const std::vector<std::string> names = PassNames();
  std::vector<std::string> off_by_default;
  for (const Pass& pass : GraphPasses()) {
    const std::string name(pass.name);
    const bool is_new = std::find(off_by_default.begin(), off_by_default.end(), name) == off_by_default.end();
    if (!pass.on_by_default && is_new) off_by_default.push_back(name);
  }
  for (const std::string& name : names) {
    const bool is_off = std::find(off_by_default.begin(), off_by_default.end(), name) != off_by_default.end();
    if (is_off) {
      settings.push_back({.name = absl::StrCat("with ", name), .enabled_passes = {name}});
    } else {
      settings.push_back({.name = absl::StrCat("without ", name), .disabled_passes = {name}});
    }
  }
  if (!off_by_default.empty()) settings.push_back({.name = "with every pass", .enabled_passes = off_by_default});
  settings.push_back({.name = "without any pass", .disabled_passes = names});
  settings.push_back(
      {.name = "without any pass, one thread, no pool", .threads = 1, .pool_bytes = 0, .disabled_passes = names});
  return settings;
}

}  // namespace

const std::vector<MatrixSetting>& SettingsMatrix() {
  static const std::vector<MatrixSetting>* const settings = new std::vector<MatrixSetting>(MakeMatrix());
  return *settings;
}

std::vector<std::string> ServerSettings(const MatrixSetting& setting) {
  std::vector<std::string> settings = {absl::StrCat("cpu.threads=", setting.threads),
                                       absl::StrCat("cpu.pool_bytes=", setting.pool_bytes),
                                       absl::StrCat("cpu.jit=", setting.jit),
                                       absl::StrCat("cpu.epilogues=", setting.epilogues),
                                       absl::StrCat("cpu.chain_block_bytes=", setting.chain_block_bytes),
                                       absl::StrCat("cpu.isa=", setting.isa)};
  for (const std::string& name : setting.disabled_joins) {
    settings.push_back(absl::StrCat("cpu.disabled_joins=", name));
  }
  for (const std::string& name : setting.disabled_passes) {
    settings.push_back(absl::StrCat("compiler.disabled_passes=", name));
  }
  for (const std::string& name : setting.enabled_passes) {
    settings.push_back(absl::StrCat("compiler.enabled_passes=", name));
  }
  if (setting.print_and_parse) settings.push_back("testing.print_and_parse=true");
  if (setting.collide) settings.push_back("testing.collide_fingerprints=true");
  return settings;
}

std::vector<MatrixSetting> ChosenSettings() {
  const char* const text = std::getenv("TENSORD_SETTINGS");
  if (text == nullptr) return SettingsMatrix();
  std::vector<MatrixSetting> chosen;
  for (const MatrixSetting& setting : SettingsMatrix()) {
    if (setting.name == text) return {setting};
    if (absl::StrContains(setting.name, text)) chosen.push_back(setting);
  }
  return chosen;
}

}  // namespace tensord
