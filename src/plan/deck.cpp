#include "annulet/plan/deck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "annulet/cost/closed_form.hpp"
#include "annulet/plan/compress.hpp"
#include "annulet/plan/memory.hpp"
#include "annulet/plan/mfu.hpp"
#include "annulet/plan/model_file.hpp"
#include "annulet/plan/step.hpp"

namespace annulet::plan {
namespace {

using schedule::Algorithm;
using schedule::Collective;

constexpr Elements kTokens = 1'048'576;  // of a step
constexpr int kRanks = 64;

std::string in_ms(Seconds time) { return fmt::format("{:.1f} ms", time.count() * 1e3); }
std::string in_s(Seconds time) { return fmt::format("{:.2f} s", time.count()); }
std::string in_gb(double bytes) { return fmt::format("{:.2f} GB", bytes / 1e9); }
std::string in_percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

class Deck {
 public:
  std::vector<Figure> figures() {
    parameters();
    for (const int p : {8, kRanks}) collectives(p);
    for (const int d : {8, kRanks}) memory(d);
    paper();
    step();
    wan();
    compression();
    return std::move(figures_);
  }

 private:
  void add(std::string section, std::string what, std::string published, std::string ours) {
    figures_.push_back({std::move(section), std::move(what), std::move(published), std::move(ours)});
  }

  // Without the gains of the norms, as the deck counts.
  Elements matrices() const { return plan::parameters(llama_).matrices(); }
  Bytes gradient() const { return Bytes(2 * matrices()); }

  void parameters() {
    add("1 collectives", "LLaMA 7B, parameters", "6,738,149,376", cell(matrices()).shown);
    add("1 collectives", "LLaMA 7B, with the norms' gains", "6,738,415,616",
        cell(plan::parameters(llama_).total()).shown);
    add("1 collectives", "its gradient in BF16", "13.476 GB", fmt::format("{:.3f} GB", gradient().as_double() / 1e9));
  }

  void collectives(int p) {
    struct Published {
      Collective collective;
      Algorithm algorithm;
      const char* name;
      std::array<const char*, 2> nvlink, network;  // time, bytes each sends
    };
    using enum Collective;
    static constexpr std::array<Published, 4> kPublished{{
        {all_reduce, Algorithm::ring, "ring all-reduce", {"52.5 ms", "23.58 GB"}, {"531.9 ms", "26.53 GB"}},
        {all_reduce,
         Algorithm::binomial_tree,
         "tree all-reduce, closed form",
         {"179.7 ms", "26.95 GB"},
         {"3.23 s", "26.95 GB"}},
        {reduce_scatter, Algorithm::ring, "reduce-scatter", {"26.2 ms", "11.79 GB"}, {"265.9 ms", "13.27 GB"}},
        {all_gather, Algorithm::ring, "all-gather", {"26.2 ms", "11.79 GB"}, {"265.9 ms", "13.27 GB"}},
    }};
    const bool inside = p == 8;
    const cost::Link& link = inside ? h100_.inside : h100_.between;
    for (const Published& row : kPublished) {
      const auto& [time, bytes] = inside ? row.nvlink : row.network;
      const cost::CollectiveShape shape{row.collective, row.algorithm, gradient(), p, Bytes(2)};
      const Seconds ours = cost::predicted_time(shape, link).total();
      const bool tree = row.algorithm == Algorithm::binomial_tree;
      const double sent = (tree ? cost::charged_tree_bytes(shape) : cost::wire_bytes(shape)).mean();
      const std::string what = fmt::format("{} on {} {}", row.name, p, inside ? "by NVLink" : "by network");
      add("1 collectives", what + ", time", time, ours < Seconds(1) ? in_ms(ours) : in_s(ours));
      add("1 collectives", what + ", each sends", bytes, in_gb(sent));
    }
  }

  void memory(int d) {
    using Row = std::array<const char*, 5>;
    static constexpr std::array<std::array<Row, 4>, 2> kPublished{{{{{"13.48", "13.48", "80.86", "107.81", "23.58"},
                                                                     {"13.48", "13.48", "10.11", "37.06", "23.58"},
                                                                     {"13.48", "1.68", "10.11", "25.27", "23.58"},
                                                                     {"1.68", "1.68", "10.11", "13.48", "35.38"}}},
                                                                   {{{"13.48", "13.48", "80.86", "107.81", "26.53"},
                                                                     {"13.48", "13.48", "1.26", "28.22", "26.53"},
                                                                     {"13.48", "0.21", "1.26", "14.95", "26.53"},
                                                                     {"0.21", "0.21", "1.26", "1.68", "39.80"}}}}};
    for (int stage = 0; stage <= 3; ++stage) {
      const Row& row = kPublished[d == 8 ? 0 : 1][static_cast<std::size_t>(stage)];
      const StageMemory m = stage_memory(matrices(), d, stage, kMixed);
      const std::array<std::pair<const char*, Bytes>, 5> ours{{{"weights", m.weights},
                                                               {"gradients", m.gradients},
                                                               {"optimiser", m.optimizer},
                                                               {"total", m.total()},
                                                               {"sent a step", m.sent}}};
      for (std::size_t i = 0; i < ours.size(); ++i) {
        add("2 ZeRO", fmt::format("stage {} on {}, {}", stage, d, ours[i].first), std::string(row[i]) + " GB",
            gigabytes(ours[i].second).shown + " GB");
      }
    }
  }

