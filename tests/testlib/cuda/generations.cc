#include "tests/testlib/cuda/generations.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "backends/cuda/codegen/kernel_text.h"
#include "gtest/gtest.h"
#include "tests/testlib/cuda/nvrtc.h"

namespace tensord {

namespace {

// A compiler's call takes half as long for each of so many texts.
constexpr size_t kTextsOfACall = 16;

std::vector<std::string> OptionsFor(const char* generation) {
  std::vector<std::string> options(std::begin(kCudaCompileOptions), std::end(kCudaCompileOptions));
  options.push_back(absl::StrCat("--gpu-architecture=", generation));
  return options;
}

// Returns the registers of texts in one call, each in a namespace of its own; a refusal where one of them has it.
absl::StatusOr<int> RegistersTogether(absl::Span<const std::string* const> texts, const char* generation) {
  std::string together;
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StrAppend(&together, "namespace text", i, " {\n",
                    absl::StrReplaceAll(*texts[i], {{"extern \"C\" __global__", "__global__"}}), "}\n");
  }
  return Nvrtc::Get()->Registers(together, OptionsFor(generation));
}

}  // namespace

void ExpectFitsGenerations(const std::set<std::string>& texts, int most_registers) {
  constexpr const char* kGenerations[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
  const bool has_all = std::getenv("TENSORD_EVERY_GENERATION") != nullptr;
  for (size_t g = 0; g < std::size(kGenerations); ++g) {
    const char* const generation = kGenerations[g];
    std::vector<const std::string*> mine;
    size_t turn = 0;
    for (const std::string& text : texts) {
      if (has_all || ++turn % std::size(kGenerations) == g) mine.push_back(&text);
    }
    int most = 0;
    for (size_t i = 0; i < mine.size(); i += kTextsOfACall) {
      const auto some = absl::MakeConstSpan(mine).subspan(i, kTextsOfACall);
      const auto together = RegistersTogether(some, generation);
      if (together.ok()) most = std::max(most, *together);
      if (together.ok() && *together <= most_registers) continue;
      for (const std::string* const text : some) {
        const auto alone = Nvrtc::Get()->Registers(*text, OptionsFor(generation));
        EXPECT_TRUE(alone.ok()) << generation << ": " << alone.status() << "\n" << *text;
        if (!alone.ok()) continue;
        EXPECT_LE(*alone, most_registers) << generation << "\n" << *text;
        most = std::max(most, *alone);
      }
    }
    if (!mine.empty()) testing::Test::RecordProperty(generation, most);
  }
  testing::Test::RecordProperty("texts", static_cast<int>(texts.size()));
}

}  // namespace tensord
