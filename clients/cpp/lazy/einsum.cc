#include "tensord/einsum.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/einsum/v1/einsum.pb.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

// A term's labels; numbers below it are axes of the ellipsis, counted from the right.
constexpr int64_t kEllipsis = -1;

absl::Status InvalidEinsum(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("Einsum: ", what));
}

absl::StatusOr<std::vector<int64_t>> ReadTerm(absl::string_view term, absl::string_view equation) {
  std::vector<int64_t> labels;
  while (!term.empty()) {
    const unsigned char next = static_cast<unsigned char>(term[0]);
    if (absl::ascii_isalnum(next)) {
      labels.push_back(next);
      term.remove_prefix(1);
      continue;
    }
    if (term.substr(0, 3) != "..." || std::find(labels.begin(), labels.end(), kEllipsis) != labels.end()) {
      return InvalidEinsum(absl::StrCat("a term is letters, digits and at most one \"...\": ", equation));
    }
    labels.push_back(kEllipsis);
    term.remove_prefix(3);
  }
  return labels;
}

// The labels of operands, and of the result.
struct Labels {
  std::vector<std::vector<int64_t>> operands;
  std::vector<int64_t> output;
};

absl::StatusOr<Labels> ReadEquation(absl::string_view equation, size_t num_operands) {
  std::string text(equation);
  // The server checks parentheses.
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '(' || c == ')'; }),
             text.end());
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) return InvalidEinsum(absl::StrCat("an equation has one arrow, as \"ij,jk->ik\": ", equation));
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != num_operands) {
    return InvalidEinsum(absl::StrCat("needs a term for each operand: ", terms.size(), " terms of ", equation, ", ",
                                      num_operands, " operands"));
  }
  Labels labels;
  for (const std::string& term : terms) {
    absl::StatusOr<std::vector<int64_t>> read = ReadTerm(term, equation);
    if (!read.ok()) return read.status();
    labels.operands.push_back(*std::move(read));
  }
  absl::StatusOr<std::vector<int64_t>> output = ReadTerm(sides[1], equation);
  if (!output.ok()) return output.status();
  labels.output = *std::move(output);
  return labels;
}

std::string LabelText(int64_t label, bool is_character) {
  if (label < 0) return "an axis of the ellipsis";
  return is_character ? absl::StrCat("\"", std::string(1, static_cast<char>(label)), "\"") : absl::StrCat(label);
}

// Sizes of labels, and the axes that the ellipsis of the output stands for.
class LabelSizes {
 public:
  explicit LabelSizes(bool are_characters) : are_characters_(are_characters) {}

