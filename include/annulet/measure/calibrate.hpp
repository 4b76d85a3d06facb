#pragma once
// A quick look at the link before the first step, for predictions only (it decides nothing: see the README on `auto`).
// The engine's own ring all-reduce of floats runs in training's segments over training's transport, at sizes growing
// geometrically as far as the time budget allows; a size's time is that of the slowest rank in its quickest round,
// since whatever else the machine does only adds (with medians an emulated link came out up to 40% off on a busy
// machine). cost::fit_link then finds the alpha and beta with which the simulation reproduces these times. gamma is
// timed apart: adding a segment that has just arrived to elements that are not in cache. g is taken as 0 (part of
// alpha). MPI is piecewise (eager, rendezvous), so one link fits both regimes only roughly: the residuals say how
// roughly.
#include <vector>

#include "annulet/cost/fit.hpp"
#include "annulet/measure/transport_factory.hpp"

namespace annulet::measure {

struct CalibrationOptions {
  Elements segment = 1 << 16;  // as schedule::RingShape, what training will use
  int slots = 4;
  Bytes smallest{1 << 10};
  Bytes largest{8 << 20};  // no more than what training reduces at once
  int sizes = 5;           // wanted; fewer, nearer ones on a link too slow for them
  Seconds budget{0.3};     // of all rounds together; up to twice that where beta would be lost in noise
  Seconds deadline{300};   // as EngineOptions
};

struct Calibration {
  cost::Link link;
  std::vector<cost::RingPoint> points;
  double median_residual = 0;  // of |predicted / measured - 1| over the points
  double worst_residual = 0;
  Seconds took{0};       // of the slowest rank
  bool clamped = false;  // as LinkFit
};

// Collective over the ranks of the transport, while no other engine runs: it drives an engine of its own by polling,
// which is gone on return. Every rank gets the same result, rank 0's. Ranks agree through that engine, so that a
// calibration works wherever a transport does. A world of one measures nothing: no points, a link of zeros that says
// so.
Calibration quick_calibration(const TransportFactory& make_transport, const CalibrationOptions& options = {});

// Seconds per byte of adding floats in segments, on this rank alone; the quickest of several passes.
cost::SecondsPerByte reduction_pace(Elements segment, int slots, Seconds budget = Seconds(0.01));

}  // namespace annulet::measure
