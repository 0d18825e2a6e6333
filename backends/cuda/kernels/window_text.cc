#include "backends/cuda/kernels/window_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/kernels/index_text.h"

namespace tensord::cuda {

std::vector<int64_t> WindowText::BatchSizes() const {
  std::vector<int64_t> sizes;
  for (const WindowLayout::BatchAxis& axis : layout_.batch) sizes.push_back(axis.size);
  return sizes;
}

std::vector<int64_t> WindowText::WindowSizes() const {
  std::vector<int64_t> sizes;
  for (const WindowAxis& axis : layout_.window) sizes.push_back(axis.size);
  return sizes;
}

WindowText::Place WindowText::WriteElement(CudaLines* lines, const std::string& variable) const {
  // The axes of both kinds together are the tensor of windows, which is dense.
  struct Axis {
    int64_t stride, size;
    std::string* name;
  };
  Place place{.batch = std::vector<std::string>(layout_.batch.size()),
              .window = std::vector<std::string>(layout_.window.size())};
  std::vector<Axis> axes;
  for (size_t k = 0; k < layout_.batch.size(); ++k) {
    axes.push_back({layout_.batch[k].windows_stride, layout_.batch[k].size, &place.batch[k]});
  }
  for (size_t k = 0; k < layout_.window.size(); ++k) {
    axes.push_back({layout_.window[k].windows_stride, layout_.window[k].size, &place.window[k]});
  }
  // One of size 1 has another's stride, and comes first.
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return std::pair(a.stride, a.size) < std::pair(b.stride, b.size); });
  std::vector<int64_t> sizes;
  for (const Axis& axis : axes) sizes.push_back(axis.size);
  // Windows at one place do not ask where they come from, unless the last one wins.
  const std::vector<std::string> names =
      WriteCoordinates(lines, variable, sizes, variable, {}, /*may_be_unused=*/layout_.components.empty());
  for (size_t k = 0; k < axes.size(); ++k) *axes[k].name = names[k];
  return place;
}

WindowText::Place WindowText::WriteWindow(CudaLines* lines, const std::string& variable) const {
  return {.batch = WriteCoordinates(lines, variable, BatchSizes(), variable), .window = {}};
}

WindowText::Place WindowText::WriteInner(CudaLines* lines, const std::string& variable) const {
  return {.batch = {}, .window = WriteCoordinates(lines, variable, WindowSizes(), variable)};
}

void WindowText::WriteStart(CudaLines* lines, const Place& place, bool skips) const {
  std::vector<OffsetTerm> batch, indices;
  for (size_t k = 0; k < place.batch.size(); ++k) {
    const WindowLayout::BatchAxis& axis = layout_.batch[k];
    batch.push_back({place.batch[k], axis.size, axis.operand_stride});
    indices.push_back({place.batch[k], axis.size, axis.indices_stride});
  }
  if (!layout_.components.empty()) {
    lines->Line("const ", CudaType(index_dtype_), "* const index = indices + ", OffsetText(indices), ";");
  }
  std::string start = absl::StrCat("(i64)(", OffsetText(batch), ")"), fits;
  for (size_t k = 0; k < layout_.components.size(); ++k) {
    const WindowLayout::Component& component = layout_.components[k];
    lines->Line("const i64 s", k, " = index[", component.indices_offset, "ll];");
    const std::string at = skips ? absl::StrCat("s", k) : ClampedText(absl::StrCat("s", k), component.limit);
    absl::StrAppend(&start, " + ", at, " * ", component.operand_stride, "ll");
    absl::StrAppend(&fits, fits.empty() ? "" : " && ", "(u64)s", k, " <= ", component.limit, "ull");
  }
  if (skips && !fits.empty()) start = absl::StrCat(fits, " ? ", start, " : -1ll");
  lines->Line("const i64 start = ", start, ";");
}

std::string WindowText::InnerOffset(const Place& place) const {
  std::vector<OffsetTerm> terms;
  for (size_t k = 0; k < place.window.size(); ++k) {
    terms.push_back({place.window[k], layout_.window[k].size, layout_.window[k].operand_stride});
  }
  return OffsetText(terms);
}

std::string WindowText::WindowsOffset(const Place& place) const {
  std::vector<OffsetTerm> terms;
  for (size_t k = 0; k < place.batch.size(); ++k) {
    terms.push_back({place.batch[k], layout_.batch[k].size, layout_.batch[k].windows_stride});
  }
  for (size_t k = 0; k < place.window.size(); ++k) {
    terms.push_back({place.window[k], layout_.window[k].size, layout_.window[k].windows_stride});
  }
  return OffsetText(terms);
}

std::string WindowText::Number(const Place& place) const {
  std::vector<OffsetTerm> terms;
  int64_t before = 1;
  for (size_t k = 0; k < place.batch.size(); ++k) {
    terms.push_back({place.batch[k], layout_.batch[k].size, before});
    before *= layout_.batch[k].size;
  }
  return OffsetText(terms);
}

}  // namespace tensord::cuda
