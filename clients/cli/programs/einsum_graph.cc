#include "clients/cli/programs/einsum_graph.h"

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/programs/dtype_promotion.h"

namespace tensord::cli {
namespace {

// Returns the characters of UTF-8, in bytes. Sorted they are in the order of their numbers.
std::vector<absl::string_view> CharactersOf(absl::string_view text) {
  std::vector<absl::string_view> characters;
  for (size_t i = 0; i < text.size();) {
    size_t length = 1;
    while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xC0) == 0x80) ++length;
    characters.push_back(text.substr(i, length));
    i += length;
  }
  return characters;
}

// Tells whether a character stands between labels. All others count as labels: the server refuses those that are none.
bool IsPunctuation(absl::string_view character) {
  return absl::StrContains("(),.->", character) || absl::ascii_isspace(static_cast<unsigned char>(character[0]));
}

}  // namespace

absl::Status CheckEquation(absl::string_view equation) {
  const std::string labels = absl::StrReplaceAll(equation, {{"->", " "}});
  for (const absl::string_view character : CharactersOf(labels)) {
    const bool is_ascii = character.size() == 1;
    if (!is_ascii || absl::ascii_isalnum(static_cast<unsigned char>(character[0]))) continue;
    if (IsPunctuation(character) && character != "-" && character != ">") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("an equation has labels, commas, parentheses, \"...\" and \"->\", and no \"",
                     absl::CHexEscape(character), "\": ", equation));
  }
  return absl::OkStatus();
}

std::string WithOutput(absl::string_view equation) {
  std::string text = absl::StrReplaceAll(equation, {{" ", ""}});
  if (absl::StrContains(text, "->")) return text;
  std::map<absl::string_view, int> count;
  for (const absl::string_view character : CharactersOf(text)) {
    if (!IsPunctuation(character)) ++count[character];
  }
  std::string output = absl::StrContains(text, "...") ? "..." : "";
  for (const auto& [label, times] : count) {
    if (times == 1) absl::StrAppend(&output, label);
  }
  return absl::StrCat(text, "->", output);
}

absl::StatusOr<einsum::v1::Einsum::Optimizer> ParseOptimizer(absl::string_view name) {
  if (name == "auto") return einsum::v1::Einsum::OPTIMIZER_AUTO;
  if (name == "greedy") return einsum::v1::Einsum::OPTIMIZER_GREEDY;
  if (name == "optimal") return einsum::v1::Einsum::OPTIMIZER_OPTIMAL;
  if (name == "left-to-right") return einsum::v1::Einsum::OPTIMIZER_LEFT_TO_RIGHT;
  return absl::InvalidArgumentError(
      absl::StrCat("flag needs auto, greedy, optimal or left-to-right: --optimizer=", name));
}

absl::StatusOr<v1::Algebra> ParseAlgebra(absl::string_view name) {
  const std::string word = absl::StrReplaceAll(name, {{"-", "_"}});
  if (word == "max_plus") return v1::ALGEBRA_MAX_PLUS;
  if (word == "min_plus") return v1::ALGEBRA_MIN_PLUS;
  if (word == "max_times") return v1::ALGEBRA_MAX_TIMES;
  if (word == "or_and") return v1::ALGEBRA_OR_AND;
  return absl::InvalidArgumentError(
      absl::StrCat("flag needs max_plus, min_plus, max_times or or_and: --algebra=", name));
}

absl::StatusOr<google::protobuf::RepeatedPtrField<einsum::v1::Einsum::Step>> ParseSteps(absl::string_view text) {
  const absl::Status wrong =
      absl::InvalidArgumentError(absl::StrCat("flag needs steps as in '(1, 2), (0, 1)': --steps=", text));
  google::protobuf::RepeatedPtrField<einsum::v1::Einsum::Step> steps;
  const std::string packed = absl::StrReplaceAll(text, {{" ", ""}});
  absl::string_view rest = packed;
  while (!rest.empty()) {
    if (!steps.empty() && !absl::ConsumePrefix(&rest, ",")) return wrong;
    const size_t end = rest.find(')');
    if (!absl::ConsumePrefix(&rest, "(") || end == absl::string_view::npos) return wrong;
    einsum::v1::Einsum::Step& step = *steps.Add();
    // Python writes a tuple of one as "(0,)".
    for (const absl::string_view position : absl::StrSplit(absl::StripSuffix(rest.substr(0, end - 1), ","), ',')) {
      int64_t operand = 0;
      if (!absl::SimpleAtoi(position, &operand) || operand < 0) return wrong;
      step.add_operands(operand);
    }
    rest.remove_prefix(end);
  }
  if (steps.empty()) return wrong;
  return steps;
}

std::string StepsText(const v1::ContractionPlan& plan) {
  return absl::StrJoin(plan.path(), ", ", [](std::string* out, const v1::ContractionPlan::Step& step) {
    absl::StrAppend(out, "(", absl::StrJoin(step.operands(), ", "), ")");
  });
}

v1::Graph EinsumGraph(const einsum::v1::Einsum& einsum, absl::Span<const client::HostTensor> operands) {
  v1::Graph graph;
  graph.set_name("einsum");
  client::DType dtype = client::DType::kBool;
  for (const client::HostTensor& operand : operands) dtype = PromotedDType(dtype, operand.dtype());
  std::vector<std::string> values;
  for (const client::HostTensor& operand : operands) {
    v1::GraphInput& input = *graph.add_inputs();
    input.set_name(absl::StrCat("operand", graph.inputs_size() - 1));
    input.mutable_type()->set_dtype(client::ToWire(operand.dtype()));
    for (const int64_t size : operand.shape()) input.mutable_type()->add_shape()->set_size(size);
    values.push_back(input.name());
    if (operand.dtype() == dtype) continue;
    v1::Node& node = *graph.add_nodes();
    node.set_name(absl::StrCat("converted", graph.inputs_size() - 1));
    node.add_inputs(input.name());
    node.mutable_convert()->set_dtype(client::ToWire(dtype));
    values.back() = node.name();
  }
  v1::Node& node = *graph.add_nodes();
  node.set_name("einsum");
  node.mutable_extension()->mutable_op()->PackFrom(einsum);
  for (const std::string& value : values) node.add_inputs(value);
  v1::GraphOutput& output = *graph.add_outputs();
  output.set_name("result");
  output.set_value(node.name());
  return graph;
}

}  // namespace tensord::cli
