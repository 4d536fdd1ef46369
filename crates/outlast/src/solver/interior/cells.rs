//! The algebra of one row: k cells, coupled by one number xi.
//!
//! A hinge row is the linear program
//!
//! ```text
//! L(F) = min over xi, s of  total (1 + xi) + sum_j knot_j s_j,     xi + 1 >= F_j,   s_j >= F_j - xi,   s_j >= 0
//! ```
//!
//! with multipliers t_j of the first constraint, a_j of the second and knot_j - a_j of the third; q_j = a_j + t_j sums to
//! total. Where knot_j = 0 only t_j is left; where knot_j >= total the multiplier t_j is 0 at some optimum, the bound on a_j
//! holds by itself, and xi >= F_j is left. Both are one pair (multiplier, slack) with an offset of 1 or 0.
//!
//! A smooth row is min c l(F_y - xi), xi >= F_j for j != y, with multipliers q_j that sum to r = -c l'(F_y - xi): cells of one
//! pair, and the cell of its own class where q_y = -r, so that all k sum to 0.
//!
//! With d_j = F_j - xi every cell's Newton equation comes down to dq_j = weight_j dd_j + right_j, and sum_j dq_j = 0 gives
//!
//! ```text
//! dxi = (sum_j weight_j dF_j + right_j) / sum_j weight_j
//! ```
//!
//! The own cell's equation q = c l'(d) may be linearised as it stands or inverted, d = l'^-1(q / c). The smaller weight of the
//! two is taken: the first where r is too large (a row far beyond its margin), the second where it is too small (an outlier),
//! so that neither creeps along the exponential tail.

use crate::problem::BaseLoss;

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// One pair (t, z), z = offset - d.
    Single(f64),
    /// Pairs (t, 1 - d), (a, s - d) and (knot - a, s).
    Double(f64),
    /// The own class of a smooth row: t = r, z = d.
    Own,
}

/// Multipliers and slacks of one class in one row, and their changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) kind: Kind,
    pub(super) t: f64,
    z: f64,
    a: f64,
    beyond: f64,
    u: f64,
    s: f64,
    pub(super) weight: f64,
    right: f64,
    dt: f64,
    dz: f64,
    da: f64,
    d_beyond: f64,
    ds: f64,
}

/// What is fixed about a row.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Sum of q: total_i of a hinge row, 0 of a smooth one.
    pub(super) total: f64,
    /// c of a smooth row.
    pub(super) cap: f64,
    pub(super) loss: Option<&'static dyn BaseLoss>,
}

/// r within this share of c is held back by [`restore_sum`] and not by the step length.
const NEAR_CAP: f64 = 1e-12;
/// The largest r, in c, of a loss whose slope is at most 1.
const MOST_SHARE: f64 = 1.0 - 4.0 * f64::EPSILON;

impl Form {
    /// Whether r may be no more than c.
    fn is_bounded(&self) -> bool {
        self.loss.is_some_and(|loss| loss.name() == "logistic")
    }

    /// What the products of a row are to become: no more than c of a smooth row. A product of many c puts a slack that wide
    /// between xi and the scores, where r = c to the last digit and the own cell's equation says nothing any more.
    fn target(&self, centre: f64) -> f64 {
        if self.loss.is_some() { centre.min(self.cap) } else { centre }
    }
}

/// A row's loss, and how far multipliers and scores are from being each other's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worth {
    /// L(F)
    pub(super) loss: f64,
    /// L(F) - (q'F - L*(q)) >= 0
    pub(super) gap: f64,
}

/// The longest step, and the sum of products after a step of length h: constant + linear h + quadratic h^2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    pub(super) longest: f64,
    pub(super) linear: f64,
    pub(super) quadratic: f64,
}

impl Reach {
    pub(super) const NEW: Reach = Reach { longest: f64::INFINITY, linear: 0.0, quadratic: 0.0 };

    pub(super) fn merge(self, other: Reach) -> Reach {
        Reach {
            longest: self.longest.min(other.longest),
            linear: self.linear + other.linear,
            quadratic: self.quadratic + other.quadratic,
        }
    }

    fn room(&mut self, value: f64, change: f64) {
        if change < 0.0 {
            self.longest = self.longest.min(-value / change);
        }
    }

    fn pair(&mut self, multiplier: (f64, f64), slack: (f64, f64)) {
        self.room(multiplier.0, multiplier.1);
        self.room(slack.0, slack.1);
        self.linear += multiplier.0 * slack.1 + slack.0 * multiplier.1;
        self.quadratic += multiplier.1 * slack.1;
    }
}

/// l'^-1(-a), 0 < a.
fn margin_of_slope(loss: &dyn BaseLoss, a: f64) -> f64 {
    match loss.name() {
        "logistic" => ((1.0 - a) / a).ln(),
        _ => -a.ln(),
    }
}