  absl::Status AddOperand(size_t number, const Tensor& tensor, const std::vector<int64_t>& labels) {
    const int64_t ellipses = std::count(labels.begin(), labels.end(), kEllipsis);
    const int64_t open = tensor.rank() - static_cast<int64_t>(labels.size()) + ellipses;
    if (open < 0 || (ellipses == 0 && open != 0)) {
      return InvalidEinsum(absl::StrCat("operand ", number, " has rank ", tensor.rank(), ", and its term ",
                                        static_cast<int64_t>(labels.size()) - ellipses,
                                        " labels: ", ShapeToString(tensor.shape())));
    }
    ellipsis_rank_ = std::max(ellipsis_rank_, open);
    size_t axis = 0;
    for (int64_t label : labels) {
      const int64_t count = label == kEllipsis ? open : 1;
      for (int64_t i = 0; i < count; ++i, ++axis) {
        const absl::Status added =
            Add(number, label == kEllipsis ? kEllipsis - count + i : label, tensor.shape()[axis]);
        if (!added.ok()) return added;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Shape> Output(const std::vector<int64_t>& labels) const {
    if (ellipsis_rank_ > 0 && std::find(labels.begin(), labels.end(), kEllipsis) == labels.end()) {
      return InvalidEinsum(absl::StrCat("an ellipsis stands for ", ellipsis_rank_, " axes, and the output has none"));
    }
    Shape shape;
    for (int64_t label : labels) {
      const int64_t count = label == kEllipsis ? ellipsis_rank_ : 1;
      for (int64_t i = 0; i < count; ++i) {
        const auto found = sizes_.find(label == kEllipsis ? kEllipsis - count + i : label);
        if (found == sizes_.end()) {
          return InvalidEinsum(absl::StrCat("no operand has the output's label ", LabelText(label, are_characters_)));
        }
        shape.push_back(found->second);
      }
    }
    return shape;
  }

 private:
  absl::Status Add(size_t number, int64_t label, int64_t size) {
    const auto [found, is_new] = sizes_.try_emplace(label, size);
    if (is_new || found->second == size) return absl::OkStatus();
    const bool is_ellipsis = label < 0;
    if (is_ellipsis && size == 1) return absl::OkStatus();
    if (!(is_ellipsis && found->second == 1) && !MayBeEqual(found->second, size)) {
      return InvalidEinsum(absl::StrCat("sizes of ", LabelText(label, are_characters_),
                                        " differ: ", ShapeToString({found->second}), " before operand ", number,
                                        ", and there ", ShapeToString({size})));
    }
    if (found->second == 1 || IsSymbol(size)) found->second = size;
    return absl::OkStatus();
  }

  const bool are_characters_;
  int64_t ellipsis_rank_ = 0;
  absl::flat_hash_map<int64_t, int64_t> sizes_;
};

void SetOptions(const EinsumOptions& options, einsum::v1::Einsum* message) {
  message->set_optimizer(static_cast<einsum::v1::Einsum::Optimizer>(options.optimizer));
  for (const std::vector<int64_t>& step : options.path) {
    message->add_path()->mutable_operands()->Assign(step.begin(), step.end());
  }
  message->set_algebra(static_cast<v1::Algebra>(options.algebra));
  if (options.largest_intermediate.has_value()) message->set_largest_intermediate(*options.largest_intermediate);
}

Tensor Contract(const std::vector<Tensor>& operands, const Labels& labels, bool are_characters,
                const einsum::v1::Einsum& message) {
  if (operands.empty()) return RefusedOperation("Einsum", "needs an operand");
  LabelSizes sizes(are_characters);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].ok()) return operands[i];
    if (operands[i].dtype() != operands[0].dtype()) {
      return RefusedOperation(
          "Einsum", absl::StrCat("dtypes differ, and nothing is converted unasked: ", DTypeName(operands[0].dtype()),
                                 " and ", DTypeName(operands[i].dtype()), " of operand ", i));
    }
    const absl::Status added = sizes.AddOperand(i, operands[i], labels.operands[i]);
    if (!added.ok()) return Tensor::Failed(added);
  }
  absl::StatusOr<Shape> shape = sizes.Output(labels.output);
  if (!shape.ok()) return Tensor::Failed(shape.status());
  v1::Node op;
  op.mutable_extension()->mutable_op()->PackFrom(message);
  return Tensor::FromOp(std::move(op), operands, operands[0].dtype(), *std::move(shape));
}

}  // namespace

Tensor Einsum(absl::string_view equation, const std::vector<Tensor>& operands, const EinsumOptions& options,
              const SourceLocation& place) {
  const RecordedCall call("Einsum", place);
  for (const Tensor& operand : operands) {
    if (!operand.ok()) return operand;
  }
  absl::StatusOr<Labels> labels = ReadEquation(equation, operands.size());
  if (!labels.ok()) return Tensor::Failed(labels.status());
  einsum::v1::Einsum message;
  message.set_equation(std::string(equation));
  SetOptions(options, &message);
  return Contract(operands, *labels, /*are_characters=*/true, message);
}

Tensor Einsum(const std::vector<LabeledTensor>& operands, const std::vector<int64_t>& output,
              const EinsumOptions& options, const SourceLocation& place) {
  const RecordedCall call("Einsum", place);
  std::vector<Tensor> tensors;
  Labels labels = {.operands = {}, .output = output};
  einsum::v1::Einsum message;
  for (const LabeledTensor& operand : operands) {
    tensors.push_back(operand.tensor);
    labels.operands.push_back(operand.labels);
    message.add_operands()->mutable_labels()->Assign(operand.labels.begin(), operand.labels.end());
  }
  message.mutable_output()->mutable_labels()->Assign(output.begin(), output.end());
  SetOptions(options, &message);
  labels.operands.push_back(output);
  for (const std::vector<int64_t>& list : labels.operands) {
    const auto negative = std::find_if(list.begin(), list.end(), [](int64_t label) { return label < 0; });
    if (negative != list.end()) return RefusedOperation("Einsum", absl::StrCat("labels count from 0: ", *negative));
  }
  labels.operands.pop_back();
  return Contract(tensors, labels, /*are_characters=*/false, message);
}

}  // namespace tensord::client
