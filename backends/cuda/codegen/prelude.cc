#include "backends/cuda/codegen/prelude.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace tensord {
namespace {

// With more, NVRTC takes seconds for a kernel, and minutes for a thousand.
constexpr int64_t kMostInlinedCalls = 48;

struct Pieces {
  std::vector<CudaPiece> list;
  absl::flat_hash_map<absl::string_view, int> by_name;
};

const Pieces& AllPieces() {
  static const Pieces* const pieces = [] {
    auto* all = new Pieces;  // never destroyed: threads may print while the process ends
    for (absl::Span<const CudaPiece> table :
         {CudaTypePieces(), CudaScalarPieces(), CudaComplexPieces(), CudaInversePieces(), CudaReductionPieces()}) {
      for (const CudaPiece& piece : table) {
        all->by_name.emplace(piece.name, static_cast<int>(all->list.size()));
        all->list.push_back(piece);
      }
    }
    return all;
  }();
  return *pieces;
}

}  // namespace

bool CudaPrelude::Has(absl::string_view name) { return AllPieces().by_name.contains(name); }

void CudaPrelude::Use(absl::string_view name) {
  const int position = AllPieces().by_name.at(name);
  if (!used_.insert(position).second) return;
  for (absl::string_view required :
       absl::StrSplit(AllPieces().list[static_cast<size_t>(position)].requires_pieces, ' ', absl::SkipEmpty())) {
    Use(required);
  }
}

void CudaPrelude::Call(absl::string_view name) {
  Use(name);
  called_.insert(AllPieces().by_name.at(name));
  ++calls_;
}

std::string CudaPrelude::Text() const {
  std::string text;
  for (int position : used_) {
    const absl::string_view piece = AllPieces().list[static_cast<size_t>(position)].text;
    absl::StrAppend(&text,
                    calls_ > kMostInlinedCalls && called_.contains(position)
                        ? absl::StrReplaceAll(piece, {{"TENSORD_FN", "__device__ __noinline__"}})
                        : std::string(piece),
                    "\n");
  }
  return text;
}

}  // namespace tensord