  // Rajbhandari et al. 2020, figure 1: 7.5 billion parameters on 64.
  void paper() {
    static constexpr std::array<const char*, 4> kPublished{"120.0 GB", "31.4 GB", "16.6 GB", "1.9 GB"};
    for (int stage = 0; stage <= 3; ++stage) {
      const Bytes total = stage_memory(7'500'000'000, 64, stage, kMixed).total();
      add("2 ZeRO", fmt::format("7.5B on 64, stage {}, total", stage), kPublished[static_cast<std::size_t>(stage)],
          fmt::format("{:.1f} GB", total.as_double() / 1e9));
    }
  }

  Flops flops() const { return static_cast<double>(kTokens) * flops_per_token(llama_, {.counted = Counted::matrices}); }

  Seconds compute() const {
    const double rate = h100_.device.peaks.at("bf16").value() * h100_.device.efficiency;
    return Seconds(flops().value() / kRanks / rate);
  }

  double utilisation(Seconds step) const { return mfu(flops(), step, {kRanks, h100_.device.peaks.at("bf16")}); }

  void step() {
    const Seconds sending = cost::ring_all_reduce_time(gradient(), kRanks, h100_.between);
    const Seconds waiting = compute() + sending, overlapped = std::max(compute(), sending);
    add("3 step", "operations of a step", "4.9148e+16", fmt::format("{:.4e}", flops().value()));
    add("3 step", "compute", "1.64 s", in_s(compute()));
    add("3 step", "all-reduce", "0.53 s", in_s(sending));
    add("3 step", "waiting", "2.17 s", in_s(waiting));
    add("3 step", "waiting, MFU", "35.7 %", in_percent(utilisation(waiting)));
    add("3 step", "overlapped", "1.64 s", in_s(overlapped));
    add("3 step", "overlapped, MFU", "47.3 %", in_percent(utilisation(overlapped)));
  }

  void wan() {
    const Seconds sending = cost::ring_all_reduce_time(gradient(), kRanks, wan_.between);
    const Seconds waiting = compute() + sending, overlapped = std::max(compute(), sending);
    add("3 step", "over a WAN, all-reduce", "2.12 s", in_s(sending));
    add("3 step", "over a WAN, waiting", "3.77 s", in_s(waiting));
    add("3 step", "over a WAN, waiting, MFU", "20.6 %", in_percent(utilisation(waiting)));
    add("3 step", "over a WAN, perfect overlap", "2.12 s", in_s(overlapped));
    add("3 step", "over a WAN, perfect overlap, MFU", "36.6 %", in_percent(utilisation(overlapped)));
  }

  void compression() {
    const auto ranks = [](double value) { return fmt::format("{:.1f} ranks", value); };
    constexpr double kDensity = 1.0 / 16;
    add("5 compression", "1 in 16, 4-byte value and index, stops paying at", "16.0 ranks",
        ranks(break_even_ranks(kDensity, 32, 32, 32)));
    add("5 compression", "payload M/16 in all, stops paying at", "32.0 ranks",
        ranks(break_even_ranks(kDensity, 32, 16, 16)));
    add("5 compression", "1 in 16, bf16 value and 4-byte index, stops paying at", "10.7 ranks",
        ranks(break_even_ranks(kDensity, 16, 16, 32)));
  }

  std::vector<Figure> figures_;
  Architecture llama_ = read_model("llama-7b");
  cost::Machine h100_ = cost::read_machine_file("h100"), wan_ = cost::read_machine_file("wan-100gbe");
};

}  // namespace

std::vector<Figure> deck_figures() { return Deck().figures(); }

Answer plan_deck(const std::vector<Figure>& figures) {
  Answer answer;
  Table table{"deck",
              "",
              {{"", "section"}, {"figure", "figure"}, {"published", "published"}, {"ours", "ours"}, {"", "agrees"}},
              {}};
  for (const Figure& f : figures) {
    table.rows.push_back(
        {cell(f.section), cell(f.what), cell(f.published), cell(f.ours), {f.agrees(), f.agrees() ? "=" : "DIFFERS"}});
  }
  answer.tables.push_back(std::move(table));
  const auto wrong = std::ranges::count_if(figures, [](const Figure& f) { return !f.agrees(); });
  answer.holds = wrong == 0;
  answer.notes = {wrong == 0 ? fmt::format("all {} figures come out", figures.size())
                             : fmt::format("{} of {} figures differ", wrong, figures.size())};
  return answer;
}

}  // namespace annulet::plan
