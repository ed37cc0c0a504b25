#include "eval/broadcast.h"

#include "eval/convert.h"
#include "support/parallel.h"

#include <algorithm>

namespace chute::eval {

bool broadcasts_to(std::span<const i64> from, std::span<const i64> to) {
  if (from.size() > to.size())
    return false;
  const size_t shift = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[i + shift])
      return false;
  return true;
}

bool broadcast_shape(std::span<const i64> a, std::span<const i64> b, Shape &out) {
  out.assign(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const i64 da = i < a.size() ? a[a.size() - 1 - i] : 1;
    const i64 db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1)
      return false;
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return true;
}

namespace {

constexpr i64 kBlock = 2048;
constexpr size_t kMaxOperands = 5;

/// The iteration space with neighbouring dims merged where every operand allows it.
struct Plan {
  std::vector<i64> dims;
  std::array<std::vector<i64>, kMaxOperands> strides; // 0 where an operand repeats
};

Plan make_plan(std::span<const Tensor *const> in, const Shape &shape) {
  Plan plan;
  std::array<Shape, kMaxOperands> full;
  for (size_t k = 0; k < in.size(); ++k) {
    const Shape &s = in[k]->shape();
    const Shape dense = dense_strides(s);
    full[k].assign(shape.size(), 0);
    for (size_t i = 0; i < s.size(); ++i)
      if (s[i] != 1)
        full[k][i + shape.size() - s.size()] = dense[i];
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1)
      continue;
    bool merge = !plan.dims.empty();
    for (size_t k = 0; k < in.size() && merge; ++k)
      merge = plan.strides[k].back() == full[k][d] * shape[d];
    if (merge) {
      plan.dims.back() *= shape[d];
      for (size_t k = 0; k < in.size(); ++k)
        plan.strides[k].back() = full[k][d];
    } else {
      plan.dims.push_back(shape[d]);
      for (size_t k = 0; k < in.size(); ++k)
        plan.strides[k].push_back(full[k][d]);
    }
  }
  if (plan.dims.empty()) {
    plan.dims.push_back(1);
    for (size_t k = 0; k < in.size(); ++k)
      plan.strides[k].push_back(0);
  }
  return plan;
}

/// Elements [begin, begin + n) of operand k in the compute type: its own memory when that is
/// possible, else `buffer`.
template <class C>
const C *load_block(const Plan &plan, size_t k, const Tensor &t, i64 begin, i64 n, C *buffer) {
  const std::vector<i64> &strides = plan.strides[k];
  const size_t item = t.item_bytes();
  const size_t last = plan.dims.size() - 1;
  if (last == 0) {
    if (strides[0] == 0) {
      load_run(t.element(), t.data(), 1, buffer);
      std::fill(buffer + 1, buffer + n, buffer[0]);
      return buffer;
    }
    if (stored_as<C>(t.element()))
      return t.as<C>() + begin;
    load_run(t.element(), t.data() + static_cast<size_t>(begin) * item, n, buffer);
    return buffer;
  }
  // Dense operands have an innermost stride of 0 or 1 after merging.
  std::array<i64, 64> counter;
  i64 rest = begin;
  i64 offset = 0;
  for (size_t d = last + 1; d-- > 0;) {
    counter[d] = rest % plan.dims[d];
    rest /= plan.dims[d];
    offset += counter[d] * strides[d];
  }
  for (i64 done = 0; done < n;) {
    const i64 run = std::min(n - done, plan.dims[last] - counter[last]);
    const std::byte *from = t.data() + static_cast<size_t>(offset) * item;
    if (strides[last] == 0) {
      load_run(t.element(), from, 1, buffer + done);
      std::fill(buffer + done + 1, buffer + done + run, buffer[done]);
    } else {
      load_run(t.element(), from, run, buffer + done);
    }
    done += run;
    counter[last] += run;
    offset += run * strides[last];
    for (size_t d = last; d > 0 && counter[d] == plan.dims[d]; --d) {
      offset += strides[d - 1] - counter[d] * strides[d];
      counter[d] = 0;
      ++counter[d - 1];
    }
  }
  return buffer;
}

} // namespace

template <class C>
bool map_elements(std::span<const Tensor *const> in, Tensor &out,
                  FunctionRef<void(const C *const *, C *, i64)> f) {
  if (in.size() > kMaxOperands || out.rank() > 64)
    return false;
  for (const Tensor *t : in)
    if (!broadcasts_to(t->shape(), out.shape()))
      return false;
  const Plan plan = make_plan(in, out.shape());
  const bool direct = stored_as<C>(out.element());
  const size_t item = out.item_bytes();
  parallel_for(out.num_elements(), 8 * kBlock, [&](i64 begin, i64 end) {
    std::vector<C> buffers((in.size() + 1) * kBlock);
    std::array<const C *, kMaxOperands> blocks{};
    for (i64 i = begin; i < end; i += kBlock) {
      const i64 n = std::min(kBlock, end - i);
      for (size_t k = 0; k < in.size(); ++k)
        blocks[k] = load_block(plan, k, *in[k], i, n, buffers.data() + k * kBlock);
      C *to = direct ? out.mutable_as<C>() + i : buffers.data() + in.size() * kBlock;
      f(blocks.data(), to, n);
      if (!direct)
        store_run(out.element(), to, n, out.mutable_data() + static_cast<size_t>(i) * item);
    }
  });
  return true;
}

#define INSTANTIATE(C)                                                                             \
  template bool map_elements<C>(std::span<const Tensor *const>, Tensor &,                          \
                                FunctionRef<void(const C *const *, C *, i64)>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(i64)
INSTANTIATE(u64)
#undef INSTANTIATE

} // namespace chute::eval
