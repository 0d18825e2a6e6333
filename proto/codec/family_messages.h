#ifndef TENSORD_PROTO_CODEC_FAMILY_MESSAGES_H_
#define TENSORD_PROTO_CODEC_FAMILY_MESSAGES_H_

namespace tensord::codec {

// Makes the messages of the contract's families known to protobuf, which else only a program that names them knows:
// they are found by their names.
void LinkFamilyMessages();

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_FAMILY_MESSAGES_H_
