#include "engine/tensor/tensor_type.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensord {

TensorType ToTensorType(const ConcreteType& type) {
  return {.dtype = type.dtype, .shape = SymbolicShape(type.shape.begin(), type.shape.end())};
}

ConcreteType ToConcreteType(const TensorType& type) {
  ConcreteType concrete{.dtype = type.dtype};
  for (const Dim& d : type.shape) concrete.shape.push_back(d.size.constant());
  return concrete;
}

std::string ToString(const Dim& dim) {
  if (dim.extent != Extent::kUpperBound) return dim.size.ToString();
  return absl::StrCat(dim.size.ToString(), "<=", dim.bound->ToString());
}

std::string ToString(const TensorType& type) {
  return absl::StrCat(Name(type.dtype), "[",
                      absl::StrJoin(type.shape, ",", [](std::string* out, const Dim& d) { out->append(ToString(d)); }),
                      "]");
}

}  // namespace tensord
