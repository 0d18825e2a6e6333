#include "backends/cuda/kernels/index_text.h"

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kPointsOf31Bits = int64_t{1} << 31;

}  // namespace

absl::string_view IndexType(int64_t count) { return count <= kPointsOf31Bits ? "u32" : "u64"; }
absl::string_view IndexSuffix(int64_t count) { return count <= kPointsOf31Bits ? "u" : "ull"; }

std::string IntegerText(int64_t x) { return absl::StrCat(x, x > -kPointsOf31Bits && x < kPointsOf31Bits ? "" : "ll"); }

std::vector<std::string> WriteCoordinates(CudaLines* lines, const std::string& variable,
                                          absl::Span<const int64_t> sizes, const std::string& prefix,
                                          const std::vector<bool>& needed, bool may_be_unused) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const absl::string_view type = IndexType(count), suffix = IndexSuffix(count);
  std::vector<std::string> names;
  int64_t before = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1 || (!needed.empty() && !needed[d])) {
      names.push_back("0");
    } else if (sizes[d] == count) {
      names.push_back(variable);
    } else {
      std::string text = variable;
      if (before > 1) absl::StrAppend(&text, " / ", before, suffix);
      // The quotient by the last axes needs no remainder.
      if (count / before > sizes[d]) absl::StrAppend(&text, " % ", sizes[d], suffix);
      names.push_back(absl::StrCat(prefix, d));
      lines->Line(may_be_unused ? "[[maybe_unused]] " : "", "const ", type, " ", names.back(), " = ", text, ";");
    }
    before *= sizes[d];
  }
  return names;
}

std::string OffsetText(absl::Span<const OffsetTerm> terms) {
  absl::int128 reach = 0;
  bool has_sign = false;
  for (const OffsetTerm& term : terms) {
    reach += absl::int128(term.stride < 0 ? -absl::int128(term.stride) : absl::int128(term.stride)) * term.size;
    has_sign |= term.stride < 0;
  }
  const absl::string_view cast = reach >= kPointsOf31Bits ? "(i64)" : has_sign ? "(i32)" : "";
  std::vector<std::string> texts;
  for (const OffsetTerm& term : terms) {
    if (term.stride == 0 || term.size == 1 || term.coordinate == "0") continue;
    const std::string factor = absl::StrCat(cast, term.coordinate);
    texts.push_back(term.stride == 1 ? factor : absl::StrCat(factor, " * ", IntegerText(term.stride)));
  }
  return texts.empty() ? "0" : absl::StrJoin(texts, " + ");
}

std::string MovedType(int64_t element_bytes, CudaPrelude* prelude) {
  prelude->Use("Types");
  switch (element_bytes) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    case 8:
      return "u64";
    default:
      prelude->Use("Vector");
      return "Vector<u64, 2>";
  }
}

std::string ClampedText(const std::string& index, int64_t last) {
  return absl::StrCat("(", index, " < 0 ? 0 : ", index, " > ", last, "ll ? ", last, "ll : (i64)", index, ")");
}

}  // namespace tensord::cuda
