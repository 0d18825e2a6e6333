#include "backends/cuda/codegen/index.h"

#include <limits>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensord {
namespace {

constexpr int64_t kInt32Points = int64_t{1} << 31;
constexpr int64_t kMostNeighbours = 16;  // of a vector: so many bytes

std::string IntegerText(int64_t x) { return absl::StrCat(x, x > -kInt32Points && x < kInt32Points ? "" : "ll"); }

}  // namespace

CudaIndex::CudaIndex(std::string variable, const MicroProgram& program, Axes axes) : variable_(std::move(variable)) {
  for (size_t d = 0; d < program.axes.size(); ++d) {
    if (axes != Axes::kAll && program.axes[d].is_reduced != (axes == Axes::kReduced)) continue;
    axes_.push_back(d);
    sizes_.push_back(program.axes[d].size);
    points_ *= program.axes[d].size;
  }
  type_ = points_ <= kInt32Points ? "u32" : "u64";
}

const std::string& CudaIndex::CoordinateName(int64_t before, int64_t size) {
  for (const Coordinate& coordinate : coordinates_) {
    if (coordinate.before == before && coordinate.size == size) return coordinate.name;
  }
  Coordinate coordinate{.before = before, .size = size};
  if (before == 1 && size == points_) {
    coordinate.name = variable_;
  } else {
    coordinate.name = absl::StrCat(variable_, coordinates_.size() + 1);
    const absl::string_view suffix = type_ == "u32" ? "u" : "ull";
    std::string text = variable_;
    if (before > 1) absl::StrAppend(&text, " / ", before, suffix);
    // The quotient by the last axes needs no remainder.
    if (points_ / before > size) absl::StrAppend(&text, " % ", size, suffix);
    declarations_.push_back(absl::StrCat("const ", type_, " ", coordinate.name, " = ", text, ";"));
  }
  coordinates_.push_back(std::move(coordinate));
  return coordinates_.back().name;
}

std::string CudaIndex::Offset(const MicroAccess& access, absl::string_view cast) {
  std::vector<std::string> terms;
  int64_t before = 1;
  for (size_t d = 0; d < axes_.size();) {
    const int64_t stride = access.strides[axes_[d]];
    int64_t size = sizes_[d++];
    // Axes that follow one another as they do in the index are one coordinate.
    while (d < axes_.size() && absl::int128(access.strides[axes_[d]]) == absl::int128(stride) * size) {
      size *= sizes_[d++];
    }
    if (stride != 0 && size > 1) {
      const std::string term = absl::StrCat(cast, CoordinateName(before, size));
      terms.push_back(stride == 1 ? term : absl::StrCat(term, " * ", IntegerText(stride)));
    }
    before *= size;
  }
  return terms.empty() ? "0" : absl::StrJoin(terms, " + ");
}

std::vector<std::string> CudaIndex::TakeDeclarations() { return std::exchange(declarations_, {}); }

absl::string_view CudaIndexCast(const MicroProgram& program, const MicroAccess& access) {
  const auto magnitude = [](int64_t x) { return x < 0 ? -absl::int128(x) : absl::int128(x); };
  bool has_sign = access.offset < 0;
  absl::int128 reach = magnitude(access.offset);
  for (size_t d = 0; d < program.axes.size(); ++d) {
    has_sign |= access.strides[d] < 0;
    reach += magnitude(access.strides[d]) * program.axes[d].size;
  }
  return reach >= kInt32Points ? "(i64)" : has_sign ? "(i32)" : "";
}

std::string CudaNeighbourStride(int64_t stride) {
  constexpr int64_t kMostNarrow = std::numeric_limits<int32_t>::max() / kMostNeighbours;
  return absl::StrCat(stride, stride > kMostNarrow || stride < -kMostNarrow ? "ll" : "");
}

std::string CudaSum(int64_t offset, const std::string& a, const std::string& b) {
  std::string sum;
  for (const std::string& term : {offset == 0 ? std::string("0") : IntegerText(offset), a, b}) {
    if (term == "0") continue;
    absl::StrAppend(&sum, sum.empty() ? "" : " + ", term);
  }
  return sum.empty() ? "0" : sum;
}

}  // namespace tensord
