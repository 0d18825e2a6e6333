#include "clients/load/workload.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/load/random_tensor.h"
#include "proto/command_line/size.h"
#include "tensord/contraction.h"
#include "tensord/elementwise.h"
#include "tensord/evaluation.h"
#include "tensord/messages.h"
#include "tensord/reduction.h"
#include "tensord/structural.h"

namespace tensord::load {
namespace {

using client::DType;
using client::Tensor;

constexpr uint64_t kSeed = 1;  // of the values; they are the same in every run
constexpr int64_t kTinyElements = 16;
// Small enough that the server does not share it among its threads.
constexpr int64_t kBusyDim = 64;

struct BuiltIn {
  absl::string_view name;
  int64_t size;     // where none is given; 0: it has none
  int64_t largest;  // what still fits into a message, or into a graph
};

constexpr std::array<BuiltIn, 5> kBuiltIns = {{{"tiny", 0, 0},
                                               {"busy", 100, 50'000},
                                               {"matmul", 256, 16'384},
                                               {"upload", 1 << 20, (int64_t{1} << 32) - (1 << 20)},
                                               {"download", 1 << 20, (int64_t{1} << 32) - (1 << 20)}}};

const BuiltIn* Find(absl::string_view name) {
  const auto* found =
      std::find_if(kBuiltIns.begin(), kBuiltIns.end(), [name](const BuiltIn& b) { return b.name == name; });
  return found == kBuiltIns.end() ? nullptr : found;
}

// The inputs to making a workload.
struct Maker {
  DType dtype;
  int64_t size;
  SplitMix random{kSeed};

  Tensor Input(const client::Shape& shape) {
    absl::StatusOr<client::HostTensor> value = RandomTensor(dtype, shape, &random);
    return value.ok() ? Tensor::FromHost(*std::move(value)) : Tensor::Failed(value.status());
  }
  int64_t elements() const { return std::max<int64_t>(1, size / client::SizeInBytes(dtype)); }
};

Tensor Busy(Maker& maker) {
  const Tensor weights = maker.Input({kBusyDim, kBusyDim});
  Tensor x = weights;
  for (int64_t i = 0; i < maker.size; ++i) x = Tanh(MatMul(x, weights));
  return client::Slice(x, {0, 0}, {1, 1});
}

Tensor Make(absl::string_view name, Maker& maker) {
  if (name == "tiny") return maker.Input({kTinyElements}) + maker.Input({kTinyElements});
  if (name == "busy") return Busy(maker);
  if (name == "matmul") return MatMul(maker.Input({maker.size, maker.size}), maker.Input({maker.size, maker.size}));
  if (name == "upload") return client::Slice(maker.Input({maker.elements()}), {0}, {1});
  return client::BroadcastTo(maker.Input({1}), {maker.elements()});
}

absl::StatusOr<client::Shape> ShapeOfInput(const v1::GraphInput& input, const std::map<std::string, int64_t>& symbols) {
  client::Shape shape;
  for (const v1::DimExpr& dim : input.type().shape()) {
    if (dim.has_size()) {
      shape.push_back(dim.size());
      continue;
    }
    const auto symbol = dim.has_symbol() ? symbols.find(dim.symbol()) : symbols.end();
    if (symbol == symbols.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("an input's sizes are not known; give its value, or the sizes of its symbols: \"", input.name(),
                       "\"", dim.has_symbol() ? absl::StrCat(", symbol ", dim.symbol()) : ", a size that is computed"));
    }
    shape.push_back(symbol->second);
  }
  return shape;
}

absl::StatusOr<WorkloadSpec> ParseSpec(absl::string_view text) {
  WorkloadSpec spec;
  absl::string_view name = text;
  if (const size_t star = text.rfind('*'); star != absl::string_view::npos) {
    name = text.substr(0, star);
    if (!absl::SimpleAtod(text.substr(star + 1), &spec.weight) || !(spec.weight > 0) || !(spec.weight < 1e9)) {
      return absl::InvalidArgumentError(absl::StrCat("a workload's weight is no number above 0: ", text));
    }
  }
  const size_t colon = name.find(':');
  if (colon != absl::string_view::npos && IsBuiltIn(name.substr(0, colon))) {
    const absl::StatusOr<int64_t> size = ParseSize(name.substr(colon + 1));
    if (!size.ok()) return size.status();
    spec.size = *size;
    name = name.substr(0, colon);
  }
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("a workload has no name: \"", text, "\""));
  if (spec.size.has_value() && !HasSize(name)) {
    return absl::InvalidArgumentError(absl::StrCat("the workload takes no size: ", text));
  }
  spec.name = std::string(name);
  return spec;
}

}  // namespace

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  const std::optional<int64_t> size = wire::ParseSize(text);
  if (size.has_value() && *size >= 1) return *size;
  return absl::InvalidArgumentError(absl::StrCat("no size such as 64, 16Ki or 1MiB: \"", text, "\""));
}

