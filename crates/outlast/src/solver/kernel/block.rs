//! Sequential minimal optimisation on a dense block.
//!
//! ```text
//! min 1/2 b'K b + q'b,   sum b = const,   lower <= b <= upper,        F = K b + q
//! rising  = {b < upper},  falling = {b > lower};   optimal when max_falling F - min_rising F <= eps
//! ```
//!
//! One step: i = argmin of F over rising; j = argmax over falling of (F_j - F_i)^2 / (K_ii + K_jj - 2 K_ij), the largest
//! decrease of the objective with i (Fan, Chen, Lin 2005, WSS 2); b_i += t, b_j -= t, clipped to the box; F += t (K_i - K_j).
//! The update of F and the search for the next i share one pass, so a step reads four rows of K: about 4 m multiply-adds.
//!
//! A row may also carry a convex piecewise linear cost with up to two *kinks*, where F jumps up by `jump`. Then F
//! at rest depends on the direction: rising rows see the slope above b, falling rows the slope below, and a step ends at the
//! next kink. F as given is that of the piece b lies in, the upper one at a kink.
//!
//! F is held in f32 minus a common shift: near the optimum what matters is F's distance from the shift, and that keeps its
//! digits. Membership of rising and falling is held as an addend, 0 or infinity (or the change of slope), so that the passes have
//! no masks to load.

use super::super::tiles::{Aligned, LANES, Lanes, Portable};
#[cfg(target_arch = "x86_64")]
use super::super::tiles::{Avx2, Avx512};
use super::ranges::Ranges;
use crate::linalg::Isa;

/// Where the rows of a block's matrix come from, each `stride` long.
pub(crate) trait Rows {
    /// Whether `rows` rows of `stride` values can be asked for.
    fn covers(&self, rows: usize, stride: usize) -> bool;

    /// # Safety
    /// `row` must be among the rows covered, and the instruction set present.
    unsafe fn row<L: Lanes>(&mut self, row: usize, stride: usize) -> *const f32;
}

/// Rows one after the other.
impl Rows for &[f32] {
    fn covers(&self, rows: usize, stride: usize) -> bool {
        self.len() >= rows * stride
    }

    #[inline(always)]
    unsafe fn row<L: Lanes>(&mut self, row: usize, stride: usize) -> *const f32 {
        // SAFETY: `row` is covered, as the caller promises, so that the place lies within the slice.
        unsafe { self.as_ptr().add(row * stride) }
    }
}

/// A dense block: rows of K, each `stride` long (a multiple of 64), and the problem on them.
pub(crate) struct DenseBlock<'a> {
    pub(crate) stride: usize,
    /// K_ii
    pub(crate) diagonal: &'a [f32],
    pub(crate) ranges: Ranges<'a>,
}

/// Steps between two questions whether to stop.
const ASK: usize = 1 << 14;

/// A curvature below this share of K_ii + K_jj is rounding.
const FLAT: f32 = 1e-6;

impl DenseBlock<'_> {
    /// Minimises from `beta` with gradient `gradient` - `shift` to a violation of `eps`, in at most `most` steps, or until
    /// `stop`, which is asked now and then. Returns the steps taken.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn solve<R: Rows>(
        &self,
        isa: Isa,
        mut kernel: R,
        beta: &mut [f64],
        gradient: &[f64],
        shift: f64,
        eps: f64,
        most: usize,
        stop: &dyn Fn() -> bool,
    ) -> usize {
        assert!(kernel.covers(beta.len(), self.stride));
        let mut state = State::new(self, beta, gradient, shift);
        let kernel = &mut kernel;
        let eps = eps as f32;
        // SAFETY: `isa` was detected; `State::new` pads every vector to the stride.
        unsafe {
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => avx512(self, kernel, &mut state, beta, eps, most, stop),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => avx2(self, kernel, &mut state, beta, eps, most, stop),
                _ => minimize::<Portable, R>(self, kernel, &mut state, beta, eps, most, stop),
            }
        }
    }
}

struct State {
    /// F - shift
    gradient: Aligned,
    /// K_ii, padded with 1
    diagonal: Aligned,
    /// 0 where b can rise, else +infinity
    rising: Aligned,
    /// 0 where b can fall, else -infinity
    falling: Aligned,
    /// The piece F is given for.
    start: Vec<i8>,
}

