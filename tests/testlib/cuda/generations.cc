#include "tests/testlib/cuda/generations.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/kernel_text.h"
#include "gtest/gtest.h"
#include "tests/testlib/cuda/nvrtc.h"

namespace tensord {

void ExpectFitsGenerations(const std::set<std::string>& texts, int most_registers) {
  constexpr const char* kGenerations[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
  const bool has_all = std::getenv("TENSORD_EVERY_GENERATION") != nullptr;
  std::map<std::string, int> most;
  size_t turn = 0;
  for (const std::string& text : texts) {
    ++turn;
    for (size_t g = 0; g < std::size(kGenerations); ++g) {
      if (!has_all && g != turn % std::size(kGenerations)) continue;
      std::vector<std::string> options(std::begin(kCudaCompileOptions), std::end(kCudaCompileOptions));
      options.push_back(absl::StrCat("--gpu-architecture=", kGenerations[g]));
      const auto registers = Nvrtc::Get()->Registers(text, options);
      ASSERT_TRUE(registers.ok()) << kGenerations[g] << ": " << registers.status() << "\n" << text;
      EXPECT_LE(*registers, most_registers) << kGenerations[g] << "\n" << text;
      most[kGenerations[g]] = std::max(most[kGenerations[g]], *registers);
    }
  }
  for (const auto& [generation, registers] : most) testing::Test::RecordProperty(generation, registers);
  testing::Test::RecordProperty("texts", static_cast<int>(texts.size()));
}

}  // namespace tensord
