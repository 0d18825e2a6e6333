#include "clients/cli/programs/tensor_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"

namespace tensord::cli {

TensorFile DescribeTensorFile(std::string name, std::string file, const client::HostTensor& tensor) {
  return {.name = std::move(name),
          .file = std::move(file),
          .type = absl::StrCat(client::DTypeName(tensor.dtype()), client::ShapeToString(tensor.shape()))};
}

int FailWithTensors(const absl::Status& status, const std::vector<TensorFile>& tensors, Console& console) {
  if (!absl::IsInvalidArgument(status)) return console.Fail(status);
  google::protobuf::Struct result;
  auto* const list = (*result.mutable_fields())["tensors"].mutable_list_value();
  for (const TensorFile& tensor : tensors) {
    auto& fields = *list->add_values()->mutable_struct_value()->mutable_fields();
    fields["name"].set_string_value(tensor.name);
    fields["file"].set_string_value(tensor.file);
    fields["type"].set_string_value(tensor.type);
  }
  const int exit_status = console.Fail(status, std::move(result));
  for (const TensorFile& tensor : tensors) {
    console.Hint(absl::StrCat(tensor.name, ": ", tensor.file, ", ", tensor.type));
  }
  return exit_status;
}

}  // namespace tensord::cli
