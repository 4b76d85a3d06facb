#include "annulet/plan/activations.hpp"

#include <numeric>

#include "annulet/base/error.hpp"

namespace annulet::plan {
namespace {

// Of one token, in bytes; the scores are asked for by `sequence`.
class BlockBytes {
 public:
  BlockBytes(const Architecture& architecture, const ActivationOptions& options, Elements sequence)
      : a_(architecture), options_(options), sequence_(sequence), element_(options.element.value()) {}

  Elements attention() const {
    const Elements queries = a_.heads * a_.head_width, keys = a_.kv_heads * a_.head_width;
    return element_ * (a_.width + 2 * queries + 2 * keys) + mask(a_.width);
  }

  Elements scores() const {
    const Elements each = options_.dropout ? 2 * element_ + 1 : element_;
    return options_.keeps_scores ? each * a_.heads * sequence_ : 0;
  }

  Elements ffn() const {
    const Elements input = a_.parallel ? 0 : a_.width;  // the attention's
    return element_ * (input + (a_.gated ? 4 : 2) * a_.ffn) + mask(a_.width);
  }

  Elements norms() const { return element_ * (a_.parallel ? 1 : 2) * a_.width; }
  Elements all() const { return attention() + scores() + ffn() + norms(); }
  Elements input() const { return element_ * a_.width; }
  Elements ends() const { return element_ * 2 * a_.width + mask(a_.width) + 4 * a_.vocabulary; }

 private:
  Elements mask(Elements units) const { return options_.dropout ? units : 0; }

  const Architecture& a_;
  const ActivationOptions& options_;
  Elements sequence_, element_;
};

Activations decoder_activations(const Architecture& a, const ActivationOptions& options) {
  const Elements sequence = options.sequence > 0 ? options.sequence : a.context;
  const BlockBytes block(a, options, sequence);
  const Bytes tokens(options.sequences * sequence);
  Activations sum{tokens * (a.layers * block.all()), Bytes(0), tokens * block.ends()};
  if (options.recomputation == Recomputation::attention) {
    sum.kept = tokens * (a.layers * (block.all() - block.scores()));
    sum.working = tokens * block.scores();
  } else if (options.recomputation == Recomputation::blocks) {
    sum.kept = tokens * (a.layers * block.input());
    sum.working = tokens * block.all();
  }
  return sum;
}

Activations mlp_activations(const Architecture& a, const ActivationOptions& options) {
  ANNULET_EXPECTS(a.widths.size() >= 2, "an mlp has inputs and outputs");
  const Elements inputs = a.widths.front(), outputs = a.widths.back();
  const Elements hidden = std::accumulate(a.widths.begin() + 1, a.widths.end() - 1, Elements{0});
  const Bytes samples(options.sequences);
  const Elements element = options.element.value();
  return {samples * (2 * element * hidden + (options.dropout ? hidden : 0)), Bytes(0),
          samples * (element * (inputs + outputs))};
}

}  // namespace

Activations activations(const Architecture& architecture, const ActivationOptions& options) {
  ANNULET_EXPECTS(options.sequences >= 0 && options.sequence >= 0, "activations of no sequence or more");
  return architecture.kind == Kind::mlp ? mlp_activations(architecture, options)
                                        : decoder_activations(architecture, options);
}

}  // namespace annulet::plan
