#include "annulet/cost/closed_form_text.hpp"

#include <bit>

#include "annulet/base/error.hpp"

namespace annulet::cost {
namespace {

using enum CollectiveKind;
using enum Algorithm;

constexpr ClosedFormText kTexts[] = {
    {all_reduce, ring, "2 (p-1)", "2 (p-1) (alpha + g)", "2 (p-1)/p M beta", "(p-1)/p M gamma",
     "2 M - |c| - |c'|, longest neighbouring chunks", "2 (p-1)/p M", "2 M - |c| - |c'|, shortest neighbouring chunks"},
    {all_reduce, recursive_doubling, "log2 p", "log2 p (alpha + g)", "log2 p M beta", "log2 p M gamma", "log2 p M",
     "log2 p M", "log2 p M"},
    {all_reduce, recursive_halving, "2 log2 p", "2 log2 p (alpha + g)", "2 (p-1)/p M beta", "(p-1)/p M gamma",
     "M - |c| + blocks of 1, 2, 4, ... chunks", "2 (p-1)/p M", "M - |c| + blocks of 1, 2, 4, ... chunks"},
    {all_reduce, tree, "2 ceil(log2 p)", "2 ceil(log2 p) (alpha + g)", "2 ceil(log2 p) M beta", "ceil(log2 p) M gamma",
     "M, a leaf on the way up", "2 (p-1)/p M", "ceil(log2 p) M, the root on the way down"},
    {all_reduce, direct, "2", "2 alpha + 2 (p-1) g", "2 (p-1)/p M beta", "(p-1)/p M gamma",
     "M - |c| + (p-1) |c|, c the shortest chunk", "2 (p-1)/p M", "M - |c| + (p-1) |c|, c the longest chunk"},
    {reduce_scatter, ring, "p-1", "(p-1) (alpha + g)", "(p-1)/p M beta", "(p-1)/p M gamma",
     "M - |c|, c the longest chunk", "(p-1)/p M", "M - |c|, c the shortest chunk"},
    {reduce_scatter, recursive_halving, "log2 p", "log2 p (alpha + g)", "(p-1)/p M beta", "(p-1)/p M gamma",
     "M - |c|, c the longest chunk", "(p-1)/p M", "M - |c|, c the shortest chunk"},
    {reduce_scatter, direct, "1", "alpha + (p-1) g", "(p-1)/p M beta", "(p-1)/p M gamma",
     "M - |c|, c the longest chunk", "(p-1)/p M", "M - |c|, c the shortest chunk"},
    {all_gather, ring, "p-1", "(p-1) (alpha + g)", "(p-1)/p M beta", "0", "M - |c|, c the longest chunk", "(p-1)/p M",
     "M - |c|, c the shortest chunk"},
    {all_gather, recursive_doubling, "log2 p", "log2 p (alpha + g)", "(p-1)/p M beta", "0",
     "blocks of 1, 2, 4, ... chunks", "(p-1)/p M", "blocks of 1, 2, 4, ... chunks"},
    {all_gather, direct, "1", "alpha + (p-1) g", "(p-1)/p M beta", "0", "(p-1) |c|, c the shortest chunk", "(p-1)/p M",
     "(p-1) |c|, c the longest chunk"},
    {broadcast, ring, "p-1", "(p-1) alpha + 2 (p-1) g", "2 (p-1)/p M beta", "0", "0, the end of the chain", "(p-1)/p M",
     "M"},
    {broadcast, tree, "ceil(log2 p)", "ceil(log2 p) (alpha + g)", "ceil(log2 p) M beta", "0", "0, a leaf", "(p-1)/p M",
     "ceil(log2 p) M, the root"},
    {reduce, ring, "p-1", "(p-1) alpha + 2 (p-1) g", "2 (p-1)/p M beta", "(p-1)/p M (gamma + max(0, gamma - beta))",
     "0, the root", "(p-1)/p M", "M"},
    {reduce, tree, "ceil(log2 p)", "ceil(log2 p) (alpha + g)", "ceil(log2 p) M beta", "ceil(log2 p) M gamma",
     "0, the root", "(p-1)/p M", "M"},
};

// Where p is no power of two.
constexpr ClosedFormText kFolded[] = {
    {all_reduce, recursive_doubling, "log2 q + 2", "(log2 q + 2) (alpha + g)", "(log2 q + 2) M beta",
     "(log2 q + 1) M gamma", "M, a rank that folds", "(q log2 q + 2 (p-q))/p M", "(log2 q + 1) M, its partner"},
    {all_reduce, recursive_halving, "2 log2 q + 2", "(2 log2 q + 2) (alpha + g)", "(2 (q-1)/q + 2) M beta",
     "((q-1)/q + 1) M gamma", "M, a rank that folds", "2 (p-1)/p M",
     "M + M - |c| + blocks of 1, 2, 4, ... chunks, its partner"},
};

}  // namespace

const ClosedFormText& closed_form_text(CollectiveKind kind, Algorithm algorithm, int ranks) {
  const auto fits = [&](const ClosedFormText& text) { return text.kind == kind && text.algorithm == algorithm; };
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

std::string_view least_wire_text(CollectiveKind kind) {
  if (kind == all_reduce) return "2 (p-1)/p M";
  return kind == reduce_scatter || kind == all_gather ? "(p-1)/p M" : "M";
}

std::string_view payload_text(CollectiveKind kind) { return kind == all_gather ? "|c|, the longest chunk" : "M"; }

}  // namespace annulet::cost
