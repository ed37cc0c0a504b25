#pragma once

#include "ir/text.h"
#include "ir/text_lexer.h"

#include <string>
#include <vector>

namespace chute::ir {

/// Reads what stands inside operators: types, attributes, constants. The first error is kept; every
/// reader returns false from then on.
class ValueReader {
public:
  ValueReader(Context &ctx, std::string_view text, const ParseOptions &options)
      : ctx_(ctx), options_(options), lex_(text) {}

protected:
  /// Keeps the error (unless there is one) and returns false.
  bool error(size_t offset, std::string message, std::string hint = {});
  bool error(size_t offset, Diagnostic d);
  bool error_here(std::string message) {
    lex_.skip();
    return error(lex_.offset(), std::move(message));
  }
  bool expect(char c);

  bool string(std::string &out);
  bool integer(i64 &out);
  bool sym_int(SymInt &out);
  bool type(Type &out);
  /// `slot` is the declared type of the field: it decides what a list without a prefix is.
  bool attr(AttrType slot, Attr &out);
  /// `dense<…> : type` and its kin, or `#n`.
  bool constant(const Constant *&out);
  bool at_constant();

  Context &ctx_;
  const ParseOptions &options_;
  TextLexer lex_;
  std::unique_ptr<Graph> graph_;
  std::vector<const Constant *> numbered_; ///< #n
  Diagnostic error_;
  bool failed_ = false;

private:
  struct Body; // of a constant: what was written, before its type is known
  bool scalar(AttrType slot, Attr &out);
  bool word_value(std::string_view word, size_t start, Attr &out);
  bool list(AttrKind kind, size_t offset, std::span<const Attr> items, Attr &out);
  bool quantization(bool mx, Quantization &q, std::vector<float> &scales,
                    std::vector<i64> &zero_points);
  bool scale(float &scale, i64 &zero_point);
  bool element(ElementType t, std::byte *to);
  bool constant_body(Body &out);
  bool dense(const Body &body, Type t, std::byte *to);
  bool generate(const Body &body, Type t, std::byte *to);
};

} // namespace chute::ir
