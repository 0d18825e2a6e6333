#ifndef TENSORD_SERVER_LIFECYCLE_DESCRIPTOR_LIMIT_H_
#define TENSORD_SERVER_LIFECYCLE_DESCRIPTOR_LIMIT_H_

#include <cstdint>

namespace tensord::server {

// Lets this process open that many descriptors, or as many as the system allows without a privilege: raises the soft
// limit where it is lower, never above the hard one. How many it may open then.
int64_t AllowDescriptors(int64_t wanted);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_DESCRIPTOR_LIMIT_H_