absl::StatusOr<std::vector<WorkloadSpec>> ParseWorkloadSpecs(absl::string_view text) {
  std::vector<WorkloadSpec> specs;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    absl::StatusOr<WorkloadSpec> spec = ParseSpec(entry);
    if (!spec.ok()) return spec.status();
    specs.push_back(*std::move(spec));
  }
  return specs;
}

bool IsBuiltIn(absl::string_view name) { return Find(name) != nullptr; }

bool HasSize(absl::string_view name) { return Find(name) != nullptr && Find(name)->size > 0; }

absl::StatusOr<Workload> BuiltInWorkload(absl::string_view name, std::optional<int64_t> size, DType dtype) {
  const BuiltIn* built_in = Find(name);
  if (built_in == nullptr) return absl::InvalidArgumentError(absl::StrCat("no workload has this name: ", name));
  Maker maker = {.dtype = dtype, .size = size.value_or(built_in->size)};
  if (maker.size < 0 || maker.size > built_in->largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("the workload takes sizes up to ", built_in->largest, ": ", name, ":", maker.size));
  }
  if (name == "busy" && !client::IsFloat(dtype) && !client::IsComplex(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the workload takes floating-point numbers only: ", name, " of ", client::DTypeName(dtype)));
  }
  const Tensor result = Make(name, maker);
  absl::StatusOr<client::TracedGraph> traced = client::Trace({result});
  if (!traced.ok()) return traced.status();
  return Workload{.name = absl::StrCat(name, built_in->size == 0 ? "" : absl::StrCat(":", maker.size), " ",
                                       client::DTypeName(dtype)),
                  .graph = std::move(traced->graph),
                  .arguments = std::move(traced->arguments)};
}

absl::StatusOr<Workload> GraphWorkload(absl::string_view name, const v1::Graph& graph,
                                       const std::map<std::string, client::HostTensor>& values,
                                       const std::map<std::string, int64_t>& symbols) {
  Workload workload = {.name = std::string(name), .graph = graph};
  SplitMix random(kSeed);
  for (const v1::GraphInput& input : graph.inputs()) {
    if (const auto value = values.find(input.name()); value != values.end()) {
      workload.arguments.push_back(value->second);
      continue;
    }
    if (!client::IsKnownDType(input.type().dtype())) {
      return absl::InvalidArgumentError(absl::StrCat("an input has no dtype: \"", input.name(), "\""));
    }
    const absl::StatusOr<client::Shape> shape = ShapeOfInput(input, symbols);
    if (!shape.ok()) return shape.status();
    absl::StatusOr<client::HostTensor> value = RandomTensor(static_cast<DType>(input.type().dtype()), *shape, &random);
    if (!value.ok()) return value.status();
    workload.arguments.push_back(*std::move(value));
  }
  return workload;
}

}  // namespace tensord::load
