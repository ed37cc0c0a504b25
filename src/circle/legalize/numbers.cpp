// Python numbers: sizes that the program returns, and numbers read out of tensors. Both are rank-0
// tensors in a file (SizeSources::collect has given them that type).
#include "circle/legalize/emit.h"

namespace chute::circle {

namespace {

namespace a = aten::op;

Value *size(Emit &e) {
  Value *v = e.size_scalar(e.attr("value").as_int(), e.element());
  return v ? v : e.unsupported("a size that no input tells");
}

Value *item(Emit &e) {
  Value *x = e.reshape(e.arg(0), Dims{});
  return x ? e.cast(x, e.element()) : nullptr;
}

} // namespace

void add_number_rules(pass::PatternSet &set) {
  set.add("size", {ir::core_op::size}, lower<size>);
  set.add("item", {a::item, a::u_local_scalar_dense}, lower<item>);
}

} // namespace chute::circle
