// Parts of the service's answers as people read them.
#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_TEXT_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_TEXT_H_

#include <string>

#include "google/protobuf/duration.pb.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::cli {

// "f32[n,(n+1),4]": a type as people read it.
std::string TypeText(const v1::TensorType& type);
std::string DTypeText(v1::DType dtype);

// "compiled", "memory", "disk" or "joined": where a program came from.
std::string SourceText(v1::CompileResponse::Source source);
// "1.234ms".
std::string DurationText(const google::protobuf::Duration& duration);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_TEXT_H_
