#include "engine/autodiff/input_types.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {

InputTypes::InputTypes(const Graph& graph) {
  for (const GraphInput& input : graph.inputs()) {
    for (const Dim& dim : input.type.shape) {
      if (const auto symbol = dim.size.as_symbol(); symbol.has_value()) symbols_.insert(std::string(*symbol));
    }
  }
}

TensorType InputTypes::Of(TensorType type) {
  for (Dim& dim : type.shape) {
    if (!DependsOnRun(dim.size)) continue;
    std::string& symbol = by_size_[dim.size.ToString()];
    while (symbol.empty()) {
      std::string next = absl::StrCat("run_time_size_", ++last_);
      if (symbols_.insert(next).second) symbol = std::move(next);
    }
    dim = Dim(DimExpr::Symbol(symbol));
  }
  return type;
}

}  // namespace tensord
