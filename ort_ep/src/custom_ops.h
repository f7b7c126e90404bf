// The operators as a library of custom operators, for runtimes and providers that take no function bodies.
#pragma once

#include "abi.h"

namespace retouch {

/// Adds all operators to the options of a session. Throws if the runtime does not take them.
void add_custom_ops(OrtSessionOptions* options);

}  // namespace retouch