impl Cell {
    pub(super) fn new(kind: Kind) -> Cell {
        let o = 0.0;
        Cell {
            kind,
            t: o,
            z: o,
            a: o,
            beyond: o,
            u: o,
            s: o,
            weight: o,
            right: o,
            dt: o,
            dz: o,
            da: o,
            d_beyond: o,
            ds: o,
        }
    }

    /// q_j
    #[inline]
    pub(super) fn dual(&self) -> f64 {
        match self.kind {
            Kind::Single(_) => self.t,
            Kind::Double(_) => self.t + self.a,
            Kind::Own => -self.t,
        }
    }

    /// The lowest xi at which this cell has an interior.
    fn floor(&self, score: f64) -> f64 {
        match self.kind {
            Kind::Single(offset) => score - offset,
            Kind::Double(_) => score - 1.0,
            Kind::Own => f64::NEG_INFINITY,
        }
    }

    /// Puts the cell where all its products are mu.
    fn centre(&mut self, d: f64, mu: f64, form: &Form) {
        match self.kind {
            Kind::Single(offset) => {
                self.z = offset - d;
                self.t = mu / self.z;
            }
            Kind::Double(knot) => {
                self.z = 1.0 - d;
                self.t = mu / self.z;
                let v = mu / knot;
                let root = d.hypot(2.0 * v);
                // the smaller of the two roots without cancellation
                (self.beyond, self.s) = if d > 0.0 {
                    let beyond = v + 2.0 * v * (v / (root + d));
                    (beyond, beyond + d)
                } else {
                    let s = v + 2.0 * v * (v / (root - d));
                    (s - d, s)
                };
                self.a = (mu / self.beyond).min(knot);
                self.u = (mu / self.s).min(knot);
            }
            Kind::Own => {
                self.z = d;
                self.t = form.loss.map_or(0.0, |loss| -form.cap * loss.slope(d));
            }
        }
    }

    /// Sum and number of the products of its pairs.
    fn products(&self) -> (f64, usize) {
        match self.kind {
            Kind::Single(_) => (self.t * self.z, 1),
            Kind::Double(_) => (self.t * self.z + self.a * self.beyond + self.u * self.s, 3),
            Kind::Own => (0.0, 0),
        }
    }

    /// weight, and right for products that are to become `centre` (less the second-order terms of the last changes).
    fn linearise(&mut self, centre: f64, second: f64, form: &Form) {
        match self.kind {
            Kind::Single(_) => {
                self.weight = self.t / self.z;
                self.right = (centre - second * self.dt * self.dz) / self.z - self.t;
            }
            Kind::Double(_) => {
                let (single, alone) = (self.t / self.z, (centre - second * self.dt * self.dz) / self.z - self.t);
                let below = centre - self.a * self.beyond - second * self.da * self.d_beyond;
                let above = centre - self.u * self.s + second * self.da * self.ds;
                let size = self.u * self.beyond + self.a * self.s;
                self.weight = single + self.a * (self.u / size);
                self.right = alone + (self.u * below - self.a * above) / size;
            }
            Kind::Own => self.linearise_own(form),
        }
    }

    fn linearise_own(&mut self, form: &Form) {
        let Some(loss) = form.loss else { return };
        let share = self.t / form.cap;
        let plain = form.cap * loss.curvature(self.z);
        let inverted = if loss.name() == "logistic" { self.t * (1.0 - share) } else { self.t };
        // r = c to the last digit has no inverse
        if plain <= inverted || !(inverted > 0.0) {
            self.weight = plain;
            self.right = form.cap * loss.slope(self.z) + self.t;
        } else {
            self.weight = inverted;
            self.right = inverted * (self.z - margin_of_slope(loss, share));
        }
    }

    /// The changes that follow from dd.
    fn turn(&mut self, dd: f64, centre: f64, second: f64, form: &Form, reach: &mut Reach) {
        match self.kind {
            Kind::Single(_) | Kind::Double(_) => {
                let product = centre - second * self.dt * self.dz;
                self.dz = -dd;
                self.dt = (product + self.t * dd) / self.z - self.t;
                reach.pair((self.t, self.dt), (self.z, self.dz));
                if let Kind::Double(_) = self.kind {
                    self.turn_double(dd, centre, second, reach);
                }
            }
            Kind::Own => {
                self.dz = dd;
                self.dt = -self.weight * dd - self.right;
                reach.room(self.t, self.dt);
                if form.is_bounded() && form.cap - self.t > NEAR_CAP * form.cap {
                    reach.room(form.cap - self.t, -self.dt);
                }
            }
        }
    }

