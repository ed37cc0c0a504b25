#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>
#include <map>
#include <string>

// einsum, from left to right: each pair of operands is one matmul over (batch, rows, summed) and
// (batch, summed, columns), after labels that only one operand has and nothing later needs are
// summed.
namespace chute::aten {

namespace {

/// A tensor with one label per dimension. Labels are letters; the dimensions under an ellipsis get
/// the codes 128 + distance from the ellipsis' end, so that they align like broadcasting.
struct Term {
  V value;
  std::vector<int> labels;
};

bool contains(const std::vector<int> &labels, int l) {
  return std::find(labels.begin(), labels.end(), l) != labels.end();
}

/// Labels of one subscript; `rank` < 0 (the output) lets the ellipsis stand for `ellipsis_rank`.
bool parse_subscript(std::string_view text, int rank, int ellipsis_rank, std::vector<int> &out) {
  int letters = 0;
  for (char c : text)
    letters += c != '.';
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.') {
      out.push_back(text[i]);
      continue;
    }
    if (text.substr(i, 3) != "...")
      return false;
    i += 2;
    const int n = rank < 0 ? ellipsis_rank : rank - letters;
    for (int k = n; k-- > 0;)
      out.push_back(128 + k);
  }
  return rank < 0 || int(out.size()) == rank;
}

V sum_labels(Emit &e, Term &t, const std::vector<int> &keep) {
  Axes gone;
  std::vector<int> left;
  for (size_t i = 0; i < t.labels.size(); ++i) {
    if (contains(keep, t.labels[i]))
      left.push_back(t.labels[i]);
    else
      gone.push_back(int(i));
  }
  t.labels = left;
  return t.value = e.sum(t.value, gone, false);
}

/// Keeps of dimensions `i` and `k`, which have the same label, where both positions are equal: the
/// rest is zero and summed away. (Infinite elements beside the diagonal do not matter.)
void take_diagonal(Emit &e, Term &t, int i, int k) {
  const int rank = t.value->type().rank();
  Shape row(size_t(rank), 1), column(size_t(rank), 1);
  const SymInt n = t.value->type().dim(i);
  row[size_t(i)] = n, column[size_t(k)] = n;
  V line = e.arange(0, n);
  V on = e.eq(e.view(line, row), e.view(line, column));
  t.value = e.sum(e.where(on, t.value, e.scalar_like(0, t.value)), {k}, false);
  t.labels.erase(t.labels.begin() + k);
}

/// Permutes to the labels in `order`, adding dimensions of size 1 for labels that it lacks.
V arrange(Emit &e, const Term &t, const std::vector<int> &order) {
  Axes perm;
  Shape shape;
  for (int l : order) {
    const auto it = std::find(t.labels.begin(), t.labels.end(), l);
    if (it == t.labels.end()) {
      shape.emplace_back(1);
      continue;
    }
    perm.push_back(int(it - t.labels.begin()));
    shape.push_back(t.value->type().dim(perm.back()));
  }
  return e.view(e.permute(t.value, perm), shape);
}

/// One operand as [batch…, rows, columns] with the last two groups flattened.
V group(Emit &e, const Term &t, const std::vector<int> &batch, const std::vector<int> &rows,
        const std::vector<int> &columns) {
  std::vector<int> order = batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  V x = arrange(e, t, order);
  const Shape s = e.shape_of(x);
  Shape flat(s.begin(), s.begin() + i64(batch.size()));
  const auto rows_end = s.begin() + i64(batch.size() + rows.size());
  flat.push_back(e.mul_sizes(Shape(s.begin() + i64(batch.size()), rows_end)));
  flat.push_back(e.mul_sizes(Shape(rows_end, s.end())));
  return e.view(x, flat);
}

Term contract(Emit &e, Term a, Term b, const std::vector<int> &needed) {
  std::vector<int> keep_a = needed, keep_b = needed;
  keep_a.insert(keep_a.end(), b.labels.begin(), b.labels.end());
  keep_b.insert(keep_b.end(), a.labels.begin(), a.labels.end());
  sum_labels(e, a, keep_a);
  sum_labels(e, b, keep_b);
  std::vector<int> batch, rows, columns, summed;
  for (int l : a.labels)
    (!contains(b.labels, l) ? rows : contains(needed, l) ? batch : summed).push_back(l);
  for (int l : b.labels)
    if (!contains(a.labels, l))
      columns.push_back(l);
  // A summed label of size 1 on one side only is broadcast by neither matmul.
  const auto size = [](const Term &t, int l) {
    return t.value->type().dim(
        int(std::find(t.labels.begin(), t.labels.end(), l) - t.labels.begin()));
  };
  for (int l : summed)
    if (size(a, l) != size(b, l))
      e.reject("an einsum that broadcasts a summed label");
  Term out;
  out.labels = batch;
  out.labels.insert(out.labels.end(), rows.begin(), rows.end());
  out.labels.insert(out.labels.end(), columns.begin(), columns.end());
  if (summed.empty()) {
    out.value = e.mul(arrange(e, a, out.labels), arrange(e, b, out.labels));
    return out;
  }
  V y = e.matmul(group(e, a, batch, rows, summed), group(e, b, batch, summed, columns));
  Shape s = e.shape_of(y);
  s.resize(batch.size());
  for (int l : rows)
    s.push_back(size(a, l));
  for (int l : columns)
    s.push_back(size(b, l));
  out.value = e.view(y, s);
  return out;
}

V einsum(Emit &e) {
  std::string text;
  for (char c : e.attr("equation").as_string())
    if (c != ' ')
      text += c;
  const size_t arrow = text.find("->");
  std::vector<Term> terms;
  std::map<int, int> count; // of each label among the operands
  int ellipsis_rank = 0;
  std::string_view left = std::string_view(text).substr(0, arrow);
  for (V x : e.list(0)) {
    const size_t comma = left.find(',');
    const std::string_view subscript = left.substr(0, comma);
    left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
    Term t{x, {}};
    if (!parse_subscript(subscript, x->type().rank(), 0, t.labels))
      return e.reject("an einsum equation that does not fit its operands");
    int letters = 0;
    for (char c : subscript)
      letters += c != '.';
    ellipsis_rank = std::max(ellipsis_rank, x->type().rank() - letters);
    for (int l : t.labels)
      ++count[l];
    for (size_t i = 0; i < t.labels.size(); ++i)
      for (size_t k = t.labels.size(); --k > i;)
        if (t.labels[i] == t.labels[k])
          take_diagonal(e, t, int(i), int(k));
    terms.push_back(std::move(t));
  }
  std::vector<int> output;
  if (arrow != std::string::npos) {
    if (!parse_subscript(std::string_view(text).substr(arrow + 2), -1, ellipsis_rank, output))
      return e.reject("an einsum equation that chute can not read");
  } else {
    // Without an output: the ellipsis, then the labels that appear once, in order of the alphabet.
    for (int k = ellipsis_rank; k-- > 0;)
      output.push_back(128 + k);
    for (const auto &[l, n] : count)
      if (n == 1 && l < 128)
        output.push_back(l);
  }
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::vector<int> needed = output;
    for (size_t k = i + 1; k < terms.size(); ++k)
      needed.insert(needed.end(), terms[k].labels.begin(), terms[k].labels.end());
    result = contract(e, result, terms[i], needed);
    if (e.failed())
      return nullptr;
  }
  sum_labels(e, result, output);
  return arrange(e, result, output);
}

} // namespace

void add_einsum_rules(pass::PatternSet &set) { set.add("einsum", {op::einsum}, rule<einsum>); }

} // namespace chute::aten
