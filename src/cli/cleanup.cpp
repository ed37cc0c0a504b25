#include "toolkit/cleanup.h"

#include "circle/file_counts.h"
#include "circle/writer.h"
#include "cli/graph_file.h"
#include "support/text_file.h"

#include <algorithm>
#include <cstdio>

namespace chute::cli {

namespace {

struct Line {
  const char *what; ///< for people
  const char *key;  ///< for programs
  u64 before;
  u64 after;
};

class Cleanup final : public Command {
public:
  std::string_view summary() const override {
    return "Drop what nothing uses from a Circle file, store equal data once, and say what went";
  }
  std::string_view examples() const override {
    return "  chute cleanup model.circle -o clean.circle\n"
           "  chute cleanup model.circle -o clean.circle --prune-inputs --json\n"
           "Operators with an effect (variables, custom operators) and the interface stay. Nothing "
           "is "
           "rewritten:\n`chute optimize` does that.";
  }
  void declare(Args &args) override {
    args.positional("model", model_, "A .circle or .tflite file; - for standard input");
    args.option("-o,--output", output_, "The .circle file to write; - for standard output", true);
    args.flag("--prune-inputs", options_.prune_inputs, "Drop inputs that nothing uses, too");
  }

  int run(Session &session) override {
    session.diagnostics.set_file(model_);
    std::shared_ptr<const void> owner;
    std::string_view bytes;
    if (model_ == "-") {
      auto text = read_text(model_);
      if (!text)
        return session.fail(std::move(text.error()));
      auto kept = std::make_shared<const std::string>(std::move(*text));
      bytes = *kept;
      owner = kept;
    } else {
      auto file = MappedFile::open(model_);
      if (!file)
        return session.fail(std::move(file.error()));
      bytes = (*file)->text();
      owner = *file;
    }
    const auto before = circle::count_file(std::as_bytes(std::span(bytes)));
    if (!before)
      return session.fail(before.error());
    ir::Context ctx;
    GraphFile file;
    auto model = circle::read_model(ctx, std::as_bytes(std::span(bytes)), owner);
    if (!model)
      return session.fail(std::move(model.error()));
    file.model = std::move(*model);
    toolkit::CleanupReport report;
    for (u32 g = 0; g <= file.model.more.size(); ++g)
      if (Status s = clean(file.model, g, report); !s)
        return session.fail(std::move(s.error()));
    return finish(session, file, *before, report);
  }

private:
  Status clean(circle::Model &model, u32 number, toolkit::CleanupReport &all) const {
    auto made = toolkit::cleanup(number ? *model.more[number - 1] : *model.graph, options_);
    if (!made)
      return tl::unexpected(std::move(made.error()));
    all.dead_operators += made->dead_operators;
    all.unused_constants += made->unused_constants;
    for (const auto &[name, n] : made->dead_by_name)
      all.dead_by_name[name] += n;
    all.pruned_inputs.insert(all.pruned_inputs.end(), made->pruned_inputs.begin(),
                             made->pruned_inputs.end());
    const auto &gone = made->pruned_positions;
    for (circle::Signature &s : model.signatures) {
      if (s.graph != number || gone.empty())
        continue;
      std::erase_if(s.inputs, [&](const circle::SignaturePort &p) {
        return std::binary_search(gone.begin(), gone.end(), p.position);
      });
      for (circle::SignaturePort &p : s.inputs)
        p.position -=
            static_cast<u32>(std::lower_bound(gone.begin(), gone.end(), p.position) - gone.begin());
    }
    return {};
  }

  int finish(Session &session, const GraphFile &file, const circle::FileCounts &before,
             const toolkit::CleanupReport &report) {
    // In memory first, so that what is counted is what was written.
    circle::FileCounts after;
    if (output_ == "-") {
      if (Status s = save_graph(file, output_); !s)
        return session.fail(std::move(s.error()));
    } else {
      if (Status s = save_graph(file, output_); !s)
        return session.fail(std::move(s.error()));
      auto written = MappedFile::open(output_);
      if (!written)
        return session.fail(std::move(written.error()));
      auto counted = circle::count_file((*written)->bytes());
      if (!counted)
        return session.fail(std::move(counted.error()));
      after = *counted;
    }
    print(session, before, output_ == "-" ? nullptr : &after, report);
    return session.finish();
  }

  void print(const Session &session, const circle::FileCounts &before,
             const circle::FileCounts *after, const toolkit::CleanupReport &report) const {
    std::string text, json = "{\"output\":" + json_quote(output_);
    const auto say_ops = [&] {
      json += ",\"dead_operators\":{";
      for (const auto &[name, n] : report.dead_by_name) {
        text += "  " + std::to_string(n) + " dead " + name + "\n";
        json += (json.back() == '{' ? "" : ",") + json_quote(name) + ":" + std::to_string(n);
      }
      json += "},\"pruned_inputs\":[";
      for (const std::string &name : report.pruned_inputs) {
        text += "  unused input '" + name + "'\n";
        json += (json.back() == '[' ? "" : ",") + json_quote(name);
      }
      json += "]";
    };
    say_ops();
    if (after) {
      const Line lines[] = {
          {"subgraphs", "subgraphs", before.subgraphs, after->subgraphs},
          {"operators", "operators", before.operators, after->operators},
          {"tensors", "tensors", before.tensors, after->tensors},
          {"tensors without a name of their own", "repeated_names", before.repeated_names,
           after->repeated_names},
          {"buffers with data", "buffers", before.buffers, after->buffers},
          {"buffers that repeat another", "repeated_buffers", before.repeated_buffers,
           after->repeated_buffers},
          {"bytes in buffers", "buffer_bytes", before.buffer_bytes, after->buffer_bytes},
          {"operator codes", "operator_codes", before.operator_codes, after->operator_codes},
          {"signatures", "signatures", before.signatures, after->signatures},
          {"bytes in the file", "bytes", before.bytes, after->bytes},
      };
      bool changed = !text.empty();
      for (const Line &l : lines) {
        json += ",\"" + std::string(l.key) + "\":[" + std::to_string(l.before) + "," +
                std::to_string(l.after) + "]";
        if (l.before == l.after)
          continue;
        changed = true;
        text += "  " + std::string(l.what) + ": " + std::to_string(l.before) + " -> " +
                std::to_string(l.after) + "\n";
      }
      text = output_ + (changed ? ": removed\n" : ": nothing to remove\n") + text;
    }
    say(session, output_, text, json + "}");
  }

  std::string model_;
  std::string output_;
  toolkit::CleanupOptions options_;
};

} // namespace

std::unique_ptr<Command> make_cleanup() { return std::make_unique<Cleanup>(); }

} // namespace chute::cli
