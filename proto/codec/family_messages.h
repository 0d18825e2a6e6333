#ifndef TENSORD_PROTO_CODEC_FAMILY_MESSAGES_H_
#define TENSORD_PROTO_CODEC_FAMILY_MESSAGES_H_

namespace tensord::codec {

// Makes the messages of the contract's families known to protobuf, which finds them by their names. Else it would know
// only messages that the program names.
void LinkFamilyMessages();

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_FAMILY_MESSAGES_H_
