#include "ir/verifier.h"
void chute::ir::verify(const Graph&, Diagnostics&, const VerifyOptions&){}
