// SPDX-License-Identifier: Apache-2.0
//
// Moves the slices of a placed design to where fewer wires are wanted, by simulated annealing: a
// slice moves to a free place or changes places with another. nextpnr's placers mind the length of
// wires and not how many cross a tile, which is what the router fails at.
//
//   refine PLACED MOVES RESULT
//
// PLACED holds numbers, see dev/fpga/refine.py: the places and what lies there, then the nets.
// RESULT gets, for every place, the place to which what lay there has moved. The same file and the
// same MOVES give the same result on every machine.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <stdexcept>
#include <vector>

namespace {

enum State { Free, Movable, Fixed };

constexpr int Slices = 4;  // of a tile
constexpr int Resets = 2;  // set/reset signals of a tile

struct Place {
  int x, y, slice, state;
  std::vector<int> resets;  // of what lies there at first
  std::vector<int> nets;    // likewise
};

struct Pin {
  int place;  // at first; -1: it lies at x, y and stays
  int x, y;
};

struct Box {
  int x0, x1, y0, y1;
  bool operator==(const Box& b) const {
    return x0 == b.x0 && x1 == b.x1 && y0 == b.y0 && y1 == b.y1;
  }
};

struct Net {
  std::vector<Pin> pins;
  Box box;
  double wires;  // for one wire from end to end of the box
};

struct Tile {
  double across = 0, along = 0;  // wires that are wanted, from side to side and up and down
  double pins = 0;
  std::array<int, Slices> places{{-1, -1, -1, -1}};
};

class Design {
 public:
  explicit Design(std::istream& in) {
    int count = 0;
    in >> width_ >> height_ >> count;
    tiles_.resize(static_cast<size_t>(width_) * height_);
    places_.resize(count);
    for (int p = 0; p < count; p++) {
      Place& place = places_[p];
      int resets = 0;
      in >> place.x >> place.y >> place.slice >> place.state >> resets;
      place.resets.resize(resets);
      for (int& reset : place.resets) in >> reset;
      tile(place.x, place.y).places[place.slice] = p;
      held_.push_back(p);
      at_.push_back(p);
    }
    in >> count;
    nets_.resize(count);
    for (int n = 0; n < count; n++) {
      int pins = 0;
      in >> pins;
      nets_[n].pins.resize(pins);
      for (Pin& pin : nets_[n].pins) {
        in >> pin.place >> pin.x >> pin.y;
        if (pin.place >= 0) places_[pin.place].nets.push_back(n);
      }
      nets_[n].wires = pins <= 3 ? 1.0 : 1.0 + 0.03 * (pins - 3);  // a tree is longer than its box
    }
    if (!in) throw std::runtime_error("the file of places and nets is cut short");
    for (const Place& place : places_) tile(place.x, place.y).pins += place.nets.size();
    for (Net& net : nets_) {
      net.box = box(net);
      draw(net, net.box, 1);
    }
    seen_.assign(nets_.size(), 0);
  }

  void anneal(int64_t moves, std::ostream& log) {
    std::vector<int> movable;
    for (size_t p = 0; p < places_.size(); p++) {
      if (places_[p].state == Movable) movable.push_back(static_cast<int>(p));
    }
    std::mt19937 random(1);
    report(log, "before");
    for (int64_t m = 0; m < moves && !movable.empty(); m++) {
      const double part = static_cast<double>(m) / static_cast<double>(moves);
      const double heat = 8.0 * std::pow(0.005, part);
      const int reach = std::max(3, static_cast<int>(14 * (1 - part)));
      attempt(movable[random() % movable.size()], heat, reach, random);
    }
    report(log, "after");
  }

  void write(std::ostream& out) const {
    for (int place : at_) out << place << '\n';
  }

 private:
  Tile& tile(int x, int y) { return tiles_[static_cast<size_t>(x) * height_ + y]; }

  // How hot a tile is. The weights are fitted to the wires that two nets want in the fifth turn of
  // nextpnr's router 2, of which they explain 0.83; the square minds the hottest tiles most.
  static double heat(const Tile& t) {
    const double hot = 0.0014 * t.across * t.across + 0.0009 * t.along * t.along +
                       0.001 * t.across * t.along + 0.08 * t.pins;
    return hot * hot;
  }

  Box box(const Net& net) const {
    Box b{width_, -1, height_, -1};
    for (const Pin& pin : net.pins) {
      const bool moves = pin.place >= 0;
      const int x = moves ? places_[at_[pin.place]].x : pin.x;
      const int y = moves ? places_[at_[pin.place]].y : pin.y;
      b = {std::min(b.x0, x), std::max(b.x1, x), std::min(b.y0, y), std::max(b.y1, y)};
    }
    return b;
  }

  static double length(const Net& net, const Box& b) {
    return net.wires * (b.x1 - b.x0 + b.y1 - b.y0);
  }

  // Spreads the wires of a net over its box, or takes them away; returns what that costs.
  double draw(const Net& net, const Box& b, int sign) {
    const int w = b.x1 - b.x0, h = b.y1 - b.y0;
    const double share = sign * net.wires / ((w + 1.0) * (h + 1.0));
    double cost = sign * length(net, b);
    for (int x = b.x0; x <= b.x1; x++) {
      for (int y = b.y0; y <= b.y1; y++) {
        Tile& t = tile(x, y);
        const double before = heat(t);
        t.across += share * w;
        t.along += share * h;
        cost += heat(t) - before;
      }
    }
    return cost;
  }

