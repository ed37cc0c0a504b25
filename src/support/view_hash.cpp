#include "support/view_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute {

size_t ViewHash::operator()(std::string_view v) const { return XXH3_64bits(v.data(), v.size()); }

} // namespace chute