    fn turn_double(&mut self, dd: f64, centre: f64, second: f64, reach: &mut Reach) {
        let below = centre - self.a * self.beyond - second * self.da * self.d_beyond;
        let above = centre - self.u * self.s + second * self.da * self.ds;
        let size = self.u * self.beyond + self.a * self.s;
        self.da = (self.u * below - self.a * above) / size + self.a * (self.u / size) * dd;
        self.ds = (above + self.s * self.da) / self.u;
        self.d_beyond = (below - self.beyond * self.da) / self.a;
        reach.pair((self.a, self.da), (self.beyond, self.d_beyond));
        reach.pair((self.u, -self.da), (self.s, self.ds));
    }

    fn advance(&mut self, length: f64) {
        self.t += length * self.dt;
        self.z += length * self.dz;
        if let Kind::Double(_) = self.kind {
            self.a += length * self.da;
            self.u -= length * self.da;
            self.beyond += length * self.d_beyond;
            self.s += length * self.ds;
        }
    }

    fn is_sound(&self) -> bool {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        match self.kind {
            Kind::Single(_) => positive(self.t) && positive(self.z),
            Kind::Double(_) => [self.t, self.z, self.a, self.beyond, self.u, self.s].into_iter().all(positive),
            Kind::Own => self.t >= 0.0 && self.z.is_finite(),
        }
    }
}

/// Puts a row on the central path: xi so that q sums to its total, all products mu (or less, [`Form::target`]).
pub(super) fn centre(cells: &mut [Cell], scores: &[f64], mu: f64, form: &Form) {
    let mu = form.target(mu);
    let floor = cells.iter().zip(scores).map(|(cell, &score)| cell.floor(score)).fold(f64::NEG_INFINITY, f64::max);
    let highest = scores.iter().fold(floor, |highest, &score| highest.max(score));
    let mut excess = |above: f64| {
        for (cell, score) in cells.iter_mut().zip(scores) {
            cell.centre(score - floor - above, mu, form);
        }
        cells.iter().map(Cell::dual).sum::<f64>() - form.total
    };
    // q falls as xi rises: widen until the sign changes, then halve the interval of the logarithm
    let (mut low, mut high) = (mu / (form.total + form.cap), highest - floor + 1.0);
    for _ in 0..200 {
        if excess(low) >= 0.0 {
            break;
        }
        low *= 0.1;
    }
    for _ in 0..200 {
        if excess(high) <= 0.0 {
            break;
        }
        high *= 4.0;
    }
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if !(middle > low && middle < high) {
            break;
        }
        if excess(middle) >= 0.0 { low = middle } else { high = middle }
    }
    excess(high);
    restore_sum(cells, form);
}

/// Makes q sum to its total but for rounding: the largest cell (the own one of a smooth row) takes the difference. The other
/// q of a far outlier, whose r is c to the last digits, shrink by so few of theirs that r stays below c.
fn restore_sum(cells: &mut [Cell], form: &Form) {
    let at = largest(cells);
    if form.is_bounded() {
        let rivals = || cells.iter().filter(|cell| cell.kind != Kind::Own);
        let shrink = MOST_SHARE * form.cap / rivals().map(Cell::dual).sum::<f64>();
        if shrink < 1.0 {
            cells.iter_mut().for_each(|cell| cell.t *= shrink);
        }
    }
    let rest: f64 = cells.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, cell)| cell.dual()).sum();
    let target = form.total - rest;
    match cells[at].kind {
        Kind::Single(_) if target > 0.0 => cells[at].t = target,
        Kind::Own if target < 0.0 => cells[at].t = rest,
        _ => {}
    }
}

/// The cell that takes what is missing to the total.
fn largest(cells: &[Cell]) -> usize {
    let mut at = 0;
    for (class, cell) in cells.iter().enumerate() {
        if let Kind::Own = cell.kind {
            return class;
        }
        if cell.dual() > cells[at].dual() {
            at = class;
        }
    }
    at
}

/// V = base - q with q summing exactly to the total: what the largest cell lacks is never computed as a difference of large
/// numbers where its base is the total.
pub(super) fn expansion(cells: &[Cell], form: &Form, base: &[f64], out: &mut [f64]) {
    let at = largest(cells);
    let mut rest = 0.0;
    for (class, cell) in cells.iter().enumerate() {
        if class != at {
            rest += cell.dual();
            out[class] = base.get(class).copied().unwrap_or(0.0) - cell.dual();
        }
    }
    out[at] = base.get(at).copied().unwrap_or(0.0) - form.total + rest;
}

/// Sum and number of products.
pub(super) fn products(cells: &[Cell]) -> (f64, usize) {
    let all = cells.iter().map(Cell::products);
    all.fold((0.0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1))
}

