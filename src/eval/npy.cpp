// The .npy format: a magic number, a Python dictionary literal with dtype, order and shape, raw
// data.

#include "eval/convert.h"
#include "eval/npz.h"
#include "eval/strided.h"

#include <algorithm>
#include <cstring>

namespace chute::eval {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

/// Reads the three fields of the dictionary. Anything that numpy does not write is refused.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  bool parse(Header &out) {
    if (!take('{'))
      return false;
    int seen = 0;
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':'))
        return false;
      if (key == "descr") {
        if (!string(out.descr))
          return false;
        seen |= 1;
      } else if (key == "fortran_order") {
        if (word("True"))
          out.fortran_order = true;
        else if (!word("False"))
          return false;
        seen |= 2;
      } else if (key == "shape") {
        if (!shape(out.shape))
          return false;
        seen |= 4;
      } else {
        return false;
      }
      take(',');
    }
    return seen == 7;
  }

private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    skip();
    if (text_.substr(at_, w.size()) != w)
      return false;
    at_ += w.size();
    return true;
  }
  bool string(std::string &out) {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      return false;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos)
      return false;
    out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool shape(Shape &out) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skip();
      i64 v = 0;
      const size_t start = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, text_[at_] - '0', &v))
          return false;
      if (at_ == start || out.size() >= 64)
        return false;
      take('L'); // written by Python 2
      out.push_back(v);
      if (!take(',') && text_.substr(at_, 1) != ")")
        return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct Dtype {
  std::string_view name; // without byte order
  ElementType element;
};
constexpr Dtype kDtypes[] = {
    {"b1", ElementType::Bool}, {"u1", ElementType::U8},    {"i1", ElementType::I8},
    {"u2", ElementType::U16},  {"i2", ElementType::I16},   {"u4", ElementType::U32},
    {"i4", ElementType::I32},  {"u8", ElementType::U64},   {"i8", ElementType::I64},
    {"f2", ElementType::F16},  {"f4", ElementType::F32},   {"f8", ElementType::F64},
    {"c8", ElementType::C64},  {"c16", ElementType::C128}, {"V2", ElementType::BF16},
};

void swap_bytes(Tensor &t) {
  size_t word = t.item_bytes();
  if (ir::is_complex(t.element()))
    word /= 2; // each part by itself
  std::byte *p = t.mutable_data();
  for (size_t i = 0; i + word <= t.num_bytes(); i += word)
    std::reverse(p + i, p + i + word);
}

} // namespace

Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string &where) {
  const auto bad = [&](const char *code, std::string message) {
    return fail(ErrorKind::BadInput, code, std::move(message), where);
  };
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (bytes.size() < 10 || text.substr(0, 6) != kMagic)
    return bad("npz.npy.header", "not a .npy file");
  const auto at = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  const size_t version = at(6);
  size_t header_at = 10;
  size_t length = at(8) | at(9) << 8;
  if (version == 2 || version == 3) {
    if (bytes.size() < 12)
      return bad("npz.npy.header", "the header is cut off");
    length |= at(10) << 16 | at(11) << 24;
    header_at = 12;
  } else if (version != 1) {
    return bad("npz.npy.header",
               "version " + std::to_string(version) + " of the format is not known");
  }
  if (length > bytes.size() - header_at)
    return bad("npz.npy.header", "the header is cut off");
  Header h;
  if (!HeaderParser(text.substr(header_at, length)).parse(h))
    return bad("npz.npy.header",
               "the header is not a dictionary with descr, fortran_order and shape");
  const char order = h.descr.empty() ? '?' : h.descr[0];
  ElementType element = ElementType::None;
  for (const Dtype &d : kDtypes)
    if (h.descr.size() > 1 && std::string_view(h.descr).substr(1) == d.name)
      element = d.element;
  if (element == ElementType::None ||
      std::string_view("<>|=").find(order) == std::string_view::npos)
    return bad("npz.npy.dtype", "the dtype " + h.descr + " has no counterpart");
  const i64 count = num_elements(h.shape);
  const auto item = static_cast<size_t>(ir::element_bytes(element));
  const size_t given = bytes.size() - header_at - length;
  if (static_cast<u64>(count) > given / item)
    return bad("npz.npy.size", "the data is shorter than the shape says");
  Shape stored = h.shape;
  if (h.fortran_order)
    std::reverse(stored.begin(), stored.end());
  Tensor t = Tensor::allocate(element, stored);
  if (t.num_bytes())
    std::memcpy(t.mutable_data(), bytes.data() + header_at + length, t.num_bytes());
  if (order == '>' && item > 1)
    swap_bytes(t);
  if (element == ElementType::Bool) // any byte but 0 is true
    for (i64 i = 0; i < count; ++i)
      t.mutable_data()[i] = std::byte{t.data()[i] != std::byte{0}};
  if (h.fortran_order && stored.size() > 1) {
    std::vector<i64> dims(stored.size());
    for (size_t i = 0; i < dims.size(); ++i)
      dims[i] = static_cast<i64>(dims.size() - 1 - i);
    t = permute(t, dims);
  }
  return t;
}

Result<std::vector<std::byte>> format_npy(const Tensor &t, const NpyWriteOptions &options) {
  Tensor data = t;
  ElementType stored = t.element();
  switch (t.element()) {
  case ElementType::BF16:
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::F8E4M3FNUZ:
  case ElementType::F8E5M2FNUZ:
  case ElementType::F8E8M0FNU:
    if (options.raw_narrow_floats)
      stored = t.element() == ElementType::BF16 ? ElementType::U16 : ElementType::U8;
    else
      data = cast(t, stored = ElementType::F32);
    break;
  case ElementType::U4: stored = ElementType::U8; break; // one byte each already
  case ElementType::I4: stored = ElementType::I8; break;
  case ElementType::I48: stored = ElementType::I64; break;
  default: break;
  }
  std::string header = "{'descr': '";
  bool found = false;
  for (const Dtype &d : kDtypes)
    if (d.element == stored) {
      header += (ir::element_bytes(stored) == 1 ? "|" : "<") + std::string(d.name);
      found = true;
    }
  if (!found)
    return fail(ErrorKind::Unsupported, "npz.npy.dtype",
                "the element type " + std::string(ir::element_type_name(t.element())) +
                    " has no numpy counterpart");
  header += "', 'fortran_order': False, 'shape': (";
  for (i64 d : data.shape())
    header += std::to_string(d) + (data.rank() == 1 ? "," : ", ");
  if (data.rank() > 1)
    header.resize(header.size() - 2);
  header += "), }";
  // Padded so that the data starts at a multiple of 64.
  const size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.resize(total - 11, ' ');
  header += '\n';
  std::vector<std::byte> out(total + data.num_bytes());
  const auto put = [&](size_t i, size_t v) { out[i] = static_cast<std::byte>(v); };
  std::memcpy(out.data(), kMagic.data(), 6);
  put(6, 1);
  put(7, 0);
  put(8, header.size() & 255);
  put(9, header.size() >> 8);
  std::memcpy(out.data() + 10, header.data(), header.size());
  if (data.num_bytes())
    std::memcpy(out.data() + total, data.data(), data.num_bytes());
  return out;
}

} // namespace chute::eval
