// Prints the settings of the test matrix, for scripts: a line each, its name and then the server's settings, separated
// by tabs.

#include <cstdio>

#include "absl/strings/str_join.h"
#include "tests/testlib/runs/settings_matrix.h"

int main() {
  for (const tensord::MatrixSetting& setting : tensord::SettingsMatrix()) {
    std::printf("%s\t%s\n", setting.name.c_str(), absl::StrJoin(tensord::ServerSettings(setting), "\t").c_str());
  }
  return 0;
}
