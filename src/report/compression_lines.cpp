#include "compression_lines.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/plan/compress.hpp"
#include "annulet/schedule/compression.hpp"

namespace annulet::report {
namespace {

using schedule::Compression;

Compression compression_of(const train::Summary& summary) {
  return summary.compress.empty() ? Compression{} : schedule::parse_compression(summary.compress);
}

// The run's links; a node has as many ranks as the first one.
cost::Machine machine_of(const cost::Network& network) {
  cost::Machine machine{network.inside, network.ring_link()};
  machine.device.ranks_per_node = static_cast<int>(std::ranges::count(network.node, 0));
  return machine;
}

std::string sparse_lines(const train::Summary& summary) {
  const auto slower = plan::slower_from_ranks(summary.payload, summary.dense_payload, machine_of(summary.network));
  return fmt::format(
      "stops paying: as many bytes as dense with {:.1f} ranks (2 M / payload); predicted on this link {}\n"
      "choosing values took {:.3f} ms of backward, adding up the pieces of {} ranks {:.3f} ms\n",
      plan::break_even_ranks(summary.payload, summary.dense_payload),
      slower ? fmt::format("slower from {} ranks on", *slower) : "faster with any number",
      summary.median_pack.value_or(Seconds(0)).count() * 1e3, summary.ranks,
      summary.median_unpack.value_or(Seconds(0)).count() * 1e3);
}

}  // namespace

bool is_sparse(const train::Summary& summary) { return compression_of(summary).kind == Compression::Kind::top_k; }

std::string compression_lines(const train::Summary& summary) {
  if (compression_of(summary).kind == Compression::Kind::none) return "";
  std::string text = fmt::format(
      "compressed by {}: a rank brings {} of gradients where dense ones are {}; wire {:.3f} of the {} B of dense "
      "ones\n",
      summary.compress, to_text(summary.payload), to_text(summary.dense_payload),
      summary.wire_per_step / summary.dense_wire_per_step, summary.dense_wire_per_step.value());
  if (is_sparse(summary)) return text + sparse_lines(summary);
  return text + "pays with any number of ranks: gradients are added on the way, half as long\n";
}

}  // namespace annulet::report
