#include "tensord/version.h"

namespace tensord::client {

const char* Version() { return TENSORD_VERSION_STRING; }

}  // namespace tensord::client
