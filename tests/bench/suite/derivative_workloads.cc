#include "tests/bench/suite/derivative_workloads.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/testlib/graphs/bench_derivative_graphs.h"
#include "tests/testlib/graphs/bench_graphs.h"

namespace tensord {
namespace {

using Names = std::vector<std::string>;

// Names all inputs that begin with one of the words.
Names InputsOf(const Graph& graph, const Names& beginnings) {
  Names names;
  for (const GraphInput& input : graph.inputs()) {
    for (const std::string& beginning : beginnings) {
      if (input.name.rfind(beginning, 0) != 0) continue;
      names.push_back(input.name);
      break;
    }
  }
  return names;
}

class Derivatives {
 public:
  explicit Derivatives(std::vector<Workload>* all) : all_(*all) {}

  // Adds both workloads of a loss. `with` are its numbers; `wrt` begins the names of inputs to differentiate by.
  void Add(const std::string& name, std::function<Graph()> loss, Names wrt, Workload with = {.name = "", .graph = {}}) {
    with.name = name;
    with.graph = [loss, wrt = std::move(wrt)] {
      const Graph graph = loss();
      return ValueAndGradient(graph, InputsOf(graph, wrt));
    };
    all_.push_back(with);
    with.name = absl::StrCat(name, "_value");
    with.graph = std::move(loss);
    all_.push_back(std::move(with));
  }

 private:
  std::vector<Workload>& all_;
};

Workload In(Range range, std::vector<std::pair<std::string, Range>> ranges = {}) {
  return {.name = "", .graph = {}, .range = range, .ranges = std::move(ranges)};
}

void AddModels(Derivatives* derivatives) {
  derivatives->Add(
      "D05", [] { return SumOfSquares(LayerNormGraph(768, 8192)); }, {"x", "scale", "shift"}, In({-4, 4}));
  derivatives->Add(
      "D13", [] { return ClassifierLossGraph(256); }, {"first", "second", "last"},
      In({-0.08, 0.08}, {{"x", {-1, 1}}, {"t", {0, 0.2}}}));
  derivatives->Add("D14", [] { return SumOfSquares(AttentionGraph(64, 512, 32)); }, {"q", "k", "v"});
  derivatives->Add(
      "D15", [] { return SumOfSquares(EncoderLayerGraph(512, 256, 8, 2048)); },
      {"norm", "q_", "k_", "v_", "mix", "up", "down"},
      In({-0.08, 0.08}, {{"x", {-1, 1}}, {"norm1_scale", {0.5, 1.5}}, {"norm2_scale", {0.5, 1.5}}}));
  derivatives->Add("D16", [] { return SumOfSquares(ConvolutionGraph(56, 32, 64, 8)); }, {"x", "w"});
  constexpr int64_t kRows = 65536;
  derivatives->Add(
      "D09", [] { return PickedRowsGraph(128, kRows, kRows); }, {"table"},
      In({-1, 1}, {{"indices", {0, double{kRows}}}}));
  derivatives->Add(
      "D_recurrence", [] { return RecurrenceGraph(128, 64, 32, 100); }, {"weights", "u", "h"},
      In({-0.1, 0.1}, {{"x", {-1, 1}}}));
}

void AddMathematics(Derivatives* derivatives) {
  derivatives->Add(
      "D_black_scholes", [] { return CallPricesGraph(1048576); }, {"spot", "rate", "volatility", "time"},
      In({0.1, 1}, {{"spot", {80, 120}}, {"strike", {80, 120}}, {"rate", {0.01, 0.05}}}));
  derivatives->Add("D17", [] { return GaussianProcessGraph(1024, 8); }, {"x"});
  derivatives->Add(
      "D24_mps", [] { return MpsInnerProductGraph(50, 64, 2); }, {"a", "b"}, In({-0.15, 0.15}));
  for (const char* op : {"cholesky", "qr", "eigh", "svd"}) {
    for (const int64_t size : {256, 512}) {
      Workload with = In({-1, 1});
      const std::string kind = op;
      if (kind == "eigh" || kind == "cholesky") with.definite = {"a"};
      derivatives->Add(
          absl::StrCat("D20_", op, "_", size), [kind, size] { return FactorLossGraph(kind, size); }, {"a"},
          std::move(with));
    }
  }
}

}  // namespace

void AddDerivatives(std::vector<Workload>* all) {
  Derivatives derivatives(all);
  AddModels(&derivatives);
  AddMathematics(&derivatives);
}

}  // namespace tensord
