#include "backends/cpu/contraction/operands/window_rows.h"

#include <algorithm>
#include <numeric>

#include "absl/types/span.h"
#include "backends/cpu/contraction/operands/tiled_operand.h"
#include "backends/cpu/machine/cache_line.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastTermRun = 8;                    // of terms: what is done for each run has to be worth it
constexpr int64_t kTableShare = 4;                      // tables are at most so small a part of the tensor
constexpr int64_t kMaxTableEntries = int64_t{1} << 18;  // of 2 bytes: 512 KiB
constexpr int64_t kCacheWay = 4096;    // bytes: places so far apart are in each other's way in the nearest cache
constexpr int64_t kMaxLinesInWay = 8;  // of a run that are in each other's way

DotAxisList Unpadded(const PaddedTensor& padded, const DotAxisList& axes) {
  return padded.axes.empty() ? axes : PaddedLines::Unpadded(kLhs, padded, axes);
}

// Neighbours that are one axis.
DotAxisList Merged(const DotAxisList& axes) {
  DotAxisList merged;
  for (const DotAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!merged.empty() && axis.strides[kLhs] == merged.back().strides[kLhs] * merged.back().size) {
      merged.back().size *= axis.size;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

// Returns the elements between the first and the last one that rows have, about those of the tensor.
int64_t PlacesOf(const DotAxisList& rows, const DotAxisList& terms) {
  int64_t places = 1;
  for (const DotAxisList* axes : {&rows, &terms}) {
    for (const DotAxis& axis : *axes) places += axis.strides[kLhs] * (axis.size - 1);
  }
  return places;
}

bool CrowdsCache(int64_t stride_bytes, int64_t terms) {
  const int64_t apart = std::max(std::gcd(stride_bytes, kCacheWay), kLineBytes);
  return terms > kMaxLinesInWay * (kCacheWay / apart);
}

}  // namespace

bool WindowRows::AreFaster(const PaddedTensor& padded, const DotAxisList& rows, const DotAxisList& terms,
                           int64_t element_bytes, int64_t lanes) {
  if (lanes == 0 || terms.size() < 2 || terms[0].size < kLeastTermRun) return false;
  const DotAxisList merged = Merged(Unpadded(padded, rows)), lying_terms = Unpadded(padded, terms);
  if (merged.empty() || merged[0].strides[kLhs] != 1 || merged[0].size < lanes) return false;
  const int64_t step = lying_terms[0].strides[kLhs];
  if (step <= 0 || CrowdsCache(step * element_bytes, terms[0].size)) return false;
  // Windows overlap: they have more elements than there are places.
  const int64_t places = PlacesOf(merged, lying_terms);
  if (2 * NumElements(merged) * NumElements(lying_terms) < 3 * places) return false;
  const int64_t num_rows = NumElements(rows), runs = NumElements(terms) / terms[0].size;
  const int64_t entries = (num_rows + lanes - 1) / lanes * runs * (merged.size() == 1 ? 1 : 2);
  return entries <= std::min(kMaxTableEntries, places * element_bytes / kTableShare / int64_t{sizeof(uint16_t)});
}

std::optional<WindowRows> WindowRows::Plan(const PaddedTensor& padded, const DotAxisList& rows,
                                           const DotAxisList& terms, int64_t element_bytes, int64_t lanes) {
  if (!AreFaster(padded, rows, terms, element_bytes, lanes)) return std::nullopt;
  return WindowRows(padded, rows, terms, element_bytes, lanes);
}

WindowRows::WindowRows(const PaddedTensor& padded, const DotAxisList& rows, const DotAxisList& terms,
                       int64_t element_bytes, int64_t lanes)
    : lanes_(lanes), run_terms_(terms[0].size), num_runs_(NumElements(terms) / terms[0].size) {
  const bool pads = !padded.axes.empty();
  const DotAxisList merged = Merged(Unpadded(padded, rows)), lying_terms = Unpadded(padded, terms);
  term_step_ = lying_terms[0].strides[kLhs];
  pieces_ = merged.size() == 1 ? 1 : 2;
  const int64_t num_rows = NumElements(rows), vectors = (num_rows + lanes - 1) / lanes;
  for (int64_t run = 0; run < num_runs_; ++run) {
    run_offsets_.push_back(OffsetOf(kLhs, lying_terms, run * run_terms_));
  }
  PaddedLines lines;
  if (pads) lines = PaddedLines(kLhs, padded, rows, terms, element_bytes);
  masks_.resize(static_cast<size_t>(vectors * num_runs_ * pieces_));
  std::vector<uint64_t> existing(static_cast<size_t>(num_runs_), ~uint64_t{0});
  for (int64_t vector = 0; vector < vectors; ++vector) {
    const int64_t first = vector * lanes, count = std::min(lanes, num_rows - first);
    // The second piece begins where the first axis ends.
    const int64_t in_first = pieces_ == 1 ? count : std::min(count, merged[0].size - first % merged[0].size);
    row_offsets_.push_back(lines.origin() + OffsetOf(kLhs, merged, first));
    if (pieces_ == 2) {
      const int64_t next = in_first < count ? OffsetOf(kLhs, merged, first + in_first) - in_first : 0;
      row_offsets_.push_back(lines.origin() + next);
    }
    if (pads) lines.MarkExisting(first, count, run_terms_, absl::MakeSpan(existing));
    const uint64_t all = (uint64_t{1} << count) - 1, of_first = (uint64_t{1} << in_first) - 1;
    uint16_t* mask = &masks_[static_cast<size_t>(vector * num_runs_ * pieces_)];
    for (const uint64_t bits : existing) {
      *mask++ = static_cast<uint16_t>(bits & of_first);
      if (pieces_ == 2) *mask++ = static_cast<uint16_t>(bits & all & ~of_first);
    }
  }
}

TiledRows WindowRows::Rows(int64_t first_row, int64_t first_term) const {
  const size_t vector = static_cast<size_t>(first_row / lanes_), run = static_cast<size_t>(first_term / run_terms_);
  const size_t pieces = static_cast<size_t>(pieces_), runs = static_cast<size_t>(num_runs_);
  return {.pieces = pieces_,
          .run_terms = run_terms_,
          .first_term = first_term % run_terms_,
          .run_offsets = &run_offsets_[run],
          .offsets = &row_offsets_[vector * pieces],
          .masks = &masks_[(vector * runs + run) * pieces],
          .masks_step = num_runs_ * pieces_};
}

}  // namespace tensord::cpu
