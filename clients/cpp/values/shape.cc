#include "tensord/shape.h"

#include <algorithm>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensord::client {
namespace {

// Names of symbols in the order in which they were made, and their sizes. Kept for ever: sizes are plain numbers.
struct SymbolTable {
  static SymbolTable& OfProcess() {
    static SymbolTable* const table = new SymbolTable;
    return *table;
  }

  std::mutex mutex;
  std::vector<std::string> names;
  absl::flat_hash_map<std::string, int64_t> sizes;
};

}  // namespace

int64_t Symbol(absl::string_view name) {
  SymbolTable& table = SymbolTable::OfProcess();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto [found, is_new] = table.sizes.try_emplace(std::string(name), kRunTimeSize);
  if (is_new && table.names.size() < std::numeric_limits<uint32_t>::max()) {
    table.names.push_back(found->first);
    found->second += static_cast<int64_t>(table.names.size());
  }
  return found->second;
}

std::string SymbolName(int64_t size) {
  if (!IsSymbol(size)) return "?";
  SymbolTable& table = SymbolTable::OfProcess();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const size_t at = static_cast<size_t>(size - kRunTimeSize) - 1;
  return at < table.names.size() ? table.names[at] : "?";
}

bool MayBeEqual(int64_t a, int64_t b) {
  return a == b || (a == kRunTimeSize && IsRunTimeSize(b)) || (b == kRunTimeSize && IsRunTimeSize(a));
}

std::string ShapeToString(absl::Span<const int64_t> shape) {
  const auto append = [](std::string* text, int64_t dim) {
    IsRunTimeSize(dim) ? absl::StrAppend(text, SymbolName(dim)) : absl::StrAppend(text, dim);
  };
  return absl::StrCat("[", absl::StrJoin(shape, ",", append), "]");
}

bool HasRunTimeSize(absl::Span<const int64_t> shape) { return std::any_of(shape.begin(), shape.end(), IsRunTimeSize); }

bool MayFit(int64_t size, int64_t dim) { return IsRunTimeSize(size) || IsRunTimeSize(dim) || size <= dim; }

absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> shape) {
  // Zeros are left out of the product, so that the order of the dimensions does not decide whether a shape is refused.
  int64_t product = 1;
  bool is_empty = false;
  if (shape.size() > kMostAxes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor has at most ", kMostAxes, " axes, and the shape has ", shape.size()));
  }
  if (HasRunTimeSize(shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a size is known only when the graph runs: shape ", ShapeToString(shape)));
  }
  for (int64_t dim : shape) {
    if (dim < 0) {
      return absl::InvalidArgumentError(absl::StrCat("a dimension is negative: shape ", ShapeToString(shape)));
    }
    if (dim == 0) {
      is_empty = true;
    } else if (__builtin_mul_overflow(product, dim, &product)) {
      return absl::InvalidArgumentError(absl::StrCat("too many elements: shape ", ShapeToString(shape)));
    }
  }
  return is_empty ? 0 : product;
}

absl::StatusOr<Shape> BroadcastShapes(absl::string_view op, absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t from_last = 1; from_last <= rank; ++from_last) {
    const int64_t dim_a = from_last <= a.size() ? a[a.size() - from_last] : 1;
    const int64_t dim_b = from_last <= b.size() ? b[b.size() - from_last] : 1;
    if (!MayBeEqual(dim_a, dim_b) && dim_a != 1 && dim_b != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(op, ": shapes do not broadcast: ", ShapeToString(a), " and ", ShapeToString(b)));
    }
    result[rank - from_last] = dim_a == 1 || IsSymbol(dim_b) ? dim_b : dim_a;
  }
  return result;
}

absl::StatusOr<int64_t> NormalizeAxis(absl::string_view op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat(op, ": axis is out of range: axis ", axis, ", rank ", rank));
  }
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<std::vector<int64_t>> NormalizeAxes(absl::string_view op, absl::Span<const int64_t> axes, int64_t rank) {
  std::vector<int64_t> result;
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  result.reserve(axes.size());
  for (int64_t axis : axes) {
    absl::StatusOr<int64_t> normalized = NormalizeAxis(op, axis, rank);
    if (!normalized.ok()) return normalized.status();
    if (seen[static_cast<size_t>(*normalized)]) {
      return absl::InvalidArgumentError(absl::StrCat(op, ": axis is named twice: axis ", axis));
    }
    seen[static_cast<size_t>(*normalized)] = true;
    result.push_back(*normalized);
  }
  return result;
}

}  // namespace tensord::client
