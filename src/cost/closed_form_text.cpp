#include "annulet/cost/closed_form_text.hpp"

#include <bit>

#include "annulet/base/error.hpp"

namespace annulet::cost {
namespace {

using enum schedule::Collective;
using enum schedule::Algorithm;

constexpr std::string_view kShortest = "M - |c|, c the shortest chunk", kLongest = "M - |c|, c the longest chunk";
constexpr std::string_view kEven = "(p-1)/p M", kTwice = "2 (p-1)/p M", kBlocks = "blocks of 1, 2, 4, ... chunks";
constexpr std::string_view kGroups = "c/p M beta, c = ceil(p/2) + ceil(p/4) + ... + 1";

constexpr ClosedFormText kTexts[] = {
    {all_reduce, ring, "2 (p-1)", "2 (p-1) (alpha + g)", "2 (p-1)/p M beta", "(p-1)/p M gamma",
     "2 M - |c| - |c'|, longest neighbouring chunks", kTwice, "2 M - |c| - |c'|, shortest neighbouring chunks"},
    {all_reduce, recursive_doubling, "log2 p", "log2 p (alpha + g)", "log2 p M beta", "log2 p M gamma", "log2 p M",
     "log2 p M", "log2 p M"},
    {all_reduce, recursive_halving_doubling, "2 log2 p", "2 log2 p (alpha + g)", "2 (p-1)/p M beta", "(p-1)/p M gamma",
     "M - |c| + blocks of 1, 2, 4, ... chunks", kTwice, "M - |c| + blocks of 1, 2, 4, ... chunks"},
    {all_reduce, binomial_tree, "2 ceil(log2 p)", "2 ceil(log2 p) (alpha + g)", "2 ceil(log2 p) M beta",
     "ceil(log2 p) M gamma", "M, a leaf on the way up", kTwice, "at most ceil(log2 p) M, the root on the way down"},
    {all_reduce, pipelined_tree, "2 d, d = floor(log2 p)", "2 d alpha + 3 (d+S-1) g, at most",
     "3 (d+S-1) M/S beta, at most", "2 (d+S-1) M/S gamma, at most", "M, a leaf", kTwice, "3 M, two children"},
    {all_reduce, direct, "2", "2 alpha + 2 (p-1) g", "2 (p-1)/p M beta", "(p-1)/p M gamma",
     "M - |c| + (p-1) |c|, c the shortest chunk", kTwice, "M - |c| + (p-1) |c|, c the longest chunk"},
    {reduce_scatter, ring, "p-1", "(p-1) (alpha + g)", "(p-1)/p M beta", "(p-1)/p M gamma", kLongest, kEven, kShortest},
    {reduce_scatter, recursive_halving, "ceil(log2 p)", "ceil(log2 p) (alpha + g)", kGroups, "(p-1)/p M gamma",
     kLongest, kEven, kShortest},
    {reduce_scatter, direct, "1", "alpha + (p-1) g", "(p-1)/p M beta", "(p-1)/p M gamma", kLongest, kEven, kShortest},
    {all_gather, ring, "p-1", "(p-1) (alpha + g)", "(p-1)/p M beta", "0", kLongest, kEven, kShortest},
    {all_gather, recursive_doubling, "ceil(log2 p)", "ceil(log2 p) (alpha + g); g more in odd groups",
     "c/p M beta, c = ceil(p/2) + ceil(p/4) + ... + 1; at most M beta more in odd groups", "0", kBlocks, kEven,
     kBlocks},
    {all_gather, bruck, "ceil(log2 p)", "ceil(log2 p) (alpha + 2 g), at most", "(p-1)/p M beta", "0", kBlocks, kEven,
     kBlocks},
    {all_gather, direct, "1", "alpha + (p-1) g", "(p-1)/p M beta", "0", "(p-1) |c|, c the shortest chunk", kEven,
     "(p-1) |c|, c the longest chunk"},
    {broadcast, binomial_tree, "ceil(log2 p)", "ceil(log2 p) (alpha + g)", "ceil(log2 p) M beta", "0", "0, a leaf",
     kEven, "at most ceil(log2 p) M, the root"},
    {broadcast, pipelined_chain, "p-1", "(p-1) alpha + (p-2+S) g", "(p-2+S) M/S beta", "0", "0, the end of the chain",
     kEven, "M"},
    {reduce, binomial_tree, "ceil(log2 p)", "ceil(log2 p) (alpha + g)", "ceil(log2 p) M beta", "ceil(log2 p) M gamma",
     "0, the root", kEven, "M"},
    {reduce, pipelined_chain, "p-1", "(p-1) alpha + (p-2+S) g", "(p-2+S) M/S beta",
     "((p-1) gamma + (S-1) max(0, gamma - beta)) M/S", "0, the root", kEven, "M"},
};

// Where p is no power of two.
constexpr ClosedFormText kFolded[] = {
    {all_reduce, recursive_doubling, "log2 q + 2", "(log2 q + 2) (alpha + g)", "(log2 q + 2) M beta",
     "(log2 q + 1) M gamma", "M, a rank that folds", "(q log2 q + 2 (p-q))/p M", "(log2 q + 1) M, its partner"},
    {all_reduce, recursive_halving_doubling, "2 log2 q + 2", "(2 log2 q + 2) (alpha + g)", "(2 (q-1)/q + 2) M beta",
     "((q-1)/q + 1) M gamma", "M, a rank that folds", kTwice,
     "M + M - |c| + blocks of 1, 2, 4, ... chunks, its partner"},
};

}  // namespace

const ClosedFormText& closed_form_text(schedule::Collective collective, schedule::Algorithm algorithm, int ranks) {
  const auto fits = [&](const ClosedFormText& text) {
    return text.collective == collective && text.algorithm == algorithm;
  };
  if (!std::has_single_bit(static_cast<unsigned>(ranks))) {
    for (const ClosedFormText& text : kFolded) {
      if (fits(text)) return text;
    }
  }
  for (const ClosedFormText& text : kTexts) {
    if (fits(text)) return text;
  }
  ANNULET_EXPECTS(false, "the collective has this algorithm");
  return kTexts[0];
}

std::string_view least_wire_text(schedule::Collective collective) {
  if (collective == all_reduce) return "2 (p-1)/p M";
  return collective == reduce_scatter || collective == all_gather ? "(p-1)/p M" : "M";
}

std::string_view payload_text(schedule::Collective collective) {
  return collective == all_gather ? "|c|, the longest chunk" : "M";
}

}  // namespace annulet::cost