  double move_pins(Tile& from, Tile& to, double pins) {
    const double before = heat(from) + heat(to);
    from.pins -= pins;
    to.pins += pins;
    return heat(from) + heat(to) - before;
  }

  // Has a tile wires for its set/reset signals when one comes for another that leaves?
  bool resets_fit(const Tile& t, int leaves, int comes) const {
    std::array<int, 4 * Slices> found{};
    size_t count = 0;
    for (int p : t.places) {
      if (p < 0) continue;
      const int content = held_[p] == leaves ? comes : held_[p];
      for (int reset : places_[content].resets) {
        if (std::find(found.begin(), found.begin() + count, reset) == found.begin() + count) {
          found[count++] = reset;
        }
      }
    }
    return count <= Resets;
  }

  void exchange(int a, int b) {
    std::swap(at_[a], at_[b]);
    held_[at_[a]] = a;
    held_[at_[b]] = b;
  }

  std::pair<int, int> goal(int a, int reach, std::mt19937& random) const {
    const Place& from = places_[at_[a]];
    const std::vector<int>& nets = places_[a].nets;
    const auto jump = [&random](int most) {
      return static_cast<int>(random() % (2 * most + 1)) - most;
    };
    if (nets.empty() || random() & 1) {
      const int x = jump(reach);
      return {from.x + x, from.y + jump(reach)};
    }
    // Near a cell that it is connected to, or half-way there
    const std::vector<Pin>& pins = nets_[nets[random() % nets.size()]].pins;
    const Pin& pin = pins[random() % pins.size()];
    int x = (pin.place >= 0 ? places_[at_[pin.place]].x : pin.x) + jump(2);
    int y = (pin.place >= 0 ? places_[at_[pin.place]].y : pin.y) + jump(2);
    if (random() & 1) {
      x = (x + from.x) / 2;
      y = (y + from.y) / 2;
    }
    return {x, y};
  }

  void attempt(int a, double temperature, int reach, std::mt19937& random) {
    const auto [x, y] = goal(a, reach, random);
    const Place& from = places_[at_[a]];
    const int slice = static_cast<int>(random() % Slices);
    if (x < 0 || x >= width_ || y < 0 || y >= height_ || (x == from.x && y == from.y)) return;
    Tile &here = tile(from.x, from.y), &there = tile(x, y);
    if (there.places[slice] < 0) return;
    const int b = held_[there.places[slice]];
    if (places_[b].state == Fixed) return;
    if (!places_[a].resets.empty() || !places_[b].resets.empty()) {
      if (!resets_fit(there, b, a) || !resets_fit(here, a, b)) return;
    }
    touched_.clear();
    boxes_.clear();
    turn_++;
    for (int content : {a, b}) {
      for (int n : places_[content].nets) {
        if (seen_[n] != turn_) touched_.push_back(n);
        seen_[n] = turn_;
      }
    }
    exchange(a, b);
    double cost = 0;
    for (int n : touched_) {
      boxes_.push_back(box(nets_[n]));
      cost += length(nets_[n], boxes_.back()) - length(nets_[n], nets_[n].box);
    }
    if (cost > 8 * temperature + 12) {  // No tile is so cool.
      exchange(a, b);
      return;
    }
    const double pins = static_cast<double>(places_[a].nets.size()) -
                        static_cast<double>(places_[b].nets.size());
    cost = move_pins(here, there, pins);
    for (size_t i = 0; i < touched_.size(); i++) {
      const Net& net = nets_[touched_[i]];
      if (boxes_[i] == net.box) continue;
      cost += draw(net, net.box, -1);
      cost += draw(net, boxes_[i], 1);
    }
    const bool taken = cost <= 0 || std::exp(-cost / temperature) * 4294967296.0 > random();
    for (size_t i = 0; i < touched_.size(); i++) {
      Net& net = nets_[touched_[i]];
      if (boxes_[i] == net.box) continue;
      if (taken) {
        net.box = boxes_[i];
      } else {
        draw(net, boxes_[i], -1);
        draw(net, net.box, 1);
      }
    }
    if (!taken) {
      move_pins(here, there, -pins);
      exchange(a, b);
    }
  }

  void report(std::ostream& log, const char* when) const {
    double wires = 0;
    for (const Net& net : nets_) wires += length(net, net.box);
    std::vector<double> across;
    for (const Tile& t : tiles_) across.push_back(t.across + t.along);
    std::sort(across.begin(), across.end());
    log << when << ": wires " << static_cast<int64_t>(wires) << ", through a tile "
        << static_cast<int>(across[across.size() / 2]) << " in the middle, "
        << static_cast<int>(across[across.size() * 98 / 100]) << " in the fullest 2 %, "
        << static_cast<int>(across.back()) << " at most" << std::endl;
  }

  int width_ = 0, height_ = 0;
  std::vector<Tile> tiles_;
  std::vector<Place> places_;
  std::vector<Net> nets_;
  std::vector<int> held_;  // by place: where what it holds lay at first
  std::vector<int> at_;    // by first place: where that lies now
  std::vector<int> touched_;
  std::vector<Box> boxes_;
  std::vector<int64_t> seen_;
  int64_t turn_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: refine PLACED MOVES RESULT\n";
    return 2;
  }
  try {
    std::ifstream in(argv[1]);
    Design design(in);
    design.anneal(std::atoll(argv[2]), std::cout);
    std::ofstream out(argv[3]);
    design.write(out);
    return out.good() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "refine: " << argv[1] << ": " << error.what() << '\n';
    return 1;
  }
}
