// The header's place until 0.7: leads to where it is now.
#ifndef TENSORD_CLIENTS_CPP_TENSORD_H_
#define TENSORD_CLIENTS_CPP_TENSORD_H_

#include "tensord/tensord.h"

#endif  // TENSORD_CLIENTS_CPP_TENSORD_H_
