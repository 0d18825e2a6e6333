#include "proto/codec/family_messages.h"

#include "google/protobuf/message.h"
#include "tensord/einsum/v1/einsum.pb.h"
#include "tensord/fft/v1/fft.pb.h"
#include "tensord/linalg/v1/linalg.pb.h"

namespace tensord::codec {

void LinkFamilyMessages() {
  google::protobuf::LinkMessageReflection<einsum::v1::Einsum>();
  google::protobuf::LinkMessageReflection<fft::v1::Fft>();
  google::protobuf::LinkMessageReflection<linalg::v1::Cholesky>();
}

}  // namespace tensord::codec