impl State {
    fn new(block: &DenseBlock, beta: &[f64], gradient: &[f64], shift: f64) -> State {
        let (rows, stride) = (beta.len(), block.stride);
        assert!(stride % (2 * LANES) == 0 && rows <= stride);
        let mut state = State {
            gradient: Aligned::zeroed(stride),
            diagonal: Aligned::zeroed(stride),
            rising: Aligned::zeroed(stride),
            falling: Aligned::zeroed(stride),
            start: (0..rows).map(|row| block.ranges.kinks_below(row, beta[row])).collect(),
        };
        state.diagonal.fill(1.0);
        state.rising.fill(f32::INFINITY);
        state.falling.fill(f32::NEG_INFINITY);
        for row in 0..rows {
            state.gradient[row] = (gradient[row] - shift) as f32;
            state.diagonal[row] = block.diagonal[row];
            state.classify(block, row, beta[row]);
        }
        state
    }

    #[inline(always)]
    fn classify(&mut self, block: &DenseBlock, row: usize, beta: f64) {
        let slope = |above: bool| block.ranges.piece(row, beta, self.start[row], above).1 as f32;
        let rising = if beta < block.ranges.upper[row] { slope(true) } else { f32::INFINITY };
        let falling = if beta > block.ranges.lower[row] { slope(false) } else { f32::NEG_INFINITY };
        (self.rising[row], self.falling[row]) = (rising, falling);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
unsafe fn avx512<R: Rows>(
    block: &DenseBlock,
    kernel: &mut R,
    state: &mut State,
    beta: &mut [f64],
    eps: f32,
    most: usize,
    stop: &dyn Fn() -> bool,
) -> usize {
    // SAFETY: the instruction set is enabled here; sizes are the caller's promise, passed on.
    unsafe { minimize::<Avx512, R>(block, kernel, state, beta, eps, most, stop) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<R: Rows>(
    block: &DenseBlock,
    kernel: &mut R,
    state: &mut State,
    beta: &mut [f64],
    eps: f32,
    most: usize,
    stop: &dyn Fn() -> bool,
) -> usize {
    // SAFETY: as above.
    unsafe { minimize::<Avx2, R>(block, kernel, state, beta, eps, most, stop) }
}

/// # Safety
/// The instruction set must be present, and the rows, their kernel and the state as `solve` and `State::new` check them.
#[inline(always)]
unsafe fn minimize<L: Lanes, R: Rows>(
    block: &DenseBlock,
    kernel: &mut R,
    state: &mut State,
    beta: &mut [f64],
    eps: f32,
    most: usize,
    stop: &dyn Fn() -> bool,
) -> usize {
    // SAFETY: rows asked for are rows of the block, which `solve` has checked.
    let mut kernel_row = |row: usize| unsafe { kernel.row::<L>(row, block.stride) };
    let (mut k_i, mut k_j, mut t) = (kernel_row(0), kernel_row(0), 0.0f32);
    for step in 0..most {
        if step % ASK == ASK - 1 && stop() {
            return step;
        }
        // SAFETY: the assertion in `State::new` bounds every row and vector by the stride.
        let (next, lowest, highest) = unsafe { update_and_find::<L>(state, k_i, k_j, t, block.stride) };
        if !(highest - lowest > eps) {
            return step;
        }
        let i = next;
        k_i = kernel_row(i);
        // SAFETY: likewise.
        let j = unsafe { best_partner::<L>(state, k_i, lowest, state.diagonal[i], block.stride) };
        k_j = kernel_row(j);
        // SAFETY: `best_partner` answers with a place below the stride, the length of a row.
        let k_ij = unsafe { *k_i.add(j) };
        let sum = state.diagonal[i] + state.diagonal[j];
        let curvature = (sum - 2.0 * k_ij).max(FLAT * sum).max(f32::MIN_POSITIVE);
        let difference = f64::from(state.gradient[j]) + f64::from(state.falling[j]) - f64::from(lowest);
        t = move_pair(block, beta, i, j, difference / f64::from(curvature)) as f32;
        for row in [i, j] {
            state.classify(block, row, beta[row]);
        }
    }
    most
}

/// b_i += t, b_j -= t for the largest t <= `wanted` the pieces allow, their ends met exactly. Returns t.
#[inline(always)]
fn move_pair(block: &DenseBlock, beta: &mut [f64], i: usize, j: usize, wanted: f64) -> f64 {
    let (upper, lower) = (block.ranges.piece(i, beta[i], 0, true).0, block.ranges.piece(j, beta[j], 0, false).0);
    let (room_i, room_j) = (upper - beta[i], beta[j] - lower);
    if wanted < room_i && wanted < room_j {
        beta[i] += wanted;
        beta[j] -= wanted;
        wanted
    } else if room_i <= room_j {
        beta[i] = upper;
        beta[j] = (beta[j] - room_i).max(lower);
        room_i
    } else {
        beta[j] = lower;
        beta[i] = (beta[i] + room_j).min(upper);
        room_j
    }
}

/// F += t (K_i - K_j); then (argmin of F over rising, its value, max of F over falling).
///
/// # Safety
/// The instruction set must be present; `stride` is a multiple of 32 and no longer than the rows and the vectors of the state.
#[inline(always)]
unsafe fn update_and_find<L: Lanes>(
    state: &mut State,
    k_i: *const f32,
    k_j: *const f32,
    t: f32,
    stride: usize,
) -> (usize, f32, f32) {
    // SAFETY: `o` + 16 is at most the stride.
    unsafe {
        let gradient = state.gradient.as_mut_ptr();
        let (rising, falling) = (state.rising.as_ptr(), state.falling.as_ptr());
        let t = L::splat(t);
        let mut lowest = [L::splat(f32::INFINITY); 2];
        let mut place = [L::splat(0.0); 2];
        let mut highest = [L::splat(f32::NEG_INFINITY); 2];
        let mut at = 0;
        while at < stride {
            for half in 0..2 {
                let o = at + half * LANES;
                let difference = L::sub(L::load(k_i.add(o)), L::load(k_j.add(o)));
                let f = L::fma(t, difference, L::load(gradient.add(o)));
                L::store(gradient.add(o), f);
                let up = L::add(f, L::load(rising.add(o)));
                let better = L::less(up, lowest[half]);
                lowest[half] = L::select(better, up, lowest[half]);
                place[half] = L::select(better, L::splat(o as f32), place[half]);
                highest[half] = L::max(L::add(f, L::load(falling.add(o))), highest[half]);
            }
            at += 2 * LANES;
        }
        let second = L::less(lowest[1], lowest[0]);
        let lowest = L::select(second, lowest[1], lowest[0]);
        let place = L::select(second, place[1], place[0]);
        let least = L::reduce_min(lowest);
        (position::<L>(lowest, place, least), least, L::reduce_max(L::max(highest[0], highest[1])))
    }
}

/// The falling row whose pair with i lowers the objective most; below the stride.
///
/// # Safety
/// As `update_and_find`.
#[inline(always)]
unsafe fn best_partner<L: Lanes>(state: &State, k_i: *const f32, f_i: f32, diagonal_i: f32, stride: usize) -> usize {
    // SAFETY: `o` + 16 is at most the stride.
    unsafe {
        let (gradient, falling) = (state.gradient.as_ptr(), state.falling.as_ptr());
        let diagonal = state.diagonal.as_ptr();
        let (f_i, diagonal_i) = (L::splat(f_i), L::splat(diagonal_i));
        let (zero, minus_two, flat) = (L::splat(0.0), L::splat(-2.0), L::splat(FLAT));
        let tiny = L::splat(f32::MIN_POSITIVE);
        let mut best = [zero; 2];
        let mut place = [zero; 2];
        let mut at = 0;
        while at < stride {
            for half in 0..2 {
                let o = at + half * LANES;
                let f = L::add(L::load(gradient.add(o)), L::load(falling.add(o)));
                let difference = L::max(L::sub(f, f_i), zero);
                let sum = L::add(diagonal_i, L::load(diagonal.add(o)));
                let curvature = L::fma(L::load(k_i.add(o)), minus_two, sum);
                let curvature = L::max(L::max(curvature, L::mul(sum, flat)), tiny);
                let gain = L::mul(L::mul(difference, difference), L::reciprocal(curvature));
                let better = L::less(best[half], gain);
                best[half] = L::select(better, gain, best[half]);
                place[half] = L::select(better, L::splat(o as f32), place[half]);
            }
            at += 2 * LANES;
        }
        let second = L::less(best[0], best[1]);
        let best = L::select(second, best[1], best[0]);
        let place = L::select(second, place[1], place[0]);
        position::<L>(best, place, L::reduce_max(best))
    }
}

/// The row whose value is `wanted`: its vector's start is in `place`, its lane is where it stands. f32 holds starts up to
/// 2^24 exactly, far above any block.
///
/// # Safety
/// The instruction set must be present.
#[inline(always)]
unsafe fn position<L: Lanes>(values: L::Vector, place: L::Vector, wanted: f32) -> usize {
    let (mut lanes, mut starts) = ([0f32; LANES], [0f32; LANES]);
    // SAFETY: both arrays have a vector's length.
    unsafe {
        L::store(lanes.as_mut_ptr(), values);
        L::store(starts.as_mut_ptr(), place);
    }
    let lane = lanes.iter().position(|&value| value == wanted).unwrap_or(0);
    starts[lane] as usize + lane
}