/// Linearises every cell and writes right_j - weight_j (sum of right) / (sum of weight), which is dq at dF = 0.
pub(super) fn linearise(cells: &mut [Cell], centre: f64, second: f64, form: &Form, out: &mut [f64]) {
    let centre = form.target(centre);
    let (mut weights, mut rights) = (0.0, 0.0);
    for cell in cells.iter_mut() {
        cell.linearise(centre, second, form);
        weights += cell.weight;
        rights += cell.right;
    }
    let shift = rights / weights.max(f64::MIN_POSITIVE);
    for (cell, out) in cells.iter().zip(out) {
        *out = cell.right - cell.weight * shift;
    }
}

/// The changes of every cell for a change of the scores. Own cells must have been linearised.
pub(super) fn turn(cells: &mut [Cell], change: &[f64], centre: f64, second: f64, form: &Form) -> Reach {
    let centre = form.target(centre);
    let (mut weights, mut sum) = (0.0, 0.0);
    for (cell, change) in cells.iter().zip(change) {
        weights += cell.weight;
        sum += cell.weight * change + cell.right;
    }
    let dxi = sum / weights.max(f64::MIN_POSITIVE);
    let mut reach = Reach::NEW;
    for (cell, change) in cells.iter_mut().zip(change) {
        cell.turn(change - dxi, centre, second, form, &mut reach);
    }
    reach
}

/// Takes the changes; `false` when rounding has left the interior.
pub(super) fn advance(cells: &mut [Cell], length: f64, form: &Form) -> bool {
    cells.iter_mut().for_each(|cell| cell.advance(length));
    restore_sum(cells, form);
    cells.iter().all(Cell::is_sound)
}

/// The row's loss at given scores, and its gap to the multipliers.
pub(super) fn worth(cells: &[Cell], scores: &[f64], expansion: &[f64], base: &[f64], form: &Form) -> Worth {
    match form.loss {
        Some(loss) => smooth_worth(cells, scores, expansion, loss, form.cap),
        None => hinge_worth(cells, scores, expansion, base, form.total),
    }
}

fn smooth_worth(cells: &[Cell], scores: &[f64], expansion: &[f64], loss: &dyn BaseLoss, cap: f64) -> Worth {
    let (own, score) = own(cells, scores);
    let rivals = || (0..cells.len()).filter(|&class| class != own);
    let margin = rivals().map(|class| score - scores[class]).fold(f64::INFINITY, f64::min);
    let r = expansion[own];
    let value = cap * loss.value(margin);
    let touch = value + cap * loss.conjugate((r / cap).max(0.0)) + r * margin;
    let ties: f64 = rivals().map(|class| -expansion[class] * (score - scores[class] - margin)).sum();
    Worth { loss: value, gap: touch.max(0.0) + ties }
}

fn own(cells: &[Cell], scores: &[f64]) -> (usize, f64) {
    let own = cells.iter().position(|cell| cell.kind == Kind::Own).unwrap_or(0);
    (own, scores[own])
}

/// With the minimising xi: total (1 + xi) + sum knot [d]_+, and per class knot [d]_+ - q d + [q - knot]_+ without cancellation.
fn hinge_worth(cells: &[Cell], scores: &[f64], expansion: &[f64], base: &[f64], total: f64) -> Worth {
    let xi = best_xi(cells, scores, total);
    let mut worth = Worth { loss: total * (1.0 + xi), gap: 0.0 };
    for (class, cell) in cells.iter().enumerate() {
        let d = scores[class] - xi;
        let q = (base.get(class).copied().unwrap_or(0.0) - expansion[class]).max(0.0);
        match cell.kind {
            Kind::Single(offset) => worth.gap += q * (offset - d).max(0.0),
            Kind::Double(knot) => {
                worth.loss += knot * d.max(0.0);
                worth.gap += match (q <= knot, d > 0.0) {
                    (true, true) => (knot - q) * d,
                    (true, false) => -q * d,
                    (false, true) => (q - knot) * (1.0 - d).max(0.0),
                    (false, false) => (q - knot) - q * d,
                };
            }
            Kind::Own => {}
        }
    }
    worth
}

/// The minimiser of total xi + sum knot [F - xi]_+ above every floor: a weighted quantile.
fn best_xi(cells: &[Cell], scores: &[f64], total: f64) -> f64 {
    let floor = cells.iter().zip(scores).map(|(cell, &score)| cell.floor(score)).fold(f64::NEG_INFINITY, f64::max);
    let mut bends: Vec<(f64, f64)> = Vec::new();
    for (cell, &score) in cells.iter().zip(scores) {
        if let Kind::Double(knot) = cell.kind
            && score > floor
        {
            bends.push((score, knot));
        }
    }
    bends.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let mut sum = 0.0;
    for (score, knot) in bends {
        sum += knot;
        if sum >= total {
            return score;
        }
    }
    floor
}
